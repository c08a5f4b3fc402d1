"""Karatsuba's last step on AVR as a stream: each limb of H and of M is used as it leaves its product.

With X = 2^(limb bits * half), L = (B:A), H = (D:C) and S = B + C, the result is

    A + X (A + S - M_lo) + X^2 (S + D - M_hi) + X^3 D

so B is added to C on its way to memory, and no limb of M is ever stored.  What S carries out is in both sums.

Sources: research/avr_kernels.md, patterns 8, 11 and 12.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from sqgen.code import Builder, Memory, Virtual

from .avr_karatsuba import Buffer, Chain
from .avr_leaf import store
from .avr_runs import clear

GROUP = 4  # limbs of M at a time, if more leave at once


class Stream:
    """Takes the limbs of H, then those of M.  `halves` are the limbs of the low and of the high half."""

    def __init__(self, build: Builder, halves: tuple[int, int], zero: Virtual) -> None:
        self.build, self.zero = build, zero
        self.half, rest = halves
        self.size = 2 * rest  # limbs of H
        self.sums = Chain(build, "carry", zero)
        self.lifted = Chain(build, "lifted", zero)
        self.less = Chain(build, "borrow", zero)
        self.again: Virtual | None = None  # what S carries out, for the second time
        self.top: Virtual | None = None
        self.above = [build.limb(f"r{c}", Memory("r", c)) for c in range(3 * self.half, 2 * self.half + self.size)]

    def high(self, first: int, limbs: Sequence[Virtual]) -> None:
        """Limbs of H from `first` on: add B, store."""
        own = [clear(self.build, "h") if limb is self.zero else limb for limb in limbs]
        addends = Buffer(self.build, "r", self.half, self.half)
        count = min(len(own), max(0, self.half - first))
        self.sums.run(own[:count], addends, range(first, first + count), [addends])
        self.sums.park()
        store(self.build, 2 * self.half + first, own)

    def middle(self, first: int, limbs: Sequence[Virtual]) -> None:
        """Limbs of M from `first` on: L + H - M, and what lies there, to the middle."""
        last = first + len(limbs)
        bounds = sorted({first, last, *range(first, last, GROUP), min(max(first, self.half), last)})
        for begin, end in itertools.pairwise(bounds):
            self.group(range(begin, end), limbs[begin - first : end - first])

    def group(self, indices: range, limbs: Sequence[Virtual]) -> None:
        """Some limbs of M, all in the lower or all in the upper half of the middle."""
        build, upper = self.build, indices.start >= self.half
        inner = range(indices.start - self.half, indices.stop - self.half) if upper else indices
        self.near(inner, upper)
        found = [limb for index in inner if (limb := Buffer(build, "r", 2 * self.half, self.half)(index))]
        if upper:
            self.begin_upper(inner)
            self.sums.run(found, lambda index: self.above[index] if index < len(self.above) else None, inner)
            self.sums.park()
        self.lifted.run(found, lambda index: None if upper else Buffer(build, "r", 0, self.half)(index), inner)
        self.lifted.park()
        last = indices.stop == 2 * self.half
        if last:
            self.begin_top()
        self.less.run(found, lambda index: limbs[index - inner.start], inner)
        if last and self.top:
            build.emit("sbc", self.top, self.zero, takes=self.less.carry)
        else:
            self.less.park()
        store(build, self.half + indices.start, found)

    def near(self, inner: range, upper: bool) -> None:
        """Let the pointer reach what a group needs: its carries must not be lost on the way."""
        first = 2 * self.half + inner.start if upper else inner.start
        last = first + (self.half if upper else 2 * self.half) + len(inner) - 1
        self.build.mark("near", Memory("r", first), Memory("r", min(last, 2 * self.half + self.size - 1)))

    def begin_upper(self, inner: range) -> None:
        if not inner.start and self.sums.mask:
            self.again = self.build.limb("again")
            self.build.emit("mov", self.again, self.sums.mask)

    def begin_top(self) -> None:
        """What goes into the limbs above, but for the borrow that is still to come."""
        self.top = clear(self.build, "top")
        for mask in (self.again, self.sums.mask, self.lifted.mask):
            if mask:
                self.build.emit("sub", self.top, mask)

    def finish(self) -> None:
        """What was carried out goes through D."""
        rise = Chain(self.build, "rise", self.zero)
        first = 3 * self.half
        if self.above:
            self.build.mark("near", Memory("r", first), Memory("r", first + len(self.above) - 1))
        for index, limb in enumerate(self.above):
            rise.run([limb], lambda index: self.top if index == 0 else None, [index])
            store(self.build, first + index, [limb])

    def wait(self) -> None:
        """A call is to come that leaves no register as it was."""
        if self.sums.mask:
            self.build.emit("push", self.sums.mask)

    def resume(self, zero: Virtual) -> None:
        """The call is over; zero is in another register."""
        if self.sums.mask:
            self.sums.mask = self.build.limb("carry")
            self.build.emit("pop", self.sums.mask)
        self.zero = zero
        for chain in (self.sums, self.lifted, self.less):
            chain.zero = zero
