"""Cycles of compiled code, before it is proved."""

from __future__ import annotations

import itertools

from . import frame, interpret, timing
from .compile import Compiled
from .contract import Contract
from .encode import decode
from .table import Core
from .timing import Price


def price(compiled: Compiled, core: Core) -> Price:
    """Cycles of a call and of its body: of all instructions where each runs once, else what a run takes."""
    isa, plan = compiled.isa, compiled.plan
    if compiled.straight:
        path = tuple(itertools.accumulate((line.instr.insn.size for line in compiled.lines[:-1]), initial=0))
    else:
        contract = Contract(plan.op, plan.limbs, isa)
        _, path = interpret.trace(compiled.image, contract, core, (0,) * (len(contract.buffers) - 1))
    return timing.price(isa, core, compiled.image, path)


def stack(compiled: Compiled, core: Core) -> int:
    """Bytes below the return address: what the prologue pushes, or what a run takes where that is not all.

    A run is looked at where it writes: a stack pointer may be half written between.
    """
    isa = compiled.isa
    if compiled.straight and not any(frame.moves_stack(line.instr.insn, isa) for line in compiled.lines):
        return sum(line.instr.insn.frame == "save" for line in compiled.lines) * (isa.limb_bits // 8)
    run = interpret.Run(Contract(compiled.plan.op, compiled.plan.limbs, isa), core)
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
