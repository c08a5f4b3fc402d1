"""Operand caching [HW11]: product scanning in L-shaped rows, so that e limbs of one operand stay in registers.

    columns  6 5 4 3 2 1 0
             1 1 0 0            a3      n = 4, e = 2: row 1, the inner one, comes first, then row 0 around it;
               1 1 0 0          a2      in each row column by column from the right
                 0 0 0 0        a1
                   0 0 0 0      a0

On the right of a row a[pe..pe+e) is cached and b walks by, on the left the other way round.  A row finds what the rows
inside it have stored and adds it, two limbs at a time.  What is left over where e does not divide n is the innermost
row.

Cost: n^2 cells at 5 cycles; in each row 2 loads for each limb that walks by, and a store for each column.  Which limbs
are cached is the allocator's doing: it evicts the farthest next use, and this order makes that the method's choice.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Load, Product, Step, Store

TITLE = "operand caching"
REFERENCE = "HW11"
OPS = ("mul",)
PARAMETERS = (Parameter("e", "limbs of an operand that are cached, the height of a row", "10"),)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    e = values.one("e")
    for start in reversed(range(0, n, e)):
        yield from row(n, start, min(n, start + e))


def row(n: int, start: int, inner: int) -> Iterator[Step]:
    """The cells with a[start..] and b[..n-start) that the rows from `inner` on do not have."""
    yield Block(f"row of a[{start}..{inner - 1}]")
    inside = range(inner, 2 * n - inner) if inner < n else range(0)  # columns that the inner rows have stored
    for column in range(start, 2 * n - start):
        for i in range(max(start, column - (n - start) + 1), min(n, column + 1)):
            j = column - i
            if i < inner or j >= n - inner:
                yield Product(i, j)
        if column in inside and (column - inner) % 2 == 0:
            yield from (Load(each) for each in (column, column + 1) if each in inside)
        yield Store(column)
