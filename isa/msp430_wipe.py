"""Clearing what a kernel for MSP430 leaves: the multiplier, stack, registers, flags.

The multiplier keeps the operands of its last product, and that: all of it is zero after a product of zeros.  The 32-bit
one multiplies zeros of either width, whatever the kernel did.  Zeros are pushed over the stack, so that they never lie
below its pointer, which is then set back.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Op
from sqgen.table import Core, Isa

from .msp430_writer import Writer

ZERO, COUNT = "r12", "r13"  # the first two arguments, of which nobody has need any more
TURN = 8  # pushes in a turn of the loop
LOOPED = 9 * TURN  # words from which on there is one: up to 8 turns the count would have other forms
SHORT, LONG = ("MPY", "OP2"), ("MPY32L", "MPY32H", "OP2L", "OP2H")  # what is written to multiply zero by zero
WIDTHS = {"mpy16": (SHORT,), "mpy32": (SHORT, LONG)}


def wipe(registers: Sequence[str], limbs: int, isa: Isa, core: Core) -> list[Op]:
    """Clear registers, so many words below the stack pointer, the multiplier, and all flags: what is left is those of
    0 - 0, or of the caller, where the frame restores these."""
    writer = Writer(isa, core)
    writer.emit("clr", ZERO)
    writer.hold()
    for ports in (ports for device in core.devices for ports in WIDTHS[device]):
        if ports == LONG:
            writer.emit("nop", comment="the product of 16 bits is not done yet")
        for port in ports:
            writer.emit("mov_ra", ZERO, writer.ports[port])
    writer.let_go()
    zeros(writer, limbs)
    writer.shift_stack(limbs)
    for register in registers:
        if register != ZERO:
            writer.emit("clr", register)
    writer.emit("sub_r", ZERO, ZERO)
    return writer.build.ops


def zeros(writer: Writer, limbs: int) -> None:
    """Push so many."""
    turns = limbs // TURN if limbs >= LOOPED else 0
    if turns:
        writer.emit("mov_i", COUNT, turns)
        again = writer.build.begin("wipe")
        for _ in range(TURN):
            writer.emit("push", ZERO)
        writer.emit("sub_1", COUNT)
        writer.build.mark("jne", again)
    for _ in range(limbs - TURN * turns):
        writer.emit("push", ZERO)
