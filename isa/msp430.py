"""MSP430: from a plan to code.

The multiplier is a device in memory, in which a column of products is accumulated: `msp430_columns` has the idiom,
`msp430_square` and `msp430_product` what is in registers when, `msp430_wide` all of it for the 32-bit multiplier;
`msp430_pointers` is how operands are read.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Code, Op
from sqgen.plan import Plan
from sqgen.table import Core, Isa

from .msp430_columns import fastest, frame
from .msp430_product import products
from .msp430_square import squares
from .msp430_wide import wide

__all__ = ["NEEDS", "address", "floor", "forms", "frame", "lower", "preferred", "starts"]

NEEDS = ("mov_ra",)


def forms(plan: Plan, core: Core) -> bool:
    """Whether a plan finishes one column after the other, as the multiplier's sum must."""
    return plan.by_columns


def preferred(op: str, limbs: int, core: Core) -> list[tuple[str, dict[str, str]]]:
    """Methods for cores of which the answers say nothing: none of their own."""
    return []


def lower(plan: Plan, isa: Isa, core: Core) -> Code:
    """The plan as one function, on registers already: which operand is in one when is chosen there."""
    if "mpy32" in core.devices:
        return fastest(wide(plan, isa, core), isa, core)
    return fastest((squares if plan.op == "sqr" else products)(plan, isa, core), isa, core)


def address(ops: Sequence[Op], isa: Isa) -> list[Op]:
    """Nothing is left to be done."""
    return list(ops)


def floor(op: str, limbs: int, core: Core) -> dict[str, int]:
    """Cycles that product scanning takes at least, by the groups of `sqgen explain`.

    A product takes two writes to the multiplier for each limb of a word, from registers, and its carry an addition, but
    for the first two of a column; a column ends with additions of the product's limbs and of the last carry.
    """
    write = 3 if core.timing == "cpux" else 4
    width = 2 if "mpy32" in core.devices else 1
    words = limbs // width
    heights = [min(column, 2 * words - 2 - column) + 1 for column in range(2 * words - 1)]
    if op == "sqr":
        heights = [(height + 1) // 2 for height in heights]
    carries, end = sum(max(0, height - 2) for height in heights), 2 * (2 * width + 1)
    alone = sum(height == 1 for height in heights)  # their carry is nothing
    sums = {"products": 2 * width * write * sum(heights), "their sums": 2 * carries + end * len(heights) - 2 * alone}
    operands = {"operands": 2 * limbs, "doubling": limbs} if op == "sqr" else {}  # a product's can go straight there
    return {**sums, **operands, "result": 2 * limbs * write}


def starts(method: str, op: str, limbs: int) -> list[dict[str, str]]:
    """Parameters to begin a search with, beside those that the method and the answers have: none."""
    return []
