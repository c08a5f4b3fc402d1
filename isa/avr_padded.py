"""A product of longer operands on AVR: these are pushed below their zeros, and the result is popped.

The frame on the stack, from the top: the operands, each as long as the product wants it; the result's pointer; the
product.  A limb that is pushed or popped takes four cycles beside its loop, whose counter is all that is in a register.
"""

from __future__ import annotations

from collections.abc import Callable

from sqgen.code import Builder, Label, Op
from sqgen.plan import Block, Copy, Part, Plan

from .avr_address import moves, reserve, stack_pointer_to
from .avr_registers import HIGH, LOW, POINTERS, pointers

TURN = 4  # limbs
COUNTER = "r24"
TAKE = {"X": "ld_mx", "Y": "ld_my", "Z": "ld_mz"}  # the limb below where the pointer is


class Padded:
    """The steps of a plan; `called` is the function that forms the product."""

    def __init__(self, build: Builder, plan: Plan, called: Callable[[Plan], Label]) -> None:
        self.build, self.called = build, called
        self.steps, self.walks = plan.steps, pointers(plan)
        (self.part,) = plan.parts()
        self.operands: list[str] = []  # those on the stack, the lowest one last

    def all_steps(self) -> None:
        """From the pointers in registers to the whole result."""
        self.build.emit("eor", HIGH, HIGH)
        for step in self.steps:
            match step:
                case Block(title):
                    self.build.heading(title)
                case Part():
                    self.call()
                case Copy() if step.into.name == "r":
                    self.pop(step.into.count)
                case Copy():
                    self.push(step)

    def push(self, step: Copy) -> None:
        """An operand, from its highest limb down; its zeros first."""
        pointer = self.walks[step.limbs.name]
        self.build.raw(moves(pointer, step.limbs.count))
        self.build.raw([Op("push", (HIGH,))] * (step.into.count - step.limbs.count))
        self.repeat(step.limbs.count, [Op(TAKE[pointer], (LOW,)), Op("push", (LOW,))])
        self.operands.append(step.limbs.name)

    def call(self) -> None:
        """The product, below all else."""
        build, longer, wanted = self.build, self.part.plan.limbs, pointers(self.part.plan)
        for register in reversed(POINTERS[self.walks["r"]]):
            build.emit("push", register)
        build.raw([*reserve(2 * longer), *stack_pointer_to("Y")])
        places = {"r": 1}
        for index, name in enumerate(reversed(self.operands)):
            places[name] = 1 + 2 * longer + 2 + index * longer
        for base, pointer in sorted(wanted.items(), key=lambda each: each[1] == "Y"):  # Y is the way to them: last
            if pointer != "Y":
                build.emit("movw", POINTERS[pointer][0], POINTERS["Y"][0])
            build.raw(moves(pointer, places[base if base in places else "a"]))
        build.mark("rcall", self.called(self.part.plan))

    def pop(self, count: int) -> None:
        """So many limbs of the product, by the pointer above it; what is left of the frame is given back."""
        build, longer = self.build, self.part.plan.limbs
        build.raw([*stack_pointer_to("Y"), *moves("Y", 2 * longer + 1)])
        for index, register in enumerate(POINTERS["Z"]):
            build.emit("ldd_y", register, index)
        self.repeat(count, [Op("pop", (LOW,)), Op("st_zp", (LOW,))])
        build.raw(reserve(-(2 * longer - count + 2 + len(self.operands) * longer)))

    def repeat(self, count: int, ops: list[Op]) -> None:
        """Operations for each of so many limbs: those that make no whole turn first."""
        build = self.build
        build.raw(ops * (count % TURN))
        if count >= TURN:
            build.emit("ldi", COUNTER, count // TURN)
            begin = build.begin("limbs")
            build.raw(ops * TURN)
            build.emit("dec", COUNTER)
            build.mark("brne", begin)
