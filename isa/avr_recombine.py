"""Karatsuba's last step on AVR in loops: L + H - M added in the middle.

With X = 2^(limb bits * half), L = (B:A), H = (D:C) and W = B + C, the result is

    A + X (A + W - M_lo) + X^2 (W + D - M_hi) + X^3 D

The chains that this needs run side by side, group by group of limbs (`avr_karatsuba`).  W waits where C was.  What it
carries out counts in both sums.  `avr_unrolled` does the same without loops.

Source: research/avr_kernels.md, pattern 14.
"""

from __future__ import annotations

from sqgen.code import Virtual
from sqgen.plan import Slice

from .avr_karatsuba import CARRY, Buffer, Chain, Loop, limbs_of, next_of_m
from .avr_leaf import store
from .avr_registers import HIGH
from .avr_runs import as_mask, clear


class Recombination:
    """r = L + X^2 H becomes L + X (L + H - M) + X^2 H; M's limbs are on the stack, the lowest on top.

    `sign` is a mask, all ones if M is to be added: M is then complemented, and one is borrowed at first and given back
    above.  Without a mask M is `added` or not, by the same instructions but for ADC in the place of SBC.  A half has
    `half` limbs, whole turns of the loop.
    """

    def __init__(self, loop: Loop, half: int, *, sign: Virtual | None, added: bool = False) -> None:
        self.loop, self.build, self.half = loop, loop.build, half
        self.sign = sign
        self.sums = loop.chain("carry", HIGH)
        self.less = Chain(self.build, "more" if added else "borrow", HIGH, self.first_borrow())
        self.lifted = loop.chain("lifted", HIGH)
        self.again: Virtual | None = None  # what W carries out, for the second time

    def first_borrow(self) -> Virtual:
        """One for a negative M."""
        if self.sign is None:
            return clear(self.build, "borrow")
        borrow = self.build.limb("borrow")
        self.build.emit("mov", borrow, self.sign)
        return borrow

    def all_steps(self) -> None:
        half = self.half
        loop = self.loop.keeping(self.sign, self.sums.mask, self.less.mask, self.lifted.mask)
        loop.over(half, {"r": 0}, self.lower)
        if self.sums.mask:
            self.again = self.build.limb("again")
            self.build.emit("mov", self.again, self.sums.mask)
        loop = loop.keeping(*loop.keep, self.again)
        loop.over(half, {"r": 2 * half}, self.upper)
        top = self.carries()
        self.less.run([top], lambda index: None, [0])
        self.rise(top, as_mask(self.build, "sign", self.less.carry))

    def carries(self) -> Virtual:
        """What goes into the limbs above, but for the borrow that is still to come."""
        top = clear(self.build, "top")
        for mask in (self.sign, self.again, self.sums.mask, self.lifted.mask):
            if mask:
                self.build.emit("sub", top, mask)
        return top

    def lower(self, group: range) -> None:
        """Columns half .. 2 half - 1."""
        build, half = self.build, self.half
        sums = limbs_of(Buffer(build, "r", half, half), group)
        high = Buffer(build, "r", 2 * half, half)
        self.sums.run(sums, high, group, [high])
        self.sums.park()
        store(build, 2 * half + group.start, sums)
        limbs = limbs_of(Buffer(build, "r", 0, half), group)
        self.lifted.run(limbs, lambda index: sums[index - group.start], group)
        self.lifted.park()
        self.less.run(limbs, lambda index: next_of_m(build, self.sign), group)
        self.less.park()
        store(build, half + group.start, limbs)

    def upper(self, group: range) -> None:
        """Columns 2 half .. 3 half - 1."""
        build, half = self.build, self.half
        limbs = limbs_of(Buffer(build, "r", 2 * half, half), group)
        high = Buffer(build, "r", 3 * half, half)
        self.sums.run(limbs, high, group, [high])
        self.sums.park()
        self.lifted.run(limbs, lambda index: None, group)
        self.lifted.park()
        self.less.run(limbs, lambda index: next_of_m(build, self.sign), group)
        self.less.park()
        store(build, 2 * half + group.start, limbs)

    def rise(self, top: Virtual, sign: Virtual) -> None:
        """What was carried out goes through D.  It never is below zero, but the proof need not know that."""
        build, above = self.build, Slice("r", 3 * self.half, self.half)

        def add(limb: Virtual, index: int) -> None:
            """The sign is added from the second limb on."""
            build.emit("adc", limb, sign if index else top, takes=CARRY)
            if not index:
                build.emit("mov", top, sign)

        self.loop.keeping(top, sign).carrying(above, above, add)
