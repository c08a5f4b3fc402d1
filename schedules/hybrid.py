"""Hybrid multiplication [Gura04]: product scanning over blocks of d by d cells, operand scanning inside a block.

    columns  6 5 4 3 2 1 0
             d d b b            a3      n = 4, d = 2: blocks a; b and c; d
               d d b b          a2      a block's rows one after the other
                 c c a a        a1
                   c c a a      a0

A block needs d limbs of either operand, so each limb is loaded n/d times instead of n times.  With each column of
blocks d limbs of the result leave.

Cost: n^2 cells at 5 cycles and more, since a carry may run through up to d limbs; 2 n^2 / d loads, 2n stores.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Product, Step, Store

TITLE = "hybrid of product and operand scanning"
REFERENCE = "Gura04"
OPS = ("mul",)
PARAMETERS = (Parameter("d", "limbs of each operand in a block", "2"),)


def points(n: int) -> list[dict[str, str]]:
    """Blocks of more than one cell: of one it is product scanning."""
    return [{"d": str(d)} for d in (2, 3, 4)]


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs; the last block of either operand is smaller where d does not divide n."""
    d = values.one("d")
    blocks = range(-(-n // d))
    for diagonal in range(2 * len(blocks) - 1):
        yield Block(f"blocks of columns {diagonal * d}..{min(2 * n, diagonal * d + d) - 1}")
        for left in blocks:
            if diagonal - left in blocks:
                yield from block(n, d, left, diagonal - left)
        last = diagonal == 2 * len(blocks) - 2
        for column in range(diagonal * d, 2 * n if last else min(2 * n, diagonal * d + d)):
            yield Store(column)


def block(n: int, d: int, left: int, right: int) -> Iterator[Step]:
    """The cells of one block, row by row."""
    for i in range(left * d, min(n, left * d + d)):
        for j in range(right * d, min(n, right * d + d)):
            yield Product(i, j)
