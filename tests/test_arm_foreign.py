"""`sqgen prove` on other people's code for Cortex-M: what compilers make of C, and carries found by compare and IT."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from arm import arm

from sqgen import objects, programs
from sqgen.contract import Contract
from sqgen.encode import Instr, assemble
from sqgen.forward_proof import prove_forward
from sqgen.interpret import Machine, call, operands
from sqgen.oracles import unicorn_arm
from sqgen.prove import prove
from sqgen.table import Core

# Column by column, unrolled, the sum of a column in three words.  ADD adds a product to them.
COMBA = """
#include <stdint.h>
typedef uint32_t u32;
typedef uint64_t u64;
%s
void kernel(u32 *restrict r, const u32 *restrict a, const u32 *restrict b) {
    u32 c0 = 0, c1 = 0, c2 = 0;
#pragma unroll
    for (int k = 0; k < 2 * N - 1; k++) {
#pragma unroll
        for (int i = 0; i < N; i++)
            if (k - i >= 0 && k - i < N)
                ADD(a[i], b[k - i]);
        r[k] = c0, c0 = c1, c1 = c2, c2 = 0;
    }
    r[2 * N - 1] = c0;
}
"""
ADDITIONS = {
    "by long sums": """
#define ADD(x, y) do { u64 p = (u64)(x) * (y), t = (u64)c0 + (u32)p; c0 = (u32)t; \\
    t = (u64)c1 + (u32)(p >> 32) + (t >> 32); c1 = (u32)t; c2 += (u32)(t >> 32); } while (0)
""",
    "by comparing": """
#define ADD(x, y) do { u64 p = (u64)(x) * (y); u32 lo = (u32)p, hi = (u32)(p >> 32); \\
    c0 += lo; hi += c0 < lo; c1 += hi; c2 += c1 < hi; } while (0)
""",
    "by halves": """
#define ADD(x, y) do { u32 e = (x) & 0xffff, f = (x) >> 16, g = (y) & 0xffff, h = (y) >> 16, lo = e * g, hi = f * h; \\
    u32 u = e * h, v = f * g; lo += u << 16; hi += (u >> 16) + (lo < u << 16); \\
    lo += v << 16; hi += (v >> 16) + (lo < v << 16); \\
    c0 += lo; hi += c0 < lo; c1 += hi; c2 += c1 < hi; } while (0)
""",
}
WRONG = {  # what is left out, by what is put in its place
    "a carry into the column above": ("c2 += (u32)(t >> 32);", "c2 += 0 & (u32)(t >> 32);"),
    "a carry within a column": ("(u32)(p >> 32) + (t >> 32)", "(u32)(p >> 32)"),
}


def compiled(source: str, core: str, limbs: int, folder: Path) -> objects.CodeBytes:
    """What LLVM makes of C."""
    (folder / "kernel.c").write_text(source)
    cpu = core.replace("-", "_")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "thumb-freestanding-eabi", f"-mcpu={cpu}", "-O2"]
    command += [f"-DN={limbs}", "-c", "kernel.c", "-o", "kernel.o"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return objects.read(folder / "kernel.o", arm(), "kernel")


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("core", "limbs", "how"),
    [
        ("cortex-m0", 2, "by halves"),
        ("cortex-m3", 3, "by halves"),
        ("cortex-m3", 4, "by long sums"),
        ("cortex-m3", 4, "by comparing"),
        ("cortex-m4", 2, "by long sums"),
        ("cortex-m4", 4, "by long sums"),
        ("cortex-m4", 4, "by comparing"),
        ("cortex-m4", 3, "by halves"),
        ("cortex-m7", 4, "by comparing"),
    ],
)
def test_what_a_compiler_makes_of_columns_is_proved(core: str, limbs: int, how: str, tmp_path: Path) -> None:
    code = compiled(COMBA % ADDITIONS[how], core, limbs, tmp_path)
    contract, chosen = Contract("mul", limbs, arm()), arm().at_any_time(arm().core(core))
    verdict = prove(code.image, contract, chosen, code.entry)
    assert verdict.proved, verdict.fault
    for values in operands(contract, 20):
        assert call(code.image, contract, chosen, values, code.entry) == values[0] * values[1]


@pytest.mark.simulator
@pytest.mark.parametrize("fault", WRONG)
def test_what_a_compiler_makes_of_a_wrong_sum_is_not_proved(fault: str, tmp_path: Path) -> None:
    source = (COMBA % ADDITIONS["by long sums"]).replace(*WRONG[fault])
    code = compiled(source, "cortex-m4", 3, tmp_path)
    verdict = prove(code.image, Contract("mul", 3, arm()), arm().core("cortex-m4"), code.entry)
    assert verdict.fault


# A product of two limbs by two, the carries found in three ways: `it cs`, `ite`, and a comparison.
BY_CONDITIONS = """
    push {r4, r5, r6, r7}
    ldr r3, [r1]
    ldr r4, [r1, #4]
    ldr r5, [r2]
    ldr r6, [r2, #4]
    umull r7, r12, r3, r5
    str r7, [r0]
    umull r5, r7, r4, r5
    adds r5, r5, r12
    it cs
    addcs r7, #1
    umull r3, r12, r3, r6
    adds r5, r5, r3
    str r5, [r0, #4]
    ite cs
    movcs r3, #1
    movcc r3, #0
    adds r7, r7, r12
    mov r5, #0
    it cs
    movcs r5, #1
    adds r7, r7, r3
    it cs
    addcs r5, #1
    umull r3, r12, r4, r6
    adds r3, r3, r7
    cmp r3, r7
    it cc
    addcc r12, r12, #1
    add r12, r5
    str r3, [r0, #8]
    str r12, [r0, #12]
    pop {r4, r5, r6, r7}
    bx lr
"""


def assembled(text: str, folder: Path, core: str = "cortex-m4") -> bytes:
    """The code of some lines."""
    head = ".syntax unified\n.thumb\n.text\n.p2align 2\n.global kernel\n.type kernel, %function\n.thumb_func\nkernel:\n"
    (folder / "code.S").write_text(f"{head}{text}\n.size kernel, .-kernel\n")
    programs.assemble(folder / "code.S", folder / "code.o", arm(), arm().core(core), "GNU")
    return objects.read(folder / "code.o", arm(), "kernel").body


@pytest.mark.simulator
def test_carries_on_conditions_are_proved_by_both(tmp_path: Path) -> None:
    """`addcs r7, #1` is right since the upper word of a product is at most 2^32 - 2."""
    image, contract, core = assembled(BY_CONDITIONS, tmp_path), Contract("mul", 2, arm()), arm().core("cortex-m4")
    verdict = prove(image, contract, core)
    assert verdict.proved, verdict.fault
    assert prove_forward(image, contract, core).proved
    for values in operands(contract, 60):
        assert call(image, contract, core, values) == values[0] * values[1]


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("addcs r7, #1", "addcs r7, #2"),
        ("it cs\n    addcs r7, #1", "it cc\n    addcc r7, #1"),
        ("movcc r3, #0", "movcc r3, #1"),
        ("cmp r3, r7", "cmp r7, r3"),
        ("    it cs\n    movcs r5, #1\n", ""),
        ("addcc r12, r12, #1", "addcc r12, r12, #0"),
    ],
)
def test_a_wrong_carry_on_a_condition_is_refused_by_both(before: str, after: str, tmp_path: Path) -> None:
    assert before in BY_CONDITIONS
    image = assembled(BY_CONDITIONS.replace(before, after, 1), tmp_path)
    contract, core = Contract("mul", 2, arm()), arm().core("cortex-m4")
    assert any(call(image, contract, core, v) != v[0] * v[1] for v in operands(contract, 60))
    assert not prove(image, contract, core).proved
    assert not prove_forward(image, contract, core).proved


@pytest.mark.simulator
@pytest.mark.parametrize("access", ["ldrcs r3, [r1]", "strcs r3, [r0]", "mlacs r3, r3, r3, r3"])
def test_what_can_be_seen_of_a_condition_from_outside_is_refused(access: str, tmp_path: Path) -> None:
    text = f"ldr r3, [r1]\nadds r3, r3, r3\nit cs\n{access}\nbx lr\n"
    image, core = assembled(text, tmp_path), arm().core("cortex-m4")
    fault = prove(image, Contract("mul", 2, arm()), core).fault
    assert fault and "does on a condition what may be seen from outside" in fault.message
    assert not prove_forward(image, Contract("mul", 2, arm()), core).proved


BLOCKS = ["it cs\naddcs r2, #1", "ite cc\nmovcc r2, #7\nmovcs r2, r3", "itt eq\nsubeq r2, r2, r3\nadceq r4, r2, #0"]
BLOCKS += [
    "it ne\ncmpne r2, r3",
    "itt cs\naddcs.w r2, r2, r3, lsl #3\nlsrcs r3, r2, #4",
    "ite ne\nmulne r4, r2\nuxtheq r4, r3",
]


@pytest.mark.simulator
@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_conditional_instructions_does_what_the_emulator_does(block: str, tmp_path: Path) -> None:
    """A short one leaves flags as they are there, unless it compares."""
    isa, rng = arm(), random.Random(block)
    image, core = assembled(block, tmp_path, "cortex-m3"), isa.core("cortex-m3")
    for _ in range(40):
        share = rng.choice((0.0, 1.0))
        registers = {
            name: rng.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF)) if rng.random() < share else rng.getrandbits(32)
            for name in unicorn_arm.REGISTERS
        }
        registers["sp"] = unicorn_arm.RAM + 0x1000
        flags = {flag: rng.getrandbits(1) for flag in unicorn_arm.FLAGS}
        after = unicorn_arm.step(core.name, image, unicorn_arm.State(registers, flags), all_of_it=True)
        machine = Machine(isa, core, 0)
        for place, value in (*registers.items(), *flags.items()):
            machine.slots[isa.slots[place]] = value
        at: int | None = 0
        while at is not None and at < len(image):
            at = machine.step(image, at)
        assert {name: machine.slots[isa.slots[name]] for name in registers} == dict(after.registers)
        assert {name: machine.slots[isa.slots[name]] for name in ("C", "ZF")} == {
            n: after.flags[n] for n in ("C", "ZF")
        }


def test_a_condition_costs_a_cycle_and_so_does_what_is_not_done() -> None:
    """[CM3, table 3-1]: IT 1; an instruction whose condition fails, 1."""
    program = [Instr(arm().insns["it_cs"], ()), Instr(arm().insns["adds_i"], ("r2", 1))]
    core: Core = arm().core("cortex-m3")
    for carry in (0, 1):
        machine = Machine(arm(), core, 0)
        machine.slots[arm().slots["C"]] = carry
        machine.step(assemble(program), 0)
        machine.step(assemble(program), 2)
        assert (machine.cycles, machine.slots[arm().slots["r2"]]) == (2, carry)
