"""The command line: what it writes and prints."""

from __future__ import annotations

import gc
import json
import os
import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from clock import quick
from commandline import FILES, ROOT, SMALL, SQGEN, STEM, Call, shell, source, tree
from conftest import avr, kernel, missing

from sqgen import __version__
from sqgen.cli import DUMPS
from sqgen.errors import EXIT_MEANING, Exit
from sqgen.methods import names as method_names
from sqgen.methods import sought

# ---- the main job ---------------------------------------------------------------------------------------------------


def test_the_installed_program_writes_three_files_into_out_and_prints_a_short_table(here: Path) -> None:
    done = shell("--isa avr --bits 192 --method sbd", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in here.iterdir()} == {"out"}
    assert {path.name for path in (here / "out").iterdir()} == {f"sqgen_sqr192_avr.{end}" for end in ("S", "h", "json")}
    manifest = json.loads((here / "out/sqgen_sqr192_avr.json").read_text())
    rows = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if re.match(r"  \w", line))
    assert str(manifest["cycles"]["call"]) in rows["cycles"] and str(manifest["cycles"]["body"]) in rows["cycles"]
    assert str(manifest["bytes"]) in rows["bytes"]
    assert str(manifest["stack"]) in rows["stack"]
    assert "every input" in rows["proof"]
    assert all(f"out/sqgen_sqr192_avr.{end}" in done.stdout for end in ("S", "h", "json"))
    assert len(done.stdout.splitlines()) < 20 and max(map(len, done.stdout.splitlines())) <= 100


@pytest.mark.parametrize("out", ["other", "new/nested/folder", ".", "with space/é"])
def test_out_names_the_folder_and_makes_it(sqgen: Call, here: Path, out: str) -> None:
    run = sqgen(SMALL, "--out", out)
    assert run.code == 0
    assert {path.name for path in (here / out).iterdir()} == FILES
    assert all(str(Path(out) / name) in run.out for name in FILES)


def test_files_that_are_there_are_replaced_and_others_stay(sqgen: Call, here: Path) -> None:
    (here / "out").mkdir()
    (here / f"out/{STEM}.h").write_text("old")
    (here / "out/mine.h").write_text("mine")
    assert sqgen(SMALL).code == 0
    assert "SPDX" in (here / f"out/{STEM}.h").read_text()
    assert (here / "out/mine.h").read_text() == "mine"
    assert {path.name for path in (here / "out").iterdir()} == FILES | {"mine.h"}


def test_called_by_python_it_leaves_the_search_for_cycles_as_it_was(sqgen: Call) -> None:
    frozen, before = gc.get_freeze_count(), (gc.isenabled(), gc.get_threshold())
    assert sqgen(SMALL).code == 0
    assert (gc.isenabled(), gc.get_threshold()) == before
    assert gc.get_freeze_count() <= frozen  # what was may go


def test_a_link_in_the_place_of_a_file_is_followed(sqgen: Call, here: Path) -> None:
    (here / "out").mkdir()
    (here / "elsewhere.h").write_text("old")
    (here / f"out/{STEM}.h").symlink_to(here / "elsewhere.h")
    assert sqgen(SMALL).code == 0
    assert (here / f"out/{STEM}.h").is_symlink()
    assert "SPDX" in (here / "elsewhere.h").read_text()


def test_files_have_the_permissions_that_the_umask_gives(sqgen: Call, here: Path) -> None:
    before = os.umask(0o027)
    try:
        assert sqgen(SMALL).code == 0
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (here / "out").iterdir()} == {0o640}


def test_json_prints_the_manifest_and_nothing_else(sqgen: Call, here: Path) -> None:
    run = sqgen(f"{SMALL} --json")
    assert json.loads(run.out)["symbol"] == STEM
    assert (run.code, run.err, tree(here)) == (0, "", {})


def test_stdout_prints_the_assembly_and_nothing_else(sqgen: Call, here: Path) -> None:
    run = sqgen(f"{SMALL} --stdout")
    assert (run.code, run.out, run.err, tree(here)) == (0, source(), "", {})


def test_json_and_stdout_print_what_is_written(sqgen: Call, here: Path) -> None:
    assert sqgen(f"{SMALL} --json --out a").out == (here / f"a/{STEM}.json").read_text()
    assert sqgen(f"{SMALL} --stdout --out b").out == (here / f"b/{STEM}.S").read_text()
    assert {path.name for path in (here / "b").iterdir()} == FILES


@pytest.mark.parametrize("stage", DUMPS)
def test_dump_prints_a_stage_and_writes_nothing(sqgen: Call, here: Path, stage: str) -> None:
    run = sqgen(f"{SMALL} --method sbd --dump {stage}")
    assert (run.code, run.err, tree(here)) == (0, "", {})
    assert len(run.out.splitlines()) > 5


def test_dump_bytes_holds_every_byte_of_the_code(sqgen: Call) -> None:
    rows = [line for line in sqgen(f"{SMALL} --dump bytes").out.splitlines() if re.match(r"[0-9a-f]{5}  ", line)]
    assert bytes.fromhex("".join(row[7:19] for row in rows)) == kernel("sqr", 64).compiled.image


def test_quiet_writes_and_prints_nothing(sqgen: Call, here: Path) -> None:
    assert sqgen(f"{SMALL} --quiet") == (0, "", "")
    assert {path.name for path in (here / "out").iterdir()} == FILES


def test_symbol_names_function_and_files(sqgen: Call, here: Path) -> None:
    assert sqgen(f"{SMALL} --symbol square_8").code == 0
    assert {path.name for path in (here / "out").iterdir()} == {"square_8.S", "square_8.h", "square_8.json"}
    assert "void square_8(uint8_t *r, const uint8_t *a);" in (here / "out/square_8.h").read_text()


@pytest.mark.parametrize("method", ["product-scanning", "operand-scanning"])
def test_mul_takes_two_operands(sqgen: Call, here: Path, method: str) -> None:
    assert sqgen(f"{SMALL} --op mul --method {method}").code == 0
    header = (here / "out/sqgen_mul64_avr.h").read_text()
    assert "void sqgen_mul64_avr(uint8_t *r, const uint8_t *a, const uint8_t *b);" in header


def test_parameters_reach_the_method(sqgen: Call) -> None:
    manifest = json.loads(sqgen(f"{SMALL} --method sbd -p block=3,5 --json").out)
    assert manifest["parameters"] == {"block": "3,5"}


NEVER = 1 << 60  # cycles and bytes of what is not made


@pytest.mark.parametrize("bits", [96, pytest.param(128, marks=pytest.mark.sweep)])
def test_goals_and_limits_choose_among_the_methods(sqgen: Call, bits: int) -> None:
    def made(more: str) -> tuple[int, int]:
        run = sqgen(f"--isa avr --bits {bits} --json {more}")
        if run.code == Exit.USAGE:  # a method that is not for this instruction set
            return NEVER, NEVER
        manifest = json.loads(run.out)
        return manifest["cycles"]["body" if "speed" in more else "call"], manifest["bytes"]

    def best(more: str, cost: Callable[[int, int], int]) -> int:
        """The least cost over all methods, each made for the same goal."""
        names = [name for name in method_names("sqr") if sought(name, bits // 8)]
        return min(cost(*made(f"--method {name} {more}")) for name in names)

    assert made("--goal speed")[0] == best("--goal speed", lambda cycles, size: cycles)
    assert made("--goal call")[0] == best("--goal call", lambda cycles, size: cycles)
    least = best("--goal size", lambda cycles, size: size)
    assert made("--goal size")[1] == least
    assert made(f"--max-bytes {least}")[1] == least
    balanced = made("--goal balanced")
    assert balanced[0] ** 3 * balanced[1] == best("--goal balanced", lambda cycles, size: cycles**3 * size)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("--isa arm --bits 2080", True),
        ("--isa arm --bits 256", False),
        ("--isa arm --bits 128 --method sbd", True),
        ("--isa avr --bits 128 --method sbd", False),
        ("--isa avr --bits 128 --method operand-scanning --op mul", False),
        ("--isa avr --bits 128 --method sbd -p block=3", False),
        ("--isa avr --bits 128 --method yang --goal size", False),
    ],
)
def test_a_kernel_that_nobody_searched_for_says_so(sqgen: Call, here: Path, asked: str, said: bool) -> None:
    assert ("--search" in sqgen(asked).out) == said


@pytest.mark.clock
@pytest.mark.parametrize("op", ["sqr", "mul"])
@pytest.mark.parametrize("isa", ["avr", "arm", "arm --core cortex-m3", "msp430"])
def test_256_bits_with_proof_and_files_take_less_than_a_second(here: Path, isa: str, op: str) -> None:
    """As a user starts it, whose Python keeps what it has compiled."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    kept["PYTHONPYCACHEPREFIX"] = str(here / "compiled")

    def call() -> None:
        shell(f"--isa {isa} --op {op} --bits 256", cwd=here, env=kept).check_returncode()

    call()
    assert quick(call, 1.0, time.perf_counter)


# ---- help, lists, pictures, completion ------------------------------------------------------------------------------


def test_version_and_help(sqgen: Call) -> None:
    assert sqgen("--version") == (0, f"sqgen {__version__}\n", "")
    for line in ("-h", "--help", ""):
        run = sqgen(line)
        assert (run.code, run.err) == (0, "") and run.out.startswith("Usage: sqgen")
    for command in ("prove", "check", "cores", "methods", "show"):
        run = sqgen(f"{command} -h")
        assert (run.code, run.err) == (0, "") and run.out.startswith(f"Usage: sqgen {command}")


def test_help_lists_every_exit_code(sqgen: Call) -> None:
    text = " ".join(sqgen("-h").out.split())
    assert all(f"{code.value} {' '.join(meaning.split())}" in text for code, meaning in EXIT_MEANING.items())


def test_cores_lists_every_core(sqgen: Call) -> None:
    for line in ("cores", "cores --isa avr"):
        run = sqgen(line)
        assert (run.code, run.err) == (0, "")
        assert all(name in run.out for name in avr().cores)


def test_methods_lists_every_method_and_explains_one(sqgen: Call) -> None:
    run = sqgen("methods")
    assert (run.code, run.err) == (0, "")
    for name in method_names():
        assert name in run.out
        explained = sqgen(f"methods {name}")
        assert explained.code == 0 and len(explained.out) > 100


def test_show_draws_in_the_terminal_and_as_svg(sqgen: Call, here: Path) -> None:
    run = sqgen("show --method sbd --bits 64 -p block=4")
    assert (run.code, run.err, tree(here)) == (0, "", {})
    assert sqgen("show --method sbd --limbs 8 -p block=4").out == run.out
    assert sqgen("show --method operand-scanning --op mul --limbs 4 --svg new/x.svg").code == 0
    assert ET.parse(here / "new/x.svg").getroot().tag.endswith("svg")
    assert {path.name for path in (here / "new").iterdir()} == {"x.svg"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sqgen --core atm", {name for name in avr().cores if name.startswith("atm")}),
        ("sqgen --isa avr --core ", set(avr().cores)),
        ("sqgen --isa nonsense --core ", set()),
        ("sqgen --isa ", {"arm", "avr", "msp430"}),
        ("sqgen --method ", {"auto", *method_names()}),
        ("sqgen --goal ", {"speed", "call", "size", "balanced"}),
        ("sqgen --op ", {"sqr", "mul"}),
        ("sqgen --dump ", set(DUMPS)),
        ("sqgen ", {"prove", "check", "compare", "cores", "explain", "methods", "paper", "search", "show", "verify"}),
        ("sqgen paper s", {"SBD13"}),
        ("sqgen paper COC15 --table Ta", {f"Table {number}" for number in (1, 2, 3, 4)}),
        ("sqgen methods s", {"sbd", "streamed-karatsuba", "su", "sweeps"}),
        ("sqgen prove --core attiny8", {"attiny84", "attiny85"}),
    ],
)
def test_tab_completion_in_bash_knows_the_tables(line: str, expected: set[str]) -> None:
    words = {"_SQGEN_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    done = shell("", env={**os.environ, **words})
    assert (done.returncode, done.stderr) == (0, "")
    assert {row.split(",", 1)[1] for row in done.stdout.splitlines() if row} == expected


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(name: str) -> None:
    done = shell("", env={**os.environ, "_SQGEN_COMPLETE": f"{name}_source"})
    assert (done.returncode, done.stderr) == (0, "") and "_SQGEN_COMPLETE" in done.stdout


def test_the_readme_prints_the_table_of_exit_codes() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == EXIT_MEANING


def test_the_program_is_installed() -> None:
    if not SQGEN.is_file():
        missing(f"{SQGEN} is not there; install the package into the environment that runs the tests")
