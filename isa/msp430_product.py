"""Multiplication on MSP430: limbs of the left operand wait in registers, the others come through pointers.

Where limbs of one operand ascend, those of the other descend, in which order no pointer of MSP430 walks: they are read
at offsets, or pushed first, so that they lie the other way round.

Sources: research/msp430.md, section 5.
"""

from __future__ import annotations

from sqgen.plan import Plan
from sqgen.table import Core, Isa

from .msp430_columns import FREE, Columns, Source
from .msp430_pointers import Pointer
from .msp430_writer import LEFT, RIGHT


class Multiplication(Columns):
    """`turned`: the right operand lies on the stack, its highest limb first.  `falling`: limbs of the left operand come
    in descending order."""

    def __init__(self, plan: Plan, isa: Isa, core: Core, *, turned: bool = False, falling: bool = False) -> None:
        self.turned, self.falling = turned, falling
        super().__init__(plan, isa, core)

    def start(self) -> None:
        super().start()
        self.where = dict(enumerate(FREE[: self.n]))  # limb of the left operand -> its register
        self.waiting = list(range(len(self.where), self.n))
        self.left: Pointer | None = None
        self.right: Pointer | None = None

    def load(self) -> None:
        for limb, register in self.where.items():
            self.emit("mov_p", register, LEFT, comment=f"a[{limb}]")
        self.left = self.pointer(LEFT, len(self.where))
        if self.turned:
            for limb in range(self.n):
                self.emit("mov_p", self.sums[0], RIGHT, comment=f"b[{limb}]")
                self.emit("push", self.sums[0])
            self.emit("mov_sp", RIGHT)
        self.right = self.pointer(RIGHT, 0, (0, 0) if self.turned else None)

    def pushed(self) -> int:
        return self.n if self.turned else 0

    def prepare(self, column: int) -> None:
        gone = column - self.n
        if gone not in self.where:
            return
        register = self.where.pop(gone)
        if self.waiting and self.waiting[-1] + self.n - column > 1:
            limb = self.waiting.pop()
            assert self.left
            read = self.left.read(limb)
            self.emit(f"mov_{read.way}", register, *read.args, comment=f"a[{limb}]")
            self.where[limb] = register

    def cells(self, column: int) -> list[tuple[int, int]]:
        found = [(i, column - i) for i in range(max(0, column - self.n + 1), min(column, self.n - 1) + 1)]
        return found[::-1] if self.falling else found

    def factors(self, column: int, cell: tuple[int, int]) -> tuple[Source, Source]:
        i, j = cell
        assert self.left and self.right
        left = self.where[i] if i in self.where else self.left.read(i)
        return left, self.right.read(self.n - 1 - j if self.turned else j)


def products(plan: Plan, isa: Isa, core: Core) -> list[Multiplication]:
    """The ways to multiply that may be the fastest."""
    ways = ((False, False), (True, False), (False, True))
    return [Multiplication(plan, isa, core, turned=turned, falling=falling) for turned, falling in ways]
