"""What a kernel promises, and what became of the proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .errors import UserError
from .table import Isa

DEEPEST = 1 << 13  # limbs of stack that a kernel may take at most
SMALLEST = 16  # bits: fewer take an instruction or two anywhere
OPS = ("sqr", "mul")


@dataclass(frozen=True)
class Contract:
    """result = a * b, or a * a: `limbs` limbs each, least significant first, the result twice as long.

    Arguments are pointers, result first, by the instruction set's ABI.  `alone`: the caller sees to it that no
    interrupt handler uses the core's devices; `wiped`: on return nothing made from operands is left on the stack, in
    registers, flags or devices.
    """

    op: str
    limbs: int
    isa: Isa
    alone: bool = False
    wiped: bool = False

    @property
    def buffers(self) -> dict[str, int]:
        """Length in limbs of each buffer, in the order of the arguments."""
        operands = {"a": self.limbs} if self.op == "sqr" else {"a": self.limbs, "b": self.limbs}
        return {"r": 2 * self.limbs, **operands}

    @property
    def modulus(self) -> int:
        """Two to the bits of the result."""
        return 1 << (2 * self.limbs * self.isa.limb_bits)


def contract(isa: Isa, op: str, bits: int) -> Contract:
    """A checked contract.  Raises UserError for a size that is none."""
    if op not in OPS:
        raise UserError(f"unknown operation '{op}'; known: {', '.join(OPS)}")
    limb = isa.limb_bits
    least = max(limb, SMALLEST)
    if not least <= bits <= isa.max_bits:
        raise UserError(f"{bits} is out of range; {isa.name} kernels go from {least} to {isa.max_bits} bits")
    if bits % limb:
        below, above = bits - bits % limb, bits - bits % limb + limb
        raise UserError(f"{bits} is no multiple of {limb} bits; the nearest sizes are {below} and {above}")
    return Contract(op, bits // limb, isa)


def ranges(numbers: Sequence[int]) -> list[list[int]]:
    """Ascending numbers as runs [first, last]."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


@dataclass(frozen=True)
class Fault:
    """Why a proof failed: at which instruction (offset in bytes from the entry), in which column if one is known."""

    address: int
    instruction: str
    message: str
    column: int | None = None

    def __str__(self) -> str:
        where = f"0x{self.address:04x} `{self.instruction}`"
        return f"{where}{'' if self.column is None else f', column {self.column}'}: {self.message}"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a proof.

    `path`: offsets (bytes) of the instructions executed, in order; `stack`: bytes below the return address at most;
    `overlap`: per operand, the displacements d in limbs (result address - operand address) that are safe, as a sorted
    tuple of all d with which the two overlap; `cases`: how many cases the proof split into;
    `others`: where branches on secrets are allowed, paths beside `path`, each of as many cycles, enough to see all that
    is executed; `ways`: how many paths there are in all, whatever branches called functions have taken before; `arms`:
    of each of these functions its own paths; `masked`: offsets of the instructions before which interrupts are off.
    """

    contract: Contract
    fault: Fault | None
    path: tuple[int, ...]
    stack: int
    overlap: dict[str, tuple[int, ...]]
    cases: int
    others: tuple[tuple[int, ...], ...] = ()
    ways: int = 1
    arms: tuple[tuple[tuple[int, ...], ...], ...] = ()
    masked: frozenset[int] = frozenset()

    @property
    def branches(self) -> bool:
        """Whether the path depends on the operands."""
        return bool(self.others)

    @property
    def proved(self) -> bool:
        return self.fault is None
