"""Karatsuba's last step on AVR as a stream: each limb of H and of M is used as it leaves its product.

With X = 2^(limb bits * half), L = (B:A), H = (D:C) and (D':S) = H + B, the result is

    A + X (A + S - M_lo) + X^2 (S + D' - M_hi) + X^3 D'

so B is added to H on its way to memory, and no limb of M is ever stored.  B and D' are stored only where registers are
short, and the operand of M then waits where B would be, each limb until that of the middle is final.  The middle may
fall short of zero by one in its own limbs, but not with D': what goes into that has a sign.

Sources: research/avr_kernels.md, patterns 8, 11 and 12.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from sqgen.code import Builder, Flag, Memory, Virtual

from .avr_groups import REACHED
from .avr_karatsuba import Buffer, Chain, Source, limbs_of, near
from .avr_leaf import Leaf, store
from .avr_runs import as_mask, clear

GROUP = 8  # limbs of M at a time, if more leave at once


class Carries:
    """Two carries in one register, where they wait together; they come back in turns in this order and that.

    Shifted to the left, the register gives the one in its top bit and takes it, when it has changed, into its lowest,
    as it gives the other one; shifted to the right, the other way round.  Taking, swapping and putting both away are
    three cycles; a mask for each would be two registers and four.
    """

    def __init__(self, build: Builder) -> None:
        self.build, self.left = build, True
        self.limb: Virtual | None = None

    def take(self) -> Flag | None:
        """The first of the two, none at the beginning."""
        if not self.limb:
            return None
        return self.build.emit("add", self.limb, self.limb) if self.left else self.build.emit("lsr", self.limb)

    def swap(self, carry: Flag | None) -> Flag | None:
        """The second one for the first; at the beginning there is none, and a mask will do for all that lies there."""
        if not self.limb:
            self.limb = as_mask(self.build, "carries", carry)
            return None
        if self.left:
            return self.build.emit("adc", self.limb, self.limb, takes=carry)
        return self.build.emit("ror", self.limb, takes=carry)

    def put(self, carry: Flag | None) -> None:
        """Let the second one wait too; next time it is the first."""
        self.swap(carry)
        self.turn()

    def turn(self) -> None:
        """The other way round: the second one, which is in the flag, is the first one now."""
        self.left = not self.left


class Stream:
    """Takes the limbs of L, of H, then of M.  `halves` are the limbs of the low and of the high half.

    Where they differ, H + B carries into a limb of its own.
    """

    def __init__(self, build: Builder, halves: tuple[int, int], zero: Virtual) -> None:
        self.build, self.zero = build, zero
        self.half, rest = halves
        self.size = 2 * rest  # limbs of H
        self.sums = Chain(build, "carry", zero)
        self.lifted = Chain(build, "lifted", zero)
        self.less = Chain(build, "borrow", zero)
        self.carries = Carries(build)  # of both
        self.raised: dict[int, Virtual] = {}  # limbs of B that are not stored, or only where registers are short
        self.lodged: Sequence[Virtual] = ()  # the operand of M
        self.source: Leaf | None = None  # of the limbs of H
        self.carried: Virtual | None = None  # what the middle carries or borrows at last, as a mask
        self.above = [build.limb(f"r{c}", Memory("r", c)) for c in range(3 * self.half, 2 * self.half + self.size)]

    def low(self, first: int, limbs: Sequence[Virtual]) -> None:
        """Limbs of L from `first` on: A is stored, B may wait in registers, or where it would be stored."""
        for column, limb in enumerate(limbs, first):
            if column < self.half or limb is self.zero:
                store(self.build, column, [limb])
            else:
                self.raised[column - self.half] = limb
                self.build.mark("room", limb, Memory("r", column))

    def high(self, first: int, limbs: Sequence[Virtual]) -> None:
        """Limbs of H from `first` on: add B; S is stored, D' may wait in registers too."""
        own = [clear(self.build, "h") if limb is self.zero else limb for limb in limbs]
        last = first + len(own)
        stored = Buffer(self.build, "r", self.half, self.half)
        self.sums.run(own, lambda index: self.raised.get(index) or stored(index), range(first, last), [stored])
        ends = last < self.half or last == self.half == self.size - last  # no limb above needs a carry of its own
        catcher = self.source.waiting_square(last) if self.source and ends else None
        if catcher:
            if self.sums.carry:
                comment = "at most 0xfb, it takes the carry of H + B"
                self.build.emit("adc", catcher, self.zero, takes=self.sums.carry, comment=comment)
            self.sums = Chain(self.build, "carry", self.zero)
        elif last < self.size:
            self.sums.park()
        elif self.size < 2 * self.half and self.sums.carry:
            self.above.append(clear(self.build, "e"))
            self.build.emit("adc", self.above[-1], self.zero, takes=self.sums.carry)
        for index, limb in enumerate(own, first):
            if index < self.half or not self.source:  # if H is called, so is M, which leaves no register as it was
                store(self.build, 2 * self.half + index, [limb])
            else:
                self.build.mark("room", limb, Memory("r", 2 * self.half + index))
                self.above[index - self.half] = limb

    def lodge(self, limbs: Sequence[Virtual]) -> None:
        """Let the operand of M wait where B was, each limb until that of the middle is stored there."""
        self.lodged = limbs
        for index, limb in enumerate(limbs):
            self.build.mark("room", limb, Memory("r", self.half + index))

    def middle(self, first: int, limbs: Sequence[Virtual]) -> None:
        """Limbs of M from `first` on: L + H - M, and what lies there, to the middle."""
        last = first + len(limbs)
        bounds = sorted({first, last, *range(first, last, GROUP), min(max(first, self.half), last)})
        carry: Flag | None = None
        for begin, end in itertools.pairwise(bounds):
            carry = self.group(range(begin, end), limbs[begin - first : end - first], carry, more=end < last)

    def group(self, indices: range, limbs: Sequence[Virtual], carry: Flag | None, *, more: bool) -> Flag | None:
        """Some limbs of M, all in the lower or all in the upper half of the middle.

        M is subtracted, and A or D' added, in the order in which the carries come: the first one is in the `carry` flag
        if another group was just before.  If `more` follow at once, and no pointer moves there, one stays in the flag.
        """
        build, upper = self.build, indices.start >= self.half
        inner = range(indices.start - self.half, indices.stop - self.half) if upper else indices
        self.near(inner, upper)
        sums, low = Buffer(build, "r", 2 * self.half, self.half), Buffer(build, "r", 0, self.half)
        passes: list[tuple[Chain, Source]] = [
            (self.less, lambda index: limbs[index - inner.start]),
            (self.lifted, self.high_limb if upper else low),
        ]
        if not self.carries.left:
            passes.reverse()
        (first, addends), (second, others) = passes
        first.carry = carry or self.carries.take()
        found: list[Virtual] = []
        for index in inner:  # what is subtracted leaves a register as the limb of the sum comes
            found += limbs_of(sums, [index])
            first.run(found[-1:], addends, [index])
        second.carry = self.carries.swap(first.carry)
        second.run(found, others, inner)
        stays = more and 2 * self.half + self.size <= REACHED
        if indices.stop == 2 * self.half:
            self.carries.turn()
            self.carried = as_mask(build, "carried", second.carry)
        elif stays:
            self.carries.turn()
        else:
            self.carries.put(second.carry)
        for limb in self.lodged[indices.start : indices.stop]:
            build.mark("own", limb)
        store(build, self.half + indices.start, found)
        return second.carry if stays else None

    def near(self, inner: range, upper: bool) -> None:
        """Let the pointer reach what a group needs: its carries must not be lost on the way."""
        first = 2 * self.half + inner.start if upper else inner.start
        last = first + (self.half if upper else 2 * self.half) + len(inner) - 1
        near(self.build, "r", first, min(last, 2 * self.half + self.size - 1))

    def high_limb(self, index: int) -> Virtual | None:
        return self.above[index] if index < len(self.above) else None

    def finish(self) -> list[Virtual]:
        """What is carried and what is borrowed go into D', whose limbs are in registers: one as a mask for all of them,
        the other as what the chain begins with."""
        first, count = 3 * self.half, max(0, self.size - self.half)
        above = self.above[:count]
        if above:
            near(self.build, "r", first, first + count - 1)
            assert self.carried
            chain = Chain(self.build, "rise" if self.carries.left else "borrow", self.zero)
            chain.carry = self.carries.take()
            chain.onto(
                above,
                lambda index: self.carried,
                range(count),
                lambda index, limbs: store(self.build, first + index, limbs),
            )
        return above

    def wait(self) -> None:
        """A call is to come that leaves no register as it was."""
        if len(self.above) > self.size - self.half:
            self.build.emit("push", self.above[-1])

    def resume(self, zero: Virtual) -> None:
        """The call is over; zero is in another register."""
        if len(self.above) > self.size - self.half:
            self.above[-1] = self.build.limb("e")
            self.build.emit("pop", self.above[-1])
        self.zero = zero
        for chain in (self.sums, self.lifted, self.less):
            chain.zero = zero
