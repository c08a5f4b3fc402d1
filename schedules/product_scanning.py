"""Product scanning [Comba90]: column by column, each limb of the result is finished and stored once.

    columns  6 5 4 3 2 1 0
             o o o o            a3      visited from right to left, one column after the other
               o o o o          a2
                 o o o o        a1
                   o o o o      a0

A sum of three limbs is all that it keeps, and no limb of the result is loaded again.  A square visits the triangle:
the cells off the diagonal of a column are summed, the column is doubled, its diagonal cell is added.

Cost: n^2 cells (square: n(n+1)/2) at 5 cycles, 2n loads of operands for each column that does not find them in
registers, 2n stores.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Values
from sqgen.plan import Block, Double, Product, Step, Store

TITLE = "product scanning"
REFERENCE = "Comba90"
OPS = ("sqr", "mul")
PARAMETERS = ()


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    for column in range(2 * n):
        yield Block(f"column {column}")
        low = max(0, column - n + 1)
        if op == "mul":
            for i in range(low, min(n, column + 1)):
                yield Product(i, column - i)
        else:
            for i in range(low, (column + 1) // 2):
                yield Product(i, column - i)
            yield Double(column, column + 1)
            if column % 2 == 0:
                yield Product(column // 2, column // 2)
        yield Store(column)
