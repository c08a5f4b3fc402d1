"""One level of Karatsuba on ARMv6-M whose parts are functions.

A function finds its pointers in r0, r1 and r2 and keeps no register.  The differences wait in the result, M on the
stack as its function leaves it; L and H are where they belong.  With W = L, X = W_hi + H_lo and V = H_hi + its carry,
both of which take the place of H, the last step is carry chains over memory: X and V; (W_lo, V) - D, whose lower half
goes to where W_hi was; that plus X, and above it V with what was borrowed.

Sources: research/arm_kernels.md, section M0, idea 2; `arm_digits` has the formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqgen.plan import Difference, Plan, Recombine

from .arm_digits import Limbs
from .arm_values import Values

Source = Callable[[int], list[int]]  # so many limbs more
TOGETHER = 2  # limbs that are loaded or stored at a time
AT_ONCE = 8  # limbs of a difference that registers hold


def groups(limbs: int) -> list[int]:
    """How many limbs go together, of so many."""
    return [min(TOGETHER, limbs - at) for at in range(0, limbs, TOGETHER)]


class Walk:
    """A pointer that loads or stores limbs one after the other."""

    def __init__(self, values: Values, pointer: int) -> None:
        self.values, self.pointer = values, pointer

    def load(self, count: int) -> list[int]:
        """The next limbs."""
        self.pointer, limbs = self.values.load(self.pointer, count)
        return limbs

    def store(self, limbs: Limbs) -> None:
        """Store limbs to the next places."""
        self.pointer = self.values.store(self.pointer, limbs)


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
        begin = self.out.pointer
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


class Recombination:
    """The last step.  `r` points at the result, M lies on top of the stack."""

    def __init__(self, plan: Plan, r: int, values: Values, sign: int | None) -> None:
        step = next(step for step in plan.steps if isinstance(step, Recombine))
        self.values, self.half, self.r = values, step.half, r
        self.above = 2 * (plan.limbs - step.half) - step.half  # limbs of the result above the recombined ones
        self.carried: list[int] = []  # limbs of V that are not in memory
        self.sums()
        if sign is None:
            self.subtracted()
        else:
            self.added(sign)

    def at(self, limbs: int) -> Walk:
        """A pointer to a limb of the result."""
        return Walk(self.values, self.values.step(self.r, limbs))

    def on_stack(self, limbs: int) -> Walk:
        """A pointer to a limb of M."""
        return Walk(self.values, self.values.one("stack", number=limbs))

    def chain(self, *segments: tuple[int, str, Source, Source, Walk], begun: bool = False) -> None:
        """Combine limbs from two sources, all in one carry chain: (count, operation, sources, where to) each."""
        first = {"adc": "add", "sbc": "sub"}
        for count, name, left, right, out in segments:
            for together in groups(count):
                found = []
                for pair in zip(left(together), right(together), strict=True):
                    found.append(self.values.one(name if begun else first[name], *pair))
                    begun = True
                out.store(found)

    def always(self, value: int) -> Source:
        """The same value, as often as it is wanted."""
        return lambda count: [value] * count

    def upper(self) -> Source:
        """The limbs of V, the highest of which may not be in memory."""
        walk, rest = self.at(3 * self.half), [*self.carried]
        left = self.above

        def more(count: int) -> list[int]:
            nonlocal left
            there = min(count, left)
            left -= there
            return (walk.load(there) if there else []) + [rest.pop(0) for _ in range(count - there)]

        return more

    def sums(self) -> None:
        """X and V, to where H was."""
        values, half, above = self.values, self.half, self.above
        low, high, out = self.at(half), self.at(2 * half), self.at(2 * half)
        with values.chain():
            self.chain((half, "adc", low.load, high.load, out))
            self.chain((above, "adc", high.load, self.always(values.zero), out), begun=True)
            if above < half:
                self.carried = [values.one("adc", values.zero, values.zero)]
        self.carried += [values.zero] * (half - above - len(self.carried))

    def subtracted(self) -> None:
        """(W_lo, V) - D, then X twice and what was borrowed."""
        values, half = self.values, self.half
        low, v, d = Walk(values, self.r), self.upper(), self.on_stack(0)
        to_low, to_stack = self.at(half), self.on_stack(half)
        borrow = values.zero
        with values.chain():
            self.chain((half, "sbc", low.load, d.load, to_low), (half, "sbc", v, d.load, to_stack))
            if self.above:
                borrow = values.one("mask")
        u, on_stack, x, again = self.at(half), self.on_stack(half), self.at(2 * half), self.at(2 * half)
        out, top = self.at(half), self.at(3 * half)
        with values.chain():
            self.chain(
                (half, "adc", u.load, x.load, out),
                (half, "adc", on_stack.load, again.load, out),
                (self.above, "adc", top.load, self.always(borrow), out),
            )

    def added(self, sign: int) -> None:
        """(W_lo + X, V + X, V), then D with its sign."""
        values, half, above = self.values, self.half, self.above
        low, x, again, v = Walk(values, self.r), self.at(2 * half), self.at(2 * half), self.upper()
        top, out = self.at(3 * half), self.at(half)
        with values.chain():
            self.chain(
                (half, "adc", low.load, x.load, out),
                (half, "adc", again.load, v, out),
                (above, "adc", top.load, self.always(values.zero), out),
            )
        back, d, out = self.at(half), self.on_stack(0), self.at(half)
        mask = values.one("slot", number=sign)

        def turned(count: int) -> list[int]:
            return [values.one("eor", limb, mask) for limb in d.load(count)]

        with values.chain():
            values.one("lsr", mask, number=1, comment="the carry is the sign")
            self.chain((2 * half, "adc", back.load, turned, out), begun=True)
            self.chain((above, "adc", back.load, self.always(mask), out), begun=True)
