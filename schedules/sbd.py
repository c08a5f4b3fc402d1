"""Sliding block doubling [SBD13]: the triangle is cut into blocks of columns, and each block is doubled as one number.

In a block the cells off the diagonal are summed column by column (product scanning); when its columns are complete it
is doubled by one shift to the left, then the cells on the diagonal are added and the limbs leave.  The block slides on
with the two limbs that already lie above it.

    columns  7 6 5 4 | 3 2 1 0        o  off the diagonal, summed first
                     |                *  on the diagonal, added after the doubling
             * o o o | o              n = 4, blocks of four columns
                 * o | o o
                     | *   *

With `sums=memory` it is as the paper has it ([SBD13], section 3): first the cells off the diagonal are summed column by
column and stored undoubled, then the sums are loaded again block by block, doubled, the diagonal is added, and they are
stored.  With `sums=registers` a block is finished while its sums are still in registers.

Cost: n(n-1)/2 cells at 5 cycles, n on the diagonal at 5, 2n doublings, n loads, 2n stores and about 3 cycles for each
block; in memory 2n-2 loads and stores more ([SBD13, Table 1]: 3n loads, 4n stores).
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Double, Product, Step, Store, blocks, double_stored

TITLE = "sliding block doubling"
REFERENCE = "SBD13"
OPS = ("sqr",)
PARAMETERS = (
    Parameter("block", "widths of the blocks in columns, the last one repeated", "4", many=True),
    Parameter("sums", "where sums wait for their doubling", "registers", choices=("registers", "memory")),
)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs; `block` holds the widths of the blocks in columns."""
    widths = values.many("block")
    if values.word("sums") == "memory":
        yield from store_sums(n)
        yield from double_stored(n, widths)
    else:
        yield from in_registers(n, widths)


def off_diagonal(n: int, column: int) -> Iterator[Product]:
    """The cells of a column of the triangle without the diagonal."""
    for i in range(max(0, column - n + 1), (column + 1) // 2):
        yield Product(i, column - i)


def store_sums(n: int) -> Iterator[Step]:
    """Product scanning of the cells off the diagonal; their sum is below column 2n-1."""
    yield Block("sums off the diagonal")
    for column in range(1, 2 * n - 1):
        yield from off_diagonal(n, column)
        yield Store(column)


def in_registers(n: int, widths: tuple[int, ...]) -> Iterator[Step]:
    """Each block summed, doubled and finished."""
    for first, last in blocks(n, widths):
        yield Block(f"block of columns {first}..{last - 1}")
        for column in range(first, min(last, 2 * n - 2)):
            yield from off_diagonal(n, column)
        yield Double(first, last)
        for i in range((first + 1) // 2, (last + 1) // 2):
            yield Product(i, i)
        for column in range(first, last):
            yield Store(column)
