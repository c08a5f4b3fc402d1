"""Karatsuba's last step on AVR: L + H - M added in the middle.

With X = 2^(limb bits * half), L = (B:A), H = (D:C) and W = B + C, the result is

    A + X (A + W - M_lo) + X^2 (W + D - M_hi) + X^3 D

The chains that this needs run side by side, group by group of limbs (`avr_karatsuba`).  W waits in registers, as far
as they suffice, or where C was.  What it carries out counts in both sums.

Sources: research/avr_kernels.md, patterns 11 and 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqgen.code import Flag, Memory, Virtual

from .avr_karatsuba import Buffer, Chain, Loop, limbs_of, signed
from .avr_leaf import store
from .avr_runs import as_mask, clear

TIGHT = 6  # limbs at a time where W stays in registers
REACHED = 32  # limbs that a pointer reaches without being moved, whatever lies between
NEAR = 16  # limbs of a half, at most, where a pointer reaches the whole result


class Recombination:
    """r = L + X^2 H becomes L + X (L + H - M) + X^2 H; M is in the buffer "m".

    `sign` is a mask, all ones if M is to be added: M is then complemented, and one is borrowed at first and given back
    above.  Without a mask M is `added` or not, by the same instructions but for ADC in the place of SBC.  `halves` are
    the limbs of the low and of the high half.
    """

    def __init__(
        self, loop: Loop, halves: tuple[int, int], *, sign: Virtual | None, zero: Virtual, added: bool = False
    ) -> None:
        self.half, self.rest = halves
        self.resident = not loop.looped and self.half <= NEAR
        self.loop, self.build = replace(loop, group=TIGHT) if self.resident else loop, loop.build
        self.sign, self.zero = sign, zero
        self.sums = loop.chain("carry", zero)
        self.with_carry = "adc" if added else "sbc"
        self.less = Chain(self.build, "more" if added else "borrow", zero, self.first_borrow())
        self.lifted = loop.chain("lifted", zero)
        self.again: Virtual | None = None  # what W carries out, for the second time
        self.waiting: list[Virtual] = []  # W, where it is resident
        self.above = [self.limb_above(index) for index in range(2 * self.rest - self.half)]  # D
        self.top: Virtual | None = None  # what goes into D, and its sign as a mask
        self.below_zero: Virtual | None = None

    def limb_above(self, index: int) -> Virtual:
        where = Memory("r", 3 * self.half + index)
        return self.build.limb(f"r{where.offset}", where)

    def first_borrow(self) -> Virtual | None:
        """One for a negative M."""
        if self.sign is None:
            return clear(self.build, "borrow") if self.loop.looped else None
        borrow = self.build.limb("borrow")
        self.build.emit("mov", borrow, self.sign)
        return borrow

    def all_steps(self) -> None:
        half = self.half
        loop = self.loop.keeping(self.zero, self.sign, self.sums.mask, self.less.mask, self.lifted.mask)
        loop.over(half, {"r": 0, "m": 0}, self.lower)
        if self.sums.mask:
            self.again = self.build.limb("again")
            self.build.emit("mov", self.again, self.sums.mask)
        loop = loop.keeping(*loop.keep, self.again)
        loop.over(half, {"r": 2 * half, "m": half}, self.upper)
        if self.loop.looped:
            self.top = self.carries()
            self.less.run([self.top], lambda index: None, [0])
            self.extend(self.less.carry)
        self.rise()

    def extend(self, carry: Flag | None) -> None:
        """Keep the sign of what goes into D.  It never is below zero, but the proof need not know that."""
        self.below_zero = as_mask(self.build, "sign", carry)

    def carries(self) -> Virtual:
        """What goes into the limbs above, but for the borrow that is still to come."""
        top = clear(self.build, "top")
        for mask in (self.sign, self.again, self.sums.mask, self.lifted.mask):
            if mask:
                self.build.emit("sub", top, mask)
        return top

    def less_middle(self, index: int) -> Virtual | None:
        limb = Buffer(self.build, "m", 0, 2 * self.half)(index)
        if limb and self.sign:
            self.build.emit("eor", limb, self.sign)
        return limb

    def take_away(self, limbs: Sequence[Virtual], indices: Sequence[int]) -> None:
        """Less M, its limbs of these indices."""
        self.less.run(limbs, self.less_middle, indices, [Buffer(self.build, "m", 0, 2 * self.half)])

    def lower(self, group: range, last: bool) -> None:
        """Columns half .. 2 half - 1."""
        build, half = self.build, self.half
        sums = limbs_of(Buffer(build, "r", half, half), group)
        high = Buffer(build, "r", 2 * half, 2 * self.rest)
        self.sums.run(sums, high, group, [high])
        self.sums.park()
        if self.resident:
            for index, limb in zip(group, sums, strict=True):
                build.mark("room", limb, Memory("r", 2 * half + index))
            self.waiting += sums
        else:
            store(build, 2 * half + group.start, sums)
        limbs = limbs_of(Buffer(build, "r", 0, half), group)
        self.lifted.run(limbs, lambda index: sums[index - group.start], group)
        self.lifted.park()
        self.take_away(limbs, group)
        self.less.park()
        store(build, half + group.start, limbs)

    def upper(self, group: range, last: bool) -> None:
        """Columns 2 half .. 3 half - 1."""
        build, half = self.build, self.half
        limbs = self.sums_again(group)
        self.sums.run(limbs, self.high_limb, group, [Buffer(build, "r", 3 * half, len(self.above))])
        self.sums.park()
        self.lifted.run(limbs, lambda index: None, group)
        self.lifted.park()
        if last and not self.loop.looped:
            self.top = self.carries()
        self.take_away(limbs, range(half + group.start, half + group.stop))
        if last and self.top:
            self.extend(build.emit(self.with_carry, self.top, self.zero, takes=self.less.carry))
        else:
            self.less.park()
        store(build, 2 * half + group.start, limbs[: max(0, 2 * self.rest - group.start)])

    def sums_again(self, group: range) -> list[Virtual]:
        """Limbs of W."""
        if not self.resident:
            return limbs_of(Buffer(self.build, "r", 2 * self.half, self.half), group)
        limbs = self.waiting[group.start : group.stop]
        for limb in limbs:
            self.build.mark("own", limb, reads=[limb])
        return limbs

    def high_limb(self, index: int) -> Virtual | None:
        """A limb of D; one that stays in a register if there is one for it."""
        if self.loop.looped:
            return Buffer(self.build, "r", 3 * self.half, len(self.above))(index)
        return self.above[index] if index < len(self.above) else None

    def rise(self) -> None:
        """What was carried out goes through D."""
        if not self.above:
            return
        assert self.top and self.below_zero
        top, sign = self.top, self.below_zero
        rise = self.loop.chain("rise", self.zero)
        first, addends = 3 * self.half, signed(top, sign)

        def group_rises(group: range, last: bool) -> None:
            self.build.mark("near", Memory("r", first + group[0]), Memory("r", first + group[-1]))
            rise.onto(self.above[group.start : group.stop], addends, group, first)
            if not last:
                rise.park()

        def turn_rises(group: range, last: bool) -> None:
            limbs = limbs_of(Buffer(self.build, "r", first, len(group) + group.start), group)
            rise.run(limbs, addends, group)
            rise.park()
            store(self.build, first + group.start, limbs)
            self.build.emit("mov", top, sign)

        if self.loop.looped:
            loop = self.loop.walking("r").keeping(top, sign, rise.mask)
            loop.over(len(self.above), {"r": first}, turn_rises)
        else:
            replace(self.loop, group=REACHED).over(len(self.above), {"r": first}, group_rises)
