"""Squares of three parts on ARMv6-M, in one piece: six squares of a third of the limbs.

With P = S0 + x S1 + x^2 S2, where x is a part's limbs up, and E of the squares D01, D02 and D12 of the differences in
the same way, the result is (1 + x + x^2) P - x E.  P and E do not run over four parts: S0 + x S1 + x^2 S2 <=
(x - 1)^2 (1 + x + x^2) < x^4.  The differences come first, since the result may lie where the operand is, and wait on
the stack; (1 + x + x^2) P waits in the result, from which x E is subtracted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .arm_digits import Limbs, absolute
from .arm_values import Values

if TYPE_CHECKING:
    from .arm_piece import Piece

PAIRS = ((0, 1), (0, 2), (1, 2))


class Sum:
    """Numbers that each begin half their limbs above the one before, added as they come."""

    def __init__(self, values: Values) -> None:
        self.values, self.limbs = values, list[int]()

    def add(self, number: Limbs) -> None:
        """The next one, whose upper half takes the carry: it cannot be all ones."""
        half, values = len(number) // 2, self.values
        if not self.limbs:
            self.limbs += number
            return
        with values.chain():
            top = self.limbs[-half:]
            sums = [values.one("adc" if at else "add", *pair) for at, pair in enumerate(zip(top, number, strict=False))]
            self.limbs[-half:] = sums + [values.one("adc", limb, values.zero) for limb in number[half:]]


class Thirds:
    """The whole piece."""

    def __init__(self, piece: Piece) -> None:
        self.piece, self.plan, self.values = piece, piece.plan, piece.values
        self.third = self.plan.limbs // 3
        self.inner = next(self.plan.parts()).plan

    def all(self) -> None:
        """All steps."""
        begin = dict(self.piece.pointers)
        self.differences()
        self.piece.pointers = begin
        after = self.squares()
        self.less(after)

    def differences(self) -> None:
        """Those of each two parts, to the stack; the first one on top."""
        limbs = self.piece.load("a", self.plan.limbs)
        part = [limbs[self.third * i : self.third * (i + 1)] for i in range(3)]
        for i, j in reversed(PAIRS):
            found, _ = absolute(self.values, part[i], part[j])
            self.values.push(found)

    def squares(self) -> int:
        """The squares of the parts, and (1 + x + x^2) P, to the result; a pointer to its part 1."""
        values, piece, third = self.values, self.piece, self.third
        begin, total = piece.r, Sum(values)
        for i in range(3):
            limbs = piece.load("a", third)
            total.add(piece.form(self.inner, {"a": limbs, "b": limbs}))
            if i == 0:
                piece.store(total.limbs[:third])
            elif i == 1:
                aside = values.step(piece.r, 2 * third)
                values.store(aside, total.limbs[third : 2 * third])
        after = piece.r
        self.spread(begin, aside, total.limbs[2 * third :])
        return after

    def spread(self, begin: int, aside: int, upper: Limbs) -> None:
        """(1 + x) P, then x^2 P is added.  P's parts 0 and 1 are in the result, the latter where part 3 will be."""
        values, piece, third, zero = self.values, self.piece, self.third, self.values.zero
        with values.chain():
            _, first = values.load(begin, third)
            _, middle = values.load(aside, third)
            once = [
                values.one("adc" if at else "add", *pair) for at, pair in enumerate(zip(middle, first, strict=True))
            ]
            piece.store(once)
            whole = [*middle, *upper]
            once = [values.one("adc", *pair) for pair in zip(upper, whole, strict=False)]
            once += [values.one("adc", limb, zero) for limb in upper[third:]]
        with values.chain():
            for at in range(0, 4 * third, third):
                others: Limbs
                if at < 2 * third:
                    _, others = values.load(aside if at else begin, third)
                else:
                    others = upper[:third] if at == 2 * third else [zero] * third
                limbs = [*once, *upper[third:]][at : at + third]
                piece.store(
                    [
                        values.one("adc" if at or i else "add", *pair)
                        for i, pair in enumerate(zip(limbs, others, strict=True))
                    ]
                )

    def less(self, after: int) -> None:
        """x E is subtracted."""
        values, piece, third = self.values, self.piece, self.third
        total = Sum(values)
        for _ in PAIRS:
            limbs = values.pop(third)
            total.add(piece.form(self.inner, {"a": limbs, "b": limbs}))
        piece.r, begun = after, False
        with values.chain():
            for at in range(0, 5 * third, third):
                after, limbs = values.load(after, third)
                found = []
                for limb, other in zip(limbs, total.limbs[at : at + third] or [values.zero] * third, strict=True):
                    found.append(values.one("sbc" if begun else "sub", limb, other))
                    begun = True
                piece.store(found)
