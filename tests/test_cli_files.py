"""The command line on object files: `prove` and `check`, and every way that a file can be broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commandline import LONG, SLOW, SMALL, STEM, Call, built, linked, shell, source
from conftest import assemble, avr, kernel
from hostile import OBJECTS, tried
from hypothesis import given, settings
from hypothesis import strategies as st

from sqgen import objects
from sqgen.errors import Exit, UserError

# ---- object files ---------------------------------------------------------------------------------------------------


def test_prove_holds_for_our_object_and_for_the_firmware_it_is_linked_into(sqgen: Call, here: Path) -> None:
    built(source(), here / "k.o")
    for line in ("prove k.o --isa avr --bits 64", f"prove k.o --isa avr --bits 64 --symbol {STEM} --core atmega2560"):
        run = sqgen(line)
        assert (run.code, run.err) == (0, "") and "every input" in run.out
    linked(here / "k.o", here / "k.elf")
    assert "every input" in sqgen(f"prove k.elf --isa avr --bits 64 --symbol {STEM}").out


def test_prove_refuses_the_wrong_claim_with_a_counterexample(refused: Callable[..., str], here: Path) -> None:
    built(source(), here / "k.o")
    assert "counterexample: a = 0x" in refused(Exit.UNPROVED, "prove k.o --isa avr --bits 72")
    assert "counterexample: a = 0x" in refused(Exit.UNPROVED, "prove k.o --isa avr --bits 64 --op mul")
    built(source().replace("adc ", "add ", 1), here / "wrong.o")
    assert "counterexample: a = 0x" in refused(Exit.UNPROVED, "prove wrong.o --isa avr --bits 64")


def test_a_function_is_found_by_its_name(sqgen: Call, refused: Callable[..., str], here: Path) -> None:
    two = source() + source("other", 32).split("#if", 1)[1].join(["\n#if", ""])
    built(two, here / "two.o")
    assert f"2 global functions (other, {STEM})" in refused(Exit.FILE, "prove two.o --isa avr --bits 64")
    assert "did you mean 'other'?" in refused(Exit.FILE, "prove two.o --isa avr --bits 32 --symbol othre")
    assert sqgen("prove two.o --isa avr --bits 32 --symbol other").code == 0
    built(source().replace(f".global {STEM}", ""), here / "local.o")
    assert "--symbol" in refused(Exit.FILE, "prove local.o --isa avr --bits 64")
    assert sqgen(f"prove local.o --isa avr --bits 64 --symbol {STEM}").code == 0
    built("    .data\n    .global f\nf:  .word 1\n", here / "data.o")
    assert "no global function" in refused(Exit.FILE, "prove data.o --isa avr --bits 64")
    assert "it has none" in refused(Exit.FILE, "prove data.o --isa avr --bits 64 --symbol f")


def test_code_that_a_linker_will_change_is_not_proved(refused: Callable[..., str], here: Path) -> None:
    built("    .global f\n    .type f, @function\nf:  call g\n    ret\n    .size f, .-f\n", here / "calls.o")
    assert "relocations" in refused(Exit.FILE, "prove calls.o --isa avr --bits 64")
    body = source()
    jump = body.replace(f"{STEM}:\n", f"{STEM}:\n    .word 0xC000\n    .size {STEM}, .-{STEM}\n.Lrest:\n")
    jump = jump.replace(f"    .size {STEM}, .-{STEM}\n\n#else", "    .reloc .Lrest, R_AVR_LO8_LDI, elsewhere\n\n#else")
    built(jump, here / "jumps.o")
    assert "relocations" in refused(Exit.FILE, "prove jumps.o --isa avr --bits 64")


@pytest.mark.parametrize("command", ["prove", "check"])
def test_a_file_that_is_no_object_of_this_machine_is_refused(
    refused: Callable[..., str], here: Path, command: str
) -> None:
    ours = built(source(), here / "k.o").read_bytes()
    (here / "empty.o").touch()
    (here / "folder").mkdir()
    (here / "text.o").write_text("hello")
    (here / "lib.a").write_bytes(b"!<arch>\n" + ours)
    (here / "x86.o").write_bytes(ours[:18] + (62).to_bytes(2, "little") + ours[20:])
    (here / "magic.o").write_bytes(ours[:4])
    (here / "huge.o").write_bytes(ours)
    os.truncate(here / "huge.o", objects.LARGEST + 1)
    subprocess.run(["avr-strip", "-o", "stripped.o", "k.o"], check=True)
    for name, says in {
        "missing.o": "does not exist",
        "empty.o": "is empty",
        "folder": "is a folder",
        ".": "is a folder",
        "/": "is a folder",
        "..": "is a folder",
        "text.o": "no ELF file",
        "lib.a": "no ELF file",
        "x86.o": "EM_X86_64",
        "magic.o": "damaged",
        "huge.o": "larger",
        "stripped.o": "no symbol table",
        "/dev/zero": "no regular file",
        "/dev/full": "no regular file",
        "k.o/x": "",
        LONG: "",
        os.path.realpath(sys.executable): "",
    }.items():
        assert says in refused(Exit.FILE, f"{command} --isa avr --bits 64", name), name


@pytest.mark.parametrize("command", ["prove", "check"])
@pytest.mark.parametrize("name", ["pipe.o", "pipe.S", "pipe.json"])
def test_a_pipe_is_refused_and_not_waited_for(here: Path, command: str, name: str) -> None:
    os.mkfifo(here / name)
    done = shell(f"{command} {name} --isa avr --bits 64", cwd=here, timeout=20)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (Exit.FILE, "", 1)


def readable(path: Path, data: bytes) -> bool:
    """Whether the function is found in these bytes; anything but a UserError fails, and so does taking long."""
    tried(OBJECTS)
    path.write_bytes(data)
    start = time.perf_counter()
    code = Exit.OK
    try:
        objects.read(path, avr(), None)
    except UserError as error:
        code = error.code
    assert code in (Exit.OK, Exit.FILE)
    assert time.perf_counter() - start < SLOW
    return code == Exit.OK


def test_a_truncated_object_is_refused_at_every_length(refused: Callable[..., str], here: Path) -> None:
    whole = built(source(bits=16, name="f"), here / "f.o").read_bytes()
    assert readable(here / "f.o", whole)
    assert not any(readable(here / "f.o", whole[:length]) for length in range(0, len(whole), 3))
    for length in (1, 4, 16, 51, 52, 100, len(whole) - 1):
        (here / "f.o").write_bytes(whole[:length])
        refused(Exit.FILE, "prove f.o --isa avr --bits 16")


def flips(data: bytes) -> Iterator[bytes]:
    """The object with one bit of its headers changed: the ELF header, the section headers, the symbol table."""
    sections = int.from_bytes(data[32:36], "little")
    for at in [*range(4, 52), *range(sections, len(data))]:
        for bit in range(8):
            yield data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def test_an_object_with_a_flipped_bit_in_its_headers_never_breaks_the_reader(sqgen: Call, here: Path) -> None:
    whole = built(source(bits=16, name="f"), here / "f.o").read_bytes()
    for number, data in enumerate(flips(whole)):
        if number % 3 == 0:
            readable(here / "f.o", data)
        if number % 50 == 0:
            (here / "f.o").write_bytes(data)
            start = time.perf_counter()
            run = sqgen("prove f.o --isa avr --bits 16")
            assert run.code in (Exit.OK, Exit.UNPROVED, Exit.FILE) and len((run.out or run.err).splitlines()) >= 1
            assert run.code == Exit.OK or run.err.count("\n") == 1
            assert time.perf_counter() - start < SLOW


@settings(max_examples=150, deadline=None)
@given(patches=st.lists(st.tuples(st.integers(0, 10_000), st.binary(min_size=1, max_size=8)), max_size=4))
def test_an_object_with_any_bytes_changed_never_breaks_the_reader(
    tmp_path_factory: pytest.TempPathFactory, patches: list[tuple[int, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("patched")
    data = bytearray(small_object(folder))
    for where, patch in patches:
        at = where % len(data)
        data[at : at + len(patch)] = patch
    readable(folder / "f.o", bytes(data))


_OBJECT: list[bytes] = []


def small_object(folder: Path) -> bytes:
    if not _OBJECT:
        _OBJECT.append(built(source(bits=16, name="f"), folder / "f.o").read_bytes())
    return _OBJECT[0]


def test_section_headers_without_a_size_do_not_loop_for_ever(here: Path) -> None:
    data = bytearray(small_object(here))
    data[46:48] = bytes(2)  # e_shentsize
    data[48:50] = bytes(2)  # e_shnum: the number is in the first header
    sections = int.from_bytes(data[32:36], "little")
    data[sections + 20 : sections + 24] = b"\xff" * 4
    assert not readable(here / "f.o", bytes(data))


# ---- check ----------------------------------------------------------------------------------------------------------


@pytest.mark.simulator
def test_check_runs_the_source_the_object_the_manifest_and_the_firmware(sqgen: Call, here: Path) -> None:
    assert sqgen(f"{SMALL} --quiet --out .").code == 0
    assemble(here / f"{STEM}.S", here / f"{STEM}.o", "avr-gcc")
    linked(here / f"{STEM}.o", here / "firmware.elf")
    call = kernel("sqr", 64).price.call
    for name in (f"{STEM}.S", f"{STEM}.json", f"{STEM}.o"):
        run = sqgen(f"check {name} --runs 20")
        assert (run.code, run.err) == (0, "")
        assert f"{call} per call" in run.out and "the same as the manifest's" in run.out
    run = sqgen(f"check firmware.elf --isa avr --bits 64 --symbol {STEM} --runs 20")
    assert run.code == 0 and "no manifest" in run.out
    run = sqgen(f"check {STEM}.S --core atmega2560 --runs 20")
    assert run.code == 0 and f"{call + 1} per call" in run.out


@pytest.mark.simulator
def test_check_runs_instructions_that_the_table_does_not_know(sqgen: Call, here: Path) -> None:
    built(source().replace("    mul ", "    muls r16, r16\n    mul ", 1), here / "k.o")
    run = sqgen("check k.o --isa avr --bits 64 --runs 20")
    price = kernel("sqr", 64).price
    assert run.code == 0 and f"{price.call + 2} per call, {price.body + 2} without saves and return" in run.out


@pytest.mark.simulator
def test_check_refuses_what_is_not_as_the_manifest_says(sqgen: Call, refused: Callable[..., str], here: Path) -> None:
    assert sqgen(f"{SMALL} --quiet --out .").code == 0
    path, text = here / f"{STEM}.json", (here / f"{STEM}.json").read_text()
    manifest = json.loads(text)
    for name, changed in {
        "call cycles": manifest | {"cycles": {"call": 1, "body": manifest["cycles"]["body"]}},
        "body cycles": manifest | {"cycles": {"call": manifest["cycles"]["call"]}},
        "bytes of stack": manifest | {"stack": 99},
        "not the code": manifest | {"sha256": "0" * 64},
        "the result is wrong": manifest | {"bits": 72},
    }.items():
        path.write_text(json.dumps(changed))
        assert name in refused(Exit.DISAGREES, f"check {STEM}.S --runs 20")
    path.write_text(text)
    (here / f"{STEM}.S").write_text(source().replace("adc ", "add ", 1))
    assert "the result is wrong" in refused(Exit.DISAGREES, f"check {STEM}.S")


def test_check_without_a_manifest_asks_for_what_it_cannot_know(refused: Callable[..., str], here: Path) -> None:
    built(source(), here / "k.o")
    assert "--isa" in refused(Exit.USAGE, "check k.o")
    assert "--bits" in refused(Exit.USAGE, "check k.o --isa avr")
    assert "has no MUL" in refused(Exit.LIMITS, "check k.o --isa avr --bits 64 --core attiny85")
    assert "no outside simulator" in refused(Exit.TOOL, "check k.o --isa avr --bits 64 --core atmega4809")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "3",
        '"x"',
        "[" * 100_000,
        '{"bits": "64"}',
        '{"bits": true}',
        '{"bits": 1e400}',
        f'{{"bits": {"9" * 9999}}}',
        '{"core": []}',
        '{"isa": {}}',
        '{"symbol": 5}',
        '{"op": null}',
        '{"cycles": 3}',
        '{"stack": "9"}',
        '{"sha256": 0}',
        "\ud800",
    ],
)
def test_a_corrupted_manifest_is_refused(refused: Callable[..., str], here: Path, text: str) -> None:
    (here / "k.json").write_bytes(text.encode(errors="surrogatepass"))
    (here / "k.S").write_text(source())
    for name in ("k.json", "k.S"):
        assert len(refused(Exit.FILE, "check", name)) < 300


def test_a_manifest_that_asks_for_nonsense_is_refused(refused: Callable[..., str], here: Path) -> None:
    (here / "k.S").write_text(source())
    for claims in ({"isa": "avx", "bits": 64}, {"isa": "avr", "bits": -8}, {"isa": "avr", "bits": 64, "core": "x"}):
        (here / "k.json").write_text(json.dumps(claims))
        refused(Exit.USAGE, "check k.json")


def test_check_of_a_source_says_what_the_assembler_says(refused: Callable[..., str], here: Path) -> None:
    (here / "bad.S").write_text("    nonsense r1\n")
    (here / "two.S").write_text(source("f") + source("g"))
    assert "refuses 'bad.S'" in refused(Exit.FILE, "check bad.S --isa avr --bits 64")
    assert "'two.S' has 2 global functions" in refused(Exit.FILE, "check two.S --isa avr --bits 64")
    (here / "alone.json").write_text(json.dumps({"isa": "avr", "bits": 64}))
    assert "'alone.S' is no file" in refused(Exit.FILE, "check alone.json")
    for name in ("none.S", "none.o", "none.json"):
        assert f"'{name}' does not exist" in refused(Exit.FILE, "check", name)
    (here / "-k.S").write_text(source())
    assert "refuses" not in refused(Exit.FILE, "check --isa avr --bits 64 --symbol x --", "-k.S")


def test_check_says_what_to_install(refused: Callable[..., str], here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "k.S").write_text(source())
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("sqgen.programs.importlib.util.find_spec", lambda name: None)
    assert "gcc-avr" in refused(Exit.TOOL, "check k.S --isa avr --bits 64")
