"""What writes instructions for MSP430: on registers, each taking the carry that the latest one before it gave."""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import ANY_FLAGS, Builder, Flag, Op
from sqgen.table import Core, Isa

LIMB = 2  # bytes
FLASH = range(0x1100, 0xFFE0)  # where the largest parts have it, below the vectors; calls reach no further on any
NAMED = (1, 2, 3, 4)  # limbs that instructions of their own move a pointer by
RESULT, LEFT, RIGHT = "r12", "r13", "r14"

# The instruction behind DINT is still open to interrupts [SLAU049]: a NOP, for assemblers warn of others.
OFF = (Op("dint", ()), Op("nop", ()))


class Writer:
    """Operations as they are written; `ports` are the addresses of the ports of the device that multiplies."""

    def __init__(self, isa: Isa, core: Core) -> None:
        self.isa, self.core = isa, core
        self.ports = {
            port.name: base + port.at for name, base in core.devices.items() for port in isa.devices[name].ports
        }
        self.start()

    def start(self) -> None:
        """Nothing is written yet."""
        self.build = Builder(self.isa)
        self.carry: Flag | None = None
        self.held = 0  # limbs on the stack while interrupts are held off for a column

    def emit(self, name: str, *args: str | int, comment: str = "") -> None:
        """An instruction; it takes the carry that the one before it gave, if it takes one."""
        self.carry = self.build.chained(self.carry, name, *args, comment=comment)

    def hold(self) -> None:
        """Interrupts are held off, if they are for a column at a time."""
        if self.core.brief:
            self.build.raw([Op("push_sr", (), takes=ANY_FLAGS), *OFF])
            self.held = 1

    def let_go(self) -> None:
        """They are as they were again."""
        if self.core.brief:
            self.build.raw([Op("pop_sr", ())])
            self.held = 0

    def shift(self, register: str, limbs: int) -> None:
        """Move a pointer by so many limbs."""
        if limbs:
            verb, size = ("add" if limbs > 0 else "sub"), abs(limbs)
            self.emit(f"{verb}_{LIMB * size}", register) if size in NAMED else self.emit(
                f"{verb}_i", register, LIMB * size
            )

    def shift_stack(self, limbs: int) -> None:
        """Move the stack pointer by so many limbs: up is what gives them back."""
        if limbs:
            verb, size = ("add" if limbs > 0 else "sub"), abs(limbs)
            self.emit(f"{verb}_sp{LIMB * size}") if size in NAMED else self.emit(f"{verb}_spi", LIMB * size)

    def read(self, name: str, register: str, pointer: str, limb: int) -> None:
        """An instruction with an operand `limb` limbs behind a pointer, in its short form where there is one."""
        if limb:
            self.emit(f"{name}_x", register, pointer, LIMB * limb)
        else:
            self.emit(f"{name}_m", register, pointer)

    def write(self, name: str, register: str, pointer: str, limb: int) -> None:
        """An instruction that changes the limb there."""
        self.emit(f"{name}_rx", register, pointer, LIMB * limb)

    def chain(self, name: str, registers: Sequence[str], pointer: str) -> None:
        """Add, or subtract, limbs that a pointer walks over, with their carries."""
        for index, register in enumerate(registers):
            self.emit(f"{name}{'c' if index else ''}_p", register, pointer)
