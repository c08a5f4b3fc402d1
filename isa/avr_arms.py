"""One level of Karatsuba multiplication on AVR that branches on the signs of both differences (`avr_signed`).

Of M = d e one factor stays in registers, and the limbs of the other one go, row by row.  The highest limb of a row's
sum begins in the register of the limb that has gone (`avr_middle`): if it begins with that limb, then X times what goes
is added, and M is right if what stays is negative.  So the code branches on the sign of e as soon as that is known,
which may be before H; what comes after that stands in both arms:

* e is negative: it stays, d goes, and no sign costs anything in the rows.  If d is negative, too, then e' is added to
  the upper half of M at last, in one of two small arms; the other one waits as long.
* e is not negative: d stays, e goes.  Where d is not negative either, a mask lets the sums begin with all ones, too
  much by X^2 - X; nothing is to be added at last.

So only one sign costs anything, a cycle for each limb of a half.  Both arms use memory alike, in the same order.  Upper
limbs that are not stored are in the same registers after both: M's upper half in those of e', which goes in one arm; in
the other one it is added to e' there, or moved, by the small arms.
"""

from __future__ import annotations

import abc
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from sqgen.code import Builder, Flag, Virtual
from sqgen.errors import UserError
from sqgen.plan import Block, Plan, Step

from .avr_karatsuba import Chain
from .avr_middle import FITTING, InRegisters
from .avr_registers import LOW
from .avr_runs import as_mask, to_flag
from .avr_signed import Site
from .avr_tape import Waiting
from .avr_unrolled import Unrolled

LATER = 1  # cycles to the second arm, more than to the first one: a branch not taken and a jump, not a branch taken
KEPT = 20  # limbs of what stays, twice, and of what goes, that find registers when the rows of M begin
BESIDE_H = 12  # the same while H is formed

Way = tuple[str, Callable[[], object]]  # its heading, and what emits it


def two_ways(build: Builder, branch: str, taken: Way, other: Way) -> None:
    """Code that goes one way if a branch is taken, and else another one; both end together, and take as long."""
    first, second, done = build.label("taken"), build.label("other"), build.label("done")
    build.mark(branch, first)
    build.mark("rjmp", second)
    build.mark("label", first)
    build.mark("fork", LATER)
    build.heading(taken[0])
    taken[1]()
    build.mark("rjmp", done)
    build.mark("label", second)
    build.mark("arm")
    build.heading(other[0])
    other[1]()
    build.mark("join")
    build.mark("label", done)


def in_arms(
    build: Builder, branch: str, arm: Callable[[bool, Sequence[Virtual]], Unrolled | None]
) -> Sequence[Virtual]:
    """A level's last step in two ways: M is added if a branch is taken, which `arm` is told, and else subtracted; the
    second one is given the limbs of the first that it shares.  The highest limbs of the result, which both leave in the
    same registers."""
    highest: list[Virtual] = []
    above: list[Virtual] = []

    def way(added: bool) -> None:
        last = arm(added, above)
        if last:
            above[:], highest[:] = last.above, last.highest()
        for limb in highest:
            build.mark("own", limb)

    two_ways(build, branch, ("M added", lambda: way(True)), ("M subtracted", lambda: way(False)))
    return highest


class InArms(InRegisters):
    """Forms what comes before the sign of e is known, and e; then the arms go on, each by itself."""

    def __init__(self, build: Builder, plan: Plan, site: Site) -> None:
        super().__init__(build, plan, site)
        if self.half > FITTING:
            raise UserError(f"signs=branched finds no registers for {plan.limbs} limbs in one level; take more levels")
        self.title = ""

    def all_steps(self) -> None:
        """Step by step, those after e' twice."""
        rest = deque(self.plan.steps)
        while not self.e:
            step = rest.popleft()
            self.title = step.title if isinstance(step, Block) else self.title
            self.step(step)
        arms = Negative(self), Other(self)
        negative: Way = f"{self.title}, e negative", lambda: arms[0].go_on(rest)
        other: Way = f"{self.title}, e not negative", lambda: arms[1].go_on(rest)
        two_ways(self.build, "brcs", negative, other)
        self.upper = arms[0].upper
        assert self.upper == arms[1].upper, "both arms leave the same limbs"

    def form_e(self) -> None:
        """e'; its borrow stays in the carry."""
        self.b_subtracted()


class Arm(InRegisters):
    """What follows e, from where the other steps have left."""

    def __init__(self, before: InArms) -> None:
        super().__init__(before.build, before.plan, before.site)
        self.early = before.early
        self.low, self.v, self.sum, self.e = list(before.low), list(before.v), list(before.sum), list(before.e)

    def go_on(self, steps: Iterable[Step]) -> None:
        """The steps after e'."""
        self.form_d_early()
        for step in steps:
            self.step(step)
        for limb in self.upper:
            self.build.mark("own", limb)

    def place_of_d(self) -> Callable[[int, Virtual], None] | None:
        """The highest limbs of what goes, for which there are no registers, wait where their rows will leave M's."""
        kept = (KEPT if self.v else BESIDE_H) - 2 * self.half
        return lambda index, _: self.wait_in_place(index) if index >= kept else None

    def wait_in_place(self, index: int) -> None:
        """A limb of what goes waits."""
        limb, column = self.goes()[index], self.half + index
        self.room(limb, column)
        self.build.memory("store", limb, self.place(column))
        self.build.mark("forget", limb)

    def d_borrowed(self, carry: Flag | None) -> None:
        self.d_signed(as_mask(self.build, "waiting", carry))

    @abc.abstractmethod
    def d_signed(self, mask: Virtual) -> None:
        """What becomes of the sign of d."""

    def finish(self) -> None:
        """As without arms, but M is right before H' is added."""
        build, half = self.build, self.half
        top = self.with_w()
        self.correct(top)
        more = Chain(build, "more", self.zero)
        more.carry = self.too_much()
        more.onto(self.sum, self.limb_of_high, range(half), lambda index, limbs: self.final(2 * half + index, limbs))
        self.rise(top, self.lowered(top, self.mask, more.carry))

    @abc.abstractmethod
    def correct(self, top: Virtual) -> None:
        """What is to be added to the upper half of M for the sign of d, with its carry."""


class Negative(Arm):
    """e is negative: the mask is that of d, by which X^2 is too much at last."""

    def d_signed(self, mask: Virtual) -> None:
        self.waiting.masks.append(mask)

    def begin(self, column: int) -> Virtual:
        return self.d[column - self.half]

    def correct(self, top: Virtual) -> None:
        """Add e' where d is negative; else wait as long, or move limbs meanwhile, by which what is kept gets to its
        registers in both: a branch taken, not one that is not, and no jump (2)."""
        build = self.build
        self.mask = self.waiting.mask()
        build.mark("need", reads=[*self.sum, *self.e, top, self.zero])
        plain, done = build.label("plain"), build.label("corrected")
        build.emit("asr", self.mask, comment="the mask of d's sign stays as it is")
        build.mark("brcc", plain)
        chain = Chain(build, "carry", self.zero)
        to, addends = (self.e, self.sum) if self.site.kept else (self.sum, self.e)
        chain.run(to, lambda index: addends[index], range(self.half))
        self.count(top, chain.carry)
        build.mark("rjmp", done)
        build.mark("label", plain)
        if self.site.kept:
            for limb, addend in zip(to, addends, strict=True):
                build.emit("mov", limb, addend)
        build.mark("wait", 2 if self.site.kept else self.half + 2)
        build.mark("label", done)
        self.sum = list(to)

    def too_much(self) -> Flag | None:
        return None


class InFlag(Waiting):
    """One carry that waits in flag T, where no register is free."""

    def __init__(self, build: Builder) -> None:
        super().__init__(build, together=False)
        self.flag: Flag | None = None

    def put(self, carry: Flag | None) -> None:
        self.flag = to_flag(self.build, carry)

    def carry(self) -> Flag | None:
        self.build.emit("bld", LOW, 0, takes=self.flag)
        return self.build.emit("lsr", LOW)


class Other(Arm):
    """e is not negative: the mask is that of d not negative."""

    factor = "d"

    def __init__(self, before: InArms) -> None:
        super().__init__(before)
        self.waiting = InFlag(self.build)

    def goes(self) -> list[Virtual]:
        return self.e

    def stays(self) -> list[Virtual]:
        return self.d

    def d_signed(self, mask: Virtual) -> None:
        self.mask = mask
        self.build.emit("com", mask, comment="all ones if d is not negative")

    def correct(self, top: Virtual) -> None:
        """Nothing."""
