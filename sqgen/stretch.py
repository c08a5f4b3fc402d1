"""A stretch: instructions in a row, in a loop, that a proof has to walk over and over.

Its instructions are recorded once, as steps on values that stand for what registers hold: their meanings are run on
sums of such values.  `fusing` then makes one step of additions that only hand carries, or halves of a product, to each
other.  A walk does what is left, and need not look at the instructions again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from .encode import DecodeError, Instr
from .held import Refused, Value
from .instructions import Instructions
from .linear import ONE, Form, combine
from .symbolic import State
from .table import Isa

Key = tuple[int, ...]  # values that are multiplied: none for a constant, one, or two
Sum = dict[Key, int]
Values = dict[int, Value]  # of the values that there are by now

MOST = 512  # instructions in a stretch


class Unfit(Exception):
    """An instruction does what is not done at once with others."""


class Digit(NamedTuple):
    """A digit of a sum: its value, its bits, its sign, and where it goes."""

    value: int
    width: int
    sign: int
    slot: int


@dataclass(eq=False)
class Addition:
    """A sum that is split into digits, the lowest first, by the instruction at an address."""

    at: int
    terms: Sum
    digits: list[Digit]

    def run(self, state: State, values: Values) -> None:
        state.atoms.here = self.at
        made, widths, signs, slots = self.columns
        values.update(zip(made, state.digits(form(state, values, self.terms), widths, signs, slots), strict=True))

    @functools.cached_property
    def columns(self) -> list[tuple[int, ...]]:
        """The values of the digits, their bits, signs and slots, as they are when it is run for the first time."""
        return [*zip(*self.digits, strict=True)]

    def sums(self) -> list[Sum]:
        return [self.terms]

    def weights(self) -> list[int]:
        """Of the digits in the sum."""
        found, below = [], 0
        for digit in self.digits:
            found.append(digit.sign << below)
            below += digit.width
        return found

    @property
    def below(self) -> int:
        """Bits below the highest digit."""
        return sum(digit.width for digit in self.digits[:-1])


@dataclass(eq=False)
class Reading:
    at: int
    address: Sum
    value: int

    def run(self, state: State, values: Values) -> None:
        state.atoms.here = self.at
        values[self.value] = state.load(form(state, values, self.address))

    def sums(self) -> list[Sum]:
        return [self.address]


@dataclass(eq=False)
class Writing:
    at: int
    address: Sum
    limb: Sum

    def run(self, state: State, values: Values) -> None:
        state.atoms.here = self.at
        state.store(form(state, values, self.address), held(state, values, self.limb))

    def sums(self) -> list[Sum]:
        return [self.address, self.limb]


@dataclass(eq=False)
class Bitwise:
    at: int
    op: str
    left: Sum
    right: Sum
    value: int

    def run(self, state: State, values: Values) -> None:
        state.atoms.here = self.at
        left, right = (held(state, values, each) for each in (self.left, self.right))
        values[self.value] = state.logic(self.op, left, right)

    def sums(self) -> list[Sum]:
        return [self.left, self.right]


@dataclass(eq=False)
class ZeroCheck:
    """Whether a sum is zero, and a flag one where there is one."""

    at: int
    of: Sum
    flag: Sum | None
    value: int

    def run(self, state: State, values: Values) -> None:
        flag = None if self.flag is None else held(state, values, self.flag)
        values[self.value] = state.zero(form(state, values, self.of), flag)

    def sums(self) -> list[Sum]:
        return [self.of] if self.flag is None else [self.of, self.flag]


Step = Addition | Reading | Writing | Bitwise | ZeroCheck


def form(state: State, values: Values, terms: Sum) -> Form:
    """A sum as what it is in a state."""
    found = []
    for key, coefficient in terms.items():
        if len(key) == 1:
            found.append((coefficient, state.form(values[key[0]])))
        elif key:
            found.append((coefficient, state.product(values[key[0]], values[key[1]])))
        else:
            found.append((coefficient, {ONE: 1}))
    return combine(found)


def held(state: State, values: Values, terms: Sum) -> Value:
    """The same, but what a flag is said to be where it is just that."""
    if len(terms) == 1:
        ((key, coefficient),) = terms.items()
        if len(key) == 1 and coefficient == 1:
            return values[key[0]]
    return form(state, values, terms)


def added(terms: Sequence[tuple[int, Sum]]) -> Sum:
    """sum(coefficient * sum)."""
    total: Sum = {}
    for coefficient, each in terms:
        for key, value in each.items():
            total[key] = total.get(key, 0) + coefficient * value
    return {key: value for key, value in total.items() if value}


class Recorder:
    """The domain on which meanings are run to record them: see `meaning.Domain`."""

    def __init__(self, isa: Isa, opaque: Set[int], constants: Mapping[int, int]) -> None:
        self.isa, self.opaque, self.constants = isa, opaque, constants
        self.at = 0
        self.steps: list[Step] = []
        self.inputs: dict[int, int] = {}  # slots that are read before they are written: their values
        self.slots: dict[int, Sum | None] = {}  # what is written, None of what is not known
        self.tops: list[int] = []  # what the values are at most

    def value(self, width: int) -> int:
        """A new value of so many bits."""
        self.tops.append((1 << width) - 1)
        return len(self.tops) - 1

    def read(self, slot: int) -> Sum:
        if slot in self.opaque:
            raise Unfit
        if slot not in self.slots:
            if slot in self.constants:
                return self.constant(self.constants[slot])
            if slot not in self.inputs:
                self.inputs[slot] = self.value(self.isa.widths[slot])
            return {(self.inputs[slot],): 1}
        found = self.slots[slot]
        if found is None:
            raise Unfit
        return found

    def write(self, slot: int, value: Sum) -> None:
        self.slots[slot] = value

    def constant(self, value: int) -> Sum:
        return {(): value} if value else {}

    def linear(self, terms: Sequence[tuple[int, Sum]]) -> Sum:
        return added(terms)

    def product(self, left: Sum, right: Sum) -> Sum:
        found = [
            (one * other, {tuple(sorted(mine + its)): 1}) for mine, one in left.items() for its, other in right.items()
        ]
        if any(len(key) > 2 for _, each in found for key in each):
            raise Unfit
        return added(found)

    def digits(self, value: Sum, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]) -> list[Sum]:
        found = [
            Digit(self.value(width), width, sign, slot) for width, sign, slot in zip(widths, signs, slots, strict=True)
        ]
        self.steps.append(Addition(self.at, value, found))
        return [{(digit.value,): 1} for digit in found]

    def logic(self, op: str, left: Sum, right: Sum) -> Sum:
        if op == "^" and left == right:
            return {}
        return self.made(self.isa.limb_bits, lambda value: Bitwise(self.at, op, left, right, value))

    def load(self, address: Sum) -> Sum:
        return self.made(self.isa.limb_bits, lambda value: Reading(self.at, address, value))

    def store(self, address: Sum, value: Sum) -> None:
        self.steps.append(Writing(self.at, address, value))

    def zero(self, value: Sum, also: Sum | None) -> Sum:
        return self.made(1, lambda flag: ZeroCheck(self.at, value, also, flag))

    def made(self, width: int, step: Callable[[int], Step]) -> Sum:
        value = self.value(width)
        self.steps.append(step(value))
        return {(value,): 1}


@dataclass
class Stretch:
    """What instructions at some addresses do, up to the one at `end`; `inputs`, `slots` and `tops` as in `Recorder`."""

    steps: list[Step]
    inputs: dict[int, int]
    slots: dict[int, Sum | None]
    tops: list[int]
    addresses: list[int]
    end: int
    constants: Mapping[int, int]  # what some slots hold that are read and not written

    def begins(self, state: State) -> bool:
        """Whether the state is one that it can be executed in."""
        return all(state.slots[slot] == state.constant(value) for slot, value in self.constants.items())

    def values(self, state: State) -> Values:
        """What the values are before the first step."""
        return {value: state.read(slot) for slot, value in self.inputs.items()}

    def run(self, state: State) -> None:
        values = self.values(state)
        for step in self.steps:
            step.run(state, values)
        self.leave(state, values)

    def leave(self, state: State, values: Values) -> None:
        """Let registers and flags hold what they do in the end; an unknown limb where that is not known."""
        for slot, terms in self.slots.items():
            if terms is not None:
                state.write(slot, held(state, values, terms))
            elif (width := state.contract.isa.widths[slot]) == 1:
                state.write(slot, None)
            else:
                state.write(slot, {state.atoms.new(0, (1 << width) - 1): 1})


def recorded(code: Instructions, state: State, at: int, allowed: Callable[[Instr], None]) -> Stretch | None:
    """The stretch that begins at an address, up to what goes elsewhere, moves the stack or is not allowed; None where
    that is soon.  What it only reads, and is a constant in the state, must be the same whenever it is executed."""
    found = record(code, state, at, allowed, {})
    read = {slot: state.slots[slot] for slot in found.inputs if slot not in found.slots}
    constants = {
        slot: value.get(ONE, 0) for slot, value in read.items() if isinstance(value, dict) and value.keys() <= {ONE}
    }
    return record(code, state, at, allowed, constants) if len(found.addresses) > 1 else None


def record(
    code: Instructions, state: State, at: int, allowed: Callable[[Instr], None], constants: Mapping[int, int]
) -> Stretch:
    """The same, with some constants, however short it is."""
    isa = code.isa
    recorder = Recorder(isa, state.opaque, constants)
    addresses: list[int] = []
    while len(addresses) < MOST:
        recorder.at, before = at, len(recorder.steps)
        try:
            instr = code.at(at)
            allowed(instr)
            meaning = instr.meaning(isa)
            if instr.insn.control or instr.insn.frame or not state.watched.isdisjoint(meaning.written):
                break
            meaning.run(recorder)
        except (DecodeError, Refused, Unfit):
            del recorder.steps[before:]
            break
        recorder.slots.update((isa.slots[flag], None) for flag in instr.insn.clobbers)
        addresses.append(at)
        at += instr.insn.size
    return Stretch(recorder.steps, recorder.inputs, recorder.slots, recorder.tops, addresses, at, constants)
