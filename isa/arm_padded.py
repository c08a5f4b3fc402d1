"""A product of longer operands on Cortex-M: these are copied to the stack, zeros above them, and the result from there.

    sp:  the result's address   the product   the operands, each as long as the product wants it

Limbs go by way of registers, some at a time, in a loop where there are many.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqgen.code import Builder, Function, Label, Op
from sqgen.plan import Block, Copy, Part, Plan
from sqgen.table import Isa

from .arm_stack import LIMB, moved

WORDS = ("r4", "r5", "r6", "r7")
RESULT, LEFT, RIGHT, INTO = "r0", "r1", "r2", "r3"
KEPT = "r12"  # the result's address, while operands are copied
SOURCES = {"a": LEFT, "b": RIGHT}


class Padded:
    """The steps of a plan; `called` is the function that forms the product."""

    def __init__(self, isa: Isa, plan: Plan, called: Callable[[Plan], Label]) -> None:
        self.build, self.called, self.steps = Builder(isa), called, plan.steps
        (self.part,) = plan.parts()
        self.longer, self.operands = self.part.plan.limbs, plan.operands
        self.room = (2 + len(self.operands)) * self.longer  # limbs above the result's address

    def function(self) -> Function:
        """The entry, from the pointers in registers to the whole result."""
        self.build.raw([Op("mov", (KEPT, RESULT)), *moved("sub_sp", self.room)])
        self.build.raw([Op("add_rsp", (INTO, LIMB * 2 * self.longer))])
        for step in self.steps:
            match step:
                case Block(title):
                    self.build.heading(title)
                case Part():
                    self.product()
                case Copy() if step.into.name == "r":
                    self.leave(step.into.count)
                case Copy():
                    self.enter(step)
        return Function("", tuple(self.build.ops), ())

    def enter(self, step: Copy) -> None:
        """An operand, and its zeros."""
        zeros = step.into.count - step.limbs.count
        self.copy(SOURCES[step.limbs.name], INTO, step.limbs.count, RESULT)
        for word in WORDS[:zeros]:
            self.build.emit("movs_i", word, 0)
        for first in range(0, zeros, len(WORDS)):
            self.build.raw([Op("stm", (INTO, WORDS[: zeros - first]))])
        if step.limbs.name != self.operands[-1]:
            self.build.raw([Op("mov", (LEFT, INTO))])  # where the next one begins

    def product(self) -> None:
        """The product, below all else."""
        self.build.raw([Op("mov", (RESULT, KEPT)), Op("push", ((RESULT,),))])
        if len(self.operands) > 1:
            self.build.raw([Op("mov", (RIGHT, LEFT))])
        self.build.raw([Op("add_rsp", (RESULT, LIMB)), Op("add_rsp", (LEFT, LIMB * (1 + 2 * self.longer)))])
        self.build.mark("bl", self.called(self.part.plan))

    def leave(self, count: int) -> None:
        """So many limbs of the product; the frame is given back."""
        self.build.raw([Op("pop", ((RESULT,),)), Op("add_rsp", (LEFT, 0))])
        self.copy(LEFT, RESULT, count, RIGHT)
        self.build.raw(moved("add_sp", self.room))

    def copy(self, source: str, into: str, count: int, counter: str) -> None:
        """So many limbs, those that make no whole turn first; both pointers are behind them then."""
        turns, rest = divmod(count, len(WORDS))
        self.some(source, into, WORDS[:rest])
        if turns < 2:
            self.some(source, into, WORDS[: len(WORDS) * turns])
            return
        self.build.emit("movs_i", counter, turns)
        begin = self.build.begin("limbs")
        self.some(source, into, WORDS)
        self.build.emit("subs_i", counter, 1)
        self.build.mark("bne", begin)

    def some(self, source: str, into: str, words: Sequence[str]) -> None:
        """As many limbs as there are words."""
        if words:
            self.build.raw([Op("ldm", (source, tuple(words))), Op("stm", (into, tuple(words)))])
