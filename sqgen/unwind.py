"""What a debugger needs to find its way out of a function: where the frame ends, and where registers were saved.

The instructions that save, restore or move the stack pointer are executed on a machine whose registers hold marks at
first, so that what they do to the frame is what the table says they do; moves are too, for a register may be saved by
way of another one.  What any other instruction writes is no mark.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from . import frame
from .encode import Instr
from .interpret import Machine
from .layout import Line
from .table import Isa

MARK = 0xA5000000  # what a register holds is this plus its slot
SIZE = 1 << 13  # bytes of the stack


def directives(lines: Sequence[Line], isa: Isa) -> list[list[str]]:
    """For each line the `.cfi` directives that stand behind it; none where the ABI asks for none.

    A function that is called begins with a frame of its own.
    """
    if not isa.abi.cfi:
        return [[] for _ in lines]
    called = {line.target for line in lines if line.instr.insn.control == ("call",)}
    unwinder, found = _Unwinder(isa), []
    for line, following in itertools.zip_longest(lines, lines[1:]):
        found.append(unwinder.after(line.instr))
        if following and not called.isdisjoint(following.labels):
            found[-1] += [".cfi_endproc", ".cfi_startproc"]
            unwinder = _Unwinder(isa)
    return found


class _Unwinder:
    """The frame of straight code, one instruction after the other."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.machine = Machine(isa, isa.core(isa.default_core), SIZE)
        self.top = SIZE // 2
        self.machine.set_wide(self.machine.stack, self.top)
        self.marks = {MARK + isa.slots[name]: name for name in isa.registers if name in isa.abi.saved}
        for mark, name in self.marks.items():
            self.machine.slots[isa.slots[name]] = mark
        self.saved: dict[str, int] = {}  # register -> address

    def after(self, instr: Instr) -> list[str]:
        """What has changed."""
        insn, machine, isa = instr.insn, self.machine, self.isa
        if insn.control:
            return []
        if not (insn.frame or insn.kind == "move" or frame.moves_stack(insn, isa)):
            for name in frame.outputs(insn):
                for slot in instr.places(isa)[name]:
                    machine.slots[slot] = 0
            return []
        before = self.pointer
        instr.meaning(isa).run(machine)
        found = []
        if self.pointer != before:
            found.append(f".cfi_adjust_cfa_offset {before - self.pointer}")
        if insn.frame == "save":
            found += self.saves()
        elif insn.frame == "restore":
            gone = [name for name, at in self.saved.items() if at < self.pointer]
            found += [f".cfi_restore {name}" for name in gone]
            self.saved = {name: at for name, at in self.saved.items() if name not in gone}
        return found

    def saves(self) -> list[str]:
        """Registers that are in the frame now, and were not before."""
        found = []
        size = self.isa.limb_bits // 8
        for at in range(self.pointer, self.top, size):
            name = self.marks.get(int.from_bytes(self.machine.memory[at : at + size], "little"))
            if name and name not in self.saved:
                self.saved[name] = at
                found.append(f".cfi_rel_offset {name}, {at - self.pointer}")
        return found

    @property
    def pointer(self) -> int:
        """The stack pointer."""
        return self.machine.wide(self.machine.stack)
