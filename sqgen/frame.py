"""After allocation: what the ABI wants saved is saved, and the function returns."""

from __future__ import annotations

from collections.abc import Sequence

from .code import Op
from .encode import Instr
from .statements import Equation, Load, Logic
from .table import Insn, Isa


def written(ops: Sequence[Op], isa: Isa) -> tuple[str, ...]:
    """Registers that the operations write, in register order."""
    names = {slot: name for name, slot in isa.slots.items()}
    found: set[int] = set()
    for op in ops:
        if op.insn not in isa.insns or isa.insns[op.insn].control:
            continue
        instr = Instr(isa.insns[op.insn], tuple(arg for arg in op.args if isinstance(arg, str | int)))
        places = instr.places(isa)
        for name in _outputs(instr.insn):
            found.update(places[name])
    return tuple(names[slot] for slot in sorted(found) if names[slot] in isa.registers)


def _outputs(insn: Insn) -> list[str]:
    """Primed names in the instruction's meaning, without the prime."""
    outs: list[str] = []
    for statement in insn.statements:
        if isinstance(statement, Equation):
            outs += [digit.name for digit in statement.digits]
        elif isinstance(statement, Load | Logic):
            outs.append(statement.out)
    return [name[:-1] for name in outs if name.endswith("'")]
