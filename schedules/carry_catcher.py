"""Carry-catcher squaring [Scott07], as [SBD13, section 2.2] describes it: hybrid, every product off the diagonal twice.

    columns  7 6 5 4 3 2 1 0
             c c c c b b a a
                   b b              n = 4, d = 2: blocks a, b, c, each row by row
                 b b a              cells on the diagonal (*) are added once,
               c   *   *            all others are doubled as they are formed
             *   *

A triangle of blocks of d by d cells, product scanning over the blocks, operand scanning inside a block.  A product off
the diagonal is added twice.  The carries of the products do not run through the sum: each column has a carry catcher
beside it, and when the limbs of a column of blocks are complete the catchers are added in one carry run.

Cost: n(n-1)/2 cells at 8 cycles, n at 5, about n^2/d loads, 2n stores, and two cycles for each carry catcher.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Gather, Product, Step, Store

TITLE = "hybrid, each product doubled, carries caught"
REFERENCE = "Scott07"
OPS = ("sqr",)
PARAMETERS = (Parameter("d", "limbs of the operand in a block", "4"),)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs; the last block is smaller where d does not divide n."""
    d = values.one("d")
    blocks = range(-(-n // d))
    for diagonal in range(2 * len(blocks) - 1):
        first, last = diagonal * d, diagonal * d + d
        if last > 2 * n - 1 or diagonal == 2 * len(blocks) - 2:
            last = 2 * n
        yield Block(f"blocks of columns {first}..{last - 1}")
        for left in range(diagonal // 2 + 1):
            if diagonal - left in blocks:
                yield from block(n, d, left, diagonal - left)
        yield Gather(last)
        for column in range(first, last):
            yield Store(column)


def block(n: int, d: int, left: int, right: int) -> Iterator[Step]:
    """The cells of one block, row by row."""
    for i in range(left * d, min(n, left * d + d)):
        for j in range(max(i, right * d), min(n, right * d + d)):
            yield Product(i, j, times=1 if i == j else 2, caught=True)
