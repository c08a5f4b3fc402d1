"""Cycles of compiled code, before it is proved."""

from __future__ import annotations

from . import interpret
from .compile import Compiled
from .contract import Contract
from .table import Core
from .timing import price


def cycles(compiled: Compiled, core: Core) -> int:
    """Cycles of a call: the sum of all instructions where each runs once, else what a run takes."""
    isa, plan = compiled.isa, compiled.plan
    if compiled.straight:
        return sum(isa.cycles(line.instr.insn, core) for line in compiled.lines)
    contract = Contract(plan.op, plan.limbs, isa)
    _, path = interpret.trace(compiled.image, contract, core, (0,) * (len(contract.buffers) - 1))
    return price(isa, core, compiled.image, path).call
