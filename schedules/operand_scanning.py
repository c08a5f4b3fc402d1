"""Operand scanning, the school-book method [MOV96, algorithm 14.12]: row by row, each row added to the stored result.

One limb of a stays in a register while all limbs of b walk by, and one limb of carry goes from cell to cell.  Every
cell but those of the first row loads a limb of the result and stores it again, which is what makes the method slow.

    columns  6 5 4 3 2 1 0
                   o o o o      a0      each row from right to left, carrying one limb
                 o o o o        a1
               o o o o          a2
             o o o o            a3

Cost: n^2 cells, each with a load and a store of a result limb.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Values
from sqgen.plan import Block, Load, Product, Step, Store

TITLE = "operand scanning"
REFERENCE = "MOV96"
OPS = ("mul",)
PARAMETERS = ()


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    for i in range(n):
        yield Block(f"row {i}")
        for j in range(n):
            yield Product(i, j)
            if i:
                yield Load(i + j)
            yield Store(i + j)
        yield Store(i + n)
