"""Cycles, bytes and instruction counts of what was executed, by the table alone."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .encode import Instr, decode
from .table import Core, Isa, OperandValue

Pair = tuple[Instr | None, Instr]  # an instruction and what is executed right before it, None for nothing


@dataclass(frozen=True)
class Price:
    """Cycles of one call.

    `call`: from the first instruction to the return inclusive; `body`: that without the return and without the saves
    that open the function and the restores that close it.  `counts`: executed instructions by class.
    """

    call: int
    body: int
    counts: tuple[tuple[str, int], ...]

    @property
    def cycles(self) -> tuple[int, int]:
        """Of the call and of the body."""
        return self.call, self.body


def price(isa: Isa, core: Core, image: bytes, path: Sequence[int], entry: int = 0) -> Price:
    """Price an executed path (offsets from the entry, in bytes) on one core."""
    return prices(isa, [core], image, path, entry)[0]


def prices(isa: Isa, cores: Sequence[Core], image: bytes, path: Sequence[int], entry: int = 0) -> list[Price]:
    """Price an executed path on several cores."""
    what = _executed(isa, image, tuple(path), entry)
    found = []
    for core in cores:
        call = sum(times * isa.by_timing(isa.insns[name].cycles, core) for name, times in what.steady.items())
        call += sum(times * cost(isa, core, instr, before) for (before, instr), times in what.others)
        call += sum(times * isa.by_timing(instr.insn.taken, core) for instr, times in what.taken)
        found.append(
            Price(call, call - sum(cost(isa, core, instr, before) for before, instr in what.frame), what.counts)
        )
    return found


class _Executed(NamedTuple):
    """What of an executed path a price is made of: `counts` by class; how often there are instructions that cost the
    same wherever they stand, by name; all `others` with what is executed before them, and branches that are `taken`,
    and how often; the instructions of the function's frame."""

    counts: tuple[tuple[str, int], ...]
    steady: dict[str, int]
    others: list[tuple[Pair, int]]
    taken: list[tuple[Instr, int]]
    frame: list[Pair]


@functools.lru_cache(maxsize=128)  # a proof and what is written of it ask for the same few paths
def _executed(isa: Isa, image: bytes, path: tuple[int, ...], entry: int) -> _Executed:
    known = {at: decode(isa, image, entry + at) for at in {*path}}
    kinds, steady = Counter[str](), Counter[str]()
    for at, times in Counter(path).items():
        insn = known[at].insn
        kinds[insn.kind] += times
        if insn.steady:
            steady[insn.name] += times
    others: list[tuple[Pair, int]] = [] if known[path[0]].insn.steady else [((None, known[path[0]]), 1)]
    taken: list[tuple[Instr, int]] = []
    for (before, at), times in Counter(itertools.pairwise(path)).items():
        last, instr = known[before], known[at]
        if not instr.insn.steady:
            others.append(((last, instr), times))
        if last.insn.control and at != before + last.insn.size:
            taken.append((last, times))
    instrs = [known[at] for at in path]
    frame = [(instrs[index - 1] if index else None, instrs[index]) for index in framing(instrs)]
    return _Executed(tuple(sorted(kinds.items())), dict(steady), others, taken, frame)


def most_among(isa: Isa, core: Core, image: bytes, path: Sequence[int], offsets: Collection[int]) -> int:
    """The most cycles that instructions of an executed path, offsets in bytes, take one after the other while all are
    `offsets` too."""
    most = cycles = 0
    for step, at in enumerate(path):
        if at not in offsets:
            cycles = 0
            continue
        instr = decode(isa, image, at)
        cycles += cost(isa, core, instr, decode(isa, image, path[step - 1]) if step else None)
        if step + 1 < len(path) and path[step + 1] != at + instr.insn.size:
            cycles += isa.by_timing(instr.insn.taken, core)
        most = max(most, cycles)
    return most


def costs(isa: Isa, core: Core, instrs: Sequence[Instr]) -> list[int]:
    """Cycles of each of the instructions executed one after the other, branches not taken."""
    return [cost(isa, core, instr, before) for before, instr in zip([None, *instrs], instrs, strict=False)]


def cost(isa: Isa, core: Core, instr: Instr, before: Instr | None) -> int:
    """Cycles of an instruction that is executed right after another one, None for the first; a branch not taken."""
    insn = instr.insn
    chained = before is not None and bool(insn.chain) and before.insn.chain == insn.chain
    if chained and before and _named(before, "in").isdisjoint(_named(instr, "out")):
        return isa.by_timing(insn.chained, core)
    cycles, each = isa.by_timing(insn.cycles, core), isa.by_timing(insn.each, core)
    return cycles + each * sum(len(value) for value in instr.operands if isinstance(value, tuple)) if each else cycles


def _named(instr: Instr, beside: str) -> set[OperandValue]:
    """Registers among the operands that are not of the role `beside`."""
    pairs = zip(instr.insn.operands, instr.operands, strict=True)
    return {value for operand, value in pairs if operand.cls and operand.role != beside}


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


def body_counts(isa: Isa, image: bytes, path: Sequence[int], entry: int = 0) -> Counter[str]:
    """Executed instructions of the body by class.

    A PUSH or POP that is no part of the frame is "save" or "restore", an addition of a register to itself "shift" (LSL
    and ROL are ADD and ADC): both as the papers count.
    """
    instrs = [decode(isa, image, entry + at) for at in path]
    frame = set(framing(instrs))
    return Counter(_counted(instr) for index, instr in enumerate(instrs) if index not in frame)


def _counted(instr: Instr) -> str:
    doubled = instr.insn.kind == "add" and instr.insn.same and len(set(instr.operands)) == 1
    return instr.insn.frame or ("shift" if doubled else instr.insn.kind)
