"""Two levels of Karatsuba multiplication on AVR in one piece: the three products in place, M first and L last.

|a_lo - a_hi| and |b_lo - b_hi| stay in registers as far as there are some; the others wait where the result will be.
M goes to the stack, from where POP takes it when the sums are formed (`avr_ahead`); its lower half stays where the
result will be, if L needs no place there.  The upper half of L is not stored at all: it is in registers when the sums
begin.

Source: research/avr_kernels.md, patterns 13 and 14, and section 7.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqgen.code import Builder, Flag, Memory, Virtual
from sqgen.errors import UserError
from sqgen.plan import Block, Difference, Part, Plan, Recombine, Slice, Step

from .avr_address import reserve, stack_pointer_to
from .avr_ahead import Ahead
from .avr_arms import InArms, in_arms
from .avr_groups import REACHED, reached
from .avr_karatsuba import Chain, negate
from .avr_leaf import operands
from .avr_level import load_pointer
from .avr_middle import in_place
from .avr_passing import Taken, accepted
from .avr_registers import LOW, POINTERS
from .avr_runs import as_mask, clear, side_by_side
from .avr_signed import Signed, Site
from .avr_unrolled import OfL, Unrolled

FRAME = "m"  # M, from the stack pointer upwards: the pointers of the operands, the sign of M, M
OPERANDS = {"a": "Y", "b": "X"}  # their pointers
ON_Y, ON_X, ABOVE = 1, 3, 5  # bytes from the stack pointer to where they are and to the sign
FEW = 10  # limbs of a half, at most, whose products have the sums of their upper halves in registers


def first_of(plan: Plan) -> str:
    """The operand whose difference is formed first."""
    return kind(plan).first


def kind(plan: Plan) -> type[Nested]:
    """By the limbs of a half."""
    (last,) = (step for step in plan.steps if isinstance(step, Recombine))
    return InResult if last.half <= FEW else OnStack


def nested(build: Builder, plan: Plan, registers: int, taken: Taken | None) -> Nested:
    """What forms the plan's product, with so many `registers` for limbs beside the pointers, and limbs `taken` there.
    Raises UserError: more limbs than a pointer reaches."""
    (last,) = (step for step in plan.steps if isinstance(step, Recombine))
    if not reached(last.half):
        raise UserError(f"two levels in one piece have up to {REACHED // 2} limbs, not {plan.limbs}; take more levels")
    return kind(plan)(build, plan, registers, last.half, taken)


class Nested(abc.ABC):
    """Forms the plan's product; what is not said here is where M, its sign and the pointers of the operands wait."""

    first = "a"  # the operand whose difference is formed first
    upper_stays = False  # whether it is limbs of the upper half that become the difference, where some are taken

    def __init__(self, build: Builder, plan: Plan, registers: int, half: int, taken: Taken | None) -> None:
        self.build, self.plan, self.registers, self.half, self.taken = build, plan, registers, half, taken
        self.there: dict[int, Virtual] = {}  # limbs that are in registers from the beginning, by index
        a, b = operands(build, plan)
        self.vectors = {"a": a, "b": b}
        self.mask: Virtual | None = None  # the sign of the differences
        self.of_l = OfL()
        self.highest: Sequence[Virtual] = ()  # limbs of the product, which are left in registers too

    def all_steps(self) -> None:
        """Step by step."""
        if self.taken:
            self.there = self.arriving(self.taken)
        with accepted(self.build, list(self.there.values())):
            self.begin()
        self.zero = clear(self.build, "zero")
        for step in self.steps():
            match step:
                case Block(title):
                    self.build.heading(title)
                case Difference():
                    self.difference(step)
                case Part():
                    self.part(step)
                case Recombine():
                    self.recombine(step)

    def steps(self) -> Sequence[Step]:
        """In their order."""
        return self.plan.steps

    @abc.abstractmethod
    def begin(self) -> None:
        """The pointers of the operands are put aside."""

    def arriving(self, taken: Taken) -> dict[int, Virtual]:
        """Limbs of the operand whose difference is formed first, by index; one half of them becomes that."""
        first = self.half if self.upper_stays else 0
        becoming = dict(enumerate(self.limbs(Slice(taken.base, first, self.half)), first))
        return {index: becoming.get(index) or self.build.limb(f"{taken.base}{index}") for index in taken.limbs}

    def difference(self, step: Difference) -> None:
        """|low - high| of an operand, or |high - low| where limbs of the upper half are taken, which become that."""
        build, base, new = self.build, step.left.name, self.limbs(step.into)
        left, right = (step.right, step.left) if self.taken and self.upper_stays else (step.left, step.right)
        there = self.there if base == self.first else {}
        limbs = [there.get(name, limb) for name, limb in enumerate(new, left.first)]
        borrow = Chain(build, "borrow", self.zero)

        def subtrahend(index: int) -> Virtual | str | None:
            if index >= right.count:
                return None
            if right.first + index in there:
                return there[right.first + index]
            build.memory("load", LOW, Memory(base, right.first + index))
            return LOW

        def minuend(index: int) -> None:
            if index >= left.count:
                build.emit("eor", limbs[index], limbs[index], fresh=True)
            elif left.first + index not in there:
                build.memory("load", limbs[index], Memory(base, left.first + index))

        for index in range(0 if there else len(limbs)):
            minuend(index)
        for index, limb in enumerate(limbs):
            if there:  # each limb of the other half leaves a register
                minuend(index)
            borrow.run([limb], subtrahend, [index])
        mask = as_mask(build, "sign", borrow.carry)
        negate(build, limbs, mask, Chain(build, "borrow", self.zero), range(len(limbs)))
        for index, column in self.rooms(step.into.name):
            build.mark("room", limbs[index], Memory("r", column))
        self.vectors[step.into.name] = limbs
        if self.mask:
            build.emit("eor", mask, self.mask, comment="all ones if M is to be added")
        self.mask = mask

    def limbs(self, into: Slice) -> list[Virtual]:
        """New ones of a difference."""
        return [self.build.limb(f"{into.name}{index}") for index in range(into.count)]

    @abc.abstractmethod
    def rooms(self, name: str) -> Iterator[tuple[int, int]]:
        """(limb, column of the result where it may wait) for a difference, d or e."""

    def part(self, step: Part) -> None:
        """A product."""
        if step.into.name == FRAME:
            self.middle(step)
        elif step.into.first:
            self.formed(step, Site(self.factors(step), "r", step.into.first, self.zero, OPERANDS, "H"))
            self.retake()
            self.take_pointers()
        else:
            low = self.formed(step, self.site_of_low(step))
            self.of_l = OfL(dict(enumerate(low.upper)), low.below)
            return
        for base, pointer in OPERANDS.items():
            self.build.mark("point", pointer, Memory(base, 0))

    def retake(self) -> None:
        """Nothing else is in the pointers from here on."""
        for pointer in OPERANDS.values():
            self.build.mark("retake", *POINTERS[pointer])

    @abc.abstractmethod
    def middle(self, step: Part) -> None:
        """M; the pointers of the operands are where these begin afterwards."""

    @abc.abstractmethod
    def take_pointers(self) -> None:
        """The pointers of the operands again, for L."""

    def site_of_low(self, step: Part) -> Site:
        """Where L is formed."""
        return Site(self.factors(step), "r", 0, self.zero, OPERANDS, "L", kept=True)

    def formed(self, step: Part, site: Site) -> Signed:
        """A product."""
        signed = self.former(step.plan, site)
        signed.all_steps()
        return signed

    def former(self, plan: Plan, site: Site) -> Signed:
        """What forms a product."""
        return (InArms if plan.branches and self.arms else in_place)(self.build, plan, site)

    def factors(self, step: Part) -> tuple[list[Virtual], list[Virtual]]:
        left, right = (
            self.vectors[each.name][each.first : each.first + each.count] for each in (step.left, step.right)
        )
        return left, right

    def recombine(self, step: Recombine) -> None:
        """L + H - M or, with a negative M, L + H + M."""
        for limb in self.of_l.upper.values():
            self.build.mark("own", limb)
        if not step.branched:
            self.highest = self.summed(step, self.sign()).highest()
            return
        self.highest = in_arms(
            self.build, self.branch(), lambda added, above: self.summed(step, None, added=added, above=above)
        )

    def summed(
        self, step: Recombine, sign: Virtual | Flag | None, *, added: bool = False, above: Sequence[Virtual] = ()
    ) -> Unrolled:
        """L + H - M, or L + H + M if it is `added` or the mask `sign` is all ones; `above`: limbs of H with a name."""
        halves = (step.half, self.plan.limbs - step.half)
        free = self.registers + sum(len(POINTERS[pointer]) for pointer in OPERANDS.values())
        of_l, stored = self.of_l, self.stored
        last = Unrolled(self.build, halves, free, sign=sign, added=added, of_l=of_l, above=above, stored=stored)
        last.all_steps()
        return last

    stored = False  # whether the lower half of M is where the result will be
    arms = True  # whether a part may branch, which takes flag T

    @abc.abstractmethod
    def sign(self) -> Virtual | Flag:
        """The sign of M as a mask, or in flag T."""

    @abc.abstractmethod
    def branch(self) -> str:
        """The name of a branch that is taken now if M is negative."""


class OnStack(Nested):
    """M, its sign and the pointers are in a frame on the stack; the inner difference of a's is formed ahead of M's
    products."""

    first = "b"
    upper_stays = True

    def steps(self) -> Sequence[Step]:
        """The difference of a after that of b: so it is in registers where M begins."""
        differences = [step for step in self.plan.steps if isinstance(step, Difference)]
        return [differences.pop() if isinstance(step, Difference) else step for step in self.plan.steps]

    def limbs(self, into: Slice) -> list[Virtual]:
        """In pairs, which are copied at once."""
        return side_by_side(self.build, into.name, into.count)

    def former(self, plan: Plan, site: Site) -> Signed:
        return Ahead(self.build, plan, site) if site.base == FRAME else super().former(plan, site)

    def begin(self) -> None:
        self.build.raw(reserve(2 * self.half + 1))
        for register in reversed((*POINTERS["Y"], *POINTERS["X"])):
            self.build.emit("push", register)

    def rooms(self, name: str) -> Iterator[tuple[int, int]]:
        """Side by side from the first column on."""
        first = 0 if name == "d" else self.half
        return ((index, first + index) for index in range(self.half))

    def middle(self, step: Part) -> None:
        build = self.build
        build.mark("release", *POINTERS["X"])
        build.raw(stack_pointer_to("Y"))
        build.mark("point", "Y", Memory(FRAME, -1 - ABOVE))
        assert self.mask
        build.memory("store", self.mask, Memory(FRAME, -1))
        self.formed(step, Site(self.factors(step), FRAME, 0, self.zero, {"a": "Z"}, "M", needed=True))
        build.mark("retake", *POINTERS["Z"])
        self.pop("Z")
        build.mark("retake", *POINTERS["X"])
        load_pointer(build, "X", ON_X, 0)
        load_pointer(build, "Y", ON_Y, 0)

    def take_pointers(self) -> None:
        for pointer in ("Y", "X"):
            self.pop(pointer)

    def pop(self, pointer: str) -> None:
        """Take a pointer from the stack."""
        for register in POINTERS[pointer]:
            self.build.emit("pop", register)

    def sign(self) -> Virtual:
        sign = self.build.limb("sign")
        self.build.emit("pop", sign)
        return sign

    def branch(self) -> str:
        self.build.emit("asr", self.sign())
        return "brcs"


class InResult(Nested):
    """The upper half of M is on the stack, its lower one where the result will be: L has the sum of its own upper half
    in registers, and needs no place for it.  The pointers are where L will be, the sign of M is in flag T."""

    stored = True
    arms = False
    negative: Flag | None = None

    def begin(self) -> None:
        self.pointers("store")

    def pointers(self, name: str) -> None:
        """Store or load them."""
        registers = [register for pointer in OPERANDS.values() for register in POINTERS[pointer]]
        for column, register in enumerate(registers):
            self.build.memory(name, register, Memory("r", column))

    def rooms(self, name: str) -> Iterator[tuple[int, int]]:
        """All limbs of d, and the upper ones of e, as many as there are columns beside the pointers and M."""
        pointers = sum(len(POINTERS[pointer]) for pointer in OPERANDS.values())
        columns = [*range(pointers, self.half), *range(3 * self.half, 2 * self.plan.limbs)]
        if name == "d":
            return zip(range(self.half), columns, strict=False)
        return zip(reversed(range(self.half)), columns[self.half :], strict=False)

    def middle(self, step: Part) -> None:
        assert self.mask
        self.negative = self.build.emit("bst", self.mask, 0, comment="the sign of M")
        for pointer in OPERANDS.values():
            self.build.mark("release", *POINTERS[pointer])
        site = Site(self.factors(step), "r", self.half, self.zero, {}, "M", kept=True)
        for limb in reversed(self.formed(step, site).upper):
            self.build.emit("push", limb)
        self.retake()
        self.pointers("load")

    def take_pointers(self) -> None:
        self.pointers("load")

    def site_of_low(self, step: Part) -> Site:
        return replace(super().site_of_low(step), columns=self.half)

    def sign(self) -> Flag:
        assert self.negative
        return self.negative

    def branch(self) -> str:
        return "brts"
