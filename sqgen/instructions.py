"""The instructions of an image, each decoded once, and what can be seen of them before they are executed."""

from __future__ import annotations

from .code import flags_read, flags_written
from .encode import DecodeError, Instr, decode
from .held import Return
from .symbolic import State
from .table import Isa

LOOK_AHEAD = 64  # instructions looked at to see whether a carry is dropped


class Instructions:
    """Decodes an image where it is asked to; places are offsets in bytes."""

    def __init__(self, image: bytes, isa: Isa) -> None:
        self.image, self.isa = image, isa
        self.decoded: dict[int, Instr] = {}

    def at(self, place: int) -> Instr:
        """The instruction there.  Raises DecodeError."""
        if place < 0:
            raise DecodeError("the code runs before its start")
        if place not in self.decoded:
            self.decoded[place] = decode(self.isa, self.image, place)
        return self.decoded[place]

    def target(self, place: int) -> int:
        """Where the jump, branch or call there leads."""
        instr = self.at(place)
        return place + instr.insn.size + next(iter(instr.immediates.values()))

    def unread(self, state: State, slot: int) -> bool:
        """Whether the flag in `slot`, as the current instruction leaves it, is written again before it is read,
        wherever branches lead."""
        flag = self.isa.flags[slot - len(self.isa.registers) - len(self.isa.special)]
        here = state.atoms.here
        # where to look, whether the stack has moved before, and how many instructions there may write the flag or not
        waiting = [(here + self.at(here).insn.size, False, len(state.conditions))]
        for _ in range(LOOK_AHEAD):
            if not waiting:
                return True
            at, stack_moved, on_condition = waiting.pop()
            try:
                insn = self.at(at).insn
            except DecodeError:
                return False
            if flag in flags_read(insn, self.isa):
                return False
            if flag in flags_written(insn, self.isa) and not on_condition:
                continue
            on_condition = len(insn.control) - 2 if insn.control[:1] == ("when",) else max(0, on_condition - 1)
            stack_moved = stack_moved or bool(insn.frame) or insn.control[:1] == ("call",)
            after = [] if stack_moved and insn.control[:1] == ("return",) else self.after(state, at)
            if not after:
                return False
            waiting += [(place, stack_moved, on_condition) for place in after]
        return not waiting

    def after(self, state: State, at: int) -> list[int]:
        """Where the code may go on after the instruction at `at`, nowhere if that is not known ahead."""
        instr = self.at(at)
        following = at + instr.insn.size
        kind = instr.insn.control[0] if instr.insn.control else ""
        if kind == "return":
            back = self.back(state)
            return [] if back is None else [back]
        if kind in ("jump", "call"):
            return [self.target(at)]
        return [following, self.target(at)] if kind == "branch" else [following]

    def back(self, state: State) -> int | None:
        """Where a return leads, None where that is not known ahead, or out of the code."""
        if self.isa.abi.link:
            return state.links[-1][2] if state.links else None
        cell = state.memory.get(("stack", state.depth + 1 - state.below()))
        return cell.target if isinstance(cell, Return) else None
