"""Product scanning on MSP430: each column is accumulated in the multiplier, the running sum is in registers.

    mov a, &MPY ; mov b, &OP2                       the first product of a column: no clearing, no carry
    mov a, &MAC ; add @p, e ; mov b, &OP2           each other one; SUMEXT is the carry of the one before
    sub #4, p ; add @p+, c0 ; addc @p+, c1 ; addc @p, e ; mov c0, 2k(z)

p stands at SUMEXT, and at RESLO for the end of a column; c0, c1 and e change their roles by renaming.  No result
register is ever written (erratum MPY2).

Sources: research/msp430.md, section 5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from sqgen import frame as framing
from sqgen import timing
from sqgen.code import Op
from sqgen.plan import Plan
from sqgen.table import Core, Isa

from .msp430_pointers import Pointer, Read, at_home, cheapest
from .msp430_writer import LIMB, OFF, RESULT, Writer

SCAN = "r15"  # p
FREE = ("r8", "r7", "r6", "r5", "r4")  # for limbs of the operands

Source = str | Read  # where an operand is written to the multiplier from


class Walk(Writer, ABC):
    """The body of a kernel, built twice (see `msp430_pointers`).

    It multiplies by words of `WORD` limbs; `SUMS` are the registers of a column's sum, which take turns.
    """

    WORD: ClassVar[int]
    SUMS: ClassVar[Sequence[str]]

    def __init__(self, plan: Plan, isa: Isa, core: Core) -> None:
        self.plan, self.n, self.words = plan, plan.limbs, -(-plan.limbs // self.WORD)
        self.top = 2 * self.words - 1  # the column above the last one that has products
        self.noted: list[list[list[int]]] = []  # of each pointer, what each column reads
        super().__init__(isa, core)

    def start(self) -> None:
        super().start()
        self.pointers: list[Pointer] = []
        self.sums = list(self.SUMS)

    def ops(self) -> list[Op]:
        """All operations: first the reads are noted, then each pointer takes its best way."""
        self.run()
        self.noted = [pointer.columns for pointer in self.pointers]
        self.start()
        self.run()
        return self.build.ops

    def pointer(self, register: str, at: int, home: tuple[int, int] | None = None) -> Pointer:
        """A new pointer; `home`: the limb at which sp stands, and from which column on."""
        ways = cheapest(at, home, self.noted[len(self.pointers)]) if self.noted else []
        self.pointers.append(Pointer(register, at, home, ways=ways))
        return self.pointers[-1]

    @abstractmethod
    def run(self) -> None:
        """The whole body."""

    @abstractmethod
    def pushed(self) -> int:
        """Limbs on the stack behind the last column."""

    def enter(self, column: int) -> None:
        """A column begins: each pointer goes to where it stands best."""
        self.build.heading(f"column {column}")
        for pointer in self.pointers:
            self.move(pointer, pointer.begin(column), column)

    def leave(self) -> None:
        """Give back what was pushed."""
        self.shift_stack(self.pushed())

    def move(self, pointer: Pointer, distance: int, column: int) -> None:
        """Move a pointer by so many limbs."""
        if distance and at_home(pointer.at, pointer.home, column):
            self.emit("mov_sp", pointer.register)
        else:
            self.shift(pointer.register, distance)

    def put(self, source: Source, port: str, comment: str = "") -> None:
        """Write an operand to a port of the multiplier."""
        if isinstance(source, str):
            self.emit("mov_ra", source, self.ports[port], comment=comment)
        else:
            self.emit(f"mov_{source.way}a", *source.args, self.ports[port], comment=comment)


class Columns(Walk):
    """A column for each limb, by the 16-bit multiplier."""

    WORD, SUMS = 1, ("r11", "r10", "r9")  # c0, c1 and e

    @abstractmethod
    def load(self) -> None:
        """What comes before the first column."""

    @abstractmethod
    def prepare(self, column: int) -> None:
        """Before the products of a column: what else is added to it, and what comes to registers."""

    @abstractmethod
    def cells(self, column: int) -> list[tuple[int, int]]:
        """The cells of a column in the order in which they are multiplied."""

    @abstractmethod
    def factors(self, column: int, cell: tuple[int, int]) -> tuple[Source, Source]:
        """Where the operands of a cell are."""

    def run(self) -> None:
        self.load()
        for column in range(self.top + 1):
            self.enter(column)
            self.prepare(column)
            if column < self.top:
                self.hold()
                self.multiply(column)
                self.finish(column)
                self.let_go()
        self.store(self.top)
        self.leave()

    def multiply(self, column: int) -> None:
        """All products of a column; the carries of all but the last are in e."""
        carry = self.sums[2]
        for index, cell in enumerate(self.cells(column)):
            left, right = self.factors(column, cell)
            self.put(left, "MAC" if index else "MPY", self.comment(cell))
            if index > 1:
                name = "mov_m" if index == 2 else "add_m"
                self.emit(name, carry, SCAN, comment="carry of the product before")
            self.put(right, "OP2")

    def comment(self, cell: tuple[int, int]) -> str:
        """What the product is."""
        return f"a[{cell[0]}] * {'a' if self.plan.op == 'sqr' else 'b'}[{cell[1]}]"

    def finish(self, column: int) -> None:
        """Add the products of a column to the running sum, and store its lowest limb."""
        low, high, carry = self.sums
        if column == 0:
            self.emit("mov_i", SCAN, self.ports["RESLO"])
            self.emit("mov_p", low, SCAN)
            self.emit("mov_p", high, SCAN)
            self.emit("clr", carry)
        else:
            several = len(self.cells(column))
            if several <= 2 and column < self.top - 1:
                self.emit("clr", carry)
            self.emit("sub_4", SCAN)
            self.emit("add_p", low, SCAN)
            self.emit("addc_p" if column < self.top - 1 else "addc_m", high, SCAN)
            if column < self.top - 1:
                self.emit("adc", carry) if several == 1 else self.emit("addc_m", carry, SCAN)
        self.store(column)

    def store(self, column: int) -> None:
        """The lowest limb of the sum is final."""
        self.emit("mov_rx", self.sums[0], RESULT, LIMB * column)
        self.sums.append(self.sums.pop(0))


def frame(saved: Sequence[str], core: Core, *, alone: bool = False) -> tuple[list[Op], list[Op]]:
    """Operations that save registers and turn interrupts off, and those that restore both and return.

    The multiplier belongs to interrupt handlers, too.  `alone`: the caller keeps them away; on a core where they are
    to be off for a column at a time the columns see to it.
    """
    pushes, pops = saves(saved, core)
    if alone or core.brief:
        return pushes, [*pops, Op("ret", ())]
    return [*pushes, Op("push_sr", ()), *OFF], [Op("pop_sr", ()), *pops, Op("ret", ())]


def saves(saved: Sequence[str], core: Core) -> tuple[list[Op], list[Op]]:
    """Operations that push registers, and those that pop them: CPUX does several at once, from r10 down."""
    count = len(saved)
    if "pushm_2" not in core.lacks and count > 1 and saved == [f"r{number}" for number in range(11 - count, 11)]:
        return [Op(f"pushm_{count}", ())], [Op(f"popm_{count}", ())]
    return [Op("push", (register,)) for register in saved], [Op("pop", (register,)) for register in reversed(saved)]


def fastest(ways: Sequence[Walk], isa: Isa, core: Core) -> Sequence[Op]:
    """The fastest of some ways to build the same function."""
    return min((way.ops() for way in ways), key=lambda ops: cycles(ops, isa, core))


def cycles(ops: Sequence[Op], isa: Isa, core: Core) -> int:
    """Cycles of operations on registers, and of the frame that they need."""
    before, after = frame([name for name in framing.written(ops, isa) if name in isa.abi.saved], core)
    return sum(timing.costs(isa, core, [framing.instruction(op, isa) for op in (*before, *ops, *after)]))
