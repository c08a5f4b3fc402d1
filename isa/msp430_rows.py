"""Rows of runs on MSP430: a limb of the left operand stays in the multiplier while the right one walks by.

    mov @a+, &MPY                                   once for a row
    mov @b+, &OP2 ; add &RESLO, s0 ; addc @q, s1    then b[2], b[4], ... to s2, s3, ... in the same carry chain,
    mov @b+, &OP2 ; add &RESLO, s1 ; addc @q, s2    and b[1], b[3], ... in another one

MOV leaves the carry alone, so a chain runs on while operands are written and limbs are stored: a product takes ten
cycles, two fewer than in a column, and nothing for its carry.  Memory holds b in the order in which it walks by. The
sum, as long as b, is in registers; its lowest limb leaves in each row, and its register takes the new top.

That nothing is carried out of a row: before row i the sum is below B^w, so after it below B^w + (B - 1) (B^w - 1),
which is less than B^(w+1).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Op
from sqgen.plan import Plan, Product, Run, Store, Strip
from sqgen.table import Core, Isa

from .msp430_columns import FREE, SCAN
from .msp430_writer import LEFT, LIMB, RESULT, RIGHT, Writer

SUMS = ("r11", "r10", "r9", *FREE)
HIGH = SCAN  # q: stands at RESHI


def walk(limbs: int) -> list[int]:
    """The limbs of b in the order in which they walk by."""
    return [*range(0, limbs, 2), *range(1, limbs, 2)]


def in_rows(plan: Plan) -> bool:
    """Whether a plan is of rows in runs that registers hold: one strip."""
    steps = plan.steps
    return (
        plan.op == "mul"
        and 2 <= plan.limbs <= len(SUMS)
        and sum(isinstance(step, Strip) for step in steps) == 1
        and not any(isinstance(step, Product) for step in steps)
        and all(cell.times == 1 and not cell.caught for cell in plan.products())
        and [step.column for step in steps if isinstance(step, Store)] == list(range(2 * plan.limbs))
        and all(len({cell.i for cell in step.cells}) == 1 for step in steps if isinstance(step, Run))
    )


class Rows(Writer):
    """Rows of a product; `sums` are the registers of the sum, its lowest limb first."""

    def __init__(self, isa: Isa, core: Core, width: int) -> None:
        self.width = width
        super().__init__(isa, core)

    def start(self) -> None:
        super().start()
        self.sums = list(SUMS[: self.width])

    def turned(self, limbs: Sequence[str]) -> None:
        """Push limbs in registers such that they lie in the order in which they walk by."""
        for index in reversed(walk(len(limbs))):
            self.emit("push", limbs[index])

    def rows(self, place: int, name: str, *, empty: bool = False, count: int = 0) -> None:
        """As many rows as b has limbs, which lies at the stack pointer, and is as long as the sum, or has a `count` of
        limbs; the lowest limbs of the sum go to the result from `place` on.  `empty`: it begins with nothing."""
        for row in range(count or self.width):
            self.build.heading(f"row {row} of {name}")
            self.emit("mov_sp", RIGHT)
            self.hold()
            self.emit("mov_pa", LEFT, self.ports["MPY"])
            self.first(place) if empty and row == 0 else self.row(place + row, count or self.width)
            self.let_go()

    def product(self) -> None:
        """A product begins, of the next limb of b."""
        self.emit("mov_pa", RIGHT, self.ports["OP2"])

    def first(self, place: int) -> None:
        """The row that begins a sum."""
        for j in range(0, self.width, 2):
            self.product()
            if j:
                self.emit("mov_a", self.sums[j - 1], self.ports["RESLO"])
            else:
                self.emit("mov_ax", self.ports["RESLO"], RESULT, LIMB * place)
            self.emit("mov_m", self.sums[j], HIGH)
        for j in range(1, self.width, 2):
            self.product()
            self.emit("addc_a" if j > 1 else "add_a", self.sums[j - 1], self.ports["RESLO"])
            if j + 1 < self.width:
                self.emit("addc_m", self.sums[j], HIGH)
            else:
                self.emit("mov_m", self.sums[j], HIGH)
        self.emit("adc", self.sums[-1])

    def row(self, place: int, count: int) -> None:
        """One of the others, of a `count` of products: its lowest limb leaves as soon as it is there."""
        lowest, *sums = self.sums
        for j in range(0, count, 2):
            self.product()
            if j == 0:
                self.emit("add_a", lowest, self.ports["RESLO"])
                self.emit("mov_rx", lowest, RESULT, LIMB * place)
            else:
                self.emit("addc_a", sums[j - 1], self.ports["RESLO"])
            if j < len(sums):
                self.emit("addc_m", sums[j], HIGH)
            else:
                self.emit("mov_m", lowest, HIGH)
        for register in sums[count + count % 2 - 1 :]:
            self.emit("adc", register)
        if count < self.width or self.width % 2 == 0:
            self.emit("clr", lowest)
        self.emit("adc", lowest)
        self.sums = sums = [*sums, lowest]
        for j in range(1, count, 2):
            self.product()
            self.emit("addc_a" if j > 1 else "add_a", sums[j - 1], self.ports["RESLO"])
            self.emit("addc_m", sums[j], HIGH)
        for register in sums[count - count % 2 :]:
            self.emit("adc", register)

    def store(self, place: int, limbs: int) -> None:
        """The lowest limbs of the sum go to the result."""
        for index, register in enumerate(self.sums[:limbs]):
            self.emit("mov_rx", register, RESULT, LIMB * (place + index))


class InRows(Rows):
    """A product of as many limbs as registers hold."""

    def all(self) -> None:
        """All of it."""
        for register in self.sums:
            self.emit("mov_p", register, RIGHT)
        self.turned(self.sums)
        self.emit("mov_i", HIGH, self.ports["RESHI"])
        self.rows(0, "a * b", empty=True)
        self.store(self.width, self.width)
        self.shift_stack(self.width)


def rows(plan: Plan, isa: Isa, core: Core) -> list[Op]:
    """The operations of a product by rows."""
    found = InRows(isa, core, plan.limbs)
    found.all()
    return found.build.ops
