"""Turns of a loop, all at once: where a turn only adds to sums, and moves pointers and a counter by constants.

What a number of so many bits is after all turns is what it was before, and what all turns have added to it, but for
what runs over in between; so it is split into digits once.  Where each turn reads follows from where the first one
does.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from .held import Event, Refused
from .instructions import Instructions
from .linear import ONE, Form, combine
from .meaning import LOST
from .stretch import Addition, Reading, Stretch, Sum, Unfit, Values, ZeroCheck, form
from .symbolic import State
from .table import Isa

MOST = 4096  # turns


@dataclass
class Grows:
    """An addition to what some slots hold: that, and what each turn adds."""

    addition: Addition
    own: Sum
    more: Sum

    @property
    def change(self) -> int:
        """What each turn adds, where that is a constant."""
        return self.more.get((), 0)

    def run(self, state: State, values: Values, more: Form) -> None:
        """Do it once, with what all turns add."""
        state.atoms.here = self.addition.at
        total = combine([(1, form(state, values, self.own)), (1, more)])
        *digits, top = self.addition.digits
        low, high = state.atoms.range(total)
        width = 1  # of a pointer, or a count, all that runs over is dropped
        if not state.atoms.is_public(total):
            if low < 0 or top.sign < 0:
                raise Refused("takes away from what is not known")
            width = max(1, (high >> self.addition.below).bit_length())
        widths, signs = [*(digit.width for digit in digits), width], [*(digit.sign for digit in digits), top.sign]
        found = state.digits(total, widths, signs, [*(digit.slot for digit in digits), LOST])
        values.update((digit.value, value) for digit, value in zip(digits, found, strict=False))


@dataclass
class Laps:
    """A loop: the stretch that is its turn, and the branch back at an address, which asks a flag whether a counter is
    zero; `strides` are those sums to which each turn adds no more than a constant, `steps` what the addresses that it
    reads change by."""

    stretch: Stretch
    at: int
    flag: str
    test: ZeroCheck
    counter: Grows
    strides: list[Grows]
    sums: list[Grows]
    steps: list[tuple[Reading, int]]

    def turns(self, state: State) -> int:
        """How many there are, 0 where that is not known."""
        before = state.atoms.reduce(form(state, self.stretch.values(state), self.counter.own), state.fixed)
        if not before.keys() <= {ONE}:
            return 0
        size, first = 1 << self.counter.addition.below, before.get(ONE, 0)
        return next((turn for turn in range(1, MOST) if (first + turn * self.counter.change) % size == 0), 0)

    def run(self, state: State, turns: int) -> None:
        """All turns.  Raises Refused, as do single instructions."""
        before = self.stretch.values(state)
        values = dict(before)
        places = self.places(state, values)
        if any(state.outside(buffer, offset + (turns - 1) * step) for buffer, offset, step in places):
            raise Refused("reads outside a buffer")
        more: list[list[tuple[int, Form]]] = [[] for _ in self.sums]
        for turn in range(turns):
            for (reading, _), (buffer, offset, step) in zip(self.steps, places, strict=True):
                state.atoms.here = reading.at
                values[reading.value] = state.fetch(buffer, offset + turn * step)
            for terms, grows in zip(more, self.sums, strict=True):
                terms.append((1, form(state, values, grows.more)))
            state.events.append(Event(self.at, "branch", self.flag, int(turn == turns - 1)))
        for grows in self.strides:
            grows.run(state, values, state.constant(turns * grows.change))
        for terms, grows in zip(more, self.sums, strict=True):
            grows.run(state, values, combine(terms))
        self.test.run(state, values)
        self.stretch.leave(state, values)

    def places(self, state: State, values: Values) -> list[tuple[str, int, int]]:
        """Where the first turn reads, and by how many limbs each is further on than the one before."""
        size = state.contract.isa.limb_bits // 8
        found: list[tuple[str, int, int]] = []
        strides = {id(grows.addition) for grows in self.strides}
        steps = {id(reading): step for reading, step in self.steps}
        for step in self.stretch.steps:
            if id(step) in strides:
                step.run(state, values)
            elif isinstance(step, Reading):
                state.atoms.here = step.at
                change = steps[id(step)]
                if change % size:
                    raise Refused("moves by less than a limb")
                found.append((*state.locate(form(state, values, step.address)), change // size))
        return found


def laps(stretch: Stretch, code: Instructions) -> Laps | None:
    """The loop whose turn a stretch is, if it is one that can be done at once."""
    instr = code.at(stretch.end)
    if instr.insn.control[:1] != ("branch",) or instr.insn.control[2:] != ("0",):
        return None
    if code.target(stretch.end) != stretch.addresses[0]:
        return None
    try:
        return _Loop(stretch, code.isa, code.isa.slots[instr.insn.control[1]]).laps(stretch.end, instr.insn.control[1])
    except Unfit:
        return None


class _Loop:
    """Looks at a stretch that is followed by a branch back to it.  Raises Unfit."""

    def __init__(self, stretch: Stretch, isa: Isa, flag: int) -> None:
        self.stretch, self.flag = stretch, flag
        self.beyond = 1 << (isa.address_limbs * isa.limb_bits)  # addresses are less
        self.same = {value for slot, value in stretch.inputs.items() if slot not in stretch.slots}

    def laps(self, at: int, flag: str) -> Laps:
        steps = self.stretch.steps
        readings = [step for step in steps if isinstance(step, Reading)]
        grows = [self.grows(step) for step in steps if isinstance(step, Addition)]
        tests = [step for step in steps if isinstance(step, ZeroCheck)]
        if len(tests) != 1 or len(readings) + len(grows) + 1 < len(steps):
            raise Unfit
        test = tests[0]
        if test.flag is not None or self.stretch.slots[self.flag] != {(test.value,): 1}:
            raise Unfit
        strides = [each for each in grows if each.more.keys() <= {()}]
        sums = [each for each in grows if each not in strides]
        counter = next((each for each in strides if test.of == self.left(each)), None)
        if counter is None:
            raise Unfit
        read = self.same | {reading.value for reading in readings}
        for each in sums:
            if any(coefficient < 0 or not read.issuperset(key) for key, coefficient in each.more.items()):
                raise Unfit
        tops = {each.addition.digits[-1].value for each in grows}
        slots = {slot: self.known(terms, tops) for slot, terms in self.stretch.slots.items()}
        known = read | {digit.value for each in grows for digit in each.addition.digits[:-1]} | {test.value}
        if any(not known.issuperset(key) for terms in slots.values() for key in terms or ()):
            raise Unfit
        moves = [(reading, self.moves(reading.address, strides)) for reading in readings]
        return Laps(replace(self.stretch, slots=slots), at, flag, test, counter, strides, sums, moves)

    def grows(self, addition: Addition) -> Grows:
        """What an addition adds to what its own digits are in the end, all but the highest, which must be dropped."""
        *digits, top = addition.digits
        own: Sum = {}
        for digit, weight in zip(digits, addition.weights(), strict=False):
            slots = [slot for slot, terms in self.stretch.slots.items() if terms == {(digit.value,): 1}]
            inputs = [self.stretch.inputs[slot] for slot in slots if slot in self.stretch.inputs]
            if len(inputs) != 1 or digit.sign < 0:
                raise Unfit
            own[inputs[0],] = weight
        if not digits or self.used(top.value) or any(addition.terms.get(key) != weight for key, weight in own.items()):
            raise Unfit
        return Grows(addition, own, {key: value for key, value in addition.terms.items() if key not in own})

    def known(self, terms: Sum | None, tops: Set[int]) -> Sum | None:
        """What is left somewhere, None where it is a highest digit, which is that of the last turn alone."""
        return None if terms is None or any(not tops.isdisjoint(key) for key in terms) else terms

    def used(self, value: int) -> bool:
        return any(value in key for step in self.stretch.steps for terms in step.sums() for key in terms)

    def left(self, grows: Grows) -> Sum:
        """The number that its digits are."""
        digits = grows.addition.digits[:-1]
        return {(digit.value,): weight for digit, weight in zip(digits, grows.addition.weights(), strict=False)}

    def moves(self, address: Sum, strides: Sequence[Grows]) -> int:
        """By how much an address changes from turn to turn, in bytes."""
        rest, change = dict(address), 0
        for grows in strides:
            for number in (grows.own, self.left(grows)):
                factor = rest.get(next(iter(number)), 0)
                if factor and all(rest.get(key) == factor * weight for key, weight in number.items()):
                    if (factor << grows.addition.below) % self.beyond:
                        raise Unfit  # what runs over would be a part of the address
                    change += factor * grows.change
                    rest = {key: value for key, value in rest.items() if key not in number}
        if any(not self.same.issuperset(key) for key in rest):
            raise Unfit
        return change
