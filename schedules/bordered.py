"""A product bordered by rows: Karatsuba's method for all limbs but the highest few, and what these add by hand.

    columns  8 7 6 5 4 3 2 1 0        k  the product of the lower limbs, by Karatsuba's method, stored
             o o o o o                o  rows of a[4], and of b[4]: blocks of columns take up the stored limbs
               o o o o
                 k k k k              n = 5, border 1
                   k k k k
                     k k k k
                       k k k k

A number of limbs that can be halved again and again has the best of Karatsuba's method; one limb more makes halves that
differ, and each level pays for the larger one.  A border pays once: each of its limbs wants 2n products, in blocks of
columns that have both operands at hand.

Cost: that of the product inside, and for each limb of an operand ten cycles for each limb of the border and nine more.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.errors import UserError
from sqgen.methods import REGISTERS, Parameter, Values
from sqgen.plan import Block, Load, Part, Product, Slice, Step, Store

from .sweeps import filling

TITLE = "Karatsuba multiplication with rows around it"
REFERENCE = "MOV96"
OPS = ("mul",)
RARE = True  # it is the fastest a little above the sizes that suit Karatsuba's method, and nowhere else
BORDERS, BLOCKS = (1, 2, 3), (8, 6, 10)  # what is tried
PARAMETERS = (
    Parameter("border", "limbs of each operand that are left to rows", "1"),
    Parameter("block", "columns of a block of the rows", lambda n: str(min(BLOCKS[0], 2 * n))),
    REGISTERS,
)


def points(n: int) -> list[dict[str, str]]:
    """The likely border first, which leaves a number of limbs that can be halved three times."""
    borders = sorted((border for border in BORDERS if border < n), key=lambda border: border != n % 8)
    blocks = dict.fromkeys(min(block, 2 * n) for block in BLOCKS)
    return [{"border": str(border), "block": str(block)} for border in borders for block in blocks] or [{}]


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs.  Raises UserError where the border leaves nothing."""
    border, width = values.one("border"), values.one("block")
    inner = n - border
    if inner < 1:
        raise UserError(f"bordered: a border of {border} leaves nothing of {n} limbs; choose a narrower one")
    product = values.part("karatsuba" if inner > 1 else "product-scanning", "mul", inner, {})
    yield Block("product inside")
    yield Part(product, Slice("r", 0, 2 * inner), Slice("a", 0, inner), Slice("b", 0, inner), called=True)
    rows = [[Product(i, j) for j in range(n)] for i in range(inner, n)]
    rows += [[Product(i, j) for i in range(inner)] for j in range(inner, n)]
    filled: set[int] = set()
    for first in range(inner, 2 * n - 1, width):
        end = first + width if first + width < 2 * n - 1 else 2 * n
        yield Block(f"columns {first}..{end - 1}")
        for row in rows:
            yield from filling([cell for cell in row if first <= cell.column < end], filled)
        yield from (Load(column) for column in range(first, min(end, 2 * inner)))
        yield from (Store(column) for column in range(first, end))
        filled = {end, end + 1}
