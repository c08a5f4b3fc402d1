"""Hybrid Karatsuba squaring [HKS]: a_lo * a_hi by Karatsuba, the two triangles by sliding block doubling.

    columns  7 6 5 4 3 2 1 0        k  a_lo * a_hi by one Karatsuba multiplication, stored
             * o k k                o  off the diagonal, summed by product scanning; * on it
                 * k k              n = 4: the blocks of columns take up the stored limbs, double, add the diagonal
                     * o
                         *

The rectangle comes first and is stored; the blocks of columns then take up its limbs, and double them with their own.
Where n is odd the low half has a limb more; its lowest limb's row is summed with the triangles.

Cost: M(n/2) by Karatsuba, twice S(n/2) by sliding block doubling, and n more loads for the stored sums.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.errors import UserError
from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Double, Load, Part, Product, Slice, Step, Store, blocks

from . import karatsuba

TITLE = "Karatsuba multiplication and sliding block doubling"
REFERENCE = "HKS"
OPS = ("sqr",)
PARAMETERS = (
    Parameter("block", "widths of the blocks in columns, the last one repeated", "4", many=True),
    *karatsuba.PARAMETERS,
)


def points(n: int) -> list[dict[str, str]]:
    """Blocks of some widths, with what may be good for the multiplication."""
    return [
        {"block": block, **point}
        for block in (("4", "5", "6") if n <= 40 else ("5",))
        for point in karatsuba.points(n // 2)
    ]


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs.  Raises UserError for a single one, and for parts=whole."""
    half = n // 2
    if not half:
        raise UserError("hybrid-karatsuba: a single limb has no halves; take another method")
    if values.word("parts") == "whole":
        raise UserError(
            "hybrid-karatsuba: parts=whole leaves nothing to be doubled; choose parts=inline or parts=calls"
        )
    low, high = Slice("a", n - 2 * half, half), Slice("a", n - half, half)
    stored = range(low.first + high.first, low.first + high.first + 2 * half)
    yield Block("a_lo * a_hi")
    rectangle = karatsuba.plan(half, values.one("levels"), values, values.word("signs"))
    yield Part(rectangle, Slice("r", stored.start, 2 * half), low, high, True)
    for first, last in blocks(n, values.many("block")):
        yield Block(f"block of columns {first}..{last - 1}")
        for column in range(first, min(last, 2 * n - 2)):
            for i in range(max(0, column - n + 1), (column + 1) // 2):
                j = column - i
                if not (i in range(low.first, high.first) and j >= high.first):
                    yield Product(i, j)
        yield from (Load(column) for column in range(first, last) if column in stored)
        yield Double(first, last)
        for i in range((first + 1) // 2, (last + 1) // 2):
            yield Product(i, i)
        for column in range(first, last):
            yield Store(column)
