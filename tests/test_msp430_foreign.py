"""`sqgen prove` on objects of other people's code for MSP430, written as public code is: columns in the multiplier."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Call
from msp430 import msp430

from sqgen import programs
from sqgen.errors import Exit

N = 4  # limbs
LOW, HIGH, CARRY = "r11", "r15", "r10"
ARGUMENTS = "--isa msp430 --op mul --bits 64 --symbol others_mul"


def column(k: int, first: str) -> list[str]:
    """All products of a column, the first of them by a port, the others added; their carries in a register."""
    found: list[str] = []
    for i in range(max(0, k - N + 1), min(k, N - 1) + 1):
        left, right = (f"{2 * at}({r})" if at else f"@{r}" for at, r in ((i, "r13"), (k - i, "r14")))
        found += [f"mov {left}, &{'0x0134' if found else first}", f"mov {right}, &0x0138", f"add &0x013e, {CARRY}"]
    return found


def in_registers() -> list[str]:
    """The running sum is in registers: no result register is ever written."""
    code = [f"clr {LOW}", f"clr {HIGH}"]
    for k in range(2 * N - 1):
        code += [f"clr {CARRY}", *column(k, "0x0130")]
        code += [f"add &0x013a, {LOW}", f"addc &0x013c, {HIGH}", f"adc {CARRY}"]
        code += [f"mov {LOW}, {2 * k}(r12)", f"mov {HIGH}, {LOW}", f"mov {CARRY}, {HIGH}"]
    return [*code, f"mov {LOW}, {4 * N - 2}(r12)"]


def in_the_multiplier() -> list[str]:
    """The running sum stays there, and is shifted by writes to its result registers, as in RELIC."""
    code: list[str] = []
    for k in range(2 * N - 1):
        code += [f"clr {CARRY}", *column(k, "0x0134" if k else "0x0130")]
        code += [f"mov &0x013a, {2 * k}(r12)", "mov &0x013c, &0x013a", f"mov {CARRY}, &0x013c"]
    return [*code, f"mov &0x013a, {4 * N - 2}(r12)"]


def written(folder: Path, body: list[str], assembler: str, *, guarded: bool = False) -> Path:
    """An object file."""
    before, after = (["push sr", "dint", "nop"], ["pop sr"]) if guarded else ([], [])
    lines = [f"push {CARRY}", *before, *body, *after, f"pop {CARRY}", "ret"]
    text = "".join(f"    {line}\n" for line in lines)
    source, found = folder / "others.S", folder / "others.o"
    head = "    .text\n    .global others_mul\n    .type others_mul, @function\nothers_mul:\n"
    source.write_text(f"{head}{text}    .size others_mul, . - others_mul\n")
    programs.assemble(source, found, msp430(), msp430().core("msp430"), assembler)
    return found


@pytest.mark.simulator
@pytest.mark.parametrize("assembler", ["GNU", "LLVM"])
def test_what_keeps_its_sum_in_registers_is_proved(assembler: str, tmp_path: Path, sqgen: Call) -> None:
    file = written(tmp_path, in_registers(), assembler)
    assert sqgen(f"prove {file} {ARGUMENTS} -p interrupts=caller").code == Exit.OK
    alone = sqgen(f"prove {file} {ARGUMENTS}")
    assert alone.code == Exit.UNPROVED and "where an interrupt may come, whose handler may use it" in alone.err
    guarded = written(tmp_path, in_registers(), assembler, guarded=True)
    assert sqgen(f"prove {guarded} {ARGUMENTS}").code == Exit.OK


@pytest.mark.simulator
def test_what_shifts_the_sum_in_the_multiplier_is_refused_for_its_erratum(tmp_path: Path, sqgen: Call) -> None:
    file = written(tmp_path, in_the_multiplier(), "LLVM", guarded=True)
    found = sqgen(f"prove {file} {ARGUMENTS}")
    assert found.code == Exit.UNPROVED
    assert "mov &0x013c, &0x013a`: writes RESLO of the 16-bit multiplier, which is there to be read" in found.err


def through_a_register(*between: str) -> list[str]:
    """The address of the carry stays in a register, as compilers have it; `between` a product and its carry."""
    body: list[str] = []
    for line in in_registers():
        body += [*between, f"add @r9, {CARRY}"] if line.startswith("add &0x013e") else [line]
    return ["push r9", "mov #0x013e, r9", *body, "pop r9"]


@pytest.mark.simulator
def test_a_carry_that_is_read_through_a_register_at_once_is_too_early(tmp_path: Path, sqgen: Call) -> None:
    early = sqgen(f"prove {written(tmp_path, through_a_register(), 'LLVM', guarded=True)} {ARGUMENTS}")
    assert early.code == Exit.UNPROVED
    assert "reads SUMEXT of the 16-bit multiplier before the result is there" in early.err
    assert sqgen(f"prove {written(tmp_path, through_a_register('nop'), 'LLVM', guarded=True)} {ARGUMENTS}").code == 0


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"add &0x013e, {CARRY}", "nop"),
        (f"adc {CARRY}", "nop"),
        ("mov @r13, &0x0130", "mov @r13, &0x0134"),
        (f"mov {LOW}, 6(r12)", f"mov {HIGH}, 6(r12)"),
    ],
    ids=["a product's carry", "a sum's carry", "an old sum is added", "the wrong limb"],
)
def test_what_is_wrong_is_refused_with_operands_that_show_it(old: str, new: str, tmp_path: Path, sqgen: Call) -> None:
    body = in_registers()
    places = [index for index, line in enumerate(body) if line == old]
    body[places[len(places) // 2]] = new
    found = sqgen(f"prove {written(tmp_path, body, 'LLVM', guarded=True)} {ARGUMENTS}")
    assert found.code == Exit.UNPROVED and "no counterexample" not in found.err
