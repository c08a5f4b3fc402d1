"""What a kernel does, seen from outside, instruction by instruction, and what its manifest promises beside it.

The machine is the interpreter of the table, whose lines are held against outside simulators.  Registers and memory hold
something else at every run; what may not change, be read or be written is looked at after every run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqgen.contract import Contract
from sqgen.interpret import GAP, STACK, Before, Machine, Run, harm, operands
from sqgen.oracles.interpreter_judge import followed
from sqgen.table import Core, Isa
from sqgen.timing import price

OVERLAPS = 8  # promised displacements that are tried of each operand, beside the ends of what is promised and 0


class Watching(Machine):
    """A machine that notes the addresses of all memory that it reads and writes."""

    def __init__(self, isa: Isa, core: Core, memory_bytes: int) -> None:
        super().__init__(isa, core, memory_bytes)
        self.accesses: list[tuple[str, int]] = []

    def load(self, address: int) -> int:
        self.accesses.append(("reads", address))
        return super().load(address)

    def store(self, address: int, value: int) -> None:
        self.accesses.append(("writes", address))
        super().store(address, value)

    def enter(self, following: int) -> None:
        super().enter(following)
        if not self.isa.abi.link:  # a return address that is pushed
            self.accesses.append(("writes", self.wide(self.stack) + self.isa.stack_free))


class Scene(Run):
    """Buffers so far apart that r may lie `shift` bytes above an operand, and meets no other."""

    def __init__(self, contract: Contract, core: Core, shift: Mapping[str, int]) -> None:
        super().__init__(contract, core, Watching)
        isa = contract.isa
        space = 2 * max(self.lengths.values()) + GAP
        first = min(self.places.values()) + space
        self.places = {name: first + index * space for index, name in enumerate(self.lengths)}
        for name, distance in shift.items():
            self.places["r"] = self.places[name] + distance
        self.machine = Watching(isa, core, first + len(self.lengths) * space + GAP + STACK)
        if self.machine.bus:
            self.machine.bus.alone = contract.alone


@dataclass(frozen=True)
class Seen:
    """One run: what is wrong with it, "" if nothing; instructions executed and addresses touched, in order; registers
    that hold something else than before; bytes of stack."""

    problem: str
    path: tuple[int, ...]
    accesses: tuple[tuple[str, int], ...]
    changed: frozenset[str]
    stack: int


def run(
    image: bytes, contract: Contract, core: Core, values: Sequence[int], *, seed: int, shift: Mapping[str, int]
) -> Seen:
    """Call the function at the start of `image` with junk from `seed` everywhere."""
    scene = Scene(contract, core, shift)
    scene.start(values)
    machine, isa = scene.machine, contract.isa
    assert isinstance(machine, Watching)
    junk(scene, seed)
    before = Before.of(scene)
    problem, path = followed(machine, image, 0)
    if problem:
        return Seen(problem, path, tuple(machine.accesses), frozenset(), 0)
    changed = frozenset(
        name for name in isa.registers if machine.slots[isa.slots[name]] != before.slots[isa.slots[name]]
    )
    own = [at for _, at in machine.accesses if _stack(scene, at)]
    problem = strayed(scene, before.top) or harm(scene, before, values)
    return Seen(problem, path, tuple(machine.accesses), changed, before.top - min(own, default=before.top))


def junk(scene: Run, seed: int) -> None:
    """Other contents of all registers that hold no argument, of flags and of the memory around the operands."""
    machine, isa = scene.machine, scene.machine.isa
    rng = random.Random(seed)
    given = {name for group in isa.abi.arguments for name in group} | {*isa.abi.zero_on_return, *machine.stack}
    for name, slot in isa.slots.items():
        if name not in given and name not in (isa.interrupt_enable, isa.abi.link):
            machine.slots[slot] = rng.getrandbits(isa.widths[slot])
    if isa.interrupt_enable:
        machine.slots[isa.slots[isa.interrupt_enable]] = 1
    places = [range(at, at + scene.lengths[name]) for name, at in scene.places.items() if name != "r"]
    kept = {at: machine.memory[at] for place in places for at in place}
    machine.memory[:] = rng.randbytes(len(machine.memory))
    for at, byte in kept.items():
        machine.memory[at] = byte


def _stack(scene: Run, address: int) -> bool:
    return address >= len(scene.machine.memory) - STACK


def inside(scene: Run, address: int) -> str:
    """The buffer that an address lies in, "" for none; r first."""
    found = (name for name, at in scene.places.items() if at <= address < at + scene.lengths[name])
    return next(found, "")


def strayed(scene: Run, top: int) -> str:
    """Where a run read or wrote that no kernel may, "" if nowhere."""
    machine = scene.machine
    assert isinstance(machine, Watching)
    low = machine.bus.top if machine.bus else 0
    for kind, at in machine.accesses:
        where = inside(scene, at)
        allowed = at < low or (_stack(scene, at) and at < top) or where == "r" or (kind == "reads" and where)
        if not allowed:
            return f"it {kind} {describe(scene, at, top)}"
    return ""


def describe(scene: Run, address: int, top: int) -> str:
    """An address in words."""
    if address >= top:
        return "the caller's stack"
    distances = {name: address - at for name, at in scene.places.items()}
    name = min(distances, key=lambda each: (distances[each] < 0, abs(distances[each])))
    return f"the byte at {name} {distances[name]:+d}"


def faults(image: bytes, contract: Contract, core: Core, manifest: Mapping[str, Any], runs: int) -> Iterator[str]:
    """Where the kernel does not do what its manifest says, or what none may do."""
    yield from unlike(alone(image, contract, core, runs), image, contract, core, manifest)
    yield from overlaps(image, contract, core, manifest, OVERLAPS)


def alone(image: bytes, contract: Contract, core: Core, runs: int) -> Sequence[Seen]:
    """So many runs with other operands, where r overlaps none: the same on cores that differ in cycles alone."""
    return [
        run(image, contract, core, values, seed=number, shift={})
        for number, values in enumerate(operands(contract, runs))
    ]


def unlike(
    runs: Sequence[Seen], image: bytes, contract: Contract, core: Core, manifest: Mapping[str, Any]
) -> Iterator[str]:
    """What the manifest does not say of these runs on a core."""
    paths = {seen.path for seen in runs if not seen.problem}
    cycles = {path: price(contract.isa, core, image, path).call for path in paths}
    for seen in runs:
        if seen.problem:
            yield seen.problem
        else:
            yield from one(seen, runs[0], cycles[seen.path], manifest)


def one(seen: Seen, first: Seen, cycles: int, manifest: Mapping[str, Any]) -> Iterator[str]:
    """The same of one run, which takes so many cycles, and of it beside the first one, whose operands were others."""
    kept = sorted(seen.changed - set(manifest["clobbers"]))
    if kept:
        yield f"it changes {kept[0]}, which the manifest does not name"
    if seen.stack != manifest["stack"]:
        yield f"it takes {seen.stack} bytes of stack, not {manifest['stack']}"
    if cycles != manifest["cycles"]["call"]:
        yield f"it takes {cycles} cycles, not {manifest['cycles']['call']}"
    if not manifest["branches"] and seen.path != first.path:
        yield "which instructions are executed depends on the operands"
    if seen.accesses != first.accesses:
        yield "which addresses are touched depends on the operands"


def overlaps(image: bytes, contract: Contract, core: Core, manifest: Mapping[str, Any], between: int) -> Iterator[str]:
    """Where an overlap that the manifest promises does not work: tried are the ends of what is promised, 0, and about
    so many between them."""
    size = contract.isa.limb_bits // 8
    *_, values = operands(contract, 12)
    for name, ranges in manifest["aliasing"].items():
        promised = [distance for low, high in ranges for distance in range(low, high + 1)]
        edges = {distance for pair in ranges for distance in pair} | ({0} & set(promised))
        some = sorted(edges | set(promised[:: max(1, len(promised) // between)]))
        for distance in some:
            seen = run(image, contract, core, values, seed=distance, shift={name: distance * size})
            if seen.problem:
                yield f"with r - {name} = {distance * size} bytes {seen.problem}"
