"""Consecutive operand caching [COC12]: rows cut so that each begins with limbs which the one before it has cached.

A small top comes first; then, row by row and from right to left, e limbs of a meet the lower limbs of b, and the next e
limbs of a the upper ones.  The row after it starts with exactly these limbs of a, which are still in registers.

    columns  6 5 4 3 2 1 0
             0 0 t t            a3      n = 4, e = 2: the top (t) first, then row 0 from right to left
               0 0 t t          a2
                 0 0 0 0        a1
                   0 0 0 0      a0

With r = ceil(n/e) - 1 and m = n - re, the top is a[re..n) by b[0..m).  Row p takes a[pe..pe+e) by b[0..n-pe) on its
right and a[pe+e..pe+2e) by b[n-pe-e..n) on its left; the a limbs of its left are those that row p+1 starts with, as the
b limbs of the top are those that row 0 starts with.  [COC15] prints r = 4 for n = 8, e = 2 and then uses a top of two
limbs, for which r is 3: see docs/errata.md.

Cost: n^2 cells at 5 cycles; loads and stores as in operand caching, fewer by the limbs that rows share.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Load, Product, Step, Store

TITLE = "consecutive operand caching"
REFERENCE = "COC15"
OPS = ("mul",)
PARAMETERS = (Parameter("e", "limbs of an operand that are cached, the height of a row", "10"),)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    e = values.one("e")
    yield from rows(n, e, e)


def rows(n: int, e: int, turn: int) -> Iterator[Step]:
    """The top and the rows of height e; `turn`: limbs of a in the left of row 0, the other e - turn being row 1's."""
    count = -(-n // e) - 1
    top = range(n - count * e)
    yield from row("top", [Product(i, j) for i in range(count * e, n) for j in top], range(0))
    begin, stored = count * e, n + len(top)
    for p in range(count):
        end = min(n, p * e + e + (e if p else turn))
        cells = [Product(i, j) for i in range(p * e, p * e + e) for j in range(n - p * e)]
        if p == 1:
            cells += [Product(i, j) for i in range(e + turn, 2 * e) for j in range(n - e, n)]
        cells += [Product(i, j) for i in range(p * e + e, end) for j in range(n - p * e - e, n)]
        yield from row(f"row {p}", cells, range(begin, stored))
        begin, stored = p * e, n + end


def row(title: str, cells: list[Product], stored: range) -> Iterator[Step]:
    """One row by product scanning; columns that are `stored` come back, two at a time."""
    yield Block(title)
    columns: dict[int, list[Product]] = {}
    for cell in cells:
        columns.setdefault(cell.column, []).append(cell)
    last = max(columns) + 1
    for column in range(min(columns), last + 1):
        yield from columns.get(column, ())
        first = max(min(columns), stored.start) if stored else 0
        if column in stored and (column - first) % 2 == 0:
            yield from (Load(each) for each in (column, column + 1) if each in stored and each <= last)
        yield Store(column)
