"""Product scanning in loops on MSP430: one over the columns, and in it one over the cells of a column.

A column has h cells, or of a square h / 2 off the diagonal, and one on it if h is odd: where the pointers meet.  From
column to column h and the limbs that a column begins with change by a step that lies on the stack: as long as it is 1,
h and the right one go up; when h is n it becomes -1, h goes down, and the left one goes up.
"""

from __future__ import annotations

from sqgen.code import Op
from sqgen.plan import Plan
from sqgen.table import Core, Isa

from .msp430_columns import SCAN
from .msp430_writer import LEFT, RESULT, RIGHT, Writer

LOW, MIDDLE, HIGH = "r11", "r10", "r9"  # the running sum
CARRY = "r8"  # carries of a square's cells off the diagonal, before they are doubled
HEIGHT, FROM_LEFT, FROM_RIGHT, COUNT = "r7", "r6", "r5", "r4"
LEAST = 2  # limbs
SHORT = 8  # limbs, at most, that no instruction has a constant for


class Loops(Writer):
    """The code for `limbs` limbs; `square`: of the triangle."""

    def __init__(self, isa: Isa, core: Core, limbs: int, *, square: bool) -> None:
        self.limbs, self.square = limbs, square
        super().__init__(isa, core)

    def all(self) -> None:
        """All of it."""
        self.emit("mov_r", FROM_LEFT, LEFT)
        self.emit("mov_r", FROM_RIGHT, LEFT if self.square else RIGHT)
        for register in (LOW, MIDDLE, HIGH):
            self.emit("clr", register)
        self.emit("mov_i", SCAN, self.ports["SUMEXT"])
        self.emit("mov_1", HEIGHT)
        self.emit("push", HEIGHT, comment="the step from column to column")
        column = self.build.begin("column")
        self.emit("mov_r", LEFT, FROM_LEFT)
        self.emit("mov_r", RIGHT, FROM_RIGHT)
        self.emit("mov_r", COUNT, HEIGHT)
        self.hold()
        if self.square:
            self.triangle()
        else:
            self.cells(HIGH)
            self.add(HIGH)
        self.let_go()
        self.store()
        self.step()
        self.build.mark("jne", column)
        self.emit("mov_rx", LOW, RESULT, 0)
        self.shift_stack(1)

    def cells(self, carry: str) -> None:
        """As many products as are counted; their carries are added up."""
        middle = self.build.label("product")
        self.emit("mov_pa", LEFT, self.ports["MPY"])
        self.build.mark("jmp", middle)
        again = self.build.begin("cell")
        self.emit("mov_pa", LEFT, self.ports["MAC"])
        self.build.mark("label", middle)
        self.emit("mov_ma", RIGHT, self.ports["OP2"])
        self.emit("sub_2", RIGHT)
        self.emit("add_m", carry, SCAN)
        self.emit("sub_1", COUNT)
        self.build.mark("jne", again)

    def add(self, *carry: str) -> None:
        """Add what the multiplier has summed, and carries of it that are in a register, to the running sum."""
        self.emit("sub_4", SCAN)
        self.emit("add_p", LOW, SCAN)
        self.emit("addc_p", MIDDLE, SCAN)
        if carry == (HIGH,):
            self.emit("adc", HIGH)
        else:
            self.emit("addc_r", HIGH, *carry)

    def triangle(self) -> None:
        """The cells of a square's column."""
        diagonal, behind = self.build.label("diagonal"), self.build.label("summed")
        self.emit("clr", CARRY)
        self.emit("clrc")
        self.emit("rrc", COUNT)
        self.build.mark("jeq", diagonal)
        self.cells(CARRY)
        self.add(CARRY)
        self.add(CARRY)
        self.build.mark("label", diagonal)
        self.emit("bit_1", HEIGHT)
        self.build.mark("jnc", behind)
        self.emit("mov_ma", LEFT, self.ports["MPY"])
        self.emit("mov_ma", LEFT, self.ports["OP2"])
        self.add(HIGH)
        self.build.mark("label", behind)

    def store(self) -> None:
        """The lowest limb of the sum is final."""
        self.emit("mov_rx", LOW, RESULT, 0)
        self.emit("add_2", RESULT)
        self.emit("mov_r", LOW, MIDDLE)
        self.emit("mov_r", MIDDLE, HIGH)
        self.emit("clr", HIGH)

    def step(self) -> None:
        """To the next column; ZF says whether there is none."""
        behind = self.build.label("lower")
        self.emit("mov_r", COUNT, HEIGHT)
        if self.limbs <= SHORT:  # as a sum of constants that the CPU makes itself
            for part in (8, 4, 2, 1):
                if self.limbs & part:
                    self.emit(f"sub_{part}", COUNT)
        else:
            self.emit("sub_i", COUNT, self.limbs)
        self.build.mark("jne", behind)
        self.emit("sub_1", COUNT)
        self.emit("mov_rx", COUNT, "sp", 0, comment="from here on the step is -1")
        self.build.mark("label", behind)
        self.emit("add_1", FROM_LEFT)
        self.emit("sub_m", FROM_LEFT, "sp")
        self.emit("add_1", FROM_RIGHT)
        self.emit("add_m", FROM_RIGHT, "sp")
        self.emit("add_m", HEIGHT, "sp")


def loops(plan: Plan, isa: Isa, core: Core) -> list[Op]:
    """The operations of a plan by columns in loops."""
    found = Loops(isa, core, plan.limbs, square=plan.op == "sqr")
    found.all()
    return found.build.ops
