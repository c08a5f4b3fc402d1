"""Product scanning in loops: code whose size does not hang on the number of limbs.

    columns  6 5 4 3 2 1 0
             d c b a            n = 4: one loop over the columns, from right to left, and in it one over the cells of a
               d c b a          column, from the top down; as long as columns grow, the next one begins a limb further
                 d c b a        on the right operand, then a limb further on the left one
                   d c b a

Of a square it is the triangle: the cells of a column off the diagonal, doubled, then the one on it in every second
column.  Each limb of the result is stored once, so that no memory is needed for the sum.

Cost: n^2 cells (square: n(n+1)/2), each with two loads, a count and a jump; what a column needs besides, 2n - 1 times.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Values
from sqgen.plan import Block, Double, Product, Step, Store

TITLE = "product scanning in loops"
REFERENCE = "Comba90"
OPS = ("sqr", "mul")
PARAMETERS = ()
SOUGHT_FROM = 17  # limbs; up to 16 code in one piece is small, too, and takes half the time


def compact(n: int) -> list[dict[str, str]]:
    """All that there is."""
    return [{}]


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    for column in range(2 * n):
        yield Block(f"column {column}", 1)
        low, high = max(0, column - n + 1), min(column, n - 1)
        if op == "mul":
            yield from (Product(i, column - i) for i in range(low, high + 1))
        else:
            yield from (Product(i, column - i) for i in range(low, (column + 1) // 2))
            yield Double(column, column + 1)
            if column % 2 == 0 and column < 2 * n - 1:
                yield Product(column // 2, column // 2)
        yield Store(column)
