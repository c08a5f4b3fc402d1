"""What a kernel does last, where it is to leave nothing made from operands behind (`-p wipe=1`).

Its body is done, saved registers are not restored yet: so whatever it changed and need not keep is cleared, and of the
stack all that lies between what it saved and the lowest place that a run came to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from . import frame, measure
from .code import Op
from .idioms import idioms
from .interpret import STACK, Machine
from .table import Core, Isa

if TYPE_CHECKING:
    from .compile import Compiled

HEADING = "what was made from operands is cleared"


def ops(compiled: Compiled, core: Core) -> list[Op]:
    """The operations that clear what the compiled code leaves."""
    isa = compiled.isa
    saved = [register for register in compiled.written if register in isa.abi.saved]
    before, _ = idioms(isa).frame(saved, core, alone=compiled.alone)
    limbs = measure.deepest(compiled, core) // (isa.limb_bits // 8) - pushed(before, isa, core)
    every = [op for function in compiled.registers.functions for op in function.ops]
    left = [name for name in frame.written(every, isa, special=True) if name not in isa.abi.callee_saved]
    first, *others = idioms(isa).wipe([n for n in left if n not in isa.abi.zero_on_return], limbs, isa, core)
    return [replace(first, heading=HEADING), *others]


def pushed(before: Sequence[Op], isa: Isa, core: Core) -> int:
    """Limbs that the operations which open a function lower the stack pointer by."""
    machine = Machine(isa, core, 2 * STACK)
    machine.set_wide(machine.stack, 2 * STACK - isa.limb_bits // 8)
    top = machine.wide(machine.stack)  # 0 where there is no stack
    for op in before:
        frame.instruction(op, isa).meaning(isa).run(machine)
    return (top - machine.wide(machine.stack)) // (isa.limb_bits // 8)
