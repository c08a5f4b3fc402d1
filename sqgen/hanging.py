"""What an instruction writes, and on what that hangs, whatever its operands are."""

from __future__ import annotations

from collections.abc import Sequence

from .encode import Instr
from .table import Isa

Slots = int  # a set of slots, as bits


class Hangs:
    """The domain on which a meaning is run to see on which slots what it writes hangs: see `meaning.Domain`.

    Two more bits say that something from `memory` is in it, and that it was `made`, and not just moved.
    """

    def __init__(self, isa: Isa) -> None:
        self.memory: Slots = 1 << len(isa.slots)
        self.made: Slots = self.memory << 1
        self.written: dict[int, Slots] = {}
        self.multiplies = False
        self.apart = False  # uses memory, bits of a limb by themselves, or a slot twice, of which nothing may be left
        self.known: Slots = 0

    @classmethod
    def of(cls, instr: Instr, isa: Isa) -> Hangs:
        """That of an instruction."""
        hangs = cls(isa)
        instr.meaning(isa).run(hangs)
        return hangs

    def read(self, slot: int) -> Slots:
        self.apart = self.apart or bool(self.known >> slot & 1)
        self.known |= 1 << slot
        return 1 << slot

    def write(self, slot: int, value: Slots) -> None:
        self.written[slot] = value

    def constant(self, value: int) -> Slots:
        return 0

    def linear(self, terms: Sequence[tuple[int, Slots]]) -> Slots:
        found = 0
        for _, slots in terms:
            found |= slots
        return found

    def product(self, left: Slots, right: Slots) -> Slots:
        self.multiplies = True
        return left | right

    def digits(self, value: Slots, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]) -> list[Slots]:
        return [value | self.made] * len(widths)

    def logic(self, op: str, left: Slots, right: Slots) -> Slots:
        self.apart = True
        return left | right

    def load(self, address: Slots) -> Slots:
        self.apart = True
        return address | self.memory

    def store(self, address: Slots, value: Slots) -> None:
        """What is in memory is not followed."""
        self.apart = True

    def zero(self, value: Slots, also: Slots | None) -> Slots:
        return value | (also or 0) | self.made
