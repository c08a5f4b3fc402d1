"""How the tests call the command line: in this process or as the installed program."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from conftest import assemble, kernel
from hostile import REFUSED, tried

from sqgen import emit, progress
from sqgen.cli import main
from sqgen.errors import Exit

ROOT = Path(__file__).parent.parent
SQGEN = Path(sys.executable).with_name("sqgen")
SMALL = "--isa avr --bits 64"  # a kernel that is made quickly
STEM = "sqgen_sqr64_avr"
FILES = {f"{STEM}.S", f"{STEM}.h", f"{STEM}.json"}
SLOW = 2.0  # seconds that no broken file may take
LONG = "a" * 300


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
def threadless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which no thread can be started."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


@pytest.fixture
def sqgen(here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command line in this process: `sqgen("--isa avr --bits 64", "--symbol", "my name")`."""
    monkeypatch.setattr(progress, "WORDLESS", 60.0)  # what else runs here may make it slow

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
        tried(REFUSED)
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
