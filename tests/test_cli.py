"""The command line: what it writes and prints, and one clear line for everything that cannot be."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import assemble, avr, kernel, missing
from hypothesis import given, settings
from hypothesis import strategies as st

from sqgen import __version__, emit, objects
from sqgen.cli import DUMPS, main
from sqgen.errors import EXIT_MEANING, Exit, UserError
from sqgen.methods import names as method_names

ROOT = Path(__file__).parent.parent
SQGEN = Path(sys.executable).with_name("sqgen")
SMALL = "--isa avr --bits 64"  # a kernel that is made quickly
STEM = "sqgen_sqr64_avr"
FILES = {f"{STEM}.S", f"{STEM}.h", f"{STEM}.json"}
SLOW = 2.0  # seconds that no broken file may take


class Run(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Run]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sqgen(here: Path, capfd: pytest.CaptureFixture[str]) -> Call:
    """The command line in this process: `sqgen("--isa avr --bits 64", "--symbol", "my name")`."""

    def call(line: str, *more: str) -> Run:
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            main([*shlex.split(line), *more])
        out, err = capfd.readouterr()
        assert isinstance(stop.value.code, int)
        return Run(stop.value.code, out, err)

    return call


@pytest.fixture
def refused(sqgen: Call, here: Path) -> Callable[..., str]:
    """Like `sqgen`, for what must be refused: nothing printed but one line, nothing written.  Returns the line."""

    def call(code: Exit, line: str, *more: str) -> str:
        before = tree(here)
        run = sqgen(line, *more)
        assert (run.code, run.out) == (code, ""), run
        assert run.err.startswith("Error: ") and run.err.count("\n") == 1 and run.err.endswith("\n"), run.err
        assert "Traceback" not in run.err
        assert tree(here) == before
        return run.err

    return call


def shell(line: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The installed program, as a user starts it."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 60, **options}
    return subprocess.run([SQGEN, *shlex.split(line)], text=True, check=False, **options)


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, by name, with the contents of regular files."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def source(name: str = STEM, bits: int = 64) -> str:
    return emit.assembly(kernel("sqr", bits)).replace(f"sqgen_sqr{bits}_avr", name)


def built(text: str, target: Path) -> Path:
    """An object file from assembly text."""
    path = target.with_suffix(".S")
    path.write_text(text)
    assemble(path, target, "avr-gcc")
    path.unlink()
    return target


def linked(part: Path, target: Path) -> None:
    """An executable of one object file, its code not at address 0."""
    options = ["-mmcu=atmega128", "-nostdlib", f"-Wl,-e,{STEM}", "-Wl,-Ttext,0x100"]
    subprocess.run(["avr-gcc", *options, str(part), "-o", str(target)], check=True)


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


def test_goals_and_limits_choose_among_the_methods(sqgen: Call) -> None:
    def made(more: str) -> tuple[int, int]:
        manifest = json.loads(sqgen(f"--isa avr --bits 128 --json {more}").out)
        return manifest["cycles"]["call"], manifest["bytes"]

    all_of_them = [made(f"--method {name}") for name in method_names("sqr")]
    assert made("--goal speed")[0] == min(cycles for cycles, _ in all_of_them)
    assert made("--goal size")[1] == min(size for _, size in all_of_them)
    least = min(size for _, size in all_of_them)
    assert made(f"--max-bytes {least}")[1] == least
    balanced = made("--goal balanced")
    assert balanced[0] * balanced[1] == min(cycles * size for cycles, size in all_of_them)


def test_256_bits_with_proof_and_files_take_less_than_a_second(here: Path) -> None:
    def busy() -> float:
        """Seconds of processor time: what the wall shows on a machine that runs no other tests at the moment."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert shell("--isa avr --bits 256", cwd=here).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(busy() for _ in range(3)) < 1.0


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
        ("sqgen --isa ", {"avr"}),
        ("sqgen --method ", {"auto", *method_names()}),
        ("sqgen --goal ", {"speed", "size", "balanced"}),
        ("sqgen --op ", {"sqr", "mul"}),
        ("sqgen --dump ", set(DUMPS)),
        ("sqgen ", {"prove", "check", "cores", "methods", "show"}),
        ("sqgen methods s", {"sbd"}),
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


# ---- what makes no sense --------------------------------------------------------------------------------------------

LONG = "a" * 300


@pytest.mark.parametrize(
    "bits", ["0", "-1", "-64", "1", "8", "12", "193", "1000000000", "1e9", "x", "19.5", "", "9" * 99]
)
def test_a_size_that_is_none_is_refused(refused: Callable[..., str], bits: str) -> None:
    refused(Exit.USAGE, "--isa avr --bits", bits)
    refused(Exit.USAGE, "show --method sbd --bits", bits)
    refused(Exit.USAGE, "prove x.o --isa avr --bits", bits)
    refused(Exit.USAGE, "check x.o --isa avr --bits", bits)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--isa avx --bits 64", "did you mean 'avr'?"),
        ("--isa '' --bits 64", "empty"),
        ("--isa ../isa/avr --bits 64", "unknown ISA"),
        ("--bits 64", "say --isa"),
        ("--isa avr", "say --bits"),
        ("--op mul", "say --isa"),
        (f"{SMALL} --core atmega182", "did you mean 'atmega128'?"),
        (f"{SMALL} --core ''", "empty"),
        (f"{SMALL} --core=", "empty"),
        (f"{SMALL} --op div", "known: sqr, mul"),
        (f"{SMALL} --method sdb", "did you mean 'sbd'?"),
        (f"{SMALL} --method ../sbd", "unknown method"),
        (f"{SMALL} --method sbd --op mul", "cannot do mul"),
        (f"{SMALL} --method operand-scanning", "cannot do sqr"),
        (f"{SMALL} --goal nonsense", "known: speed, size, balanced"),
        (f"{SMALL} --max-bytes -1", "-1"),
        (f"{SMALL} --max-stack -1", "-1"),
        (f"{SMALL} --max-bytes x", "--max-bytes"),
        (f"{SMALL} --json --stdout", "--stdout"),
        (f"{SMALL} --json --dump plan", "--dump"),
        (f"{SMALL} --dump nonsense", "plan"),
        (f"{SMALL} --nonsense", "--nonsense"),
        (f"{SMALL} --symbol", "--symbol"),
        (f"{SMALL} nonsense", "nonsense"),
        (f"{SMALL} --out ''", "empty"),
        ("nonsense", "sqgen -h"),
        ("cores more", "more"),
        ("cores --isa avx", "did you mean 'avr'?"),
        ("methods nonsense", "unknown method"),
        ("methods sbd more", "more"),
        (f"{SMALL} cores", "--isa"),
        ("--isa avr prove x.o --bits 64", "sqgen prove -h"),
        ("prove", "FILE"),
        ("prove x.o --bits 64", "--isa"),
        ("prove x.o --isa avr", "--bits"),
        ("prove x.o --isa avr --bits 64 --core atmega182", "did you mean 'atmega128'?"),
        ("prove x.o --isa avr --bits 64 --op div", "known: sqr, mul"),
        ("prove x.o y.o --isa avr --bits 64", "y.o"),
        ("prove '' --isa avr --bits 64", "empty"),
        ("check", "FILE"),
        ("check x.o --isa avr --bits 64 --runs 0", "--runs"),
        ("show", "--method"),
        ("show --method sbd", "say either --bits or --limbs"),
        ("show --method sbd --bits 64 --limbs 8", "say either --bits or --limbs"),
        ("show --method sbd --limbs 0", "out of range"),
        ("show --method sbd --limbs 1000000", "out of range"),
        ("show --method sbd --bits 64 --op mul", "cannot do mul"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_what_to_say_instead(
    refused: Callable[..., str], line: str, says: str
) -> None:
    assert says in refused(Exit.USAGE, line)


@pytest.mark.parametrize(
    ("parameter", "says"),
    [
        ("blok=4", "did you mean 'block'?"),
        ("block=0", "1 to 16"),
        ("block=-1", "1 to 16"),
        ("block=17", "1 to 16"),
        (f"block={'9' * 99}", "1 to 16"),
        (f"block={'9' * 9999}", "1 to 16"),
        ("block=x", "not 'x'"),
        ("block=4,", "'4,'"),
        ("block=1.5", "'1.5'"),
        ("block=²", "'²'"),
        ("block=", "NAME=VALUE"),
        ("=4", "NAME=VALUE"),
        ("block", "NAME=VALUE"),
        ("", "empty"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(refused: Callable[..., str], parameter: str, says: str) -> None:
    assert says in refused(Exit.USAGE, f"{SMALL} --method sbd -p", parameter)
    assert says in refused(Exit.USAGE, "show --bits 64 --method sbd -p", parameter)


def test_a_parameter_twice_or_without_its_method_is_refused(refused: Callable[..., str]) -> None:
    assert "twice" in refused(Exit.USAGE, f"{SMALL} --method sbd -p block=4 -p block=4")
    assert "--method" in refused(Exit.USAGE, f"{SMALL} -p block=4")
    assert "has none" in refused(Exit.USAGE, f"{SMALL} --method product-scanning -p block=4")


@pytest.mark.parametrize(
    "symbol",
    [
        *("", "1x", "a-b", "é", "naïve", "a b", "a\nb", "a;b", "$a", "٣", LONG),
        *("int", "class", "_Bool", "asm", "uint8_t", "nullptr", "main", "AVR"),
    ],
)
def test_a_symbol_that_is_no_c_identifier_is_refused(refused: Callable[..., str], symbol: str) -> None:
    assert len(refused(Exit.USAGE, f"{SMALL} --symbol", symbol)) < 200


@pytest.mark.parametrize("core", ["attiny84", "attiny85", "at90s8515"])
def test_a_core_without_mul_is_refused(refused: Callable[..., str], core: str) -> None:
    assert f"{core} has no MUL" in refused(Exit.LIMITS, f"{SMALL} --core {core}")


def test_limits_that_nobody_meets_are_refused_with_the_distance(refused: Callable[..., str], sqgen: Call) -> None:
    least = json.loads(sqgen(f"{SMALL} --json --goal size").out)["bytes"]
    assert f"{least - 10} more than --max-bytes 10" in refused(Exit.LIMITS, f"{SMALL} --max-bytes 10")
    assert "1 more than" in refused(Exit.LIMITS, f"{SMALL} --max-bytes {least - 1}")
    assert re.search(r"\d+ more than --max-stack 0", refused(Exit.LIMITS, f"{SMALL} --max-stack 0"))
    both = refused(Exit.LIMITS, f"{SMALL} --max-bytes 10 --max-stack 0")
    assert "--max-bytes 10" in both and "--max-stack 0" in both


def test_the_installed_program_complains_in_one_line_without_a_traceback(here: Path) -> None:
    for line, code in (
        ("--isa avr --bits 12", 2),
        (f"{SMALL} --core attiny84", 3),
        ("prove no.o --isa avr --bits 8", 2),
    ):
        done = shell(line, cwd=here)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert tree(here) == {}


# ---- places that cannot be written ----------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["/dev/null", "/dev/null/x", "/proc/sqgen", "/sys/x/y", f"{LONG}/x", "file", "file/x"])
def test_a_folder_that_cannot_be_written_is_refused(refused: Callable[..., str], here: Path, out: str) -> None:
    (here / "file").write_text("mine")
    assert "cannot write to" in refused(Exit.FILE, SMALL, "--out", out)
    refused(Exit.FILE, f"{SMALL} --json --out", out)
    refused(Exit.FILE, "show --method sbd --bits 64 --svg", f"{out}/x.svg")


def test_a_target_that_is_no_regular_file_is_left_alone(refused: Callable[..., str], here: Path) -> None:
    (here / "out").mkdir()
    (here / f"out/{STEM}.json").mkdir()
    refused(Exit.FILE, SMALL)
    (here / f"out/{STEM}.json").rmdir()
    (here / f"out/{STEM}.json").symlink_to("/dev/null")
    refused(Exit.FILE, SMALL)
    os.mkfifo(here / "out/pipe.svg")
    refused(Exit.FILE, "show --method sbd --bits 64 --svg out/pipe.svg")
    refused(Exit.FILE, "show --method sbd --bits 64 --svg /dev/full")


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("old", [False, True])
def test_a_full_disk_leaves_nothing_behind(
    refused: Callable[..., str], here: Path, monkeypatch: pytest.MonkeyPatch, at: int, old: bool
) -> None:
    calls = iter(range(1, 100))

    def fsync(_: int) -> None:
        if next(calls) == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if old:
        (here / "out").mkdir()
        (here / f"out/{STEM}.h").write_text("old")
    monkeypatch.setattr(os, "fsync", fsync)
    assert "No space left" in refused(Exit.FILE, SMALL)


def test_a_really_full_disk_leaves_nothing_behind(refused: Callable[..., str], here: Path) -> None:
    disk = here / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root and a kernel that lets it")
    try:
        assert "No space left" in refused(Exit.FILE, f"{SMALL} --out disk/new")
        assert "No space left" in refused(Exit.FILE, f"{SMALL} --out disk")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("old", [0, 1, 3])
def test_a_rename_that_fails_puts_everything_back(
    refused: Callable[..., str], here: Path, monkeypatch: pytest.MonkeyPatch, at: int, old: int
) -> None:
    calls = iter(range(1, 100))
    replace = Path.replace

    def failing(self: Path, target: Path) -> Path:
        if next(calls) == at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return replace(self, target)

    if old:
        (here / "out").mkdir()
    for name in sorted(FILES)[:old]:
        (here / "out" / name).write_text(f"old {name}")
    monkeypatch.setattr(Path, "replace", failing)
    assert "Input/output error" in refused(Exit.FILE, SMALL)


def test_ctrl_c_while_writing_leaves_nothing_behind(sqgen: Call, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fsync)
    run = sqgen(SMALL)
    assert (run.code, run.out, run.err.strip()) == (Exit.STOPPED, "", "Error: stopped")
    assert tree(here) == {}


def test_a_kill_while_writing_leaves_no_half_written_file(here: Path) -> None:
    (here / "out").mkdir()
    (here / f"out/{STEM}.S").write_text("old")
    program = f"""
import os, signal
from sqgen.cli import main
seen = []
def fsync(_):
    seen.append(_)
    if len(seen) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
os.fsync = fsync
main({shlex.split(SMALL)!r})
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=here, capture_output=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert (here / f"out/{STEM}.S").read_text() == "old"
    assert {path.name for path in (here / "out").iterdir() if not path.name.startswith(".")} == {f"{STEM}.S"}


@pytest.mark.parametrize("line", ["-h", "cores", f"{SMALL} --json", f"{SMALL} --stdout", f"{SMALL} --dump plan", SMALL])
def test_an_output_that_is_full_or_closed_is_said_in_one_line(here: Path, line: str) -> None:
    with open("/dev/full", "w") as full:
        done = shell(line, cwd=here, stdout=full)
    assert done.returncode == Exit.FILE
    assert done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1
    if line != "-h":  # click prints that, and says nothing
        closed = subprocess.run(
            ["sh", "-c", f"exec {shlex.quote(str(SQGEN))} {line} >&-"],
            cwd=here,
            capture_output=True,
            text=True,
            check=False,
        )
        assert closed.returncode == Exit.FILE
        assert closed.stderr.startswith("Error: ") and closed.stderr.count("\n") == 1


@pytest.mark.parametrize("line", ["-h", "cores", f"{SMALL} --stdout", SMALL])
def test_a_reader_that_goes_away_is_no_error(here: Path, line: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = shell(line, cwd=here, stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_complaint_that_cannot_be_printed_keeps_its_exit_code(here: Path) -> None:
    with open("/dev/full", "w") as full:
        done = shell("--isa avr --bits 12", cwd=here, stderr=full)
    assert (done.returncode, done.stdout) == (Exit.USAGE, "")


@pytest.mark.parametrize("line", ["cores", "show --method sbd --bits 64", f"{SMALL} --out é"])
def test_a_terminal_that_cannot_show_a_character_is_no_error(here: Path, line: str) -> None:
    done = shell(line, cwd=here, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")


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
    assert "is no file" in refused(Exit.FILE, "check none.S --isa avr --bits 64")
    (here / "-k.S").write_text(source())
    assert "refuses" not in refused(Exit.FILE, "check --isa avr --bits 64 --symbol x --", "-k.S")


def test_check_says_what_to_install(refused: Callable[..., str], here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "k.S").write_text(source())
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr("sqgen.programs.importlib.util.find_spec", lambda name: None)
    assert "gcc-avr" in refused(Exit.TOOL, "check k.S --isa avr --bits 64")


def test_the_program_is_installed() -> None:
    if not SQGEN.is_file():
        missing(f"{SQGEN} is not there; install the package into the environment that runs the tests")
