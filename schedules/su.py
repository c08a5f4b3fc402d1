"""Su, Hwang and Huang's squaring [SHH, algorithm 2]: product scanning of doubled products, then the squares.

    columns  7 6 5 4 3 2 1 0
                     o              n = 4: columns 1 to 5 from right to left, each product doubled (o)
                   o   o            and added to three limbs, of which one is stored with each column;
                 o   o   o          then the stored limbs come back two by two
               *   *   *   *        and the diagonal (*) is added

It is made for processors that double a product for nothing and have an accumulator of three limbs.  The printed
algorithm stores no limb 2n-2 and loses the carry from one square to the next: see docs/errata.md.

Cost: n(n-1)/2 cells at 8 cycles, n at 5, n + 2n-1 loads, 4n-1 stores.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Values
from sqgen.plan import Block, Load, Product, Step, Store

TITLE = "product scanning of doubled products, then the squares"
REFERENCE = "SHH"
OPS = ("sqr",)
PARAMETERS = ()


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    stored = range(1, 2 * n) if n > 1 else range(0)
    for column in stored:
        if column < 2 * n - 2:
            yield Block(f"column {column}")
        for j in range(max(0, column - n + 1), (column - 1) // 2 + 1):
            yield Product(j, column - j, times=2)
        yield Store(column)
    yield Block("squares")
    for i in range(n):
        yield from (Load(column) for column in (2 * i, 2 * i + 1) if column in stored)
        yield Product(i, i)
        yield Store(2 * i)
        yield Store(2 * i + 1)
