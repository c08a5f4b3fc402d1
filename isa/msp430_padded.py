"""A product of longer operands on MSP430: these are pushed below their zeros, and the result is popped.

The frame on the stack, from the top: the operands, each as long as the product wants it; the result's address; the
product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqgen.code import Label, Op
from sqgen.plan import Block, Copy, Part, Plan
from sqgen.table import Core, Isa

from .msp430_writer import LEFT, LIMB, RESULT, RIGHT, Writer

TURN = 4  # limbs
WORD, COUNTER = "r15", "r11"
POINTERS = {"a": LEFT, "b": RIGHT}


class Padded(Writer):
    """The steps of a plan; `former` forms the product, and may change every register."""

    def __init__(self, plan: Plan, isa: Isa, core: Core, former: Callable[[Plan], Sequence[Op]]) -> None:
        self.steps, self.former = plan.steps, former
        (self.part,) = plan.parts()
        self.operands: list[str] = []  # those on the stack, the lowest one last
        super().__init__(isa, core)

    def all(self) -> None:
        """From the pointers in registers to the whole result."""
        for step in self.steps:
            match step:
                case Block(title):
                    self.build.heading(title)
                case Part():
                    self.product()
                case Copy() if step.into.name == "r":
                    self.pop(step.into.count)
                case Copy():
                    self.push(step)

    def push(self, step: Copy) -> None:
        """An operand, from its highest limb down; its zeros first."""
        count, pointer = step.limbs.count, POINTERS[step.limbs.name]
        rest = looped(count)
        self.emit("clr", WORD)
        for _ in range(step.into.count - count):
            self.emit("push", WORD)
        self.shift(pointer, rest)
        self.down(pointer, count - rest)
        for begin in self.turns(rest):
            self.shift(pointer, -TURN)
            self.down(pointer, TURN)
            self.again(begin)
        self.operands.append(step.limbs.name)

    def down(self, pointer: str, count: int) -> None:
        """Push so many limbs from a pointer on, the highest one first."""
        for limb in reversed(range(count)):
            self.read("mov", WORD, pointer, limb)
            self.emit("push", WORD)

    def product(self) -> None:
        """The product, below all else."""
        longer = self.part.plan.limbs
        self.emit("push", RESULT)
        self.shift_stack(-2 * longer)
        self.emit("mov_sp", RESULT)
        for index, name in enumerate(reversed(self.operands)):
            self.emit("mov_sp", POINTERS[name])
            self.shift(POINTERS[name], (2 + index) * longer + 1)
        self.build.raw(self.former(self.part.plan))

    def pop(self, count: int) -> None:
        """So many limbs of the product; what is left of the frame is given back."""
        longer, rest = self.part.plan.limbs, looped(count)
        self.read("mov", RESULT, "sp", 2 * longer)
        self.up(count - rest)
        for begin in self.turns(rest):
            self.up(TURN)
            self.again(begin)
        self.shift_stack((2 + len(self.operands)) * longer - count + 1)

    def up(self, count: int) -> None:
        """Pop so many limbs to the result, whose pointer is behind them then."""
        for limb in range(count):
            self.emit("pop", WORD)
            self.write("mov", WORD, RESULT, limb)
        self.shift(RESULT, count)

    def turns(self, count: int) -> Iterator[Label]:
        """Where the loop over so many limbs begins, if there is one."""
        if count:
            self.emit("mov_i", COUNTER, LIMB * count)
            yield self.build.begin("limbs")

    def again(self, begin: Label) -> None:
        """The end of a turn."""
        self.shift(COUNTER, -TURN)
        self.build.mark("jne", begin)


def looped(count: int) -> int:
    """How many of so many limbs are copied in a loop."""
    return count // TURN * TURN if count >= 2 * TURN else 0


def padded(plan: Plan, isa: Isa, core: Core, former: Callable[[Plan], Sequence[Op]]) -> list[Op]:
    """The operations of a plan whose operands are copied."""
    found = Padded(plan, isa, core, former)
    found.all()
    return found.build.ops
