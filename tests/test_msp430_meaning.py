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


def stepped(instr: Instr, call: mspdebug.Call, core: str = "msp430") -> Machine:
    """The interpreter behind the instruction."""
    isa = msp430()
    machine = Machine(isa, isa.core(core), mspdebug.RAM + SIZE)
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


BRANCHES = sorted(name for name, insn in msp430().insns.items() if insn.control[:1] == ("branch",))


@pytest.mark.simulator
@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_is_taken_where_the_simulator_takes_it(name: str) -> None:
    """Over a CLR, which tells whether it was."""
    isa, rng = msp430(), random.Random(name)
    clear, jump = Instr(isa.insns["clr"], ("r4",)), Instr(isa.insns[name], (2,))
    image = encode(jump) + encode(clear) + bytes((0x30, 0x40)) + mspdebug.HALT.to_bytes(2, "little")  # br #HALT
    calls = [state(clear, rng, 0) for _ in range(STATES)]
    calls = [mspdebug.Call({**call.registers, "r4": 1}, call.memory, call.status, 0) for call in calls]
    seen = set()
    for before, after in zip(calls, mspdebug.run(image, 0, calls), strict=True):
        machine = stepped(Instr(isa.insns["nop"], ()), before)
        taken = machine.step(image, 0) == jump.insn.size + clear.insn.size
        assert after.registers["r4"] == int(taken)
        seen.add(taken)
    assert seen == {True, False}


SEVERAL = sorted(name for name in msp430().insns if name.startswith(("pushm_", "popm_")))


@pytest.mark.parametrize("name", SEVERAL)
def test_to_push_or_pop_several_is_to_do_it_one_by_one(name: str) -> None:
    """[SLAU208]: PUSHM.W #n, Rd pushes Rd, Rd-1, ...; POPM.W #n, Rd pops the last of them first.  Nothing runs these,
    but PUSH and POP are held against the simulator."""
    isa, rng = msp430(), random.Random(name)
    word, count = name.split("_")
    registers = [f"r{10 - at}" for at in range(int(count))]
    single = isa.insns[word.removesuffix("m")]
    steps = [Instr(single, (register,)) for register in (registers if word == "pushm" else registers[::-1])]
    for _ in range(STATES):
        call = state(steps[0], rng, 0)
        several = stepped(Instr(isa.insns[name], ()), call, "msp430x")
        one_by_one = stepped(steps[0], call)
        for step in steps[1:]:
            one_by_one.step(encode(step), 0)
        assert (several.slots, several.memory) == (one_by_one.slots, one_by_one.memory)


def test_a_status_register_that_is_given_back_changes_no_bit_that_nobody_names() -> None:
    """`lpm` is by how much the bits differ that no flag of the table is: what is pushed has none of them."""
    isa, rng = msp430(), random.Random(3)
    for _ in range(STATES):
        call = state(Instr(isa.insns["nop"], ()), rng, 0)
        machine = stepped(Instr(isa.insns["push_sr"], ()), call)
        machine.step(encode(Instr(isa.insns["pop_sr"], ())), 0)
        assert machine.slots == stepped(Instr(isa.insns["nop"], ()), call).slots
        top = int.from_bytes(call.memory[SIZE // 2 : SIZE // 2 + 2], "little")
        other = stepped(Instr(isa.insns["pop_sr"], ()), call)
        assert other.slots[isa.slots["lpm"]] == top & ~KNOWN & 0xFFFF


def test_what_the_simulator_cannot_run_is_430x_alone() -> None:
    others = {name for name, insn in msp430().insns.items() if name not in NAMES and not insn.control}
    assert all(name.startswith(("pushm", "popm")) for name in others) and len(NAMES) > 80
