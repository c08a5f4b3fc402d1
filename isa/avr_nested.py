"""Two levels of Karatsuba multiplication on AVR in one piece: the three products in place, M first and L last.

|a_lo - a_hi| and |b_lo - b_hi| stay in registers as far as there are some; the others wait where the result will be.
M goes to a frame on the stack, from where POP takes it when the sums are formed.  The upper half of L is not stored at
all: it is in registers when the sums begin.

Source: research/avr_kernels.md, patterns 13 and 14, and section 7.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Builder, Memory, Virtual
from sqgen.plan import Block, Difference, Part, Plan, Recombine

from .avr_address import reserve, stack_pointer_to
from .avr_karatsuba import Chain, negate
from .avr_leaf import operands
from .avr_level import load_pointer
from .avr_middle import in_place
from .avr_registers import LOW, POINTERS
from .avr_runs import as_mask, clear
from .avr_signed import Site
from .avr_unrolled import Unrolled

FRAME = "m"  # M, from the stack pointer upwards: the pointers of the operands, the sign of M, M
OPERANDS = {"a": "Y", "b": "X"}  # their pointers
ON_Y, ON_X, ABOVE = 1, 3, 5  # bytes from the stack pointer to where they are and to the sign


class Nested:
    """Forms the plan's product; `registers` are there for limbs beside the pointers."""

    def __init__(self, build: Builder, plan: Plan, registers: int) -> None:
        self.build, self.plan, self.registers = build, plan, registers
        a, b = operands(build, plan)
        self.vectors = {"a": a, "b": b}
        self.sign: Virtual | None = None
        self.upper: Sequence[Virtual] = ()  # of L
        self.highest: Sequence[Virtual] = ()  # limbs of the product, which are left in registers too

    def all_steps(self) -> None:
        """Step by step."""
        (last,) = (step for step in self.plan.steps if isinstance(step, Recombine))
        self.half = last.half
        self.build.raw(reserve(2 * last.half + 1))
        for register in reversed((*POINTERS["Y"], *POINTERS["X"])):
            self.build.emit("push", register)
        self.zero = clear(self.build, "zero")
        for step in self.plan.steps:
            match step:
                case Block(title):
                    self.build.heading(title)
                case Difference():
                    self.difference(step)
                case Part():
                    self.part(step)
                case Recombine():
                    self.recombine(step)

    def difference(self, step: Difference) -> None:
        """|low - high| of an operand."""
        build, base = self.build, step.left.name
        limbs = [build.limb(f"{step.into.name}{index}") for index in range(step.into.count)]
        borrow = Chain(build, "borrow", self.zero)

        def subtrahend(index: int) -> str | None:
            if index >= step.right.count:
                return None
            build.memory("load", LOW, Memory(base, step.right.first + index))
            return LOW

        for limb, index in zip(limbs, range(step.left.count), strict=True):
            build.memory("load", limb, Memory(base, step.left.first + index))
        for index, limb in enumerate(limbs):
            borrow.run([limb], subtrahend, [index])
        mask = as_mask(build, "sign", borrow.carry)
        negate(build, limbs, mask, Chain(build, "borrow", self.zero), range(len(limbs)))
        for index, limb in enumerate(limbs):
            build.mark("room", limb, Memory("r", len(self.vectors["d"]) + index if step.into.name == "e" else index))
        self.vectors[step.into.name] = limbs
        if self.sign:
            build.emit("eor", mask, self.sign, comment="all ones if M is to be added")
        self.sign = mask

    def part(self, step: Part) -> None:
        """A product."""
        if step.into.name == FRAME:
            self.middle(step)
        elif step.into.first:
            self.formed(step, Site(self.factors(step), "r", step.into.first, self.zero, OPERANDS, "H"))
            for pointer in ("Y", "X"):
                self.build.mark("retake", *POINTERS[pointer])
                self.pop(pointer)
            self.point()
        else:
            self.upper = self.formed(step, Site(self.factors(step), "r", 0, self.zero, OPERANDS, "L", kept=True))

    def middle(self, step: Part) -> None:
        """M, to the frame; then the pointers of the operands are read from the stack, and stay there."""
        build = self.build
        build.mark("release", *POINTERS["X"])
        build.raw(stack_pointer_to("Y"))
        build.mark("point", "Y", Memory(FRAME, -1 - ABOVE))
        assert self.sign
        build.memory("store", self.sign, Memory(FRAME, -1))
        self.formed(step, Site(self.factors(step), FRAME, 0, self.zero, {"a": "Z"}, "M", needed=True))
        build.mark("retake", *POINTERS["Z"])
        self.pop("Z")
        build.mark("retake", *POINTERS["X"])
        load_pointer(build, "X", ON_X, 0)
        load_pointer(build, "Y", ON_Y, 0)
        self.point()

    def formed(self, step: Part, site: Site) -> list[Virtual]:
        """A product; the limbs of it that are kept."""
        signed = in_place(self.build, step.plan, site)
        signed.all_steps()
        return signed.upper

    def factors(self, step: Part) -> tuple[list[Virtual], list[Virtual]]:
        left, right = (
            self.vectors[each.name][each.first : each.first + each.count] for each in (step.left, step.right)
        )
        return left, right

    def point(self) -> None:
        """Both pointers are where the operands begin."""
        for base, pointer in OPERANDS.items():
            self.build.mark("point", pointer, Memory(base, 0))

    def pop(self, pointer: str) -> None:
        """Take a pointer from the stack."""
        for register in POINTERS[pointer]:
            self.build.emit("pop", register)

    def recombine(self, step: Recombine) -> None:
        """L + H - M or, with a negative M, L + H + M."""
        for limb in self.upper:
            self.build.mark("own", limb)
        sign = self.build.limb("sign")
        self.build.emit("pop", sign)
        halves = (step.half, self.plan.limbs - step.half)
        free = self.registers + sum(len(POINTERS[pointer]) for pointer in OPERANDS.values())
        last = Unrolled(self.build, halves, free, sign=sign, upper=dict(enumerate(self.upper)))
        last.all_steps()
        self.highest = last.highest()
