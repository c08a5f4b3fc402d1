"""Blocks of rows in loops: code whose size does not hang on the number of limbs.

    columns  6 5 4 3 2 1 0
                   b a . .      n = 4, two rows in a block: a loop over the blocks, and in it one over the limbs of
                 b a . .        the other operand, some in each turn; the sum lies in memory, and begins with zeros
               d c . .
             d c . .

As in blocks of rows, the limbs of a block's rows and one limb of the sum for each stay in registers while the other
operand walks by.  Of a square it is the triangle off the diagonal; a loop of its own doubles the sum and adds the
diagonal.  What is left when rows or limbs are not a multiple of four stands beside the loops.

Cost: n^2 cells (square: n(n+1)/2 and 2n doublings); for each limb of each block, two loads and a store, and a jump in
every fourth; the code of four columns of a block, once.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Values
from sqgen.plan import Block, Double, Load, Product, Step, Store

TITLE = "blocks of rows in loops, the sum in memory"
REFERENCE = "MOV96"
OPS = ("sqr", "mul")
PARAMETERS = ()
TURN = 4  # rows of a block, and limbs of the other operand in each turn


def compact(n: int) -> list[dict[str, str]]:
    """All that there is."""
    return [{}]


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    yield from triangle(n) if op == "sqr" else rhombus(n)


def rows(n: int) -> Iterator[range]:
    """The blocks: of four rows, and of two and one for what is left."""
    first = 0
    for height in (TURN, 2, 1):
        while n - first >= height:
            yield range(first, first + height)
            first += height


def rhombus(n: int) -> Iterator[Step]:
    """All cells, block by block."""
    for block in rows(n):
        yield Block(f"rows {block.start}..{block.stop - 1}", TURN)
        for j in range(n):
            if block.start:
                yield Load(block.start + j)
            yield from (Product(i, j) for i in block)
            yield Store(block.start + j)
        yield from (Store(n + i) for i in block)


def triangle(n: int) -> Iterator[Step]:
    """The cells off the diagonal, block by block, and then the diagonal."""
    stored: set[int] = set()
    for first in range(0, n, TURN):
        block = range(first, min(first + TURN, n))
        yield Block(f"rows {block.start}..{block.stop - 1}", TURN)
        for j in range(first + 1, n):
            yield from (Load(column) for column in (first + j,) if column in stored)
            yield from (Product(i, j) for i in block if i < j)
            yield Store(first + j)
            stored.add(first + j)
        for column in range(first + n, min(first + n + TURN, 2 * n - 1)):
            yield Store(column)
            stored.add(column)
    yield Block("doubling, and the diagonal", TURN)
    for i in range(n):
        yield from (Load(column) for column in (2 * i, 2 * i + 1) if column in stored)
        yield Double(2 * i, 2 * i + 2)
        yield Product(i, i)
        yield from (Store(2 * i), Store(2 * i + 1))
