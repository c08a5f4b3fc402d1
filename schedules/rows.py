"""Rows of parity sweeps: operand scanning in which the products of a row are added in two carry runs.

    columns  6 5 4 3 2 1 0
             o x o x            a3      row by row from the top one down; in each row first the products two columns
               o x o x          a2      apart that reach its highest column, x, then the others, o
                 o x o x        a1
                   o x o x      a0

The whole sum stays in registers, as does b; the lowest limb leaves after each row.  Where b is too long for that the
rhombus is cut into `strips`: all rows of some limbs of b, then all rows of the next ones.  It is the leaf of
Karatsuba in place, since it can begin with limbs in its sum: all of them are there from the first row on.

Cost: 5n - 1 for a row, 4n for the first one, n loads of a for each strip, n of b, 2n stores.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Product, Step, Store, Strip

from .sweeps import sweeps

TITLE = "rows of parity sweeps"
REFERENCE = "HS15"
OPS = ("mul",)
WIDE = 8  # limbs of b that registers hold beside as many of the sum
NARROW = 4  # limbs of b that are enough for chains of two products


def fitting(n: int) -> str:
    """Strips that fit the registers beside the sum: one alone, two, or more narrow ones."""
    if n <= WIDE:
        return str(n)
    if n <= WIDE + 2:
        return f"{n - NARROW},{NARROW}"
    return ",".join(map(str, [*([n % NARROW] if n % NARROW else []), *(NARROW for _ in range(n // NARROW))]))


PARAMETERS = (
    Parameter("strips", "limbs of b in each strip of rows; the last one has the rest", fitting, many=True),
    Parameter("start", "what the sum of the first n limbs begins with", "empty", choices=("empty", "filled")),
)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    filled = set(range(n)) if values.word("start") == "filled" else set()
    ends = [end for end in itertools.accumulate(values.many("strips")) if end < n]
    for first, end in itertools.pairwise([0, *ends, n]):
        yield Strip(first, end)
        for i in range(n):
            yield Block(f"row of a[{i}]" if not ends else f"row of a[{i}], b[{first}..{end - 1}]")
            yield from sweeps([Product(i, j) for j in range(first, end)], filled)
            filled |= set(range(first + i, end + i + 1))
            if i < end - first or end == n:
                yield Store(first + i)
    for column in range(n + max([0, *ends]), 2 * n):
        yield Store(column)
