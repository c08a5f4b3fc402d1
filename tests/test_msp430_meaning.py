"""The meaning lines of MSP430's table against mspdebug's simulator, form by form, on random states."""

from __future__ import annotations

import random

import pytest
from msp430 import msp430

from sqgen.encode import Instr, encode
from sqgen.interpret import Machine
from sqgen.oracles import mspdebug
from sqgen.table import Operand, OperandValue

STATES = 12  # of each instruction
SIZE = 128  # bytes of memory, in the midst of which pointers stand
HERE = mspdebug.RAM + SIZE // 2
FLAGS = {"C": 1, "ZF": 2, "N": 4, "GIE": 8, "V": 0x100}  # bits of the status register
KNOWN = 0x010F  # all of these
NAMES = sorted(
    name for name, insn in msp430().insns.items() if not insn.control and name not in msp430().core("msp430").lacks
)
LIMBS = (0, 1, 2, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF)


def picked(operand: Operand, rng: random.Random) -> OperandValue:
    """A value of an operand: places in memory near the pointers."""
    if operand.cls:
        return rng.choice([register for register in operand.cls.registers if register != "sp" or rng.random() < 0.5])
    if operand.name in "AB":
        return mspdebug.RAM + 2 * rng.randrange(SIZE // 2)
    high = min(operand.high, 32) if operand.scale == 2 else operand.high
    return operand.low + operand.scale * rng.randrange((high - operand.low) // operand.scale + 1)


def limb(rng: random.Random) -> int:
    return rng.choice(LIMBS) if rng.random() < 0.5 else rng.randrange(1 << 16)


def state(instr: Instr, rng: random.Random, entry: int) -> mspdebug.Call:
    """Registers, flags and memory; what the instruction takes for an address is one."""
    registers = {name: limb(rng) for name in mspdebug.REGISTERS}
    registers["sp"] = HERE
    for operand, value in zip(instr.insn.operands, instr.operands, strict=True):
        if operand.name in "nm" and isinstance(value, str):
            registers[value] = HERE
    memory = bytearray(b"".join(limb(rng).to_bytes(2, "little") for _ in range(SIZE // 2)))
    if instr.insn.name == "pop_sr":  # no low-power mode
        memory[SIZE // 2 : SIZE // 2 + 2] = (rng.randrange(1 << 16) & KNOWN).to_bytes(2, "little")
    status = rng.randrange(1 << 16) & KNOWN
    return mspdebug.Call(registers, bytes(memory), status, entry)


def stepped(instr: Instr, call: mspdebug.Call) -> Machine:
    """The interpreter behind the instruction."""
    isa = msp430()
    machine = Machine(isa, isa.core("msp430"), mspdebug.RAM + SIZE)
    for name, value in call.registers.items():
        machine.slots[isa.slots[name]] = value
    for name, bit in FLAGS.items():
        machine.slots[isa.slots[name]] = int(bool(call.status & bit))
    machine.memory[mspdebug.RAM :] = call.memory
    machine.step(encode(instr), 0)
    return machine


@pytest.mark.simulator
def test_each_instruction_means_what_the_simulator_does() -> None:
    isa, rng = msp430(), random.Random(7)
    image, cases = b"", []
    for name in NAMES:
        insn, left = isa.insns[name], STATES
        while left:
            instr = Instr(insn, tuple(picked(operand, rng) for operand in insn.operands))
            if not instr.clash():
                left -= 1
                cases.append((instr, state(instr, rng, len(image))))
                image += encode(instr) + bytes((0x30, 0x40)) + mspdebug.HALT.to_bytes(2, "little")  # br #HALT
    for (instr, before), after in zip(cases, mspdebug.run(image, 0, [call for _, call in cases]), strict=True):
        machine, shown = stepped(instr, before), f"{instr.text()} with {before}"
        for name in mspdebug.REGISTERS:
            assert after.registers[name] == machine.slots[isa.slots[name]], f"{name} behind {shown}"
        assert after.memory == bytes(machine.memory[mspdebug.RAM :]), shown
        for name, bit in FLAGS.items():
            if name not in (*isa.opaque, *instr.insn.clobbers):
                assert bool(after.status & bit) == bool(machine.slots[isa.slots[name]]), f"{name} behind {shown}"


def test_what_the_simulator_cannot_run_is_430x_alone() -> None:
    others = {name for name, insn in msp430().insns.items() if name not in NAMES and not insn.control}
    assert all(name.startswith(("pushm", "popm")) for name in others) and len(NAMES) > 80
