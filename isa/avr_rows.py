"""Blocks of rows in loops on AVR: code whose size does not hang on the number of limbs.

A block's rows are four limbs a0..a3 of the first operand, in registers, and as many limbs w0..w3 of the sum.  For each
limb y of the other operand a limb m of the sum comes from memory, and with it

    m + a0 y                               is no more than two limbs
    w0, w1, w2, w3 += (m + a0 y, a2 y)     w0 is final and stored, and takes what is carried out
    w1, w2, w3, w0 += (a1 y, a3 y)         nothing is carried out

so that after four columns every limb is in its register again: a turn of the loop.  The sum begins with zeros; what
registers hold at the end of a block goes to memory behind it.  Of a square a block's own triangle comes first; in the
end two limbs of the sum are doubled, and one of the operand squared is added, in each turn of another loop.

A column takes 28 cycles for four cells, a turn 5 or 6 besides.

Source: the walk is that of `arm_loops`; two chains in turn are pattern 1 of research/avr_kernels.md.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence

from sqgen.code import Code, Op
from sqgen.plan import Plan
from sqgen.table import Isa

from .avr_registers import HIGH, LOW, POINTERS
from .avr_writer import Writer, registers

ROWS = 4
RESULT, ROW, WALKER = "Z", "Y", "X"  # pointers: to the sum, to limbs of the first operand and of the other one
NEAR = 2  # rows whose turn a branch reaches over
NAMES = ("count", "blocks", "y", "m", "zero", "w0", "w1", "w2", "w3", "a0", "a1", "a2", "a3")


def lower(plan: Plan, isa: Isa, reserve: Sequence[str]) -> Code:
    """The plan's blocks of rows as loops, in one function on registers."""
    rows = formed(plan, isa, reserve)
    rows.enter(dict(zip((RESULT, ROW, WALKER), range(1 + len(plan.operands)), strict=False)))
    rows.all()
    return rows.code()


def called(plan: Plan, isa: Isa, reserve: Sequence[str]) -> list[Op]:
    """The same as a function that other ones call, which finds the plan's pointers set: rows and what walks by them are
    the same to it."""
    rows = formed(plan, isa, reserve)
    if rows.kept:
        rows.do("movw", rows.kept[0], POINTERS[RESULT][0])
    rows.all()
    rows.do("ret")
    return rows.build.ops


def formed(plan: Plan, isa: Isa, reserve: Sequence[str]) -> Rows:
    """What forms the plan's product."""
    return (Square if plan.op == "sqr" else Product)(isa, plan.limbs, reserve)


class Rows(Writer, abc.ABC):
    """What both operations are made of; where two products are added in one chain, one of them is in the pair `parked`
    until then.  `kept` is the pair, if any, that says where the result is: its argument at first."""

    parked: tuple[str, str]
    kept: tuple[str, ...] = ()

    def __init__(self, isa: Isa, limbs: int, reserve: Sequence[str]) -> None:
        super().__init__(isa)
        self.limbs = limbs
        self.blocks, self.rest = divmod(limbs, ROWS)
        at = registers(NAMES, reserve, (*self.parked, *self.kept))
        self.count, self.left, self.limb, self.before, self.zero = (at[name] for name in NAMES[: -2 * ROWS])
        self.words, self.factors = ([at[f"{kind}{row}"] for row in range(ROWS)] for kind in "wa")

    @abc.abstractmethod
    def all(self) -> None:
        """All of it, the pointers set."""

    def zeros(self) -> None:
        """The lower half of the result, which the sum begins with."""
        self.build.heading("zeros for the sum to begin with")
        self.clear(self.zero)
        self.do("ldi", self.count, self.limbs)
        again = self.build.begin("clear")
        self.do("st_zp", self.zero)
        self.do("dec", self.count)
        self.jump("brne", again)
        self.shift(RESULT, -self.limbs)

    def load(self, rows: int) -> None:
        """The limbs of so many rows."""
        for factor in self.factors[:rows]:
            self.do("ld_yp", factor)

    # ---- a walk ----------------------------------------------------------------------------------------------------

    def column(self, y: str, words: Sequence[str], rows: int, place: int) -> list[str]:
        """The products of a limb with those of so many rows, so many limbs behind the result's pointer; `words` are the
        sum's limbs there and above, and what they are in the next column is given back."""
        words = self.filled(words, rows)
        limbs = self.products(y, range(0, rows, 2), place)
        self.add(*zip(words, limbs, strict=False))
        lowest, *others = words
        self.do("std_z", lowest, place)
        self.clear(lowest)
        self.do("adc", lowest, limbs[rows] if rows < len(limbs) else self.zero)
        if rows > 1:
            limbs = self.products(y, range(1, rows, 2))
            above = [self.zero] * (rows - len(limbs))
            self.add(*zip([*others, lowest], [*limbs, *above], strict=True))
        return [*others, lowest]

    def filled(self, words: Sequence[str], rows: int) -> list[str]:
        """As many limbs of the sum as rows, the new ones zero."""
        new = [word for word in self.words if word not in words][: rows - len(words)]
        self.clear(*new)
        return [*words, *new]

    def products(self, y: str, rows: Sequence[int], place: int | None = None) -> list[str]:
        """The limbs of one or two products; to the first one the sum's limb at a place is added."""
        first, *others = rows
        for row in others:
            self.do("mul", self.factors[row], y)
            self.do("movw", self.parked[0], LOW)
        self.do("mul", self.factors[first], y)
        if place is not None:
            self.do("ldd_z", self.before, place)
            self.add((LOW, self.before), (HIGH, self.zero))
        return [LOW, HIGH, *(self.parked if others else ())]

    def walk(self, words: Sequence[str], rows: int, place: int, *, turns: bool, may_be_none: bool = False) -> None:
        """The other operand walks by, from a place behind the result's pointer on: first turns, as many as are counted,
        then what is no whole one; the sum's limbs go behind that."""
        if turns:
            again, behind = self.build.label("walk"), self.build.label("walked")
            if may_be_none:
                self.do("cpi", self.count, 0)
                self.jump("brne", again)
                self.jump("rjmp", behind)
            self.build.mark("label", again)
            for column in range(ROWS):
                self.do("ld_xp", self.limb)
                words = self.column(self.limb, words, rows, place + column)
            self.shift(RESULT, ROWS)
            self.do("dec", self.count)
            if rows <= NEAR:
                self.jump("brne", again)
            else:
                self.jump("breq", behind)
                self.jump("rjmp", again)
            self.build.mark("label", behind)
        for column in range(self.rest):
            self.do("ld_xp", self.limb)
            words = self.column(self.limb, words, rows, place + column)
        self.store(words, place + self.rest)

    def store(self, words: Sequence[str], place: int) -> None:
        """Limbs to the result."""
        for at, word in enumerate(words, place):
            self.do("std_z", word, at)


class Product(Rows):
    """All rows of a product, four at a time, and then two, and one."""

    parked = ("r24", "r25")

    def all(self) -> None:
        self.zeros()
        left = [rows for rows in (2, 1) if self.rest & rows]
        if self.blocks:
            self.build.heading("blocks of four rows")
            self.do("ldi", self.left, self.blocks)
            again, behind = self.build.begin("block"), self.build.label("done")
            self.rows(ROWS)
            self.back(ROWS)
            self.do("dec", self.left)
            self.jump("breq", behind)
            self.jump("rjmp", again)
            self.build.mark("label", behind)
        for rows in left:
            self.build.heading(f"the last {rows} rows" if rows > 1 else "the last row")
            self.rows(rows)
            if rows != left[-1]:
                self.back(rows)

    def rows(self, rows: int) -> None:
        """Some rows."""
        self.load(rows)
        words = self.filled((), rows)
        if self.blocks:
            self.do("ldi", self.count, self.blocks)
        self.walk(words, rows, 0, turns=self.blocks > 0)

    def back(self, rows: int) -> None:
        """The pointers to where the next rows begin."""
        self.shift(WALKER, -self.limbs)
        self.shift(RESULT, rows - ROWS * self.blocks)


class Square(Rows):
    """The cells off the diagonal, then all doubled, and the diagonal; r25:r24 is where a block begins."""

    parked = ("r16", "r17")
    kept = ("r24", "r25")

    def all(self) -> None:
        self.zeros()
        if self.blocks:
            self.build.heading("blocks of four rows: their own triangle, then the walk")
            self.do("ldi", self.left, self.blocks - 1)
            again, behind = self.build.begin("block"), self.build.label("done")
            self.block()
            self.do("subi", self.left, 1)
            self.jump("brcs", behind)
            self.jump("rjmp", again)
            self.build.mark("label", behind)
        if self.rest:
            self.build.heading("the last rows")
            self.load(self.rest)
            words = self.triangle(self.rest)
            self.store([*words, self.zero], 2 * self.rest - 1 - len(words))
        self.diagonal()

    def block(self) -> None:
        """Four rows, and a turn of the walk for each block that is still to come."""
        self.load(ROWS)
        self.do("movw", POINTERS[WALKER][0], POINTERS[ROW][0])
        words = self.filled(self.triangle(ROWS), ROWS)
        turns = self.blocks > 1
        if turns:
            self.do("mov", self.count, self.left)
        self.walk(words, ROWS, ROWS, turns=turns, may_be_none=True)
        self.do("adiw", self.kept[0], 2 * ROWS)
        self.do("movw", POINTERS[RESULT][0], self.kept[0])

    def triangle(self, rows: int) -> list[str]:
        """The cells of a block's own limbs; the sum's limbs above them."""
        words: list[str] = []
        for row in range(1, rows):
            words = self.column(self.factors[row], words, row, row)
        return words

    def diagonal(self) -> None:
        """Each limb squared, and two limbs of the sum doubled into it; what is carried to the next is 2 at most."""
        self.build.heading("the sum doubled, and the diagonal")
        low, high, carry, _ = self.words
        self.shift(RESULT, -2 * ROWS * self.blocks)
        self.shift(ROW, -self.limbs)
        self.clear(carry)
        self.do("ldi", self.count, self.limbs)
        again = self.build.begin("double")
        self.do("ld_yp", self.limb)
        self.do("mul", self.limb, self.limb)
        self.add((LOW, carry), (HIGH, self.zero))
        self.clear(carry)
        self.do("ldd_z", low, 0)
        self.do("ldd_z", high, 1)
        self.add((low, low), (high, high), (carry, carry))
        self.add((low, LOW), (high, HIGH), (carry, self.zero))
        self.do("st_zp", low)
        self.do("st_zp", high)
        self.do("dec", self.count)
        self.jump("brne", again)
