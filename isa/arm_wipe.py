"""Clearing what a kernel for Cortex-M leaves: stack, registers, those of the floating point unit, flags.

Zeros are pushed over the stack, some at a time, so that they never lie below its pointer, which is then set back.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Op
from sqgen.table import Core, Isa

from .arm_stack import moved

ZEROS = ("r0", "r1", "r2", "r3")  # what is pushed at a time


def wipe(registers: Sequence[str], limbs: int, isa: Isa, core: Core) -> list[Op]:
    """Clear registers, so many words below the stack pointer, and all flags: what is left is those of 0 - 0."""
    low = sorted({"r0", *ZEROS[:limbs], *(name for name in registers if name in isa.classes["low"].registers)})
    high = [name for name in registers if name in isa.registers and name not in low]
    return [
        *(Op("movs_i", (register, 0)) for register in low),
        *stack(limbs),
        *(Op("vmov_in", (name, "r0")) for name in registers if name not in isa.registers),
        *(Op("mov", (register, "r0")) for register in high),
        Op("subs", ("r0", "r0", "r0")),
    ]


def stack(limbs: int) -> list[Op]:
    """Push so many zeros, and take them back."""
    pushes = [Op("push", (ZEROS[: min(len(ZEROS), limbs - at)],)) for at in range(0, limbs, len(ZEROS))]
    return [*pushes, *moved("add_sp", limbs)]
