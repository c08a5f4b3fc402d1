"""After allocation: what the ABI wants saved is saved, and the function returns."""

from __future__ import annotations

from collections.abc import Sequence

from . import timing
from .code import Op
from .encode import Instr
from .idioms import idioms
from .statements import Equation, Load, Logic
from .table import Core, Insn, Isa

NOTHING = 2.0**-10  # of a cycle; all such sums are exact


def written(ops: Sequence[Op], isa: Isa, *, special: bool = False) -> tuple[str, ...]:
    """Registers that the operations write, in register order; a call writes the link register.  `special`: those that
    few instructions know, too, but for the stack pointer."""
    among = {*isa.registers, *(isa.special if special else ())} - {*isa.stack_registers}
    names = {slot: name for name, slot in isa.slots.items()}
    found: set[int] = set()
    distinct = {(op.insn, op.args): op for op in ops if op.insn in isa.insns}  # most stand there more than once
    for op in distinct.values():
        control = isa.insns[op.insn].control
        if control[:1] == ("call",) and isa.abi.link:
            found.add(isa.slots[isa.abi.link])
        if control:
            continue
        instr = instruction(op, isa)
        places = instr.places(isa)
        for name in outputs(instr.insn):
            found.update(places[name])
    return tuple(names[slot] for slot in sorted(found) if names[slot] in among)


def prices(isa: Isa, goal: str, core: Core | None = None) -> dict[str, float]:
    """Cycles that the use of a register costs where it must be saved and restored, on a core or the default one; where
    the body is all that counts, next to nothing, which decides between equals."""
    core = core or isa.core(isa.default_core)
    saved = [register for register in isa.registers if register in isa.abi.saved]
    if not saved:
        return {}
    each = _cycles(saved, isa, core) - _cycles(saved[:-1], isa, core)
    return dict.fromkeys(saved, each * NOTHING if goal == "speed" else each)


def _cycles(saved: Sequence[str], isa: Isa, core: Core) -> int:
    """What saving and restoring these takes, with the return."""
    before, after = idioms(isa).frame(saved, core)
    return sum(timing.costs(isa, core, [instruction(op, isa) for op in (*before, *after)]))


def instruction(op: Op, isa: Isa) -> Instr:
    """An operation on registers as the instruction that it is."""
    return Instr(isa.insns[op.insn], tuple(arg for arg in op.args if isinstance(arg, str | int | tuple)))


def moves_stack(insn: Insn, isa: Isa) -> bool:
    """Whether the instruction moves the stack pointer, and is none that saves or restores a register."""
    parts = (isa.stack_pointer, *isa.wide.get(isa.stack_pointer, ()))
    return not insn.frame and not set(outputs(insn)).isdisjoint(parts)


def outputs(insn: Insn) -> list[str]:
    """Primed names in the instruction's meaning, without the prime."""
    outs: list[str] = []
    for statement in insn.statements:
        if isinstance(statement, Equation):
            outs += [digit.name for digit in statement.digits]
        elif isinstance(statement, Load | Logic):
            outs.append(statement.out)
    return [name[:-1] for name in outs if name.endswith("'")]
