"""Full operand caching [COC15, section III.H]: operand caching or the consecutive one, whichever the size suits.

    columns  8 7 6 5 4 3 2 1 0         columns  e d c b a 9 8 7 6 5 4 3 2 1 0
             0 0 1 1 t            a4            1 1 1 1 1 1 t t                  a7
               0 0 1 1 1          a3              1 1 1 1 1 1 t t                a6
                 0 0 1 1 1        a2                1 1 1 1 1 1 1 1              a5
                   0 0 0 0 0      a1                  0 0 0 1 1 1 1 1            a4
                     0 0 0 0 0    a0                    0 0 0 1 1 1 1 1          a3
                                                          0 0 0 0 0 0 0 0        a2
             case 1: n = 5, e = 2                           0 0 0 0 0 0 0 0      a1
                                       case 2: n = 8, e = 3   0 0 0 0 0 0 0 0    a0

With r = floor(n/e) and m = n - re, the limbs that are left over: if 0 < m <= e/2 it is operand caching, and the row
around the top of m by m cells finds its limbs cached.  If m > e/2 it is consecutive operand caching, but the left of
row 0 has m instead of e limbs of a, so that e - m columns fewer wait in memory; the other e - m limbs of a are row 1's
throughout.  If e divides n nothing is left over and it is consecutive operand caching as it was.

Cost: n^2 cells at 5 cycles; e - m loads and stores fewer than consecutive operand caching in case 2.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.methods import Parameter, Values
from sqgen.plan import Step

from . import consecutive_operand_caching, operand_caching

TITLE = "full operand caching"
REFERENCE = "COC15"
OPS = ("mul",)
PARAMETERS = (Parameter("e", "limbs of an operand that are cached, the height of a row", "10"),)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    e = values.one("e")
    left_over = n % e
    if 0 < left_over <= e / 2:
        return operand_caching.steps(op, n, values)
    return consecutive_operand_caching.rows(n, e, left_over or e)
