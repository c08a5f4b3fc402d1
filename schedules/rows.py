"""Rows of parity sweeps: operand scanning in which the products of a row are added in two carry runs.

    columns  6 5 4 3 2 1 0
             o x o x            a3      row by row from the top one down; in each row first the products two columns
               o x o x          a2      apart that reach its highest column, x, then the others, o
                 o x o x        a1
                   o x o x      a0

The whole sum stays in registers, as does b if they suffice; the lowest limb leaves after each row.  It is the leaf of
Karatsuba in place, since it can begin with limbs in its sum: all of them are there from the first row on.

Cost: 5n - 1 for a row, 4n for the first one, n loads of a, n of b, 2n stores.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Values
from sqgen.plan import Block, Product, Step, Store

from .sweeps import sweeps

TITLE = "rows of parity sweeps"
REFERENCE = "HS15"
OPS = ("mul",)
PARAMETERS = ()


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    filled: set[int] = set()
    for i in range(n):
        yield Block(f"row of a[{i}]")
        yield from sweeps([Product(i, j) for j in range(n)], filled)
        filled |= set(range(i, i + n + 1))
        yield Store(i)
    for column in range(n, 2 * n):
        yield Store(column)
