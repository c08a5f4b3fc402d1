"""What a kernel leaves behind: places that on return may hold what was made from operands.

The path is one for all operands, and so are addresses.  So one run is enough, on numbers of which some are marked: a
limb of an operand is, and so is whatever an instruction computes from one that is.  Only what does not depend on a
number counts as clean although that was used: a limb less itself, or by exclusive or with itself, and products and
masks with zero.
"""

from __future__ import annotations

import copy
import functools
import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from . import frame
from .contract import Contract
from .encode import Instr, decode
from .hanging import Hangs, Slots
from .interpret import Machine, Run
from .table import Core, Isa

LONGEST = 2000  # instructions of an arm, which ends where paths meet again


class Secret(int):
    """A number that was made from operands."""

    def __xor__(self, other: int) -> Secret:
        return Secret(int(self) ^ other)


@dataclass(frozen=True)
class Residue:
    """What may hold something made from operands on return: `stack`, bytes below the place that the stack pointer then
    has, by their distance from there in bytes, 1 for the first; `registers`, and whether flags, in the table's order;
    the titles of `devices`."""

    stack: tuple[int, ...]
    registers: tuple[str, ...]
    flags: bool
    devices: tuple[str, ...]

    @property
    def nothing(self) -> bool:
        return not (self.stack or self.registers or self.flags or self.devices)

    @property
    def claim(self) -> dict[str, object]:
        """As a manifest has it: of the stack how many bytes."""
        return {
            "stack": len(self.stack),
            "registers": list(self.registers),
            "flags": self.flags,
            "devices": list(self.devices),
        }

    def text(self) -> str:
        """In words, for people."""
        size = f"{len(self.stack)} bytes of the stack below its pointer"
        places = [*self.registers, *(["flags"] if self.flags else []), *self.devices, *([size] if self.stack else [])]
        return f"what was made from operands may be in {', '.join(places)}" if places else "nothing made from operands"


def residue(image: bytes, contract: Contract, core: Core, paths: Sequence[Sequence[int]], entry: int = 0) -> Residue:
    """What is left by any of the paths of proved code: offsets in bytes from the entry of what is executed."""
    found = [left(machine) for machine in _walked(image, contract, core, paths, entry)]
    isa = contract.isa
    among = {name for each in found for name in each.registers}
    titles = {title for each in found for title in each.devices}
    return Residue(
        tuple(sorted({at for each in found for at in each.stack})),
        tuple(name for name in (*isa.registers, *isa.special) if name in among),
        any(each.flags for each in found),
        tuple(device.title for device in isa.devices.values() if device.title in titles),
    )


def _walked(
    image: bytes, contract: Contract, core: Core, paths: Sequence[Sequence[int]], entry: int
) -> Iterator[_Marking]:
    """The machines at the ends of all paths, wherever branches on operands would have led: of machines of which one has
    marked all that the other has, that one."""
    run = Run(contract, core, _Marking)
    machine = run.machine
    assert isinstance(machine, _Marking)
    run.start((0,) * (len(run.places) - 1))
    for name in list(run.places)[1:]:
        machine.marked.update(range(run.places[name], run.places[name] + run.lengths[name]))
    machine.top = machine.wide(machine.stack) + machine.isa.stack_free
    machine.floor = max(run.places[name] + run.lengths[name] for name in run.places)
    waiting = [(machine, [_Way(tuple(path), 0) for path in paths])]
    while waiting:
        machine, ways = waiting.pop()
        steps = _together(ways)
        for at in ways[0].coming(steps):
            machine.step(image, entry + at)
        ways = [way.later(steps) for way in ways]
        if all(way.over for way in ways):
            yield machine
        else:
            waiting += _met(machine, image, entry, ways)


class _Way(NamedTuple):
    """A path, and the number of its steps that were walked."""

    path: tuple[int, ...]
    at: int

    @property
    def over(self) -> bool:
        return self.at == len(self.path)

    def coming(self, steps: int | None = None) -> tuple[int, ...]:
        """The next steps, all if nothing is said."""
        return self.path[self.at : None if steps is None else self.at + steps]

    def later(self, steps: int) -> _Way:
        return _Way(self.path, self.at + steps)


def _together(ways: Sequence[_Way]) -> int:
    """How many steps all ways go together."""
    first, *others = [way.coming() for way in ways]
    return min([len(first), *(_alike(first, other) for other in others)])


def _alike(one: Sequence[int], other: Sequence[int]) -> int:
    """How many steps two paths begin with that are the same."""
    parted = itertools.compress(itertools.count(), map(operator.ne, one, other))
    return next(parted, min(len(one), len(other)))


def _met(machine: _Marking, image: bytes, entry: int, ways: Sequence[_Way]) -> list[tuple[_Marking, list[_Way]]]:
    """Walk ways that part here to where they meet, or else to their ends: the machines there, and the ways that go on
    from each."""
    ahead = [way.coming(LONGEST) for way in ways]
    common = frozenset(ahead[0]).intersection(*ahead[1:])
    meet = next((at for at in ahead[0] if at in common), None)
    arms: dict[tuple[int, ...], list[_Way]] = {}
    for way, its in zip(ways, ahead, strict=True):
        arm = way.coming() if meet is None else its[: its.index(meet)]
        arms.setdefault(arm, []).append(way.later(len(arm)))
    found: list[tuple[_Marking, list[_Way]]] = []
    for arm, after in arms.items():
        twin = machine.twin()
        for at in arm:
            twin.step(image, entry + at)
        for index, (other, its_ways) in enumerate(found):
            kept = other if other.covers(twin) else twin if twin.covers(other) else None
            if kept:
                found[index] = (kept, its_ways + after)
                break
        else:
            found.append((twin, after))
    return [(twin, list({way.path[way.at :]: way for way in after}.values())) for twin, after in found]


def left(machine: _Marking) -> Residue:
    """What is marked in a machine."""
    isa = machine.isa

    marked = {name for name in isa.wipeable if isinstance(machine.slots[isa.slots[name]], Secret)}
    devices = [isa.devices[name] for name in machine.core.devices]
    return Residue(
        tuple(machine.top - at for at in machine.marked if machine.floor <= at < machine.top),
        tuple(name for name in (*isa.registers, *isa.special) if name in marked),
        not marked.isdisjoint(isa.flags),
        tuple(device.title for device in devices if not marked.isdisjoint(device.slots)),
    )


class _Sums(NamedTuple):
    """What an instruction reads that only makes digits of sums: slots; and what it writes, with what each hangs on."""

    read: tuple[int, ...]
    written: tuple[tuple[int, Slots], ...]
    multiplies: bool


def _sums(instr: Instr, isa: Isa) -> _Sums | None:
    """None for another instruction."""
    hangs = Hangs.of(instr, isa)
    slots = hangs.memory - 1  # that is none of them: what hangs on no slot is the same whatever these hold
    if hangs.apart or not all(each & hangs.made and each & slots for each in hangs.written.values()):
        return None
    every = functools.reduce(operator.or_, hangs.written.values(), 0)
    return _Sums(
        tuple(slot for slot in range(len(isa.slots)) if every >> slot & 1),
        tuple(hangs.written.items()),
        hangs.multiplies,
    )


class _Marking(Machine):
    """A processor that marks what is made from operands: numbers in slots, and bytes of memory.

    `top` is where the caller's stack ends, `floor` the lowest address at which a kernel's stack may be.
    """

    def __init__(self, isa: Isa, core: Core, memory_bytes: int) -> None:
        super().__init__(isa, core, memory_bytes)
        self.marked: set[int] = set()
        self.top = self.floor = 0
        self.known: dict[int, Instr] = {}  # by identity: what was executed, by all machines that go on from one
        self.sums: dict[int, _Sums | None] = {}  # and what it does, where that was asked for

    def twin(self) -> _Marking:
        """A machine that goes on from here by itself."""
        twin = copy.copy(self)
        twin.bus = copy.copy(self.bus)
        twin.slots, twin.memory, twin.marked = list(self.slots), self.memory[:], set(self.marked)
        twin.frames, twin.links = dict(self.frames), list(self.links)
        return twin

    def covers(self, other: _Marking) -> bool:
        """Whether this one will have marked whatever the other one will: it has marked as much or more, all else is the
        same, and where two slots hold one number here, of which no difference is left, they do there."""
        if self.bus or (self.frames, self.links, self.conditions) != (other.frames, other.links, other.conditions):
            return False
        pairs = list(zip(self.slots, other.slots, strict=True))
        if any(mine != its or self.secret(its) for mine, its in pairs if not self.secret(mine)):
            return False
        known: dict[int, int] = {}
        if any(known.setdefault(id(mine), id(its)) != id(its) for mine, its in pairs if self.secret(mine)):
            return False
        changed = (at for at, pair in enumerate(zip(self.memory, other.memory, strict=True)) if pair[0] != pair[1])
        return self.marked >= other.marked and self.marked.issuperset(changed)

    # ---- the domain of `Meaning.run` ------------------------------------------------------------------------

    def linear(self, terms: Sequence[tuple[int, int]]) -> int:
        total = super().linear(terms)
        factors: dict[int, int] = {}  # of each marked number, which is itself and no other of the same value
        for coefficient, value in terms:
            if isinstance(value, Secret):
                factors[id(value)] = factors.get(id(value), 0) + coefficient
        return Secret(total) if any(factors.values()) else total

    def product(self, left: int, right: int) -> int:
        both = super().product(left, right)
        zero = any(value == 0 and not isinstance(value, Secret) for value in (left, right))
        return both if zero or not self.secret(left, right) else Secret(both)

    def digits(self, value: int, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]) -> list[int]:
        found = super().digits(value, widths, signs, slots)
        return [Secret(digit) for digit in found] if self.secret(value) else found

    def logic(self, op: str, left: int, right: int) -> int:
        found = super().logic(op, int(left), int(right))
        cleared = op == "&" and any(value == 0 and not isinstance(value, Secret) for value in (left, right))
        same = op == "^" and left is right
        return found if cleared or same or not self.secret(left, right) else Secret(found)

    def zero(self, value: int, also: int | None) -> int:
        found = super().zero(value, also)
        return Secret(found) if self.secret(value, also) else found

    def load(self, address: int) -> int:
        if self.bus and address < self.bus.top:
            return cast(int, self.bus.load(address, self))
        found = super().load(address)
        return found if self.marked.isdisjoint(self.span(address)) else Secret(found)

    def store(self, address: int, value: int) -> None:
        super().store(address, value)
        mark = self.marked.update if self.secret(value) else self.marked.difference_update
        mark(self.span(address))

    def span(self, address: int) -> range:
        """The addresses of a limb."""
        return range(address, address + self.isa.limb_bits // 8)

    @staticmethod
    def secret(*values: int | None) -> bool:
        return any(isinstance(value, Secret) for value in values)

    # ---- running ------------------------------------------------------------------------------------------------

    def mixed(self, sums: _Sums) -> bool:
        """Whether all that an instruction writes was made from marked numbers, no two of which are the same one; then
        it is marked, and need not be worked out."""
        slots = self.slots
        marked = [slot for slot in sums.read if isinstance(slots[slot], Secret)]
        if len({id(slots[slot]) for slot in marked}) < len(marked):
            return False
        if len(marked) < len(sums.read):
            bits = sum(1 << slot for slot in marked)
            if sums.multiplies or not all(bits & hangs for _, hangs in sums.written):
                return False
        for slot, _ in sums.written:
            slots[slot] = Secret(0)
        return True

    def step(self, image: bytes, at: int) -> int | None:
        """The same without its cycles, which only devices ask for."""
        instr = decode(self.isa, image, at)
        if self.bus or self.conditions or instr.insn.control:
            return super().step(image, at)
        sums = self.done_before(instr)
        if sums is None or not self.mixed(sums):
            self.execute(instr)
        return at + instr.insn.size

    def done_before(self, instr: Instr) -> _Sums | None:
        """What an instruction does that was executed before, wherever it stands: what is met once is not worth a closer
        look.  Bytes that are the same are decoded to one and the same instruction."""
        key = id(instr)
        if key not in self.known:
            self.known[key] = instr
            return None
        if key not in self.sums:
            self.sums[key] = _sums(instr, self.isa)
        return self.sums[key]

    def conditional(self, instr: Instr) -> None:
        """What a condition decides on is made from operands where that is, whether it is executed or not."""
        flag, _ = self.conditions[0]
        marked = self.secret(self.slots[self.isa.slots[flag]])
        super().conditional(instr)
        places = instr.places(self.isa)
        for slot in (slot for name in frame.outputs(instr.insn) for slot in places[name]) if marked else ():
            self.slots[slot] = Secret(self.slots[slot])

    def enter(self, following: int) -> None:
        """A return address is none of the operands'."""
        super().enter(following)
        if not self.isa.abi.link:
            stack = self.wide(self.stack) + self.isa.stack_free
            self.marked.difference_update(range(stack, stack + self.core.pc_limbs * (self.isa.limb_bits // 8)))
