"""M of two levels on AVR, |a_lo - a_hi| |b_lo - b_hi| (`avr_nested`): its operands are in registers once, as they are
formed, and then wait in memory.

So the difference of a's halves, d' of its own level (`avr_signed`), is formed ahead of L, while a is in registers.  It
waits where its rows will leave M's limbs, and its borrow in flag T.  The lower half of a is then needed for L alone,
and is not stored; the upper one is not loaded again after H.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqgen.code import Builder, Flag, Virtual
from sqgen.plan import Plan

from .avr_karatsuba import Chain
from .avr_middle import InRegisters
from .avr_runs import mask_of_flag, side_by_side, to_flag
from .avr_signed import Site
from .avr_tape import Waiting

MANY, SPARE = 8, 1  # limbs of a half, and registers left free then while rows are formed: fewer moves


class Ahead(InRegisters):
    """Forms d' first of all."""

    borrow: Flag | None = None  # of d', in flag T

    def __init__(self, build: Builder, plan: Plan, site: Site) -> None:
        super().__init__(build, plan, site)
        self.waiting = Waiting(build, together=False)
        self.formed: list[Virtual] = []

    def form_low(self, plan: Plan) -> None:
        """d', then L."""
        low, high = self.a[: self.half], self.a[self.half :]
        chain = Chain(self.build, "borrow", self.zero)
        copies = side_by_side(self.build, "d", self.half)
        for first in range(0, self.half, 2):
            two = slice(first, first + 2)
            self.copy(low[two], copies[two])
            indices = range(self.half)[two]
            chain.onto(copies[two], lambda index: high[index] if index < len(high) else None, indices, self.put_by)
        self.borrow = to_flag(self.build, chain.carry, "what d borrows")
        super().form_low(plan)

    def copy(self, limbs: Sequence[Virtual], copies: Sequence[Virtual]) -> None:
        for limb, copy in zip(limbs, copies, strict=True):
            self.build.emit("mov", copy, limb)

    def site_of_low(self) -> Site:
        """What L writes to is not needed again, or copied: the lower half of its b."""
        a, b = self.a[: self.half], self.b[: self.half]
        count = self.half - self.half // 2
        copies = side_by_side(self.build, "e", count)
        self.copy(b[:count], copies)
        return replace(super().site_of_low(), factors=(a, [*copies, *b[count:]]), again=True)

    @property
    def columns(self) -> int:
        """Those below d'."""
        return self.half

    def put_by(self, index: int, limbs: list[Virtual]) -> None:
        """A limb of d' waits."""
        column = self.half + index
        for limb in limbs:
            self.room(limb, column)
            self.build.memory("store", limb, self.place(column))
            self.build.mark("forget", limb)
        self.formed += limbs

    def form_d(self) -> None:
        """It is there."""
        self.d = self.formed
        self.d_formed()

    def begin_middle(self) -> None:
        super().begin_middle()
        if self.half >= MANY:
            self.build.mark("spare", SPARE)

    def before_end(self) -> None:
        self.build.mark("spare", 0)

    def sign_of_d(self) -> Virtual:
        return mask_of_flag(self.build, self.borrow)
