"""Cycles of compiled code, before it is proved."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import frame, interpret, timing
from .contract import Contract
from .encode import Instr, decode
from .route import route
from .statements import Store
from .table import Core, Isa
from .timing import Price

if TYPE_CHECKING:
    from .compile import Compiled

LARGE = 1 << 14  # bytes of code above which it is soon run, but not soon seen where it goes


def price(compiled: Compiled, core: Core) -> Price:
    """Cycles of a call and of its body: what a run takes, which loops alone have to be run for."""
    return timing.price(compiled.isa, core, compiled.image, _path(compiled.image, _contract(compiled), core))


def _contract(compiled: Compiled) -> Contract:
    """What runs of the code are made by."""
    return Contract(compiled.plan.op, compiled.plan.limbs, compiled.isa, compiled.alone)


@functools.lru_cache(maxsize=16)  # of the few that a request chooses among, some are asked for more than once
def _path(image: bytes, contract: Contract, core: Core) -> Sequence[int]:
    """The offsets in bytes of what is executed."""
    path: Sequence[int] | None = _without_loops(contract.isa, image)
    if path is None and len(image) <= LARGE:
        path = route(image, contract, core)
    if path is None:
        _, path = interpret.trace(image, contract, core, (0,) * (len(contract.buffers) - 1))
    return path


def _without_loops(isa: Isa, image: bytes) -> list[int] | None:
    """The offsets in bytes of what is executed by code that goes back in calls and returns alone, none of its branches
    taken, since its arms take equally long; None for other code."""
    at, path = 0, list[int]()
    returns: list[int] = []
    while True:
        instr = decode(isa, image, at)
        path.append(at)
        at += instr.insn.size
        kind = instr.insn.control[0] if instr.insn.control else ""
        if kind == "return":
            if not returns:
                return path
            at = returns.pop()
        if kind not in ("jump", "branch", "call"):
            continue
        target = at + next(iter(instr.immediates.values()))
        if kind == "call":
            returns.append(at)
            at = target
        elif target < at:
            return None
        elif kind == "jump":
            at = target


def stack(compiled: Compiled, core: Core) -> int:
    """Bytes below the return address: what the prologue pushes, or what a run takes where that is not all."""
    isa = compiled.isa
    if compiled.straight and not any(frame.moves_stack(line.instr.insn, isa) for line in compiled.lines):
        return sum(map(functools.partial(_saved, isa), (line.instr for line in compiled.lines))) * (isa.limb_bits // 8)
    return deepest(compiled, core)


def deepest(compiled: Compiled, core: Core) -> int:
    """The same, whatever the code: what a run takes, looked at where it writes; a stack pointer may be half written
    between."""
    return _deepest(compiled.image, _contract(compiled), core)


@functools.lru_cache(maxsize=16)
def _deepest(image: bytes, contract: Contract, core: Core) -> int:
    """The same of bytes."""
    run = interpret.Run(contract, core)
    machine = run.machine
    run.start((0,) * (len(run.places) - 1))
    top = lowest = machine.wide(machine.stack)
    position: int | None = 0
    while position is not None:
        insn = decode(contract.isa, image, position).insn
        position = machine.step(image, position)
        if insn.kind == "store" or insn.control[:1] == ("call",):
            lowest = min(lowest, machine.wide(machine.stack))
    return top - lowest


def _saved(isa: Isa, instr: Instr) -> int:
    """Limbs that an instruction saves."""
    stores = [statement for statement in instr.insn.statements if isinstance(statement, Store)]
    places = instr.places(isa)
    return sum(len(places.get(store.value, (0,))) for store in stores) if instr.insn.frame == "save" else 0
