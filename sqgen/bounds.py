"""How large the sum can get: which carries cannot occur, by exact integers.

The sum under construction is a row of limbs; every contribution to it is never negative, so its largest value is
reached when all operand limbs are at their largest.  A carry out of limb `e` needs the limbs up to `e` to reach
2^(w*(e+1)); of what was added at column `e` itself, only the low limb counts there.
"""

from __future__ import annotations


class Sum:
    """Upper bounds of the sum's contents, by column, in units of 2^(w*column)."""

    def __init__(self, limb_bits: int) -> None:
        self.width = limb_bits
        self.top = (1 << limb_bits) - 1
        self.whole: dict[int, int] = {}
        self.low: dict[int, int] = {}

    def add_product(self, column: int) -> None:
        """A product of two limbs was added at `column`."""
        self._add(column, self.top * self.top)

    def add_limb(self, column: int) -> None:
        """One limb was added at `column`."""
        self._add(column, self.top)

    def add_carry(self, column: int) -> None:
        """A carry was added at `column`."""
        self.whole[column] = self.whole.get(column, 0) + 1
        self.low[column] = self.low.get(column, 0) + 1

    def _add(self, column: int, value: int) -> None:
        self.whole[column] = self.whole.get(column, 0) + value
        self.low[column] = self.low.get(column, 0) + self.top

    def add_doubled(self, other: Sum) -> None:
        """Twice another sum was added, limb by limb."""
        for column in other.whole:
            self.whole[column] = self.whole.get(column, 0) + 2 * other.whole[column]
            self.low[column] = self.low.get(column, 0) + 2 * other.low[column]

    def drop(self, column: int) -> None:
        """The lowest limb, at `column`, left the sum; what lay above it stays."""
        above = self.whole.pop(column, 0) >> self.width
        self.low.pop(column, None)
        if above:
            self.whole[column + 1] = self.whole.get(column + 1, 0) + above
            self.low[column + 1] = self.low.get(column + 1, 0) + above

    def carries(self, column: int) -> bool:
        """Whether a carry can leave the limb at `column`."""
        total, lowest = self._total(column)
        return total >> (self.width * (column + 1 - lowest)) != 0

    def reach(self, column: int) -> int:
        """The greatest value of the limb at `column` and the one below it, taken as one number, rounded up."""
        total, lowest = self._total(column)
        shift = self.width * (column - 1 - lowest)
        return -(-total >> shift) if shift > 0 else total << -shift

    def _total(self, column: int) -> tuple[int, int]:
        """The greatest value of the limbs up to `column`, in units of the lowest limb there is, and that limb."""
        lowest = min(self.whole, default=column)
        total = self.low.get(column, 0) << (self.width * (column - lowest))
        for at, value in self.whole.items():
            if at < column:
                total += value << (self.width * (at - lowest))
        return total, lowest
