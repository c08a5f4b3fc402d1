"""Limbs that a call brings in registers though they are in memory, too: what the function would load first of all.

To show what such a function does wherever it is called (`lemmas`), one has to know that a register holds a limb of an
operand; each call is asked whether it does.  At the first call all registers with such a limb would do, most of them by
chance: so what the function reads before it writes it is looked for, on its way to the first jump, call or return.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .encode import DecodeError
from .held import Place
from .instructions import Instructions
from .symbolic import State

Pointers = Mapping[str, tuple[str, ...]]  # by the buffer that each names: registers, low limb first
Brought = Mapping[int, Place]  # slot -> place, counted from where the pointer that names the buffer points


def pointed_at(state: State, pointers: Pointers) -> dict[str, Place] | None:
    """The limbs that pointers point at; None if one of them points at no limb of a buffer."""
    size = state.contract.isa.limb_bits // 8
    found = {}
    for name, group in pointers.items():
        where = state.resolve(state.joined(group))
        if where is None or where[1] % size:
            return None
        found[name] = (where[0], where[1] // size)
    return found


def brought_by(state: State, pointers: Pointers, instructions: Instructions, target: int) -> dict[int, Place]:
    """What a call brings in this state, of what lies behind its pointers."""
    starts = pointed_at(state, pointers) or {}
    held: dict[frozenset[tuple[int, int]], list[Place]] = {}
    for place, cell in state.memory.items():
        if isinstance(cell, dict):
            held.setdefault(frozenset(cell.items()), []).append(place)
    found = {}
    for slot in first_read(instructions, target):
        value = state.slots[slot]
        if isinstance(value, dict) and not state.atoms.is_public(value):
            known = held.get(frozenset(value.items()), ())
            below = [
                (start - offset, name, offset - start)
                for buffer, offset in known
                for name, (there, start) in starts.items()
                if there == buffer and start <= offset
            ]
            if below:
                _, name, distance = max(below)
                found[slot] = (name, distance)
    return found


def holds(state: State, slot: int, place: Place) -> bool:
    """Whether a register holds the limb of memory at a place."""
    value = state.slots[slot]
    return isinstance(value, dict) and value == state.cell(place)


def first_read(instructions: Instructions, at: int) -> list[int]:
    """The slots that code reads before it writes them, up to its first jump, branch, call or return; and not to push
    them, as what a function has to keep is pushed."""
    touched = Touched()
    while True:
        try:
            instr = instructions.at(at)
        except DecodeError:
            return sorted(touched.read_first)
        if instr.insn.control:
            return sorted(touched.read_first)
        touched.pushing = bool(instr.insn.frame)
        instr.meaning(instructions.isa).run(touched)
        at += instr.insn.size


class Touched:
    """A domain of `Meaning.run` in which nothing has a value, and what is read and written is noted."""

    def __init__(self) -> None:
        self.pushing = False
        self.read_first: set[int] = set()
        self.written: set[int] = set()

    def read(self, slot: int) -> None:
        if slot not in self.written and not self.pushing:
            self.read_first.add(slot)

    def write(self, slot: int, value: Any) -> None:
        self.written.add(slot)

    def constant(self, value: int) -> None: ...

    def linear(self, terms: Sequence[tuple[int, Any]]) -> None: ...

    def product(self, left: Any, right: Any) -> None: ...

    def digits(self, value: Any, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]) -> list[None]:
        return [None] * len(widths)

    def logic(self, op: str, left: Any, right: Any) -> None: ...

    def load(self, address: Any) -> None: ...

    def store(self, address: Any, value: Any) -> None: ...

    def zero(self, value: Any, also: Any) -> None: ...
