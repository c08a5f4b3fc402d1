"""Additions that only hand digits to each other, made one: what a stretch of code adds is then split once.

Where all digits of a sum from some weight on go into another one, with the weights that they have in the first, and are
used nowhere else, the two together are one sum with the lower digits of the first and all of the second:

    L + 2^k U = A,  D = U + B   give   L + 2^k D = A + 2^k B

A carry that is dropped, though it may be one, is no hindrance where the second sum drops its carry of that weight too:
their sum is then what is dropped.  What a register or flag would hold of a digit that is gone is not known any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from .meaning import LOST
from .stretch import Addition, Bitwise, Digit, Step, Stretch, Sum, ZeroCheck, added


def fused(stretch: Stretch) -> None:
    """Join what can be joined."""
    _Fusing(stretch).run()


class _Fusing:
    def __init__(self, stretch: Stretch) -> None:
        self.stretch, self.steps, self.tops = stretch, stretch.steps, stretch.tops

    def run(self) -> None:
        while True:
            self.look()
            dead = [step for step in self.steps if isinstance(step, Addition | Bitwise | ZeroCheck) and self.dead(step)]
            if dead:
                self.steps[:] = [step for step in self.steps if step not in dead]
            elif not any(self.bounded(step) or self.handed(step) for step in self.additions()):
                return

    def additions(self) -> Iterator[Addition]:
        return (step for step in self.steps if isinstance(step, Addition))

    def look(self) -> None:
        """Find what uses each value, and where it is left."""
        self.users: dict[int, list[tuple[int, Step]]] = {value: [] for value in range(len(self.tops))}
        for number, step in enumerate(self.steps):
            for value in {value for terms in step.sums() for key in terms for value in key}:
                self.users[value].append((number, step))
        self.left: dict[int, list[int]] = {}
        for slot, terms in self.stretch.slots.items():
            for value in {value for key in terms or () for value in key}:
                self.left.setdefault(value, []).append(slot)

    def dead(self, step: Addition | Bitwise | ZeroCheck) -> bool:
        made = [digit.value for digit in step.digits] if isinstance(step, Addition) else [step.value]
        return not any(self.users[value] or value in self.left for value in made)

    def bounded(self, addition: Addition) -> bool:
        """Whether the highest digit is less than it seemed; where it is always zero it goes."""
        low, high = self.range(addition.terms)
        top, most = addition.digits[-1], high >> addition.below
        if low < 0 or any(digit.sign < 0 for digit in addition.digits) or most >= self.tops[top.value]:
            return False
        self.tops[top.value] = most
        if self.tops[top.value] == 0 and len(addition.digits) > 1:
            addition.digits.pop()
            self.forget(top.value)
        return True

    def range(self, terms: Sum) -> tuple[int, int]:
        """Least and greatest value."""
        low = high = 0
        for key, coefficient in terms.items():
            most = coefficient * prod(self.tops[value] for value in key)
            low, high = low + (most if not key else min(most, 0)), high + (most if not key else max(most, 0))
        return low, high

    def forget(self, value: int) -> None:
        """A value is always zero."""
        using = [terms for _, step in self.users[value] for terms in step.sums()]
        using += [self.stretch.slots[slot] or {} for slot in self.left.get(value, ())]
        for terms in using:
            for key in [key for key in terms if value in key]:
                del terms[key]

    def handed(self, first: Addition) -> bool:
        """Join an addition with the one that it hands its higher digits to, if there is such a one."""
        taken = [self.taker(digit) for digit in first.digits]
        end = len(taken) - 1 if self.lost(first.digits[-1]) else len(taken)
        if not end or not (last := taken[end - 1]):
            return False
        number, second = last
        begin = end - 1
        while begin and (taker := taken[begin - 1]) and taker[1] is second:
            begin -= 1
        kept = first.digits[:begin]
        if any(user <= number for digit in kept for user, _ in self.users[digit.value]):
            return False
        shift = sum(digit.width for digit in kept)
        factor = 1 if kept else second.terms[first.digits[0].value,]
        handed = zip(first.digits[begin:end], first.weights()[begin:end], strict=True)
        if any(second.terms[digit.value,] << shift != factor * weight for digit, weight in handed):
            return False
        digits = second.digits
        if end < len(taken):
            if factor != 1 or not self.lost(digits[-1]) or first.below - shift != second.below:
                return False
            digits = [*digits[:-1], Digit(digits[-1].value, 0, 1, LOST)]
        gone = {digit.value for digit in first.digits[begin:]}
        rest = {key: coefficient for key, coefficient in second.terms.items() if not gone.intersection(key)}
        second.terms = added([(factor, first.terms), (1 << shift, rest)])
        second.digits = [*kept, *digits]
        if end < len(taken):
            self.widen(second)
            gone.add(digits[-1].value)
        for value in gone:
            for slot in self.left.get(value, ()):
                self.stretch.slots[slot] = None
        self.steps[:] = [step for step in self.steps if step is not first]
        return True

    def widen(self, addition: Addition) -> None:
        """Let the highest digit, which is dropped, have the bits that it may have."""
        digit, high = addition.digits[-1], self.range(addition.terms)[1] >> addition.below
        self.tops[digit.value] = high
        addition.digits[-1] = digit._replace(width=max(1, high.bit_length()))

    def taker(self, digit: Digit) -> tuple[int, Addition] | None:
        """Number and addition of what uses a digit, if that is one term of one addition, and it may be forgotten."""
        users = self.users[digit.value]
        if len(users) != 1 or not self.forgettable(digit.value):
            return None
        number, user = users[0]
        if not isinstance(user, Addition) or any(digit.value in key for key in user.terms if len(key) != 1):
            return None
        return number, user

    def lost(self, digit: Digit) -> bool:
        """Whether it is a carry that nothing uses."""
        return digit.sign > 0 and not self.users[digit.value] and self.forgettable(digit.value)

    def forgettable(self, value: int) -> bool:
        """Whether a register that is left with it is given another value before it is read, if that is in the
        stretch's next turn; else a proof fails that might not have, and is begun anew without stretches."""
        slots = self.left.get(value, ())
        return all(slot not in self.stretch.inputs and self.stretch.slots[slot] == {(value,): 1} for slot in slots)
