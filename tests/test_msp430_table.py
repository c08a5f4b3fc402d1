"""The table of MSP430 says what two assemblers say: the encoding of every instruction."""

from __future__ import annotations

import functools
import random
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from msp430 import msp430

from sqgen import emit, programs
from sqgen.encode import DecodeError, EncodeError, Instr, decode, encode
from sqgen.layout import Line
from sqgen.oracles import OracleMissing
from sqgen.table import Operand, OperandValue

INSNS = sorted(msp430().insns)
JUMPS = [name for name in INSNS if any(o.kind == "target" for o in msp430().insns[name].operands)]
FORMS = 40  # of each instruction, besides those with all operands the first or the last


def pick(operand: Operand, place: float) -> OperandValue:
    """A value of an operand, the one at a `place` from 0 to 1."""
    if operand.cls:
        return operand.cls.registers[round(place * (len(operand.cls.registers) - 1))]
    low, high, scale = operand.low, operand.high, operand.scale
    if operand.kind == "target":
        return (low + round(place * (-2 * low - 1))) * scale + operand.bias
    first = -(-low // scale)
    return (first + round(place * (high // scale - first))) * scale


@functools.cache
def forms(name: str) -> tuple[Instr, ...]:
    """The instruction with operands picked at random, the first and the last of each among them."""
    insn, rng = msp430().insns[name], random.Random(name)
    places = [[place] * 4 for place in (0.0, 1.0)] + [[rng.random() for _ in range(4)] for _ in range(FORMS)]
    found = [Instr(insn, tuple(pick(o, p) for o, p in zip(insn.operands, each, strict=False))) for each in places]
    return tuple(dict.fromkeys(instr for instr in found if not instr.clash()))


def assembled(lines: Sequence[str], assembler: str) -> bytes:
    """The bytes that an assembler makes of some lines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "code.S").write_text("".join(f"{line}\n" for line in lines))
        programs.assemble(folder / "code.S", folder / "code.o", msp430(), msp430().core("msp430x"), assembler)
        try:
            copy = ["arm-none-eabi-objcopy", "-I", "elf32-little", "-O", "binary", "-j", ".text", "code.o", "code.bin"]
            subprocess.run(copy, cwd=folder, check=True)
        except FileNotFoundError:
            raise OracleMissing(
                "arm-none-eabi-objcopy not found; install the Debian package binutils-arm-none-eabi"
            ) from None
        return (folder / "code.bin").read_bytes()


def text(instr: Instr, assembler: str) -> str:
    """The instruction as the assembler knows it: LLVM gets some as words, as files have them."""
    if instr.insn.words and assembler == "LLVM":
        return emit.listing(Line(instr, "", ""), ";", "f")[-1]
    return instr.text()


@pytest.mark.simulator
@pytest.mark.parametrize("assembler", ["GNU", "LLVM"])
def test_every_instruction_is_what_the_assembler_makes_of_its_text(assembler: str) -> None:
    everything = [instr for name in INSNS if name not in JUMPS for instr in forms(name)]
    lines = [line for instr in everything for line in (text(instr, assembler), *quiet(instr, assembler))]
    image = assembled(lines, assembler)
    at = 0
    for instr in everything:
        end = at + instr.insn.size
        assert image[at:end] == encode(instr), instr.text()
        at = end + 2 * len(quiet(instr, assembler))
    assert at == len(image)


def quiet(instr: Instr, assembler: str) -> list[str]:
    """What GNU's assembler wants behind an instruction, lest it warns."""
    return ["nop"] if instr.insn.name == "dint" and assembler == "GNU" else []


@pytest.mark.simulator
@pytest.mark.parametrize("name", JUMPS)
def test_a_jump_goes_where_the_assembler_says(name: str) -> None:
    """LLVM: GNU's leaves jumps to the linker."""
    insn = msp430().insns[name]
    jump = insn.syntax.format(k="there")
    for nops in (0, 1, 100):
        forward = [jump, *["nop"] * nops, "there:"]
        backward = ["there:", *["nop"] * nops, jump]
        assert assembled(forward, "LLVM")[: insn.size] == encode(Instr(insn, (2 * nops,)))
        assert assembled(backward, "LLVM")[-insn.size :] == encode(Instr(insn, (-2 * nops - insn.size,)))


@pytest.mark.parametrize("name", INSNS)
def test_what_is_encoded_is_decoded_again(name: str) -> None:
    for instr in forms(name):
        assert decode(msp430(), encode(instr), 0) == instr, instr.text()


def test_what_is_decoded_encodes_again_and_no_first_word_has_two_meanings() -> None:
    for number in range(1 << 16):
        code = number.to_bytes(2, "little") + bytes((6, 0, 10, 0))
        try:
            instr = decode(msp430(), code, 0)
        except DecodeError:
            continue
        assert encode(instr) == code[: instr.insn.size]


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("mov_r", ("sp", "r4")),
        ("mov_x", ("r4", "r5", 0)),
        ("mov_x", ("r4", "r5", 3)),
        ("mov_p", ("r4", "sp")),
        ("mov_p", ("r4", "r4")),
        ("mov_i", ("r4", 8)),
        ("mov_i", ("r4", 65535)),
        ("mov_ra", ("r4", 0x131)),
        ("push", ("r3",)),
        ("jmp", (1,)),
        ("jmp", (1024,)),
    ],
)
def test_an_operand_that_its_instruction_cannot_hold_is_refused(name: str, operands: tuple[OperandValue, ...]) -> None:
    with pytest.raises(EncodeError):
        encode(Instr(msp430().insns[name], operands))


# ---- cycles ---------------------------------------------------------------------------------------------------------

SOURCE = {"r": 0, "c": 0, "m": 1, "p": 1, "i": 1, "x": 2, "a": 2}


def addressing(operand: str) -> str:
    """The kind of an operand in assembly text."""
    if operand.startswith("#"):
        return "c" if operand in ("#0", "#1", "#2", "#4", "#8", "#-1") else "i"
    if operand.startswith("@"):
        return "p" if operand.endswith("+") else "m"
    return "a" if operand.startswith("&") else "x" if "(" in operand else "r"


@pytest.mark.parametrize("core", ["msp430", "msp430x"])
@pytest.mark.parametrize("name", JUMPS)
def test_jumps_take_two_cycles_and_an_addition_to_the_program_counter_three(name: str, core: str) -> None:
    isa = msp430()
    insn = isa.insns[name]
    assert isa.cycles(insn, isa.core(core)) == (3 if name == "bra" else 2)
    assert isa.by_timing(insn.taken, isa.core(core)) == 0


EMULATED = {
    "clr": "#0, ",
    "adc": "#0, ",
    "sbc": "#0, ",
    "inv": "#-1, ",
    "dint": "#8, sr",
    "clrc": "#1, sr",
    "nop": "#0, r3",
    "pop": "@sp+, ",
}


PRICED = [(insn.name, core) for core in ("msp430", "msp430x") for insn in msp430().on(msp430().core(core))]


@pytest.mark.parametrize(("name", "core"), [(name, core) for name, core in PRICED if name not in JUMPS])
def test_cycles_are_those_of_the_manuals_tables(name: str, core: str) -> None:
    """Format I: one, and those of its source, and three for a destination in memory; CPUX takes one less to move to
    memory and to look at it; PUSH 3, RRC 1, RET 3 and 4, and two more than registers to push or pop several."""
    isa = msp430()
    instr = forms(name)[0]
    word, _, rest = instr.text().partition(" ")
    x = core == "msp430x"
    if word in ("pushm.w", "popm.w"):
        expected = 2 + int(rest[1])
    elif word in ("push", "rla", "rlc", "rrc", "ret"):
        expected = {"push": 3, "ret": 4 if x else 3}.get(word, 1)
    else:
        source, destination = re.split(r", ?", EMULATED.get(word, "") + rest)
        in_memory = addressing(destination) != "r"
        expected = 1 + SOURCE[addressing(source)] + 3 * in_memory - (in_memory and x and word in ("mov", "bit"))
    assert isa.cycles(instr.insn, isa.core(core)) == expected
