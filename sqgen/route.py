"""Where code with loops goes, found without computing what does not decide that.

Branches ask of counters, and perhaps of pointers.  So most of what a loop does need not be executed to see how often it
goes around: by liveness, backwards from what branches ask of, an instruction is left out that writes nothing which they
hang on.  The stack pointer always is such.  Where something comes from memory all is executed (`interpret.trace`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .contract import Contract
from .encode import DecodeError, Instr
from .hanging import Hangs, Slots
from .instructions import Instructions
from .interpret import STEPS, Endless, Run
from .table import Core, Isa


@dataclass
class _Place:
    """An instruction: where the code may go on behind it, what each slot that it writes hangs on, and the slots of
    which it is known that what comes behind it hangs on them."""

    instr: Instr
    after: list[int]
    written: dict[int, Slots]
    asked: Slots
    live: Slots = 0
    before: list[int] = field(default_factory=list)

    @property
    def decides(self) -> bool:
        """Whether it has to be executed."""
        return bool(self.instr.insn.control) or any(self.live >> slot & 1 for slot in self.written)


class _Unknown(Exception):
    """Where the code goes hangs on more than is followed here."""


class _Route:
    """The code of an image."""

    def __init__(self, image: bytes, isa: Isa) -> None:
        self.code, self.isa = Instructions(image, isa), isa
        self.places: dict[int, _Place] = {}
        self.returns: list[int] = []  # behind calls
        self.memory = Hangs(isa).memory
        self.stack: Slots = sum(1 << isa.slots[name] for name in isa.stack_registers)

    def followed(self) -> None:
        """Find all instructions that may be executed.  Raises DecodeError, and _Unknown."""
        waiting = [0]
        while waiting:
            at = waiting.pop()
            if at not in self.places:
                self.places[at] = self.place(at)
                waiting += [*self.places[at].after, *self.returns]
        for at, place in self.places.items():
            if place.instr.insn.control[:1] == ("return",):
                place.after = self.returns
            for following in place.after:
                self.places[following].before.append(at)

    def place(self, at: int) -> _Place:
        instr = self.code.at(at)
        kind = instr.insn.control[0] if instr.insn.control else ""
        if kind == "when" or (kind == "return" and self.isa.abi.link):
            raise _Unknown
        following = at + instr.insn.size
        after = [] if kind in ("jump", "return") else [following]
        if kind in ("jump", "branch", "call"):
            after.append(self.code.target(at))
        if kind == "call":
            self.returns.append(following)
            after.remove(following)
        hangs = Hangs.of(instr, self.isa)
        asked = 1 << self.isa.slots[instr.insn.control[1]] if kind == "branch" else 0
        clobbered = {self.isa.slots[flag]: 0 for flag in instr.insn.clobbers}
        return _Place(instr, after, {**hangs.written, **clobbered}, asked | self.stack)

    def hang(self) -> None:
        """Find what is live behind each instruction.  Raises _Unknown where memory is."""
        waiting = sorted(self.places)  # the last first, of which most comes to hang
        while waiting:
            place = self.places[waiting.pop()]
            needs, written = place.asked, 0
            for slot, hangs in place.written.items():
                written |= 1 << slot
                needs |= hangs if place.live >> slot & 1 else 0
            needs |= place.live & ~written
            if needs & self.memory:
                raise _Unknown
            for at in place.before:
                if needs & ~self.places[at].live:
                    self.places[at].live |= needs
                    waiting.append(at)

    def passed(self, at: int) -> tuple[list[int], int]:
        """The instructions from one on that need not be executed, and where the next one is that must be."""
        found = []
        while not self.places[at].decides:
            found.append(at)
            at += self.places[at].instr.insn.size
        return found, at


def route(image: bytes, contract: Contract, core: Core) -> list[int] | None:
    """The offsets in bytes of what is executed by code whose branches ask of no operand, None where that hangs on
    memory, devices or conditions.  Raises Crash, and Endless."""
    run = Run(contract, core)
    if run.machine.bus:
        return None
    found = _Route(image, contract.isa)
    try:
        found.followed()
        found.hang()
    except (_Unknown, DecodeError):
        return None
    run.start((0,) * (len(run.places) - 1))
    passed: dict[int, tuple[list[int], int]] = {}
    path: list[int] = []
    at: int | None = 0
    while at is not None:
        if at not in passed:
            passed[at] = found.passed(at)
        before, here = passed[at]
        path += before
        path.append(here)
        at = run.machine.step(image, here)
        if len(path) > STEPS:
            raise Endless("no end")
    return path
