"""Products cell by cell on ARMv6-M: the sum of a plan's cells in registers, limb by limb.

Each product of limbs is two limbs, which are added where they belong with the carry that they make; `bounds` says how
far that can go.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.bounds import Sum

from .arm_values import Values

LIMB_BITS = 32
Limbs = Sequence[int]


class Cells:
    """The sum of some cells; each limb leaves it when it is complete."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.sum: dict[int, int] = {}
        self.bounds = Sum(LIMB_BITS)

    def add(self, column: int, limbs: Limbs) -> None:
        """The limbs of a product at a column, and the carry that it may make above them."""
        self.bounds.add_product(column)
        self.chain(column, limbs)

    def take(self, column: int, limbs: Sequence[int | None]) -> None:
        """Limbs of another sum from a column on, some of which may be missing."""
        for at, limb in enumerate(limbs, column):
            if limb is not None:
                self.bounds.add_limb(at)
        self.chain(column, limbs)

    def chain(self, column: int, limbs: Sequence[int | None]) -> None:
        """One chain of additions, as far as its carry can go."""
        values, live = self.values, False
        with values.chain():
            while limbs or live:
                have, limb = self.sum.get(column), limbs[0] if limbs else None
                more = values.zero if limb is None else limb
                if not live and (have is None or limb is None):
                    if limb is not None:
                        self.sum[column] = limb
                else:
                    self.sum[column] = values.one(
                        "adc" if live else "add", *((more, self.values.zero) if have is None else (have, more))
                    )
                    live = self.bounds.carries(column)
                column, limbs = column + 1, limbs[1:]

    def leave(self, column: int) -> int:
        """The limb of a column, to which nothing is added any more."""
        self.bounds.drop(column)
        return self.sum.pop(column, self.values.zero)
