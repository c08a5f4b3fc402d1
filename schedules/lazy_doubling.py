"""Lazy doubling [LD13], as [SBD13, section 2.2] describes it: hybrid, the sum of a column of blocks doubled at its end.

    columns  7 6 5 4 3 2 1 0
             c c c c b b a a
                   b b              n = 4, d = 2: blocks a, b, c, each row by row and summed apart,
                 b b a              then doubled and added to what the blocks before have left,
               c   *   *            then the cells on the diagonal (*)
             *   *

A triangle of blocks of d by d cells, product scanning over the blocks, operand scanning inside a block, carries caught
as in carry-catcher.  The doubling is as late as the hybrid structure lets it be: 2d limbs and a carry for each column
of blocks, two of which reach each limb of the result.

Cost: n(n-1)/2 cells at 5 cycles, n at 5, about 4n doublings, 2n additions of what was left before, 2n stores, and two
cycles for each carry catcher.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Parameter, Values
from sqgen.plan import Apart, Block, Gather, Join, Product, Step, Store

TITLE = "hybrid, the sum of each column of blocks doubled"
REFERENCE = "LD13"
OPS = ("sqr",)
PARAMETERS = (Parameter("d", "limbs of the operand in a block", "2"),)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs; the last block is smaller where d does not divide n."""
    d = values.one("d")
    blocks = range(-(-n // d))
    for diagonal in range(2 * len(blocks) - 1):
        first, last = diagonal * d, diagonal * d + d
        if last > 2 * n - 1 or diagonal == 2 * len(blocks) - 2:
            last = 2 * n
        yield Block(f"blocks of columns {first}..{last - 1}")
        lefts = [left for left in range(diagonal // 2 + 1) if diagonal - left in blocks]
        cells = [cell for left in lefts for cell in block(n, d, left, diagonal - left)]
        if cells:
            yield Apart()
            yield from cells
            yield Gather(2 * n)
            yield Join()
        if diagonal % 2 == 0:
            for i in range(first // 2, min(n, first // 2 + d)):
                yield Product(i, i)
        for column in range(first, last):
            yield Store(column)


def block(n: int, d: int, left: int, right: int) -> Iterator[Product]:
    """The cells of one block off the diagonal, row by row."""
    for i in range(left * d, min(n, left * d + d)):
        for j in range(max(i + 1, right * d), min(n, right * d + d)):
            yield Product(i, j, caught=True)
