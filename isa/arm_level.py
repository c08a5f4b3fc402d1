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
AT_A_TIME = 4  # limbs of a result between two changes of the chain, at most
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
        self.mask: int | None = None  # zero if the carry flag was set, else all ones

    def combine(self, left: Limbs, right: Callable[[int], list[int]]) -> list[int]:
        """The next limbs, those on the right fetched as they are wanted."""
        values, found = self.values, list[int]()
        with values.chain():
            if self.mask is not None:
                values.one("neg", self.mask)
            for at in range(0, len(left), TOGETHER):
                for pair in zip(left[at:], right(min(TOGETHER, len(left) - at)), strict=False):
                    begins = self.mask is None and not found
                    found.append(values.one(self.first if begins else self.later, *pair))
            self.mask = values.one("mask")
        return found


class Recombination:
    """The last step.  `r` points at the result, M lies on top of the stack, from which it is taken.

    Some limbs are done at a time, whose chains hand the flag to each other: X, then W_lo + X, and less D; V, then
    X + V, and less D; at the end what these carry goes to V.
    """

    def __init__(self, plan: Plan, r: int, values: Values, sign: int | None) -> None:
        step = next(step for step in plan.steps if isinstance(step, Recombine))
        self.values, self.half, self.r = values, step.half, r
        self.above = 2 * (plan.limbs - step.half) - step.half  # limbs of the result above the recombined ones
        self.sign: int | None = None
        self.sums, self.wholes = Carry(values, "add", "adc"), Carry(values, "add", "adc")
        self.less = Carry(values, "sub", "sbc")
        if sign is not None:
            self.sign = values.one("slot", number=sign)
            self.less = Carry(values, "adc", "adc")
            with values.chain():
                values.one("lsr", self.sign, number=1)
                self.less.mask = values.one("mask")
        for at, count in batches(self.half):
            self.lower(at, count)
        for at, count in batches(self.half):
            self.upper(at, count)
        borrow = self.less.mask or values.zero
        for at, count in batches(self.above):
            self.top(at, count, borrow)

    def at(self, limbs: int) -> Walk:
        """A pointer to a limb of the result."""
        return Walk(self.values, self.values.step(self.r, limbs))

    def lower(self, at: int, count: int) -> None:
        """X goes to where H_lo was, and W_lo + X - D to where W_hi was."""
        high, other = self.at(self.half + at).load(count), self.at(2 * self.half + at)
        x = self.sums.combine(high, other.load)
        self.at(2 * self.half + at).store(x)
        self.finish(at, x, self.at(at).load)

    def upper(self, at: int, count: int) -> None:
        """V stays where H_hi was, and X + V - D goes to where X was."""
        values = self.values
        there = max(0, min(count, self.above - at))
        limbs = self.at(3 * self.half + at).load(there) if there else []
        limbs += [values.zero] * (count - there)
        v = self.sums.combine(limbs, lambda some: [values.zero] * some)
        if there:
            self.at(3 * self.half + at).store(v[:there])
        self.finish(self.half + at, v, self.at(2 * self.half + at).load)

    def finish(self, at: int, limbs: Limbs, others: Callable[[int], list[int]]) -> None:
        """Their sum, less D, to a place of the result, the middle ones counted from `half`."""
        whole = self.wholes.combine(limbs, others)
        self.at(self.half + at).store(self.less.combine(whole, self.middle))

    def middle(self, count: int) -> list[int]:
        """The next limbs of D, or if it is to be added or subtracted as a sign says, of what is added."""
        limbs = self.values.pop(count)
        return limbs if self.sign is None else [self.values.one("eor", limb, self.sign) for limb in limbs]

    def top(self, at: int, count: int, borrow: int) -> None:
        """The carries go to V: those of a sum, and the borrow."""
        values, begin = self.values, self.at(3 * self.half + at)
        limbs = begin.load(count)
        if self.sign is None:
            found = self.wholes.combine(limbs, lambda some: [borrow] * some)
        else:
            sign = self.sign
            found = self.wholes.combine(limbs, lambda some: [values.zero] * some)
            found = self.less.combine(found, lambda some: [sign] * some)
        self.at(3 * self.half + at).store(found)


def batches(limbs: int) -> list[tuple[int, int]]:
    """(first limb, number of limbs) of parts of some limbs, as equal as can be."""
    count = -(-limbs // AT_A_TIME)
    ends = [number * limbs // count for number in range(count + 1)]
    return [(first, last - first) for first, last in itertools.pairwise(ends)]
