"""Squares of three parts on ARMv6-M, in one piece: six squares of a third of the limbs.

With P = S0 + x S1 + x^2 S2, where x is a part's limbs up, and E of the squares D01, D02 and D12 of the differences in
the same way, the result is (1 + x + x^2) P - x E.  P is less than (x - 1) x^3, and so is E: both have four parts.  With
v = p1 + p2 the parts of the result are

    p0,    p0 + p1,    p0 + v,    v + p3,    p2 + p3,    p3

less those of E, from the second one on.  What v carries out belongs to the parts above the two that v is in, and both
of these have p3: it goes into that, q = p3 + carry, which does not run over.

E comes first, and waits on the stack, since the result may lie where the operand is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arm_digits import Limbs, absolute
from .arm_values import Values

if TYPE_CHECKING:
    from .arm_piece import Piece

PARTS = 3
PAIRS = ((0, 1), (0, 2), (1, 2))
BEGINS = {"adc": "add", "sbc": "sub"}  # the first operation of a chain


class Sum:
    """Numbers that each begin half their limbs above the one before, added as they come."""

    def __init__(self, values: Values) -> None:
        self.values, self.limbs = values, list[int]()

    def add(self, number: Limbs) -> None:
        """The next one, whose upper half takes the carry: it cannot be all ones."""
        if not self.limbs:
            self.limbs += number
            return
        half = len(number) // 2
        with self.values.chain():
            sums = along(self.values, "adc", self.limbs[-half:], number[:half], begins=True)
            self.limbs[-half:] = sums + along(self.values, "adc", number[half:], [self.values.zero] * half)


def along(values: Values, kind: str, left: Limbs, right: Limbs, *, begins: bool = False) -> list[int]:
    """Limb by limb, in a chain that is open; it `begins` here, or takes the carry of what was done before."""
    return [
        values.one(BEGINS[kind] if begins and not at else kind, *pair)
        for at, pair in enumerate(zip(left, right, strict=True))
    ]


class Thirds:
    """The whole piece."""

    def __init__(self, piece: Piece) -> None:
        self.piece, self.values = piece, piece.values
        self.limbs, self.third = piece.plan.limbs, piece.plan.limbs // PARTS
        self.inner = next(piece.plan.parts()).plan

    def all(self) -> None:
        """All steps."""
        begin = dict(self.piece.pointers)
        self.differences()
        self.piece.pointers = begin
        self.result(*self.squares())

    def square(self, limbs: Limbs) -> list[int]:
        """That of a part, or of a difference."""
        return self.piece.form(self.inner, {"a": limbs, "b": limbs})

    def differences(self) -> None:
        """E, to the stack, its lowest limbs on top."""
        third, total = self.third, Sum(self.values)
        limbs = self.piece.load("a", self.limbs)
        part = [limbs[third * i : third * (i + 1)] for i in range(PARTS)]
        for difference in [absolute(self.values, part[i], part[j])[0] for i, j in PAIRS]:
            total.add(self.square(difference))
        self.values.push(total.limbs[2 * third :])
        self.values.push(total.limbs[: 2 * third])

    def squares(self) -> list[Limbs]:
        """P in four parts, of which the lowest one is stored: it is the result's."""
        third, total = self.third, Sum(self.values)
        for i in range(PARTS):
            total.add(self.square(self.piece.load("a", third)))
            if not i:
                self.piece.store(total.limbs[:third])
        return [total.limbs[at : at + third] for at in range(0, 4 * third, third)]

    def result(self, p0: Limbs, p1: Limbs, p2: Limbs, p3: Limbs) -> None:
        """The other parts; E is subtracted where that leaves the least to be kept."""
        values = self.values
        with values.chain():
            v = along(values, "adc", p1, p2, begins=True)
            q = along(values, "adc", p3, [values.zero] * self.third)
        with values.chain():
            second = along(values, "adc", p1, p0, begins=True)
            third = along(values, "adc", v, p0)
            carry = values.one("mask")
        with values.chain():
            self.piece.store(self.less(second, begins=True))
            self.piece.store(self.less(third))
            v, p2 = self.less(v), self.less(p2)
            borrow = values.one("mask")
        with values.chain():
            values.one("neg", carry, comment="the carry is back")
            fourth = along(values, "adc", v, q)
            upper = along(values, "adc", p2, q) + along(values, "adc", p3, [borrow] * self.third)
        self.piece.store(fourth)
        self.piece.store(upper)

    def less(self, limbs: Limbs, *, begins: bool = False) -> list[int]:
        """Less the next part of E."""
        return along(self.values, "sbc", limbs, self.values.pop(self.third), begins=begins)
