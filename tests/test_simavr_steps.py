"""simavr executes one instruction of each kind as the manual says."""

from __future__ import annotations

import pytest
from simavr_calls import SP, image_of, judge_installed

from sqgen.oracles import simavr
from sqgen.oracles.simavr import Buffer, State


def step_one(assembly: str, state: State, part: str = "atmega128") -> State:
    with judge_installed():
        code = image_of(assembly, part)
        before = State(code, state.registers, state.sreg, state.sp, state.memory, state.pc)
        return simavr.step(part, [before])[0]


def blank_state(registers: dict[int, int] | None = None, *, sreg: int = 0, memory: tuple[Buffer, ...] = ()) -> State:
    filled = [0] * 32
    for register, value in (registers or {}).items():
        filled[register] = value
    return State(b"", tuple(filled), sreg, SP, memory)


@pytest.mark.parametrize(
    ("instruction", "cycles"),
    [
        ("add r0, r1", 1),
        ("adc r0, r1", 1),
        ("movw r0, r2", 1),
        ("mul r0, r1", 2),
        ("adiw r24, 1", 2),
        ("ld r0, X+", 2),
        ("ldd r0, Z+5", 2),
        ("st -Y, r0", 2),
        ("std Y+5, r0", 2),
        ("lds r0, 0x0200", 2),
        ("sts 0x0200, r0", 2),
        ("push r0", 2),
        ("pop r0", 2),
        ("lpm r0, Z+", 3),
        ("in r0, 0x3d", 1),
        ("out 0x3d, r0", 1),
        ("rjmp .+8", 2),
        ("jmp 0x80", 3),
        ("brne .+8", 2),
        ("breq .+8", 1),
        ("sbrc r0, 0\n nop", 2),
        ("sbrc r0, 0\n jmp 0", 3),
        ("sbrs r0, 0\n nop", 1),
        ("rcall .+8", 3),
        ("call 0x80", 4),
        ("icall", 3),
        ("ret", 4),
    ],
)
def test_instructions_take_the_cycles_of_the_manual(instruction: str, cycles: int) -> None:
    pointers = dict.fromkeys((27, 29, 31), 2)
    after = step_one(instruction, blank_state(pointers))
    assert (after.cycles, after.fault) == (cycles, "")


def test_step_gives_the_full_state_after() -> None:
    after = step_one("adc r2, r3", blank_state({2: 0x80, 3: 0x7F}, sreg=0x01))
    assert after.registers == (0, 0, 0, 0x7F) + (0,) * 28
    assert after.sreg == 0x01 | 0x02 | 0x20  # carry, zero, half carry
    assert (after.pc, after.sp) == (simavr.STEP_PC + 2, SP)


def test_step_reads_and_writes_the_given_memory() -> None:
    memory = (Buffer(0x200, b"\x11\x22"), Buffer(SP, b"\x33"))
    loaded = step_one("ldd r5, Z+1", blank_state({31: 2}, memory=memory))
    assert loaded.registers[5] == 0x22 and loaded.memory == memory
    pushed = step_one("push r5", blank_state({5: 0x44}, memory=memory))
    assert pushed.memory == (memory[0], Buffer(SP, b"\x44")) and pushed.sp == SP - 1


def test_step_executes_exactly_one_instruction() -> None:
    after = step_one("inc r0\n inc r0", blank_state())
    assert (after.registers[0], after.pc) == (1, simavr.STEP_PC + 2)
    # Starting a timer makes simavr allow itself a longer run.
    after = step_one("out 0x33, r1\n inc r0", blank_state({1: 1}))
    assert (after.registers[0], after.pc, after.cycles) == (0, simavr.STEP_PC + 2, 1)


def test_step_reports_an_unknown_opcode() -> None:
    assert "Invalid Opcode" in step_one(".word 0x0001", blank_state()).fault


def test_states_of_a_batch_are_independent() -> None:
    with judge_installed():
        sets_carry, uses_carry = image_of("sec"), image_of("adc r0, r0")
        zero = (0,) * 32
        after = simavr.step("atmega128", [State(code, zero, 0, SP) for code in (sets_carry, uses_carry)])
    assert [state.sreg & 1 for state in after] == [1, 0]
    assert after[1].registers[0] == 0
