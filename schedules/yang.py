"""Yang, Hsieh and Laih's squaring [HL03], as [SBD13, section 2.2] describes it: operand scanning, then one doubling.

The rows of the triangle are visited one by one, without the diagonal, and added to the stored result.  When all are
there the result comes back block by block, is doubled, the diagonal is added, and it is stored again.

    columns  6 5 4 3 2 1 0
                   1 1 1 *      a0      n = 4: rows 1, 2, 3, then the diagonal (*) with the doubling
                 2 2 *          a1
               3 *              a2
             *                  a3

Cost: n(n-1)/2 cells, each with a load and a store of a result limb, then 2n loads, 2n doublings, n cells, 2n stores.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Load, Product, Step, Store, double_stored

TITLE = "operand scanning of the triangle, one doubling"
REFERENCE = "HL03"
OPS = ("sqr",)
PARAMETERS = (
    Parameter("block", "widths of the blocks that are doubled, in columns, the last one repeated", "4", many=True),
)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    for i in range(n - 1):
        yield Block(f"row {i + 1}")
        for j in range(i + 1, n):
            yield Product(i, j)
            if i:
                yield Load(i + j)
            yield Store(i + j)
        yield Store(i + n)
    yield from double_stored(n, values.many("block"))
