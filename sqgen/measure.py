"""Cycles of compiled code, before it is proved."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

from . import frame, interpret, timing
from .contract import Contract
from .encode import Instr, decode
from .statements import Store
from .table import Core, Isa
from .timing import Price

if TYPE_CHECKING:
    from .compile import Compiled


def price(compiled: Compiled, core: Core) -> Price:
    """Cycles of a call and of its body: of all instructions where each runs once, else what a run takes."""
    isa, plan = compiled.isa, compiled.plan
    if compiled.straight:
        path = tuple(itertools.accumulate((line.instr.insn.size for line in compiled.lines[:-1]), initial=0))
    else:
        contract = Contract(plan.op, plan.limbs, isa, compiled.alone)
        _, path = interpret.trace(compiled.image, contract, core, (0,) * (len(contract.buffers) - 1))
    return timing.price(isa, core, compiled.image, path)


def masked(image: bytes, contract: Contract, core: Core, entry: int = 0) -> int:
    """Cycles for which interrupts are off at most, 0 for code that leaves them alone.

    They count from behind the instruction that turns interrupts off to the end of the one that gives them back.
    """
    flag = contract.isa.interrupt_enable
    if not flag:
        return 0
    run = interpret.Run(contract, core)
    run.start((0,) * (len(run.places) - 1))
    machine, slot = run.machine, contract.isa.slots[flag]
    machine.slots[slot] = 1
    longest = since = 0
    position: int | None = entry
    while position is not None:
        allowed = machine.slots[slot]
        position = machine.step(image, position)
        if allowed:
            since = machine.cycles
        else:
            longest = max(longest, machine.cycles - since)
    return longest


def stack(compiled: Compiled, core: Core) -> int:
    """Bytes below the return address: what the prologue pushes, or what a run takes where that is not all."""
    isa = compiled.isa
    if compiled.straight and not any(frame.moves_stack(line.instr.insn, isa) for line in compiled.lines):
        return sum(map(functools.partial(_saved, isa), (line.instr for line in compiled.lines))) * (isa.limb_bits // 8)
    return deepest(compiled, core)


def deepest(compiled: Compiled, core: Core) -> int:
    """The same, whatever the code: what a run takes, looked at where it writes; a stack pointer may be half written
    between."""
    isa = compiled.isa
    run = interpret.Run(Contract(compiled.plan.op, compiled.plan.limbs, isa, compiled.alone), core)
    machine = run.machine
    run.start((0,) * (len(run.places) - 1))
    top = lowest = machine.wide(machine.stack)
    position: int | None = 0
    while position is not None:
        insn = decode(isa, compiled.image, position).insn
        position = machine.step(compiled.image, position)
        if insn.kind == "store" or insn.control[:1] == ("call",):
            lowest = min(lowest, machine.wide(machine.stack))
    return top - lowest


def _saved(isa: Isa, instr: Instr) -> int:
    """Limbs that an instruction saves."""
    stores = [statement for statement in instr.insn.statements if isinstance(statement, Store)]
    places = instr.places(isa)
    return sum(len(places.get(store.value, (0,))) for store in stores) if instr.insn.frame == "save" else 0
