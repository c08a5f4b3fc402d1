"""What writes AVR instructions on registers given out by hand, each taking the carry that the latest one before
it gave: for loops, whose few registers are in use all the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Builder, Code, Flag, Function, Label
from sqgen.plan import Plan
from sqgen.table import Isa

from .avr_address import moves
from .avr_registers import HIGH, POINTERS

FREE = tuple(f"r{number}" for number in range(18, 26))  # registers of a caller's arguments and those beside them
SAVED = tuple(f"r{number}" for number in range(17, 1, -1))  # those that must be saved, in the order of preference


def looped(plan: Plan) -> bool:
    """Whether a plan is formed in loops itself, and not by parts that are."""
    return plan.loops and not any(plan.parts())


class Writer:
    """Operations as they are written."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.build = Builder(isa)
        self.carry: Flag | None = None

    def do(self, name: str, *args: str | int, comment: str = "") -> None:
        """An instruction."""
        self.carry = self.build.chained(self.carry, name, *args, comment=comment)

    def clear(self, *registers: str) -> None:
        """Zeros; the carry stays."""
        for register in registers:
            self.do("eor", register, register)

    def chain(self, names: tuple[str, str], *pairs: tuple[str, str]) -> None:
        """Instructions that hand on a carry: the first one's name and that of the others."""
        for index, (one, other) in enumerate(pairs):
            self.do(names[index > 0], one, other)

    def add(self, *pairs: tuple[str, str]) -> None:
        """Add to each first register the second one, and the carry of the pair before."""
        self.chain(("add", "adc"), *pairs)

    def shift(self, pointer: str, distance: int) -> None:
        """Move a pointer by so many limbs."""
        self.build.raw(moves(pointer, distance))

    def jump(self, name: str, label: Label) -> None:
        """A branch or jump."""
        self.build.mark(name, label)

    def enter(self, pointers: dict[str, int]) -> None:
        """Each pointer begins where an argument of the caller, by its number, says."""
        for pointer, argument in pointers.items():
            self.do("movw", POINTERS[pointer][0], self.isa.abi.arguments[argument][0])

    def code(self) -> Code:
        """All that was written, as the one function that there is."""
        self.clear(HIGH)
        return Code((Function("", tuple(self.build.ops), ()),))


def registers(names: Sequence[str], reserve: Sequence[str], without: Sequence[str] = ()) -> dict[str, str]:
    """A register for each of these names: first those that need not be saved, last those to `reserve`, which the caller
    of the compiler is told of; never those that are to do `without`."""
    free = [register for register in (*FREE, *SAVED) if register not in without]
    return dict(zip(names, sorted(free, key=lambda register: register in reserve), strict=False))
