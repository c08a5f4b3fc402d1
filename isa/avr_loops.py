"""Product scanning in loops on AVR: one over the columns, and in it one over the cells of a column.

A column has h cells, or of a square h / 2 off the diagonal, and one on it if h is odd: where the pointers meet, X on
the left operand from the column's first limb upwards, Z on the right one downwards.  Behind its cells both go back to
where they began, and one goes on by a limb: as long as h grows Z does, and when h is n flag T says that X does.

A cell takes 12 cycles: four for loads, two for MUL, three additions, and three to count and jump;
three more off a square's diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Code, Label
from sqgen.plan import Plan
from sqgen.table import Isa

from .avr_registers import HIGH, LOW, POINTERS
from .avr_writer import Writer, registers

SUM = ("low", "middle", "high")  # the running sum


def lower(plan: Plan, isa: Isa, reserve: Sequence[str]) -> Code:
    """The plan's columns as loops, in one function on registers."""
    return (SquareColumns if plan.op == "sqr" else Columns)(isa, plan.limbs, reserve).code()


class Columns(Writer):
    """A product of so many limbs."""

    right = 2  # the argument that the right operand is
    times = 1  # that a cell is added

    def __init__(self, isa: Isa, limbs: int, reserve: Sequence[str]) -> None:
        super().__init__(isa)
        self.limbs = limbs
        self.at = registers((*SUM, "zero", "height", "count"), reserve)
        self.sum, self.zero = [self.at[name] for name in SUM], self.at["zero"]
        self.height, self.count = self.at["height"], self.at["count"]
        self.all()

    def all(self) -> None:
        """All of it."""
        low, middle, high = self.sum
        self.build.heading("columns")
        self.enter({"Y": 0, "X": 1, "Z": self.right})
        self.clear(self.zero, low, middle)
        self.do("ldi", self.height, 1)
        self.shift("Z", 1)
        self.do("clt")
        column = self.build.begin("column")
        self.clear(high)
        self.cells()
        self.do("st_yp", low)
        self.do("mov", low, middle)
        self.do("mov", middle, high)
        self.step(column)
        self.do("st_yp", low)

    def cells(self) -> None:
        """The cells of a column, added to its sum; X and Z go back to where they began."""
        self.do("mov", self.count, self.height)
        self.walk()
        self.back(self.height)

    def walk(self) -> None:
        """As many products as are counted."""
        again = self.build.begin("cell")
        self.do("ld_xp", LOW)
        self.do("ld_mz", HIGH)
        self.do("mul", LOW, HIGH)
        for _ in range(self.times):
            self.add_product()
        self.do("dec", self.count)
        self.jump("brne", again)

    def add_product(self) -> None:
        """What MUL has left, added to the sum."""
        low, middle, high = self.sum
        self.add((low, LOW), (middle, HIGH), (high, self.zero))

    def back(self, distance: str) -> None:
        """X down and Z up by so many limbs."""
        (left, over_left), (right, over_right) = POINTERS["X"], POINTERS["Z"]
        self.chain(("sub", "sbc"), (left, distance), (over_left, self.zero))
        self.add((right, distance), (over_right, self.zero))

    def step(self, column: Label) -> None:
        """To the next column, if there is one."""
        turn, lower = self.build.label("highest"), self.build.label("lower")
        self.jump("brts", lower)
        self.do("cpi", self.height, self.limbs)
        self.jump("breq", turn)
        self.do("inc", self.height)
        self.shift("Z", 1)
        self.jump("rjmp", column)
        self.build.mark("label", turn)
        self.do("set", comment="from here on columns are less high")
        self.build.mark("label", lower)
        self.shift("X", 1)
        self.do("dec", self.height)
        self.jump("brne", column)


class SquareColumns(Columns):
    """A square: its triangle, each cell off the diagonal added twice: less code than to double their sum."""

    right = 1
    times = 2

    def cells(self) -> None:
        """Those off the diagonal, if any, and the one on it."""
        single, even = self.build.label("single"), self.build.label("even")
        self.halve()
        self.jump("breq", single)
        self.walk()
        self.build.mark("label", single)
        self.halve()
        self.jump("brcc", even)
        self.do("ld_x", LOW)
        self.do("mul", LOW, LOW)
        self.add_product()
        self.build.mark("label", even)
        self.back(self.count)

    def halve(self) -> None:
        """Half the height, and whether it is odd."""
        self.do("mov", self.count, self.height)
        self.do("lsr", self.count)
