"""Clearing what an AVR kernel leaves: stack, registers, flags.

Zeros are pushed over the stack, so that they never lie below its pointer, which is then set back.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Label, Op
from sqgen.table import Core, Isa

from .avr_address import set_stack_pointer, stack_pointer_to

ZERO = "r1"  # where the body of a kernel ends
TURN = 8  # pushes in a turn of the loop
COUNT = "r24"


def wipe(registers: Sequence[str], limbs: int, isa: Isa, core: Core) -> list[Op]:
    """Clear registers, so many bytes below the stack pointer, and all flags: what is left is those of 0 - 0."""
    stack = [*stack_pointer_to("Z"), *zeros(limbs), *set_stack_pointer("Z")] if limbs else []
    others = {*registers, *(("r30", "r31") if limbs else ()), *((COUNT,) if limbs >= 2 * TURN else ())}
    cleared = [Op("eor", (register, register)) for register in sorted(others - {"r0"}, key=lambda name: int(name[1:]))]
    return [*stack, *cleared, Op("clt", ()), Op("sub", ("r0", "r0"))]


def zeros(limbs: int) -> list[Op]:
    """Push so many."""
    push = Op("push", (ZERO,))
    turns = limbs // TURN if limbs >= 2 * TURN else 0
    again = Label("wipe")
    loop = [Op("ldi", (COUNT, turns)), Op("label", (again,)), *[push] * TURN, Op("dec", (COUNT,)), Op("brne", (again,))]
    return [*(loop if turns else ()), *[push] * (limbs - TURN * turns)]
