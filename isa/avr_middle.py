"""The middle of a product on AVR in one piece (`avr_signed`), M = d e: in registers as far as it fits them, else by way
of a frame.

Sources: research/avr_kernels.md, section 7, patterns 1 to 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sqgen.code import PUSHED, Builder, Flag, Memory, Virtual
from sqgen.plan import Plan, Recombine, Run, Step

from .avr_karatsuba import Chain
from .avr_leaf import Leaf
from .avr_runs import as_mask
from .avr_signed import ROOMY, Signed, Site
from .avr_tape import Waiting

FITTING = 9  # limbs of a half whose M fits the registers


def in_place(build: Builder, plan: Plan, site: Site) -> Signed:
    """What forms the plan's product there."""
    (last,) = (step for step in plan.steps if isinstance(step, Recombine))
    return (InRegisters if last.half <= FITTING else InFrame)(build, plan, site)


class InRegisters(Signed):
    """e is b_lo - b_hi, and d' e' is subtracted row by row.

    The highest limb of row i, column by column the first one that the sum lacks, begins with limb i of d' if e is
    negative, else with all ones: that is X (e_mask & d'), or else X^2 - X too much, which goes off at the end.  So no
    row borrows from what is above it: with the rows up to i, d_i their factor and B = 2^(limb bits * (i + 1)), the sum
    is U - d_i e or U - d_i e + X B - X, and neither is negative or reaches X B.  No row after the i-th needs limb i of
    d', so that the highest limb of that row begins in its register, in the run that comes last.
    """

    factor = "e"  # what stays, whose sign decides on what the rows begin with

    def __init__(self, build: Builder, plan: Plan, site: Site) -> None:
        super().__init__(build, plan, site)
        self.waiting = Waiting(build, together=self.half > ROOMY)
        self.of_e = Waiting(build, together=False)  # wanted from the first row on

    def form_low(self, plan: Plan) -> None:
        """L, which may be a level: then its upper half is in registers, too, and the lower one is loaded again."""
        if not any(plan.parts()):
            super().form_low(plan)
            return
        low = InRegisters(self.build, plan, self.site_of_low())
        low.waiting = Waiting(self.build, together=True)  # other limbs are there, too
        low.all_steps()
        for limb in low.upper:
            self.own(limb)
        self.sum = low.upper
        self.low = [self.build.limb(f"l{column}", self.place(column)) for column in range(self.half)]

    def site_of_low(self) -> Site:
        """Where an L is formed that is a level: limbs of its own are loaded for it, as it writes to them.  Where the
        product is no part, registers may be few, and b's upper half comes back for H."""
        a, b = ([self.build.limb(limb.name, limb.home) for limb in factor[: self.half]] for factor in (self.a, self.b))
        part = self.site.name
        name = f"L of {part}" if part else "L"
        low = replace(self.site, factors=(a, b), free={}, name=name, kept=True, again=not part, columns=self.columns)
        return replace(low, whole=False)

    @property
    def columns(self) -> int | None:
        """So many columns of the buffer are there for limbs that wait while L is formed, if not all of them."""
        return self.site.columns

    def put_aside(self, limb: Virtual, column: int) -> None:
        """It stays."""

    def order(self, low: list[Virtual], high: list[Virtual]) -> tuple[list[Virtual], list[Virtual]]:
        return low, high

    def place_of_d(self) -> Callable[[int, Virtual], None] | None:
        """Where the middle will be."""
        return lambda index, limb: self.room(limb, self.half + index)

    def e_formed(self) -> None:
        self.mask = self.of_e.first()
        self.build.emit("com", self.mask, comment="all ones if e is not negative")

    def d_formed(self) -> None:
        self.release("a")

    def before_middle(self) -> None:
        """d' has its place in memory until its first row."""

    def goes(self) -> list[Virtual]:
        """The factor whose limbs are the rows'."""
        return self.d

    def stays(self) -> list[Virtual]:
        """The other one, which is in registers for all rows."""
        return self.e

    def leaf_of_middle(self, plan: Plan) -> Leaf:
        self.own(self.goes()[0])
        rows = replace(plan, steps=tuple(tops_last(plan.steps)))
        return Leaf(rows, self.build, self.goes(), self.stays(), out=self.take_middle, zero=self.zero, begin=self.begin)

    def begin(self, column: int) -> Virtual:
        """What the highest limb of a row begins with, where its factor was; OR leaves the carry as it is."""
        limb = self.goes()[column - self.half]
        self.build.emit("or", limb, self.mask)
        return limb

    def after_row(self, row: int) -> None:
        if 0 <= row < self.half - 1:
            self.own(self.goes()[row + 1])

    def before_end(self) -> None:
        """Nothing has been carried."""

    def too_much(self) -> Flag | None:
        return self.build.emit("asr", self.mask, comment=f"X too much, as X^2 less, if {self.factor} is not negative")

    def complete(self, top: Virtual, of_d: Virtual) -> Virtual:
        """Add e' where d is negative; from the top X^2 goes off if d is negative or e is not."""
        self.build.emit("or", self.mask, of_d)
        return self.lowered(top, self.mask, self.corrected("carry", of_d))

    def take_back(self, limb: Virtual) -> None:
        """It is in a register."""


class InFrame(Signed):
    """e is b_hi - b_lo; d' and e' wait in a frame, d' e' is added, and d' subtracted from the upper half at the end."""

    def __init__(self, build: Builder, plan: Plan, site: Site) -> None:
        super().__init__(build, plan, site)
        self.waiting = self.of_e = Waiting(build, together=self.half > ROOMY)
        self.less = Chain(build, "borrow", self.zero)

    def put_aside(self, limb: Virtual, column: int) -> None:
        """Lest it is in the way of pairs."""
        self.build.memory("store", limb, self.place(column))
        self.build.mark("forget", limb)

    def order(self, low: list[Virtual], high: list[Virtual]) -> tuple[list[Virtual], list[Virtual]]:
        return high, low

    def place_of_d(self) -> Callable[[int, Virtual], None] | None:
        """None but the frame."""
        return None

    def e_formed(self) -> None:
        self.push(self.e, 0)

    def d_formed(self) -> None:
        self.push(self.d, self.half)

    def push(self, limbs: list[Virtual], depth: int) -> None:
        """Let limbs wait on the stack, `depth` limbs of which are in use."""
        for at, limb in enumerate(reversed(limbs), depth):
            where = Memory(PUSHED, at)
            self.build.mark("room", limb, where)
            self.build.memory("store", limb, where)

    def before_middle(self) -> None:
        self.build.mark("look")

    def leaf_of_middle(self, plan: Plan) -> Leaf:
        return Leaf(plan, self.build, self.d, self.e, out=self.take_middle, zero=self.zero)

    def after_row(self, row: int) -> None:
        """After the last one subtract d' where e is negative."""
        if row + 1 != self.half:
            return
        self.mask = self.of_e.first()
        self.build.mark("unwind")
        limbs = [self.leaf.limbs.get(column) or self.middle[column] for column in range(self.half, 2 * self.half)]
        self.less.run(limbs, lambda index: self.masked(self.d[index], self.mask), range(self.half))

    def before_end(self) -> None:
        self.borrowed = self.counted("borrowed", self.less.carry)

    def too_much(self) -> Flag | None:
        """Nothing."""
        return None

    def complete(self, top: Virtual, of_d: Virtual) -> Virtual:
        """Subtract e' where d is negative; from the top what has been borrowed."""
        build = self.build
        build.emit("and", self.mask, of_d)
        build.emit("sub", top, self.mask, comment="1 if both are negative")
        carry = self.corrected("borrow", of_d)
        return as_mask(build, "sign", build.emit("sbc", top, self.borrowed, takes=carry, comment="from -1 to 2"))

    def take_back(self, limb: Virtual) -> None:
        """From the frame."""
        self.build.mark("forget", limb)
        self.own(limb)


def tops_last(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps of a product by rows, in each row the run that ends highest last."""
    waiting: list[Run] = []
    for step in steps:
        if isinstance(step, Run):
            waiting.append(step)
            continue
        yield from sorted(waiting, key=lambda run: run.cells[-1].column)
        waiting = []
        yield step
