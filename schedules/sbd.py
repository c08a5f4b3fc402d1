"""Sliding block doubling [SBD13]: the triangle is cut into blocks of columns, and each block is doubled as one number.

In a block the cells off the diagonal are summed column by column (product scanning); when its columns are complete it
is doubled by one shift to the left, then the cells on the diagonal are added and the limbs leave.  The block slides on
with the two limbs that already lie above it.

    columns  7 6 5 4 | 3 2 1 0        o  off the diagonal, summed first
                     |                *  on the diagonal, added after the doubling
             * o o o | o              n = 4, blocks of four columns
                 * o | o o
                     | *   *

The paper writes the undoubled sums to memory and loads them again block by block ([SBD13], section 3); here a block
is at most as wide as the registers hold, so they stay there, as in the authors' later code for 128 bits.

Cost with everything in registers: n(n-1)/2 cells at 5 cycles, n on the diagonal at 5, 2n doublings, n loads, 2n stores
and about 3 cycles for each block.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Double, Product, Step, Store, blocks

TITLE = "sliding block doubling"
REFERENCE = "SBD13"
OPS = ("sqr",)
PARAMETERS = (Parameter("block", "widths of the blocks in columns, the last one repeated", "4", many=True),)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs; `block` holds the widths of the blocks in columns."""
    for first, last in blocks(n, values.many("block")):
        yield Block(f"block of columns {first}..{last - 1}")
        for column in range(first, min(last, 2 * n - 2)):
            for i in range(max(0, column - n + 1), (column + 1) // 2):
                yield Product(i, column - i)
        yield Double(first, last)
        for i in range((first + 1) // 2, (last + 1) // 2):
            yield Product(i, i)
        for column in range(first, last):
            yield Store(column)
