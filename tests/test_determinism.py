"""The same command gives the same bytes everywhere."""

from __future__ import annotations

import functools
import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COMMANDS = (
    "--isa avr --bits 64 --method sbd",
    "--isa avr --bits 72 --goal balanced --core atmega2560",
    "--isa avr --bits 40 --op mul --out other",
    "--isa avr --bits 56 --goal call --core avr128da48",
    "--isa avr --bits 72 --op mul --max-stack 16",
    "--isa arm --bits 96 --core cortex-m3",
    "--isa arm --bits 64 --core cortex-m0",
    "--isa msp430 --bits 64 --op mul -p mpy_base=0x4c0",
    "--isa msp430 --bits 48 --syntax ti",
    "explain --isa avr --bits 48",
    "--isa avr --bits 48 --json",
    "--isa avr --bits 48 --stdout",
    *(f"--isa avr --bits 48 --method sbd --dump {stage}" for stage in ("plan", "code", "registers", "bytes")),
    "cores",
    "methods",
    "methods sbd",
    "paper",
    "paper SBD13 --table 2",
    "show --method sbd --bits 64",
    "show --method sbd --bits 64 --svg picture.svg",
)
PROGRAM = f"""
from sqgen.cli import main
for line in {COMMANDS!r}:
    try:
        main(line.split())
    except SystemExit as stop:
        if stop.code:
            raise RuntimeError(line) from None
"""
ALIKE = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def outputs(*python: str, folder: Path, place: Path = ROOT, environment: Mapping[str, str] = ALIKE) -> dict[str, bytes]:
    """All that the commands write and print, by name, run by an interpreter (a command) with the package that lies in
    `place`, from the bare checkout where nothing is said."""
    packages = sysconfig.get_path("purelib")
    keep = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}
    settings = {**keep, **ALIKE, "PYTHONPATH": f"{place}{os.pathsep}{packages}", **environment}
    done = subprocess.run(
        [*python, "-c", PROGRAM], cwd=folder, env=settings, capture_output=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {"printed": done.stdout, **files}


@functools.cache
def expected() -> dict[str, bytes]:
    """What the commands give from the checkout."""
    with tempfile.TemporaryDirectory() as folder:
        return outputs(sys.executable, folder=Path(folder))


def test_everything_that_should_be_compared_is_there() -> None:
    assert len(expected()) == 1 + 9 * 3 + 1
    assert all(expected().values())


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "Asia/Kathmandu"},
        {"PYTHONHASHSEED": "random", "TZ": "Pacific/Kiritimati", "PYTHONDONTWRITEBYTECODE": "1"},
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "utf-8"},
        {"PYTHONWARNDEFAULTENCODING": "1", "PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"},
        {"LC_ALL": "POSIX", "LANG": "tr_TR.UTF-8", "LANGUAGE": "tr"},
        {"COLUMNS": "40", "LINES": "10", "TERM": "dumb", "NO_COLOR": "1"},
        {"COLUMNS": "300", "TERM": "xterm-256color", "FORCE_COLOR": "1", "COLORTERM": "truecolor"},
        {"SOURCE_DATE_EPOCH": "1", "USER": "x", "HOSTNAME": "elsewhere", "HOME": "/nonexistent", "PYTHONOPTIMIZE": "1"},
    ],
    ids=lambda environment: " ".join(f"{name}={value}" for name, value in environment.items()),
)
def test_the_environment_changes_nothing(tmp_path: Path, environment: dict[str, str]) -> None:
    assert outputs(sys.executable, folder=tmp_path, environment=environment) == expected()


def test_the_folder_changes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "a folder" / "with ünicode" / ("and a long name " * 8)
    folder.mkdir(parents=True)
    assert outputs(sys.executable, folder=folder) == expected()


def test_doing_it_again_over_the_old_files_changes_nothing(tmp_path: Path) -> None:
    assert outputs(sys.executable, folder=tmp_path) == outputs(sys.executable, folder=tmp_path) == expected()


def interpreter(minor: int) -> str | None:
    """Python 3.`minor`, on the path or where pyenv keeps it."""
    if sys.version_info[:2] == (3, minor):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [str(path) for path in sorted(pyenv.glob(f"3.{minor}.*/bin/python3"))]
    candidates = [*found, shutil.which(f"python3.{minor}")]
    return next((path for path in candidates if path and runs(path)), None)


def runs(python: str) -> bool:
    """Whether it starts: pyenv's stand-ins on the path are there also for versions that are not."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("minor", [11, 12, 13, 14])
def test_every_python_gives_the_same_bytes(tmp_path: Path, minor: int) -> None:
    python = interpreter(minor)
    if python is None:
        pytest.skip(f"Python 3.{minor} is not installed")
    strict = {"PYTHONWARNDEFAULTENCODING": "1", "PYTHONWARNINGS": "error"}
    assert outputs(python, folder=tmp_path, environment=strict) == expected()


def test_no_date_path_host_or_user_is_in_any_output() -> None:
    text = b"\n".join(expected().values()).decode()
    assert not re.search(r"\b(19|20)\d\d-[01]\d|\b\d\d:\d\d:\d\d\b|\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun),? ", text)
    private = [str(ROOT), tempfile.gettempdir() + "/", str(Path.home()) + "/", socket.gethostname(), getpass.getuser()]
    assert not [word for word in private if len(word) > 6 and word in text]
