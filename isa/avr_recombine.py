"""Karatsuba's last step on AVR: L + H - M added in the middle.

The chains that this needs run side by side, group by group of limbs (`avr_karatsuba`).

Sources: research/avr_kernels.md, patterns 11 and 14.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqgen.code import Builder, Memory, Virtual

from .avr_karatsuba import Buffer, Chain, Loop, limbs_of
from .avr_leaf import store
from .avr_runs import clear

TIGHT = 3  # limbs at a time where M is in registers as well
REACHED = 32  # limbs that a pointer reaches without being moved, whatever lies between
SPAN = 48  # limbs of a half above which a pointer does not reach both halves of M


@dataclass(frozen=True)
class Middle:
    """M: in registers (`limbs`), or in the buffer "m".  Where a limb was, one of S waits in its place."""

    build: Builder
    count: int
    limbs: Sequence[Virtual] = ()
    waiting: dict[int, Virtual] = field(default_factory=dict)

    @property
    def buffers(self) -> list[Buffer]:
        return [] if self.limbs else [Buffer(self.build, "m", 0, self.count)]

    def limb(self, index: int) -> Virtual | None:
        return self.limbs[index] if self.limbs else self.buffers[0](index)

    def keep(self, index: int, limb: Virtual) -> None:
        if self.limbs:
            self.waiting[index] = limb
        else:
            self.build.memory("store", limb, Memory("m", index))

    def kept(self, index: int) -> Virtual | None:
        return self.waiting.pop(index) if self.limbs else self.buffers[0](index)


class Recombination:
    """r = L + X^2 H becomes L + X (L + H - M) + X^2 H, X being 2^(limb bits * half).

    S = L_hi + H_lo is formed once: it is in the lower half of the middle, L_lo + S - M_lo, and in the upper one,
    S + H_hi - M_hi.  What it carries out is in both as well, and so goes to columns 2 half and 3 half.  `sign` is a
    mask, all ones if M is to be added: M is then complemented, and one is borrowed at first and given back above.
    Without a mask M is `added` or not, by the same instructions but for ADC in the place of SBC.  `halves` are the
    limbs of the low and of the high half.
    """

    def __init__(
        self,
        loop: Loop,
        halves: tuple[int, int],
        middle: Middle,
        *,
        sign: Virtual | None,
        zero: Virtual,
        added: bool = False,
    ) -> None:
        self.loop, self.build = loop, loop.build
        self.half, self.rest = half, rest = halves
        self.middle, self.sign, self.zero = middle, sign, zero
        self.low = Buffer(self.build, "r", 0, 2 * half)
        self.high = Buffer(self.build, "r", 2 * half, 2 * rest)
        columns = range(0) if loop.looped else range(3 * half, 2 * half + 2 * rest)
        self.above_middle = [self.build.limb(f"r{column}", Memory("r", column)) for column in columns]
        self.sums = loop.chain("carry", zero)
        self.with_carry = "adc" if added else "sbc"
        self.less = Chain(self.build, "more" if added else "borrow", zero, self.first_borrow())
        self.lifted = loop.chain("lifted", zero)
        self.rise = self.lifted  # through the limbs above
        self.again: Virtual | None = None
        self.top: Virtual | None = None

    def first_borrow(self) -> Virtual | None:
        """One for a negative M."""
        if self.sign is None:
            return clear(self.build, "borrow") if self.loop.looped else None
        borrow = self.build.limb("borrow")
        self.build.emit("mov", borrow, self.sign)
        return borrow

    def all_steps(self) -> None:
        half, rest = self.half, self.rest
        alive = (self.zero, self.sign, self.sums.mask, self.less.mask, self.lifted.mask)
        loop = self.loop.keeping(*alive)
        loop.over(half, {"r": 0, "m": 0}, self.lower)
        self.between()
        loop.keeping(*alive, self.again).over(half, {"r": 2 * half, "m": 0 if half <= SPAN else half}, self.upper)
        if self.loop.looped:
            self.top = self.carries()
            self.less.run([self.top], lambda index: None, [0])
        count = 2 * rest - half
        if count > 0:
            assert self.top is not None
            self.rise = self.loop.chain("rise", self.zero)
            loop = loop.walking("r").keeping(self.zero, self.top, self.rise.mask)
            if loop.looped:
                loop.over(count, {"r": 3 * half}, self.above_in_loop)
            else:
                replace(loop, group=REACHED).over(count, {"r": 3 * half}, self.above)

    def carries(self) -> Virtual:
        """What goes into the limbs above, but for the borrow that is still to come."""
        top = clear(self.build, "top")
        for mask in (self.sign, self.again, self.sums.mask, self.lifted.mask):
            if mask:
                self.build.emit("sub", top, mask)
        return top

    def less_middle(self, index: int) -> Virtual | None:
        limb = self.middle.limb(index)
        if limb and self.sign:
            self.build.emit("eor", limb, self.sign)
        return limb

    def store(self, column: int, limbs: Sequence[Virtual]) -> None:
        """Store limbs of the middle; those above the result are zero."""
        store(self.build, column, limbs[: max(0, 2 * (self.half + self.rest) - column)])

    def lower(self, group: range, last: bool) -> None:
        """Columns half .. 2 half - 1."""
        sums = limbs_of(Buffer(self.build, "r", self.half, self.half), group)
        self.sums.run(sums, self.high, group, [self.high])
        self.sums.park()
        limbs = limbs_of(self.low, group)
        self.lifted.run(limbs, lambda index: sums[index - group.start], group)
        self.lifted.park()
        self.less.run(limbs, self.less_middle, group, self.middle.buffers)
        self.less.park()
        for index, limb in zip(group, sums, strict=True):
            self.middle.keep(index, limb)
        self.store(self.half + group.start, limbs)

    def between(self) -> None:
        """Keep what S carries out, which is added twice."""
        assert self.sums.mask
        self.again = self.build.limb("again")
        self.build.emit("mov", self.again, self.sums.mask)

    def upper(self, group: range, last: bool) -> None:
        """Columns 2 half .. 3 half - 1."""
        limbs = limbs_of(self.middle.kept, group)
        above = range(self.half + group.start, self.half + group.stop)
        self.sums.run(limbs, self.high_limb, above, [self.high])
        self.sums.park()
        self.lifted.run(limbs, lambda index: None, group)
        self.lifted.park()
        if last:
            self.top = self.carries()
        self.less.run(limbs, self.less_middle, above, self.middle.buffers)
        if last and self.top:
            self.build.emit(self.with_carry, self.top, self.zero, takes=self.less.carry)
        else:
            self.less.park()
        self.store(2 * self.half + group.start, limbs)

    def high_limb(self, index: int) -> Virtual | None:
        """A limb of H; of its upper half, which is wanted once more, one that may stay in its register."""
        kept = self.above_middle[index - self.half :] if index >= self.half else []
        return kept[0] if kept else self.high(index)

    def above(self, group: range, last: bool) -> None:
        """The limbs above: what was carried out goes through them."""
        assert self.top is not None
        self.build.mark("near", *(Memory("r", 3 * self.half + index) for index in (group[0], group[-1])))
        for index in group:
            limb = self.above_middle[index]
            self.rise.run([limb], lambda index: self.top if index == 0 else None, [index])
            self.store(3 * self.half + index, [limb])  # at once: it can be loaded again only as it was
        if not last:
            self.rise.park()

    def above_in_loop(self, group: range, last: bool) -> None:
        """The same in a loop."""
        limbs = limbs_of(Buffer(self.build, "r", 3 * self.half, len(group) + group.start), group)
        assert self.top is not None
        self.rise.run(limbs, lambda index: self.top if index == 0 else None, group)
        self.rise.park()
        self.store(3 * self.half + group.start, limbs)
        self.build.emit("eor", self.top, self.top, fresh=True)
