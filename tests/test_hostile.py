"""Code and files that mean harm: an answer in one line and in time, whatever they are."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import STEM, Call, built, shell, source
from conftest import avr, contract, core, kernel
from hostile import CODE, tried
from test_exact import pick

from sqgen import emit
from sqgen.contract import Contract
from sqgen.encode import EncodeError, Instr, assemble
from sqgen.errors import Exit
from sqgen.forward_proof import prove_forward
from sqgen.interpret import counterexample
from sqgen.prove import prove
from sqgen.table import Isa
from sqgen.tables import isa, isa_names

PROVE = "prove k.o --isa avr --bits 64 --symbol f"
HEAD = ".global f\n.type f, @function\nf:\n"


# ---- code -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (".rept 500000\nnop\n.endr\nret\n", "no end after"),
        ("rjmp f\n", "no end after"),
        ("1: rjmp 2f\n2: rjmp 1b\n", "no end after"),
        ("rcall f\nret\n", "perhaps a function calls itself"),
        (".word 0xffff\n", "unknown instruction"),
        ("nop\n", "past its end"),
        ("rjmp f-2\n", "before its start"),
        ("ldi r30, 2\n ldi r31, 0\n st Z, r0\n ret\n", "not"),
        ("lpm\nret\n", "unknown instruction"),
        ("ijmp\n", "unknown instruction"),
    ],
    ids=["nops", "loop", "two-jumps", "recursion", "unknown", "end", "before", "own-code", "lpm", "ijmp"],
)
def test_code_that_is_no_kernel_is_refused_in_one_line(
    refused: Callable[..., str], here: Path, body: str, says: str
) -> None:
    built(HEAD + body, here / "k.o")
    line = refused(Exit.UNPROVED, PROVE)
    assert says in line and len(line) < 400


def random_code(which: Isa, rng: random.Random) -> bytes:
    """Instructions of a few kinds, then perhaps a return."""
    insns = list(which.insns.values())
    few = rng.sample(insns, rng.randint(3, 30))
    code: list[Instr] = []
    while len(code) < 40:
        insn = rng.choice(few)
        if insn.control and rng.random() < 0.9:
            few.append(rng.choice(insns))
            continue
        try:
            instr = Instr(insn, tuple(pick(operand, rng) for operand in insn.operands))
            assemble([instr])
        except EncodeError:
            few.append(rng.choice(insns))
            continue
        code.append(instr)
    return assemble(code) + (rng.randbytes(8) if rng.random() < 0.3 else b"")


@pytest.mark.parametrize("name", isa_names())
def test_no_code_at_all_breaks_a_proof_or_a_run(name: str) -> None:
    which = isa(name)
    for seed in range(30):
        rng = random.Random(seed)
        code, where = random_code(which, rng), rng.choice(list(which.cores.values()))
        what = Contract(rng.choice(["sqr", "mul"]), rng.choice([1, 2, 4]), which)
        tried(CODE)
        assert not prove(code, what, where, branches=rng.random() < 0.2).proved
        assert not prove_forward(code, what, where, branches=rng.random() < 0.2).proved
        counterexample(code, what, where)


def test_the_second_proof_gives_up_where_numbers_grow_beyond_any_kernel() -> None:
    """What is squared and shifted again and again has factors of ever more bits."""
    lines: list[tuple[str | int, ...]] = [
        ("ldi", "r16", 3),
        ("movw", "r30", "r24"),
        ("movw", "r26", "r22"),
        ("ld_xp", "r2"),
    ]
    lines += [("mul", "r2", "r2"), ("mov", "r2", "r1")] * 400
    code = assemble([Instr(avr().insns[str(each[0])], each[1:]) for each in [*lines, ("ret",)]])
    found = prove_forward(code, contract("sqr", 2), core())
    assert not found.proved


# ---- where code lies ------------------------------------------------------------------------------------------------


def test_bytes_before_the_symbol_are_of_no_concern_but_are_not_executed_either(
    sqgen: Call, refused: Callable[..., str], here: Path
) -> None:
    text = source()
    before = text.replace(f"{STEM}:\n", f"    nop\n    ret\n{STEM}:\n", 1)
    assert before != text
    built(before, here / "k.o")
    assert sqgen(f"prove k.o --isa avr --bits 64 --symbol {STEM}").code == 0
    (here / f"{STEM}.json").write_text(manifest())
    assert sqgen(f"verify {STEM}.json k.o").code == 0
    # code that leaves its function is proved where it goes, by `prove`; `verify` knows the function's own bytes alone
    entry = text.replace(f"{STEM}:\n", f"other:\n    ret\n{STEM}:\n", 1).replace("    ret\n", "    rjmp other\n")
    entry = entry.replace("other:\n    rjmp other", "other:\n    ret", 1)
    built(entry, here / "k.o")
    assert sqgen(f"prove k.o --isa avr --bits 64 --symbol {STEM}").code == 0
    assert "other code" in refused(Exit.DISAGREES, f"verify {STEM}.json k.o")


def manifest() -> str:
    return emit.manifest_text(kernel("sqr", 64))


def test_a_jump_into_the_middle_of_an_instruction_goes_on_with_what_lies_there(
    refused: Callable[..., str], here: Path
) -> None:
    """On MSP430 the second word of MOV #0x4130, R4 is RET, which then returns without a result."""
    which = isa("msp430")
    code = assemble([Instr(which.insns["jmp"], (2,)), Instr(which.insns["mov_i"], ("r11", 0x4130))])
    fault = prove(code, Contract("sqr", 2, which), which.core("msp430")).fault
    assert fault is not None and fault.instruction == "ret"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([("movw", "r26", "r22"), ("adiw", "r26", 2), ("ld_x", "r0")], "a[2]"),
        ([("movw", "r30", "r22"), ("st_z", "r0")], "a[0]"),
        ([("movw", "r30", "r24"), ("std_z", "r0", 4)], "r[4]"),
        ([("pop", "r0"), ("push", "r0")], ""),
    ],
    ids=["reads-past-operand", "writes-operand", "writes-past-result", "takes-return-address"],
)
def test_memory_that_is_not_its_own_is_refused_by_both_proofs(lines: list[tuple[str | int, ...]], says: str) -> None:
    insns = avr().insns
    insns = {**insns, "st_z": insns["st_zp"]}
    code = assemble([Instr(insns[str(name)], tuple(operands)) for name, *operands in [*lines, ("ret",)]])
    first = prove(code, contract("sqr", 2), core()).fault
    second = prove_forward(code, contract("sqr", 2), core())
    assert first is not None and not second.proved
    assert says in second.why


# ---- files ----------------------------------------------------------------------------------------------------------


COMMANDS = ["prove {} --isa avr --bits 64", "verify k.json {}", "check {} --isa avr --bits 64"]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_object_is_refused(refused: Callable[..., str], here: Path, command: str) -> None:
    (here / "k.json").write_text(manifest())
    part = built(source(), here / "k.o")
    subprocess.run(["avr-ar", "rc", "k.a", "k.o"], check=True)
    (here / "zeros").write_bytes(bytes(1000))
    with (here / "huge").open("wb") as file:
        file.truncate((16 << 20) + 1)
    for name, says in (
        ("k.a", "no ELF file"),
        ("zeros", "no ELF file"),
        ("huge", "larger than"),
        ("/dev/zero", "no regular file"),
        (".", "folder"),
        ("missing", "does not exist"),
    ):
        assert says in refused(Exit.FILE, command.format(name))
    data = bytearray(part.read_bytes())
    for machine in (0, 40, 105, 62, 0xFFFF):  # e_machine: none, ARM, MSP430, x86-64, nobody's
        data[18:20] = machine.to_bytes(2, "little")
        (here / "other.o").write_bytes(data)
        assert "EM_AVR" in refused(Exit.FILE, command.format("other.o"))


def test_verify_does_not_wait_for_a_pipe(here: Path) -> None:
    (here / "k.json").write_text(manifest())
    os.mkfifo(here / "pipe")
    for line in ("verify pipe k.o", "verify k.json pipe"):
        run = shell(line, cwd=here, timeout=20)
        assert run.returncode == Exit.FILE and "no regular file" in run.stderr


@pytest.mark.parametrize("field", ["st_value", "st_size"])
def test_a_symbol_outside_its_section_is_refused(refused: Callable[..., str], here: Path, field: str) -> None:
    data = bytearray(built(source(), here / "k.o").read_bytes())
    length = json.loads(manifest())["bytes"].to_bytes(4, "little")
    at = data.rindex(bytes(4) + length)  # st_value, st_size of the only function
    place = at if field == "st_value" else at + 4
    for value in (0x7FFFFFFF, 0xFFFFFFFF, 0x10000, len(data)):
        data[place : place + 4] = value.to_bytes(4, "little")
        (here / "k.o").write_bytes(data)
        assert "lies outside its section" in refused(Exit.FILE, f"prove k.o --isa avr --bits 64 --symbol {STEM}")
