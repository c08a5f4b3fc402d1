"""One level of Karatsuba's multiplication on MSP430 in one piece, its three products by rows.

With X = 2^(limb bits * half), L = L_lo + X L_hi, V = H + L_hi = W + X H', d = a_lo - a_hi, e = b_hi - b_lo:

    a * b = L_lo + X (L_lo + W + d e) + X^2 (W + H') + X^3 H'

The sum of H's rows begins with L_hi, which is in registers when L is done.  With U = L_lo + W below X, that of |d| |e|
begins with U, or, if d e is negative, with X - 1 - U: what comes out is then R = X - 1 - (U - |d| |e|), so the limbs of
R_lo are turned over, and those of R_hi subtracted, by turning them over and adding 1 - X.  Carries into H' meet in a
register, which begins with one, so that it is never negative before one is subtracted again.

Of an odd number of limbs the upper halves have one fewer, and so has H' two fewer than the lower half: what the sum of
H's rows holds above those, one or nothing, waits on the stack for the addition of W + H'.

Sources: the AVR's `avr_signed`, where the streams come from; [HS15].
"""

from __future__ import annotations

from sqgen.code import Op
from sqgen.plan import Plan
from sqgen.table import Core, Isa

from .msp430_rows import HIGH, SUMS, Rows, in_rows
from .msp430_writer import LEFT, LIMB, RESULT, RIGHT

# Places on the stack, in limbs from the highest one, each the last that is pushed to it.
OPERAND, CARRY, SIGN, ABOVE = 0, 1, 2, 3


def streamed(plan: Plan) -> bool:
    """Whether a plan is one level whose parts stand in place and are by rows."""
    parts = list(plan.parts())
    return plan.op == "mul" and len(parts) == 3 and all(not part.called and in_rows(part.plan) for part in parts)


class Level(Rows):
    """The level; `half`: limbs of a lower half, `upper`: of an upper one, `highest`: of H'."""

    def __init__(self, plan: Plan, isa: Isa, core: Core) -> None:
        self.upper = plan.limbs // 2
        self.half = plan.limbs - self.upper
        self.highest = 2 * self.upper - self.half
        super().__init__(isa, core, self.half)

    def start(self) -> None:
        super().start()
        self.depth = 0  # limbs pushed

    def push(self, register: str, comment: str = "") -> None:
        """Push a register."""
        self.emit("push", register, comment=comment)
        self.depth += 1

    def at(self, place: int) -> int:
        """How far from the stack pointer a place on the stack is, in limbs."""
        return self.depth - 1 - place

    def all(self) -> None:
        """All of it."""
        half = self.half
        self.operands()
        self.rows(0, "L", empty=True)
        self.release(half)
        self.rows(2 * half, "H", count=self.upper)
        if self.odd:
            self.write("mov", self.sums[-1], "sp", self.at(ABOVE))
        self.store(2 * half + self.upper, self.upper)
        self.release(self.upper)
        self.middle()
        self.sums_above()
        self.release(self.depth)

    @property
    def odd(self) -> bool:
        """Whether the upper halves have a limb less."""
        return self.upper < self.half

    def release(self, limbs: int) -> None:
        """Give back limbs of the stack."""
        self.shift_stack(limbs)
        self.depth -= limbs

    def operands(self) -> None:
        """|d| and |e|, b_hi and b_lo to the stack, |e| and b in the order in which they walk by."""
        half, upper, spare = self.half, self.upper, HIGH
        self.build.heading("d = a_lo - a_hi, its absolute value")
        self.push(LEFT)
        self.emit("clr", spare)
        self.push(spare, "the place of a carry")
        places = 2 if self.odd else 1  # of the sign, and what is above H': d is pushed below
        self.depth += places
        self.shift_stack(-places)
        self.difference(LEFT, spare)
        self.emit("subc_r", LEFT, LEFT, comment="all ones if d is negative")
        self.negate(LEFT)
        for register in reversed(SUMS[:half]):
            self.push(register)
        self.build.heading("e = b_hi - b_lo, its absolute value")
        self.difference(RIGHT, spare, turned=True)
        self.emit("subc_r", spare, spare)
        self.negate(spare)
        self.emit("xor_r", spare, LEFT, comment="all ones if d * e is negative")
        self.write("mov", spare, "sp", self.at(SIGN))
        self.turned(SUMS[:half])
        self.depth += half
        for what, limbs, back in (("b_hi", upper, 0), ("b_lo", half, half + upper)):
            self.build.heading(what)
            self.shift(RIGHT, -back)
            for register in SUMS[:limbs]:
                self.emit("mov_p", register, RIGHT)
            self.turned(SUMS[:limbs])
            self.depth += limbs
        self.read("mov", LEFT, "sp", self.at(OPERAND))
        self.emit("mov_i", HIGH, self.ports["RESHI"])

    def difference(self, low: str, high: str, *, turned: bool = False) -> None:
        """The lower half of an operand less the upper one, or the other way round; `low` points at the lower one, and
        at the upper one then."""
        self.emit("mov_r", high, low)
        self.shift(high, self.half)
        first, second = (high, low) if turned else (low, high)
        for index, register in enumerate(SUMS[: self.half]):
            there = {high} if index == self.upper else set()  # what has no such limb
            self.emit("clr", register) if first in there else self.emit("mov_p", register, first)
            if second in there:
                self.emit("sbc", register)
            else:
                self.emit("subc_p" if index else "sub_p", register, second)

    def negate(self, mask: str) -> None:
        """Negate what is in registers if a mask is all ones."""
        for register in SUMS[: self.half]:
            self.emit("xor_r", register, mask)
        for index, register in enumerate(SUMS[: self.half]):
            self.emit("subc_r" if index else "sub_r", register, mask)

    def middle(self) -> None:
        """The rows of |d| |e| on U, its limbs turned over if d e is negative."""
        half = self.half
        self.build.heading("U = L_lo + W")
        self.emit("mov_r", LEFT, RESULT)
        self.emit("mov_r", RIGHT, RESULT)
        self.shift(RIGHT, 2 * half)
        for index, register in enumerate(self.sums):
            self.emit("mov_p", register, LEFT)
            self.emit("addc_p" if index else "add_p", register, RIGHT)
        self.emit("adc_x", "sp", LIMB * self.at(CARRY))
        self.read("mov", LEFT, "sp", self.at(SIGN))
        self.turn_over(LEFT)
        self.emit("mov_sp", LEFT)
        self.shift(LEFT, half)
        self.rows(half, "|d| * |e|")

    def turn_over(self, mask: str) -> None:
        """The sum's limbs, if a mask is all ones."""
        for register in self.sums:
            self.emit("xor_r", register, mask)

    def sums_above(self) -> None:
        """The limbs of R; W + H' is added to the upper ones, and the carries to H'."""
        half, carries, sign = self.half, RIGHT, HIGH
        self.build.heading("the limbs above L, turned over if d * e is negative")
        self.read("mov", sign, "sp", self.at(SIGN))
        for index in range(half):
            self.write("xor", sign, RESULT, half + index)
        self.turn_over(sign)
        self.build.heading("and W + H'")
        self.emit("mov_r", LEFT, RESULT)
        self.shift(LEFT, 2 * half)
        self.emit("mov_1", carries)
        self.emit("add_r", carries, sign, comment="less X, if so")
        self.emit("bit_1", sign)
        for register in self.sums:
            self.emit("addc_p", register, LEFT)
        self.emit("adc", carries)
        self.emit("bit_1x", "sp", LIMB * self.at(CARRY), comment="the carry of U")
        for index, register in enumerate(self.sums):
            if index < self.highest:
                self.emit("addc_p", register, LEFT)
            elif index == self.highest:
                self.read("addc", register, "sp", self.at(ABOVE))
            else:
                self.emit("adc", register)
        self.emit("adc", carries)
        self.store(2 * half, half)
        self.build.heading("H' and the carries")
        self.emit("sub_1", carries)
        self.emit("subc_r", sign, sign, comment="nothing, or all ones below zero")
        for index in range(self.highest):
            self.write("addc" if index else "add", sign if index else carries, RESULT, 3 * half + index)


def in_one(plan: Plan, isa: Isa, core: Core) -> list[Op]:
    """The level's operations."""
    found = Level(plan, isa, core)
    found.all()
    return found.build.ops
