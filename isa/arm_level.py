"""One level of Karatsuba on ARMv6-M whose parts are functions.

A function finds its pointers in r0, r1 and r2 and keeps no register.  The differences wait in the result, M on the
stack as its function leaves it; L and H are where they belong.  With W = L, X = W_hi + H_lo and V = H_hi + its carry,
the last step forms (W_lo + X, X + V, V) - D above W_lo, in three carry chains that take turns.

Sources: research/arm_kernels.md, section M0, idea 2; `arm_digits` has the formulas.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from sqgen.plan import Difference, Plan, Recombine

from .arm_digits import Limbs
from .arm_values import Values, Walk

TOGETHER = 2  # limbs that are loaded or stored at a time
AT_A_TIME = 6  # limbs of a result between two changes of the chain, at most
AT_ONCE = 8  # limbs of a difference that registers hold


def groups(limbs: int) -> list[int]:
    """How many limbs go together, of so many."""
    return [min(TOGETHER, limbs - at) for at in range(0, limbs, TOGETHER)]


class Differences:
    """The absolute differences of a level, one after the other where the result will be, and their product's sign."""

    def __init__(self, plan: Plan, pointers: Sequence[int], values: Values, sign: int | None) -> None:
        self.values = values
        self.out = Walk(values, pointers[0])
        masks = []
        for step, pointer in zip(
            (step for step in plan.steps if isinstance(step, Difference)), pointers[1:], strict=True
        ):
            one = self.at_once if step.into.count <= AT_ONCE else self.in_two_passes
            masks.append(one(pointer, step.left.count, step.right.count, turned=step.left.name == "b"))
        if sign is not None:
            values.do("keep", values.one("eor", *masks), number=sign, writes=0)

    def subtract(self, pointer: int, count: int, high: int, done: Callable[[list[int]], None], *, turned: bool) -> int:
        """Subtract the high half from the low one, or the other way round; the sign as a mask."""
        values, begun = self.values, False
        low, other = Walk(values, pointer), Walk(values, values.step(pointer, count))
        with values.chain():
            for at, together in zip(range(0, count, TOGETHER), groups(count), strict=True):
                minuend = low.load(together)
                there = max(0, min(together, high - at))
                subtrahend = (other.load(there) if there else []) + [values.zero] * (together - there)
                found = []
                for pair in zip(minuend, subtrahend, strict=True):
                    found.append(values.one("sbc" if begun else "sub", *(reversed(pair) if turned else pair)))
                    begun = True
                done(found)
            return values.one("mask")

    def at_once(self, pointer: int, count: int, high: int, *, turned: bool) -> int:
        """All limbs in registers."""
        values = self.values
        found: list[int] = []
        mask = self.subtract(pointer, count, high, found.extend, turned=turned)
        limbs = [values.one("eor", limb, mask) for limb in found]
        with values.chain():
            limbs = [values.one("sbc" if at else "sub", limb, mask) for at, limb in enumerate(limbs)]
        for at in range(0, count, TOGETHER):
            self.out.store(limbs[at : at + TOGETHER])
        return mask

    def in_two_passes(self, pointer: int, count: int, high: int, *, turned: bool) -> int:
        """Too many for that: stored first, and negated where they are, if they must be."""
        values = self.values
        begin = self.out.place
        mask = self.subtract(pointer, count, high, self.out.store, turned=turned)
        back, self.out = Walk(values, begin), Walk(values, begin)
        begun = False
        with values.chain():
            for together in groups(count):
                found = []
                for limb in back.load(together):
                    found.append(values.one("sbc" if begun else "sub", values.one("eor", limb, mask), mask))
                    begun = True
                self.out.store(found)
        return mask


class Carry:
    """What a chain hands on to its next limbs, while other chains have the flag."""

    def __init__(self, values: Values, first: str, later: str) -> None:
        self.values, self.first, self.later = values, first, later
        self.restored: tuple[int, str, int] | None = None  # what the carry is kept in; how it goes to the flag again

    def combine(
        self, left: Limbs, right: Callable[[int], list[int]], end: Callable[[], None] | None = None
    ) -> list[int]:
        """The next limbs, those on the right fetched as they are wanted; with the carry at their end something else is
        done than to keep it."""
        values, found = self.values, list[int]()
        begins = self.restored is None
        with values.chain():
            if self.restored:
                value, way, number = self.restored
                values.one(way, value, number=number)
            for at in range(0, len(left), TOGETHER):
                for pair in zip(left[at:], right(min(TOGETHER, len(left) - at)), strict=False):
                    found.append(values.one(self.first if begins and not found else self.later, *pair))
            (end or self.keep)()
        return found

    def keep(self) -> None:
        """The carry waits as a mask: zero if it is set, else all ones."""
        self.restored = self.values.one("mask"), "neg", 0

    def keep_number(self) -> int:
        """It waits as a number."""
        number = self.values.one("adc", self.values.zero, self.values.zero)
        self.restored = number, "lsr", 1
        return number


class Recombination:
    """The last step.  `r` points at the result, M lies on top of the stack, from which it is taken.

    Some limbs are done at a time, whose chains hand the flag to each other: X, then W_lo + X, and less D; V, then
    X + V, and less D.  V is not stored: at the end what X carried goes to H_hi again, with what the other two carry.
    """

    def __init__(self, plan: Plan, r: int, values: Values, sign: int | None) -> None:
        step = next(step for step in plan.steps if isinstance(step, Recombine))
        self.values, self.half, self.r = values, step.half, r
        self.above = 2 * (plan.limbs - step.half) - step.half  # limbs of the result above the recombined ones
        self.sign: int | None = None
        self.sums, self.wholes = Carry(values, "add", "adc"), Carry(values, "add", "adc")
        self.less = Carry(values, "sub", "sbc")
        self.x_carry, self.rise, self.others = values.zero, values.zero, values.zero
        if sign is not None:
            self.sign = values.one("slot", number=sign)
            self.less = Carry(values, "adc", "adc")
            with values.chain():
                values.one("lsr", self.sign, number=1)
                self.less.keep()
        for at, count in batches(self.half):
            self.lower(at, count)
        for at, count in batches(self.half):
            self.upper(at, count)
        for at, count in batches(self.above):
            self.top(at, count)

    def at(self, limbs: int) -> Walk:
        """A pointer to a limb of the result."""
        return Walk(self.values, self.values.step(self.r, limbs))

    def lower(self, at: int, count: int) -> None:
        """X goes to where H_lo was, and W_lo + X - D to where W_hi was."""
        high, other = self.at(self.half + at).load(count), self.at(2 * self.half + at)
        x = self.sums.combine(high, other.load, self.keep_x_carry if at + count == self.half else None)
        self.at(2 * self.half + at).store(x)
        self.finish(at, x, self.at(at))

    def keep_x_carry(self) -> None:
        """It goes into V, and is wanted at the end again."""
        self.x_carry = self.sums.keep_number()

    def upper(self, at: int, count: int) -> None:
        """X + V - D goes to where X was."""
        values, last = self.values, at + count == self.half
        there = max(0, min(count, self.above - at))
        limbs = self.at(3 * self.half + at).load(there) if there else []
        limbs += [values.zero] * (count - there)
        v = self.sums.combine(limbs, lambda some: [values.zero] * some, forget if last else None)
        self.finish(self.half + at, v, self.at(2 * self.half + at), self.keep_rise if last else None)

    def finish(self, at: int, limbs: Limbs, others: Walk, end: Callable[[], None] | None = None) -> None:
        """Their sum, less D, to a place of the result, the middle ones counted from `half`."""
        whole = self.wholes.combine(limbs, others.load)
        found = self.less.combine(whole, self.middle, end)
        self.at(self.half + at).store(found)

    def middle(self, count: int) -> list[int]:
        """The next limbs of D, or if it is to be added or subtracted as a sign says, of what is added."""
        limbs = self.values.pop(count)
        return limbs if self.sign is None else [self.values.one("eor", limb, self.sign) for limb in limbs]

    def keep_rise(self) -> None:
        """What goes to H_hi's first limb beside the carry of the sums, and to the others: without a sign X's carry less
        one if there was a borrow; else X's carry, and then as the sign says."""
        values = self.values
        if self.sign is None:
            self.rise = values.one("sbc", self.x_carry, values.zero)
            self.others = values.one("mask")
        else:
            self.rise = self.x_carry
            self.less.keep()

    def top(self, at: int, count: int) -> None:
        """The carries go to H_hi, and H_hi to its place."""
        limbs, last = self.at(3 * self.half + at).load(count), forget if at + count == self.above else None
        added = [self.others if at or index else self.rise for index in range(count)]
        found = self.wholes.combine(limbs, lambda some: taken(added, some), last)
        if self.sign is not None:
            sign = self.sign
            found = self.less.combine(found, lambda some: [sign] * some, last)
        self.at(3 * self.half + at).store(found)


def forget() -> None:
    """A carry is needed no more."""


def taken(limbs: list[int], some: int) -> list[int]:
    """The first of some limbs, which are taken from them."""
    first, limbs[:] = limbs[:some], limbs[some:]
    return first


def batches(limbs: int) -> list[tuple[int, int]]:
    """(first limb, number of limbs) of parts of some limbs, as equal as can be."""
    count = -(-limbs // AT_A_TIME)
    ends = [number * limbs // count for number in range(count + 1)]
    return [(first, last - first) for first, last in itertools.pairwise(ends)]
