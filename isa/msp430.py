"""MSP430: from a plan to code.

The multiplier is a device in memory, in which a column of products is accumulated: `msp430_columns` has the idiom,
`msp430_square` and `msp430_product` what is in registers when, `msp430_wide` all of it for the 32-bit multiplier;
`msp430_pointers` is how operands are read.  `msp430_rows` adds products in rows; `msp430_streamed` is a level of
Karatsuba's method made of these, `msp430_level` and `msp430_sums` one whose parts share code; `msp430_padded` copies
operands for a product of longer ones; `msp430_loops` is code in loops, `msp430_cells` for all other orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqgen.code import Code, Function, Op
from sqgen.plan import Plan
from sqgen.table import Core, Isa

from .msp430_cells import addressed, any_cells
from .msp430_columns import Walk, fastest, frame
from .msp430_level import level, leveled
from .msp430_loops import LEAST, loops
from .msp430_padded import padded
from .msp430_product import products
from .msp430_rows import SUMS, in_rows, rows
from .msp430_square import squares
from .msp430_streamed import in_one, streamed
from .msp430_wide import wide
from .msp430_wipe import wipe
from .msp430_writer import FLASH

__all__ = ["NEEDS", "address", "floor", "forms", "frame", "lower", "preferred", "room", "starts", "wipe"]

NEEDS = ()
WIDE = "mpy32"  # the multiplier that words of two limbs are for


def forms(plan: Plan, core: Core) -> bool:
    """Whether these idioms know all steps of a plan, of which none branches; cells may come in any order."""
    return not plan.branches and (fitting(plan) or not (plan.loops or any(plan.parts())))


def fitting(plan: Plan) -> bool:
    """Whether a plan finishes one column after the other, as the multiplier's sum must, or is made of rows in runs, or
    of parts of these kinds."""
    if leveled(plan) or plan.copies:
        return all(part.called and fitting(part.plan) for part in plan.parts())
    if plan.loops:
        return plan.by_columns and plan.limbs >= LEAST
    return plan.by_columns or in_rows(plan) or streamed(plan)


def preferred(op: str, limbs: int, core: Core) -> list[tuple[str, dict[str, str]]]:
    """Methods for cores of which the answers say nothing: none of their own."""
    return []


def lower(plan: Plan, isa: Isa, core: Core, reserve: Sequence[str] = ()) -> Code:
    """The plan as one function: on registers already, since which operand is in one when is chosen with the idiom, but
    for cells in an order of their own."""
    if not fitting(plan):
        return any_cells(plan, isa, core)
    ops = formed(plan, isa, core)
    return Code((Function("", tuple(replace(op, reads=(), writes=()) for op in ops), ()),))


def formed(plan: Plan, isa: Isa, core: Core, path: str = "") -> Sequence[Op]:
    """A plan's operations on registers, at the end of a path through levels; the stack pointer is where it was behind
    them."""
    if leveled(plan):
        return level(plan, isa, core, lambda part, at: formed(part, isa, core, at), path)
    if plan.copies:
        return padded(plan, isa, core, lambda part: formed(part, isa, core))
    if plan.loops:
        return loops(plan, isa, core)
    if in_rows(plan):
        return rows(plan, isa, core)
    if streamed(plan):
        return in_one(plan, isa, core)
    return fastest(by_columns(plan, isa, core), isa, core)


def by_columns(plan: Plan, isa: Isa, core: Core) -> list[Walk]:
    """The ways to form a plan column by column.  Of 16 bits the 32-bit multiplier is busy for too long to be used twice
    in one."""
    found: list[Walk] = [*(squares if plan.op == "sqr" else products)(plan, isa, core)]
    if WIDE not in core.devices:
        return found
    short = plan.limbs <= (2 if plan.op == "sqr" else 1)
    return [*wide(plan, isa, core), *(found if short else ())]


def address(ops: Sequence[Op], isa: Isa) -> list[Op]:
    """Loads and stores of cells in an order of their own become instructions."""
    return addressed(ops, isa)


def floor(op: str, limbs: int, core: Core) -> dict[str, int]:
    """Cycles that columns, or rows, take at least, by the groups of `sqgen explain`.

    A product takes two writes to the multiplier for each limb of a word, from registers, and its carry an addition, but
    for the first two of a column; a column ends with additions of the product's limbs and of the last carry.  In rows
    of a product the first of the two writes is there once for each row, but both limbs of each product are added.
    """
    write = 3 if core.timing == "cpux" else 4
    width = 2 if WIDE in core.devices else 1
    words = limbs // width
    heights = [min(column, 2 * words - 2 - column) + 1 for column in range(2 * words - 1)]
    if op == "sqr":
        heights = [(height + 1) // 2 for height in heights]
    writes = 2 * sum(heights) if op == "sqr" else sum(heights) + words
    carries, end = sum(max(0, height - 2) for height in heights), 2 * (2 * width + 1)
    alone = sum(height == 1 for height in heights)  # their carry is nothing
    sums = {"products": width * write * writes, "their sums": 2 * carries + end * len(heights) - 2 * alone}
    operands = {"operands": 2 * limbs, "doubling": limbs} if op == "sqr" else {}  # a product's can go straight there
    return {**sums, **operands, "result": 2 * limbs * write}


def room(core: Core) -> int:
    """Bytes of code that any part can hold."""
    return len(FLASH)


def starts(method: str, op: str, limbs: int) -> list[dict[str, str]]:
    """Parameters to begin a search with, beside those that the method and the answers have."""
    if method == "rows" and 2 <= limbs <= len(SUMS):
        return [{"strips": str(limbs)}]
    return list(levels(op, limbs)) if method in ("karatsuba", "karatsuba-squaring") else []


def levels(op: str, limbs: int) -> Iterator[dict[str, str]]:
    """Karatsuba's method with one level or more that leave four limbs; a product's innermost one in one piece, too."""
    count = 1
    while limbs >> count >= (2 if count == 1 else 4):
        yield {"levels": str(count), "parts": "calls", "leaf": "product-scanning", "recombine": "unrolled"}
        if op == "mul" and -(-limbs >> count) <= len(SUMS):
            yield {"levels": str(count), "parts": "rows", "recombine": "unrolled"}
        count += 1
