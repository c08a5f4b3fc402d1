"""Code and files that mean harm: an answer in one line and in time, whatever they are."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from commandline import SQGEN, STEM, Call, built, shell, source
from conftest import Line, avr, contract, core, instrs, kernel
from fuzz_inputs import sections
from hostile import CODE, tried
from test_exact import pick

from sqgen import emit, objects, programs
from sqgen.contract import Contract
from sqgen.encode import EncodeError, Instr, assemble
from sqgen.errors import Exit
from sqgen.forward_proof import prove_forward
from sqgen.prove import prove
from sqgen.runs import counterexample
from sqgen.table import Isa
from sqgen.tables import isa, isa_names

PROVE = "prove k.o --isa avr --bits 64 --symbol f"
LONGEST = 60.0  # seconds of the processor that a proof may take before it gives up
TOO_MUCH = "more terms than this proof can hold"
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


def test_the_second_proof_gives_up_where_sums_grow_beyond_any_kernel(refused: Callable[..., str], here: Path) -> None:
    """By each mask that is added or not it has twice as many terms; the code is right all the same."""
    masks = "    lsl r18\n    sbc r0, r0\n    eor r20, r0\n" * 8
    growing = "    movw r30, r22\n" + "".join(f"    ldd r18, Z+{limb}\n{masks}" for limb in range(8))
    file = built(source().replace(f"{STEM}:\n", f"{STEM}:\n{growing}", 1), here / "k.o")
    body = objects.read(file, avr(), STEM).body
    said = json.loads(manifest()) | {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
    (here / "k.json").write_text(json.dumps(said))
    began = time.process_time()
    line = refused(Exit.UNPROVED, "verify k.json k.o")
    assert "cannot be checked" in line and TOO_MUCH in line and "counterexample was found" in line
    assert time.process_time() - began < LONGEST


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
        ([("movw", "r30", "r22"), ("st_zp", "r0")], "a[0]"),
        ([("movw", "r30", "r24"), ("std_z", "r0", 4)], "r[4]"),
        ([("pop", "r0"), ("push", "r0")], ""),
    ],
    ids=["reads-past-operand", "writes-operand", "writes-past-result", "takes-return-address"],
)
def test_memory_that_is_not_its_own_is_refused_by_both_proofs(lines: list[Line], says: str) -> None:
    code = assemble(instrs([*lines, ("ret",)]))
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


# ---- time and memory ------------------------------------------------------------------------------------------------

MOST = 500  # megabytes
QUICK = 10.0  # seconds of the processor in which the inputs here are refused, on slow machines, too


# A process that begins another one lends it its own greatest memory, so a small one in between measures.
WATCH = """import json, os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(child, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss >> 10]))
"""


class Measured(NamedTuple):
    code: int
    seconds: float
    megabytes: int
    err: str


def measured(line: str, folder: Path) -> Measured:
    """The installed program, with the processor's time and the memory that it took."""
    watch = [sys.executable, "-IS", "-c", WATCH, str(SQGEN), *shlex.split(line)]
    run = subprocess.run(watch, cwd=folder, capture_output=True, text=True, check=True)
    code, seconds, megabytes = json.loads(run.stdout.splitlines()[-1])
    return Measured(code, seconds, megabytes, run.stderr)


def test_memory_that_the_tests_hold_is_not_measured(here: Path) -> None:
    held = b"x" * (MOST << 20)
    assert measured("--version", here).megabytes < MOST // 2 < len(held)


LOAD = "movw r30,r22\nldd r18,Z+1\n"
WORST = {
    "a megabyte that does nothing": ("avr", 64, ".rept 500000\nnop\n.endr\nret\n"),
    "the same, where a kernel may be long": ("avr", 1024, ".rept 500000\nnop\n.endr\nret\n"),
    "sums and products": ("avr", 512, ".rept 3000\nmul r2,r3\nadd r4,r0\nadc r5,r1\nadc r6,r7\n.endr\nret\n"),
    "more and more stack": ("avr", 1024, "1: push r2\nrjmp 1b\n"),
    "a case at every mask": ("avr", 64, f"{LOAD}.rept 400\nlsl r18\nsbc r0,r0\neor r20,r0\n.endr\nret\n"),
    "calls that call": ("avr", 64, "rcall 1f\n1: rcall 2f\n2: rcall 3f\n3: rcall 4f\n4: rcall 5f\n5: nop\nret\n"),
    "a long loop": ("avr", 1024, "ldi r18,0\n1: nop\nrjmp 1b\n"),
    "a megabyte that does nothing, on MSP430": ("msp430", 1024, ".rept 500000\nmov r4,r4\n.endr\nret\n"),
    "sums of sums, on MSP430": ("msp430", 512, ".rept 3000\nadd r4,r5\naddc r5,r6\naddc r6,r4\n.endr\nret\n"),
    "more and more stack, on MSP430": ("msp430", 1024, "1: push r4\njmp 1b\n"),
    "a megabyte that does nothing, on Cortex-M": ("arm", 4096, ".rept 500000\nmov r4,r4\n.endr\nbx lr\n"),
    "sums of products, on Cortex-M": ("arm", 512, ".rept 3000\numaal r4,r5,r6,r7\numaal r6,r7,r4,r5\n.endr\nbx lr\n"),
    "sums of sums, on Cortex-M": ("arm", 512, ".rept 3000\nadds r4,r5\nadcs r5,r6\nadcs r6,r4\n.endr\nbx lr\n"),
    "more and more stack, on Cortex-M": ("arm", 4096, "1: push {r4}\nb 1b\n"),
}
TYPES = {"arm": ".syntax unified\n.thumb\n.global f\n.type f, %function\n.thumb_func\nf:\n"}


@pytest.mark.parametrize("which", WORST)
def test_the_worst_code_is_refused_within_what_memory_and_time_may_be_taken(here: Path, which: str) -> None:
    name, bits, body = WORST[which]
    (here / "k.S").write_text(TYPES.get(name, HEAD) + body)
    programs.assemble(here / "k.S", here / "k.o", isa(name), isa(name).core(isa(name).default_core))
    done = measured(f"prove k.o --isa {name} --bits {bits} --symbol f", here)
    *words, line = done.err.splitlines()
    assert done.code == Exit.UNPROVED and line.startswith("Error: "), done
    assert done.megabytes < MOST and done.seconds < QUICK, done
    assert all(word.startswith("still proving") for word in words), done


def test_where_there_is_not_enough_memory_one_line_says_so(
    refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr("sqgen.kernel.prove", full)
    assert "not enough memory" in refused(Exit.UNPROVED, "--isa avr --bits 64")


def enlarged(data: bytes, what: str, count: int) -> bytes:
    """An object with so many sections, symbols or relocations, all alike."""
    found, grown = sections(data), bytearray(data)
    if what == "sections":
        grown[32:36], grown[48:50] = len(data).to_bytes(4, "little"), count.to_bytes(2, "little")
        return bytes(grown) + data[found[1][0] : found[1][0] + 40] * count
    kind, size = {"symbols": (2, 16), "relocations": (4, 12)}[what]
    old = next((at for at, words in found if words[1] == kind), None)
    assert old is not None
    grown[old + 16 : old + 24] = len(data).to_bytes(4, "little") + (size * count).to_bytes(4, "little")
    return bytes(grown) + bytes(size * count)


@pytest.mark.parametrize("what", objects.MOST)
def test_a_file_with_too_much_in_it_is_refused_at_once(here: Path, what: str) -> None:
    called = "rcall other\nret\n.section .text.other\nother: ret\n"
    data = built(HEAD + called, here / "k.o").read_bytes()
    (here / "k.o").write_bytes(enlarged(data, what, 6 * objects.MOST[what]))
    assert (here / "k.o").stat().st_size < objects.LARGEST
    done = measured("prove k.o --isa avr --bits 64 --symbol f", here)
    assert done.code == Exit.FILE and f"{what}; at most" in done.err and done.err.count("\n") == 1, done
    assert done.megabytes < MOST and done.seconds < QUICK, done


@pytest.mark.simulator
def test_a_kernel_that_does_not_return_is_refused_before_mspdebug_waits_for_it(here: Path) -> None:
    which = isa("msp430")
    (here / "k.S").write_text(".global f\n.type f,@function\nf: .word 0x3fff  ; jmp f\n")
    programs.assemble(here / "k.S", here / "k.o", which, which.core("msp430"))
    done = measured("check k.o --isa msp430 --bits 32", here)
    assert done.code == Exit.DISAGREES and "does not return" in done.err and done.seconds < QUICK, done
