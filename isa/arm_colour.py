"""Which low register, high register or place on the stack: the second half of allocation on ARMv6-M.

`arm_fit` has said who is in a low register when.  Any choice of registers will do, for there are as many as are wanted
at any time; but LDM, STM, PUSH and POP have theirs in ascending order.  What is stored in another order is stored in
several goes, one cycle more for each.  So some choices are tried, at random from a seed, and the best is kept.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqgen.code import Flag, Op

from .arm_fit import NONE, Event, Fitted
from .arm_values import CARRY_IN, CARRY_OUT, FRAME, LIMB, SHAPES, Operation

LOW = ("r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7")
TRIES = 40
Listed = tuple[int, Sequence[int]]  # a place in a list of values that are stored together, and the list


@dataclass(frozen=True)
class Job:
    """Code, and what stays where; `constants` are values that are numbers, `entry` those that are in registers at the
    start; `low` and `high` registers that may be used, `places` the limb of the frame where the places for limbs begin.
    """

    ops: Sequence[Operation]
    fitted: Fitted
    constants: Mapping[int, int]
    entry: Mapping[int, str]
    low: Sequence[str]
    high: Sequence[str]
    places: int = 0


def assign(job: Job, seed: int | None = None) -> tuple[list[Op], int]:
    """(instructions, limbs of the frame): the best of some choices, or the one from a seed that is known to be good."""
    best: Trial | None = None
    for number in range(TRIES) if seed is None else (seed,):
        trial = tried(job, number)
        if best is None or trial.broken < best.broken:
            best = trial
        if not best.broken:
            break
    assert best
    return best.out, best.frame


def tried(job: Job, seed: int) -> Trial:
    """One choice."""
    trial = Trial(job, random.Random(seed))
    trial.run()
    return trial


def lists(ops: Sequence[Operation]) -> dict[int, Listed]:
    """For each value the list that it is stored in first."""
    found: dict[int, Listed] = {}
    for op in ops:
        if op.kind in ("stm", "push"):
            members = op.reads[1:] if op.kind == "stm" else op.reads
            for place, value in enumerate(members):
                found.setdefault(value, (place, members))
    return found


class Trial:
    """One choice of registers."""

    def __init__(self, job: Job, rng: random.Random) -> None:
        self.ops, self.fitted, self.constants, self.rng = job.ops, job.fitted, job.constants, rng
        self.places = job.places
        self.low = dict(job.entry)  # value -> register
        self.free = [register for register in job.low if register not in job.entry.values()]
        self.high: dict[int, str] = {}
        self.free_high = list(job.high)
        self.stack: dict[int, int] = {}
        self.free_stack: list[int] = []
        self.frame = 0
        self.pushed = 0  # limbs that lie on the frame
        self.ends = {value: at for at, op in enumerate(job.ops) for value in op.reads}
        self.ahead = wanted(job.ops)
        self.out: list[Op] = []
        self.broken = 0
        self.flags = 0
        self.carry: Flag | None = None

    def run(self) -> None:
        """All operations."""
        for at, (op, events) in enumerate(zip(self.ops, self.fitted.steps, strict=True)):
            for event in events:
                self.happen(at, op, event)
            for value in op.reads:
                if self.ends[value] == at:
                    self.stack_free(value)

    def stack_free(self, value: int) -> None:
        if value in self.stack:
            self.free_stack.append(self.stack.pop(value))

    def happen(self, at: int, op: Operation, event: Event) -> None:
        """One event."""
        value = event.value
        match event.what:
            case "fetch":
                self.fetch(value)
            case "high":
                self.high[value] = self.free_high.pop(0)
                self.emit("mov", self.high[value], self.low[value])
            case "spill":
                if not self.free_stack:
                    self.free_stack.append(self.frame)
                    self.frame += 1
                self.stack[value] = self.free_stack.pop()
                self.emit("str_sp", self.low[value], LIMB * (self.places + self.stack[value] + self.pushed))
            case "drop":
                self.release(value)
            case "forget":
                self.free_high.insert(0, self.high.pop(value))
            case "double":
                self.doubled = self.choose(value)
                self.emit("mov", self.doubled, self.low[value])
            case "do":
                self.do(at, op, value)

    def fetch(self, value: int) -> None:
        register = self.choose(value)
        if value in self.high:
            self.emit("mov", register, self.high[value])
        elif value in self.constants:
            self.emit("movs_i", register, self.constants[value])
        else:
            self.emit("ldr_sp", register, LIMB * (self.places + self.stack[value] + self.pushed))
        self.low[value] = register

    def release(self, value: int) -> None:
        self.free.append(self.low.pop(value))

    def choose(self, value: int) -> str:
        """A free register for a value that begins its stay."""
        register = self.best(value)
        self.free.remove(register)
        return register

    def best(self, value: int) -> str:
        """The free register that suits the list that the value will be stored in."""
        goal = self.ahead.get(value)
        if goal is None:
            return self.rng.choice(self.free)
        place, members = goal
        able = [register for register in self.free if self.suits(register, place, members)] or self.free
        if self.rng.random() < 0.3:
            return self.rng.choice(able)
        target = 7 * (place + 0.5) / len(members)
        return min(able, key=lambda register: abs(int(register[1]) - target))

    def suits(self, register: str, place: int, members: Sequence[int]) -> bool:
        """Whether it is in order with those that are there already."""
        for other, value in enumerate(members):
            if other != place and value in self.low and (self.low[value] < register) != (other < place):
                return False
        return True

    def do(self, at: int, op: Operation, over: int) -> None:
        """The operation itself."""
        named = [self.low[value] for value in op.reads]
        keep = self.doubled
        self.doubled = ""
        target = self.low[over] if over != NONE else ""
        for value in dict.fromkeys(op.reads):
            if value == over:
                if keep:
                    self.low[value] = keep
                else:
                    del self.low[value]
            elif self.ends[value] == at:
                self.release(value)
        outs = list(op.writes)
        registers: list[str] = []
        if over != NONE:
            registers.append(target)
            outs.pop(0)
        loaded = op.kind in ("ldm", "pop")
        registers += self.several(outs) if loaded else [self.choose(value) for value in outs]
        self.low.update(zip(op.writes, registers, strict=True))
        self.instruct(op, named, registers, target)
        for value in op.writes:
            if value not in self.ends:
                self.release(value)

    def several(self, values: Sequence[int]) -> list[str]:
        """Ascending registers for all of them."""
        found = sorted(self.rng.sample(sorted(self.free), len(values)))
        for register in found:
            self.free.remove(register)
        return found

    doubled = ""

    def instruct(self, op: Operation, named: Sequence[str], registers: Sequence[str], target: str) -> None:
        """The instruction, its operands in the table's order."""
        name = SHAPES[op.kind][0]
        takes = self.carry if op.kind in CARRY_IN else None
        if op.kind in FRAME or op.kind == "push":
            self.on_stack(op, named, registers)
            return
        match op.kind:
            case "ldm":
                self.emit(name, target, tuple(registers[1:]))
            case "stm":
                runs = ascending(named[1:])
                self.broken += len(runs) - 1
                for run in runs:
                    self.emit(name, target, run)
            case "mask":
                self.emit(name, registers[0], registers[0], takes=takes, gives=True)
            case "step":
                self.emit(name, target, op.number, gives=True)
            case "lsl" | "lsr":
                self.emit(name, registers[0], named[0], op.number, gives=True)
            case "neg":
                self.emit(name, registers[0], named[0], gives=True)
            case "at":
                self.emit(name, registers[0], named[0], LIMB * op.number)
            case "uxth":
                self.emit(name, registers[0], named[0])
            case "add" | "sub":
                self.emit(name, registers[0], *named, gives=True)
            case _:
                other = named[1] if named[0] == target else named[0]
                self.emit(name, target, other, takes=takes, gives=op.kind in CARRY_OUT)

    def on_stack(self, op: Operation, named: Sequence[str], registers: Sequence[str]) -> None:
        """The same for one that uses the stack."""
        name = SHAPES[op.kind][0]
        match op.kind:
            case "pop":
                self.emit(name, tuple(registers))
                self.pushed -= len(registers)
            case "push":
                runs = ascending(named)
                self.broken += len(runs) - 1
                for run in reversed(runs):
                    self.emit(name, run)
                self.pushed += len(named)
            case _:
                self.emit(name, (*registers, *named)[0], LIMB * (op.number + self.pushed))

    def emit(
        self, name: str, *args: str | int | tuple[str, ...], takes: Flag | None = None, gives: bool = False
    ) -> None:
        """Append an instruction."""
        given: tuple[Flag, ...] = ()
        if gives:
            self.flags += 1
            self.carry = Flag(self.flags, "C")
            given = (self.carry,)
        self.out.append(Op(name, args, takes=(takes,) if takes else (), gives=given))


def ascending(registers: Sequence[str]) -> list[tuple[str, ...]]:
    """Registers in runs that ascend."""
    runs: list[list[str]] = []
    for register in registers:
        if runs and runs[-1][-1] < register:
            runs[-1].append(register)
        else:
            runs.append([register])
    return [tuple(run) for run in runs]


def wanted(ops: Sequence[Operation]) -> dict[int, Listed]:
    """For each value the list that its register will be in, if it or what is written over it is stored with others."""
    found = lists(ops)
    for op in reversed(ops):
        if op.tied and op.kind not in ("ldm", "stm") and op.writes[0] in found:
            found.setdefault(op.reads[0], found[op.writes[0]])
    return found
