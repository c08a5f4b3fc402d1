"""The command line: one clear line, and nothing written, for everything that cannot be."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import FILES, LONG, SMALL, SQGEN, STEM, Call, shell, tree

from sqgen.errors import Exit

# ---- what makes no sense --------------------------------------------------------------------------------------------


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
        (f"{SMALL} --goal nonsense", "known: speed, call, balanced, size"),
        (f"{SMALL} --search 0", "seconds above 0"),
        (f"{SMALL} --search inf", "seconds above 0"),
        (f"{SMALL} --search soon", "--search"),
        (f"{SMALL} --search 1 --goal size", "--goal speed or call"),
        (f"{SMALL} --search 1 --max-bytes 900", "without limits"),
        (f"{SMALL} --search 1 --method sweeps -p orders=i", "leave out -p"),
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
        ("search --isa avr", "--method"),
        ("search --isa avr --method sbd --most 16", "not searched by chance"),
        ("search --isa avr --method sweeps --least 12", "12"),
        ("search --isa avr --method sweeps --goal size", "--goal speed or call"),
        ("search --isa avr --method sweeps --batches 0", "--batches"),
        ("search --isa avr --method sweeps --op mul --most 16", "cannot do mul"),
        ("explain", "--isa"),
        ("explain --isa avr", "--bits"),
        ("explain --isa avr --bits 64 --method sdb", "did you mean 'sbd'?"),
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
    least = json.loads(sqgen(f"{SMALL} --json --method column-loops").out)["bytes"]
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


@pytest.mark.parametrize("out", ["/dev/null", "/dev/null/x", "/proc/sqgen", "/proc/x/y", f"{LONG}/x", "file", "file/x"])
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
