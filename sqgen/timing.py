"""Cycles, bytes and instruction counts of what was executed, by the table alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .encode import Instr, decode
from .table import Core, Isa


@dataclass(frozen=True)
class Price:
    """Cycles of one call.

    `call`: from the first instruction to the return inclusive; `body`: that without the return and without the saves
    that open the function and the restores that close it.  `counts`: executed instructions by class.
    """

    call: int
    body: int
    counts: tuple[tuple[str, int], ...]


def price(isa: Isa, core: Core, image: bytes, path: Sequence[int], entry: int = 0) -> Price:
    """Price an executed path (offsets from the entry, in bytes)."""
    executed = [(at, decode(isa, image, entry + at)) for at in path]
    cycles = [isa.cycles(instr.insn, core) for _, instr in executed]
    for index, (at, instr) in enumerate(executed[:-1]):
        if instr.insn.taken and executed[index + 1][0] != at + instr.insn.size:
            cycles[index] += instr.insn.taken
    frame = framing([instr for _, instr in executed])
    counts = Counter(instr.insn.kind for _, instr in executed)
    return Price(sum(cycles), sum(cycles) - sum(cycles[index] for index in frame), tuple(sorted(counts.items())))


def framing(instrs: Sequence[Instr]) -> list[int]:
    """Indices of the saves at the start, the restores at the end and the return."""
    first = 0
    while first < len(instrs) and instrs[first].insn.frame == "save":
        first += 1
    last = len(instrs)
    if last and instrs[last - 1].insn.control[:1] == ("return",):
        last -= 1
    end = last
    while end > first and instrs[end - 1].insn.frame == "restore":
        end -= 1
    return [*range(first), *range(end, len(instrs))]
