"""Code with one instruction changed, in every way that is near: what a slip makes of a kernel.

The changes come from the table alone, so that every instruction set has its own: an instruction is near another one if
it takes the same kinds of operands.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .code import flags_read
from .encode import EncodeError, Instr, assemble, disassemble
from .table import Insn, Isa, OperandValue

STEPS = (1, -1, 7)  # to the other registers that are tried, in the order of their codes

DROPPED, DOUBLED, SWAPPED = "dropped", "doubled", "swapped with the next"
OPERATION, TO_CARRY, TO_PLAIN = "another operation", "plain to carry-using", "carry-using to plain"
ORDER, REGISTER, NUMBER, LIST = "operands swapped", "another register", "another number", "another list"
KINDS = (DROPPED, DOUBLED, SWAPPED, OPERATION, TO_CARRY, TO_PLAIN, ORDER, REGISTER, NUMBER, LIST)


@dataclass(frozen=True)
class Change:
    """`how` code was changed: from instruction `at` (index) on, `old` is now `new`; in bytes, what lay from `first` to
    `last`."""

    how: str
    at: int
    old: tuple[Instr, ...]
    new: tuple[Instr, ...]
    first: int
    last: int

    def apply(self, image: bytes) -> bytes:
        return image[: self.first] + assemble(self.new) + image[self.last :]

    def text(self) -> str:
        """What it does, in one line."""
        old, new = ("; ".join(instr.text() for instr in some) or "nothing" for some in (self.old, self.new))
        return f"instruction {self.at} {self.how}: {old} -> {new}"


def changes(isa: Isa, image: bytes) -> Iterator[Change]:
    """Every change of one instruction that still is code; what follows stays where it is, unless nothing jumps."""
    places, instrs = zip(*disassemble(isa, image), strict=True)
    ends = (*places[1:], len(image))
    fixed = any(instr.insn.control and instr.insn.control[0] not in ("return", "when") for instr in instrs)
    for at, instr in enumerate(instrs):
        pair = instrs[at : at + 2]
        found: list[tuple[str, tuple[Instr, ...], tuple[Instr, ...]]] = []
        found += [(how, (instr,), (other,)) for how, other in alterations(isa, instr)]
        found.append((DROPPED, (instr,), _nothing(isa, instr.insn.size) if fixed else ()))
        if not fixed:
            found.append((DOUBLED, (instr,), (instr, instr)))
        if len(pair) == 2:
            found.append((SWAPPED, pair, pair[::-1]))
        for how, old, new in found:
            first, last = places[at], ends[at + len(old) - 1]
            if fixed and sum(each.insn.size for each in new) != last - first:
                continue
            try:
                code = assemble(new)
            except EncodeError:
                continue
            if code != image[first:last]:
                yield Change(how, at, old, new, first, last)


def pairs(isa: Isa, image: bytes, count: int, seed: str) -> Iterator[tuple[Change, Change]]:
    """So many pairs of changes that do not touch each other, picked at random from a seed; the later one first, so that
    they can be applied one after the other."""
    every = list(changes(isa, image))
    rng = random.Random(seed)
    if not any(each.last <= other.first for each, other in itertools.product(every[:1], every[-1:])):
        return
    while count:
        first, second = sorted(rng.sample(every, 2), key=lambda change: change.first)
        if first.last <= second.first:
            count -= 1
            yield second, first


def alterations(isa: Isa, instr: Instr) -> Iterator[tuple[str, Instr]]:
    """The instruction with another operation or with other operands."""
    uses = bool(flags_read(instr.insn, isa))
    for other in near(isa, instr.insn):
        operands = (*instr.operands, *[0] * len(other.operands))[: len(other.operands)]
        also = bool(flags_read(other, isa))
        yield TO_CARRY if also > uses else TO_PLAIN if uses > also else OPERATION, Instr(other, operands)
    if len(instr.operands) == 2 and all(operand.kind == "register" for operand in instr.insn.operands):
        yield ORDER, Instr(instr.insn, instr.operands[::-1])
    for index, value in enumerate(instr.operands):
        for how, new in _others(instr, index, value):
            yield how, Instr(instr.insn, (*instr.operands[:index], new, *instr.operands[index + 1 :]))


def _others(instr: Instr, index: int, value: OperandValue) -> Iterator[tuple[str, OperandValue]]:
    """What may stand in the place of an operand."""
    operand = instr.insn.operands[index]
    if isinstance(value, int):
        yield from ((NUMBER, value + step * operand.scale) for step in (1, -1))
    elif operand.cls and isinstance(value, str):
        names = operand.cls.registers
        yield from ((REGISTER, names[(names.index(value) + step) % len(names)]) for step in STEPS)
    elif operand.cls and isinstance(value, tuple):
        names = operand.cls.registers
        yield from ((LIST, value[:at] + value[at + 1 :]) for at in range(len(value)))
        more = sorted({*value, names[(names.index(value[-1]) + 1) % len(names)]}, key=names.index)
        yield LIST, tuple(more)


@functools.cache
def near(isa: Isa, insn: Insn) -> Sequence[Insn]:
    """Instructions whose operands are of the same kinds, but for numbers at the end, which one may have more."""

    def kinds(some: Insn) -> list[str]:
        return [operand.kind for operand in some.operands]

    def alike(other: Insn) -> bool:
        longer, shorter = sorted((kinds(insn), kinds(other)), key=len, reverse=True)
        return longer[: len(shorter)] == shorter and set(longer[len(shorter) :]) <= {"immediate"}

    return [other for other in isa.insns.values() if other is not insn and alike(other)]


def _nothing(isa: Isa, size: int) -> tuple[Instr, ...]:
    """Instructions of so many bytes in all that do nothing."""
    nop = next(
        insn
        for insn in isa.insns.values()
        if not (insn.operands or insn.statements or insn.control or insn.clobbers) and insn.size == isa.code_unit
    )
    return (Instr(nop, ()),) * (size // nop.size)
