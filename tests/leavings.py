"""What the tests of wiping share: kernels, and what two runs of one on different operands leave different."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqgen import kernel as kernels
from sqgen import methods
from sqgen.contract import Contract
from sqgen.errors import UserError
from sqgen.idioms import idioms
from sqgen.interpret import Machine, Run, follow, operands
from sqgen.kernel import Kernel
from sqgen.spec import spec
from sqgen.table import Core, Isa


class Left(NamedTuple):
    """Where two runs differ on return: bytes of the stack by their distance from its end, 1 for the first; slots by
    their names; other bytes, but for operands and result, by their addresses."""

    stack: set[int]
    slots: set[str]
    others: set[int]


@functools.cache
def made(isa: str, op: str, bits: int, method: str = "auto", core: str | None = None, **parameters: str) -> Kernel:
    """A proved kernel, as the command line makes it."""
    branches = parameters.get("signs") == "branched"
    return kernels.make(
        spec(isa, bits, op=op, method=method, core=core, parameters=parameters, allow_branches=branches)
    )


def able(which: Isa, op: str, limbs: int, method: str, core: str) -> bool:
    """Whether the instruction set's idioms form the method with what it takes by default."""
    try:
        plan = methods.plan(op, limbs, method, {})
    except UserError:
        return False
    return idioms(which).forms(plan, which.core(core))


def finished(image: bytes, contract: Contract, core: Core, values: Sequence[int]) -> Run:
    """A run to its end; what was there before is the same for all operands, and interrupts are on."""
    run = Run(contract, core)
    run.start((0,) * (len(run.places) - 1))
    isa, machine = contract.isa, run.machine
    if isa.interrupt_enable:
        machine.slots[isa.slots[isa.interrupt_enable]] = 1
    for name, value in zip(list(run.places)[1:], values, strict=True):
        at, length = run.places[name], run.lengths[name]
        machine.memory[at : at + length] = value.to_bytes(length, "little")
    for _ in follow(machine, image, 0):
        pass
    assert run.result() == values[0] * values[-1]
    return run


def differing(kernel: Kernel, runs: int = 8) -> Left:
    """Where runs on structured and random operands differ."""
    contract, core = kernel.spec.contract, kernel.spec.core
    found = Left(set(), set(), set())
    ends = [finished(kernel.compiled.image, contract, core, values) for values in operands(contract, runs)]
    for one, other in itertools.combinations(ends, 2):
        between(one, other, found)
    return found


def between(one: Run, other: Run, found: Left) -> None:
    """Where two runs differ, added to what was found."""
    isa = one.machine.isa
    mine, its = one.machine, other.machine
    found.slots.update(name for name, slot in isa.slots.items() if mine.slots[slot] != its.slots[slot])
    end = stack_end(mine)
    own = set(buffers(one))
    for at in (at for at, (a, b) in enumerate(zip(mine.memory, its.memory, strict=True)) if a != b and at not in own):
        if max(own) < at < end:
            found.stack.add(end - at)
        else:
            found.others.add(at)


def stack_end(machine: Machine) -> int:
    """Where the caller's stack begins."""
    return machine.wide(machine.stack) + machine.isa.stack_free


def buffers(run: Run) -> Iterator[int]:
    for name, at in run.places.items():
        yield from range(at, at + run.lengths[name])
