"""Full disks, folders that cannot be written, Ctrl-C and kills at every step, and two programs at once.

Whatever happens, a file is what it was or what it is to be, and there is one clear line.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commandline import FILES, ROOT, SMALL, SQGEN, STEM, Call, built, shell, tree
from faults import texts
from hostile import BROKEN_OFF, tried

from sqgen import answers, files, record
from sqgen.errors import Exit
from sqgen.tables import isa

PACKAGE = ("sqgen", "isa", "papers", "schedules", "templates", "pyproject.toml")
ANSWERS = "checkout/schedules/answers/avr.toml"
SEARCH = "search --isa avr --method sweeps --least 16 --most 16 --plans 1 --batches 1"
# Every command that writes, with all files that it writes.
WRITING = {
    SMALL: tuple(f"out/{name}" for name in sorted(FILES)),
    "--isa msp430 --bits 32 --syntax ti --json --out .": tuple(
        f"sqgen_sqr32_msp430.{end}" for end in ("asm", "h", "json")
    ),
    "show --method sbd --bits 32 --svg new/show.svg": ("new/show.svg",),
    "compare --isa msp430 --bits 16 --csv --svg compare.svg": ("compare.svg",),
    SEARCH: (ANSWERS,),
}
EVERY = pytest.mark.parametrize("line", WRITING, ids=lambda line: " ".join(line.split()[:3]))


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package, in whose answers one is missing that a search will find."""
    folder = tmp_path_factory.mktemp("before")
    (folder / "checkout").mkdir()
    for name in PACKAGE:
        copy: Callable[[Path, Path], object] = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, folder / "checkout" / name)
    path = folder / ANSWERS
    text = path.read_text()
    path.write_text(re.sub(r"(?m)(^\[sweeps\.sqr\]\n)16 = .*\n", r"\1", text))
    assert path.read_text() != text
    return folder


@pytest.fixture
def before(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Path]:
    """How the folder stands before a command that writes: `before(line)`."""

    def made(line: str, *, old: bool = True) -> Path:
        if line == SEARCH:
            return Path(request.getfixturevalue("checkout"))
        folder = tmp_path / "before"
        folder.mkdir()
        for name in WRITING[line] if old else ():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"old {name}")
        return folder

    return made


def settings(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a program in `folder`: the copy of the package there comes first, if there is one."""
    return {**os.environ, "PYTHONPATH": str(folder / "checkout"), **more}


# ---- something goes wrong at every step -----------------------------------------------------------------------------


def faulty(how: str, before: Path, folder: Path, line: str) -> list[dict[str, Any]]:
    """What tests/faults.py saw, run by run."""
    command = [sys.executable, "-B", str(ROOT / "tests/faults.py"), how, str(before), str(folder), *shlex.split(line)]
    done = subprocess.run(command, env=settings(folder), capture_output=True, text=True, timeout=300, check=True)
    runs = [json.loads(row) for row in done.stdout.splitlines()]
    tried(BROKEN_OFF, len(runs) - 1)  # in the last one nothing went wrong
    return runs


QUICK = [line for line in WRITING if line.startswith(("--", "show"))]  # of the others each run takes seconds
FAULTS = [
    ("full", {Exit.FILE, Exit.OK}, r"(Error: cannot (write|read or write) [^\n]*\n)?"),
    ("stop", {Exit.STOPPED}, r"\n?Error: stopped\n"),
    ("kill", {-signal.SIGKILL}, ""),
]


@pytest.mark.many
@pytest.mark.parametrize(
    ("line", "old", "how", "codes", "says"),
    [
        *((line, old, *fault) for line, old, fault in itertools.product(QUICK, [True, False], FAULTS)),
        *(
            pytest.param(line, True, *fault, marks=() if fault[0] == "kill" else pytest.mark.sweep)
            for line, fault in itertools.product(WRITING, FAULTS)
            if line not in QUICK
        ),
    ],
)
def test_at_every_step_a_file_is_what_it_was_or_what_it_is_to_be(
    before: Callable[..., Path], tmp_path: Path, line: str, *, how: str, codes: set[int], says: str, old: bool
) -> None:
    start = before(line, old=old)
    *broken, whole = faulty(how, start, tmp_path / "work", line)
    new = whole["changed"]
    assert whole["code"] == Exit.OK and set(new) == set(WRITING[line]) and len(broken) > 3 * len(new)
    for run in broken:
        assert run["code"] in codes and re.fullmatch(says, run["stderr"]), run["stderr"]
        assert run["changed"].items() <= new.items()
        if how != "kill":  # all or none
            assert len(run["changed"]) in (0, len(new))
            assert (run["code"] == Exit.OK) <= bool(run["changed"])
            assert ("nothing was changed" in run["stderr"]) <= (not run["changed"])


@EVERY
def test_a_limit_on_the_length_of_files_leaves_nothing_behind(before: Callable[..., Path], line: str) -> None:
    start = before(line)
    was = texts(start)
    limit = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (100, 100))
    done = shell(line, cwd=start, env=settings(start, PYTHONDONTWRITEBYTECODE="1"), preexec_fn=limit)
    assert done.returncode == Exit.FILE
    assert re.fullmatch("Error: cannot write to .*File too large; nothing was changed\n", done.stderr)
    assert texts(start) == was


# ---- folders that cannot be written ---------------------------------------------------------------------------------

# Somebody whom permissions bind, as root is without these capabilities.
BOUND = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner", "--inh-caps=-all")
ORDINARY = BOUND if os.geteuid() == 0 else ()


def ordinary(line: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """The installed program, by somebody whom permissions bind."""
    command = [*ORDINARY, str(SQGEN), *shlex.split(line)]
    return subprocess.run(
        command, cwd=folder, env=settings(folder, **more), capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def read_only() -> Iterator[Callable[[Path], None]]:
    """Take away the right to write into a folder and all below, until the test is over."""
    changed: list[Path] = []

    def take(folder: Path) -> None:
        for path in (folder, *folder.rglob("*")):
            path.chmod(path.stat().st_mode & ~0o222)
            changed.append(path)

    yield take
    for path in changed:
        path.chmod(path.stat().st_mode | 0o200)


@EVERY
def test_a_folder_that_is_read_only_is_refused(
    before: Callable[..., Path], tmp_path: Path, read_only: Callable[[Path], None], line: str
) -> None:
    start = tmp_path / "start"
    shutil.copytree(before(line), start)
    was = tree(start)
    read_only(start)
    done = ordinary(line.replace("--plans 1", "--plans 9999999"), start, PYTHONDONTWRITEBYTECODE="1")  # or too late
    assert (done.returncode, done.stdout) == (Exit.FILE, "")
    assert re.fullmatch("Error: cannot write to .*Permission denied.*\n", done.stderr)
    assert tree(start) == was


@pytest.mark.parametrize("end", ["S", "o"])
@pytest.mark.simulator
def test_check_says_where_it_cannot_keep_what_it_assembles(tmp_path: Path, end: str) -> None:
    shell(f"{SMALL} --out .", cwd=tmp_path).check_returncode()
    nowhere = {"TMPDIR": "/nowhere", "TEMP": "/nowhere", "TMP": "/nowhere"}
    done = shell(f"check {STEM}.S", cwd=tmp_path, env={**os.environ, **nowhere})
    assert (done.returncode, done.stderr) == (0, "")  # /tmp and others are tried, too


# ---- Ctrl-C ---------------------------------------------------------------------------------------------------------

STOPPED = "\nError: stopped\n"
RUNNING = (
    SMALL,
    "show --method sbd --bits 32 --svg new/show.svg",
    "prove k.o --isa avr --bits 64",
    "check k.S --runs 3",
    "explain --isa avr --bits 32",
    "paper SBD13 --table 2",
    "methods",
    "cores",
)


@pytest.mark.parametrize("line", RUNNING, ids=lambda line: " ".join(line.split()[:3]))
def test_ctrl_c_at_any_time_ends_it_with_one_word(tmp_path: Path, line: str) -> None:
    start = tmp_path / "before"
    shell(f"{SMALL} --symbol k --out .", cwd=_folder(start)).check_returncode()
    if "k.o" in line:
        built((start / "k.S").read_text(), start / "k.o")
    *broken, whole = faulty("call", start, tmp_path / "work", line)
    assert len(broken) > 8
    for run in broken:
        assert (run["code"], run["stderr"]) == (Exit.STOPPED, STOPPED)
        assert run["changed"] in ({}, whole["changed"])


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("at", [1, 2, 3])
def test_ctrl_c_right_behind_a_rename_leaves_no_mixture(
    sqgen: Call, here: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    calls, replace = iter(range(1, 100)), Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        found = replace(self, target)
        if next(calls) == at:
            os.kill(os.getpid(), signal.SIGINT)
        return found

    (here / "out").mkdir()
    for name in FILES:
        (here / "out" / name).write_text("old")
    monkeypatch.setattr(Path, "replace", interrupted)
    assert (sqgen(SMALL).code, signal.getsignal(signal.SIGINT)) == (Exit.STOPPED, signal.default_int_handler)
    texts_now = texts(here)
    assert len(texts_now) == 3 and "old" not in texts_now.values()


LOADING = """
import os, signal, sys
class Finder:
    left = int(sys.argv.pop(1))
    def find_spec(self, name, path, target=None):
        Finder.left -= 1
        if not Finder.left:
            os.kill(os.getpid(), signal.SIGINT)
from sqgen.__main__ import main
sys.meta_path.insert(0, Finder())
main()
"""


@pytest.mark.parametrize("number", [1, 2, 3, 5, 8, 13, 21, 34, 55])
def test_ctrl_c_while_the_program_is_loaded_ends_it_with_one_word(tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-c", LOADING, str(number), *SMALL.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (Exit.STOPPED, "", STOPPED)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("whom", ["the program", "its group"])
@pytest.mark.parametrize("line", [f"{SMALL} --search 60", SEARCH.replace("--plans 1", "--plans 9999999")])
def test_ctrl_c_ends_a_search_and_its_workers_at_once(checkout: Path, tmp_path: Path, line: str, whom: str) -> None:
    shutil.copytree(checkout, tmp_path / "work")
    was = texts(tmp_path / "work")
    process = subprocess.Popen(
        [SQGEN, *shlex.split(line)],
        cwd=tmp_path / "work",
        env=settings(tmp_path / "work"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    workers = _waited(functools.partial(_children, process.pid))
    time.sleep(0.5)
    (os.killpg if whom == "its group" else os.kill)(process.pid, signal.SIGINT)
    started = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (Exit.STOPPED, "", STOPPED)
    assert time.monotonic() - started < 4.0  # the rounds would go on for hours
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert texts(tmp_path / "work") == was


def test_a_script_s_job_in_background_goes_on_at_ctrl_c(tmp_path: Path) -> None:
    process = background(tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (Exit.OK, "") and out


def test_where_a_worker_is_killed_one_line_says_so(tmp_path: Path) -> None:
    process = background(tmp_path)
    os.kill(_children(process.pid)[0], signal.SIGKILL)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (Exit.UNPROVED, "")
    assert re.fullmatch("Error: a process at work was killed, most likely for want of memory; .*\n", err)
    assert tree(tmp_path) == {}


def background(folder: Path) -> subprocess.Popen[str]:
    """A search of some seconds as shells start jobs in background, when its workers are there."""
    line = ["sh", "-c", f"trap '' INT; exec {SQGEN} {SMALL} --search 4"]
    process = subprocess.Popen(
        line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _waited(functools.partial(_children, process.pid))
    time.sleep(0.5)
    return process


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _waited(found: Callable[[], list[int]], patience: float = 30.0) -> list[int]:
    """What there is as soon as there is something."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if there := found():
            return there
        time.sleep(0.05)
    raise AssertionError("no worker was started")


# ---- two at once ----------------------------------------------------------------------------------------------------

HELD = """
import os, sys, time
from pathlib import Path
seen = []
def step(event, arguments):
    if event == "os.rename":
        seen.append(event)
        if len(seen) == 2:  # of three
            Path("waiting").touch()
            while not Path("go").exists():
                time.sleep(0.01)
sys.addaudithook(step)
from sqgen.__main__ import main
main()
"""


def test_of_two_kernels_of_one_name_made_at_once_the_files_of_one_stay(tmp_path: Path) -> None:
    one = [sys.executable, "-c", HELD, *SMALL.split(), "--method", "sbd"]
    first = subprocess.Popen(one, cwd=tmp_path, stdout=subprocess.DEVNULL)
    _waited(lambda: [1] if (tmp_path / "waiting").exists() else [])
    second = subprocess.Popen([SQGEN, *SMALL.split(), "--method", "yang"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    time.sleep(2)  # it would be done by now
    (tmp_path / "go").touch()
    assert (first.wait(60), second.wait(60)) == (0, 0)
    sums = {json.loads((tmp_path / f"out/{STEM}.json").read_text())["sha256"]}
    for end in ("S", "h"):
        sums |= set(re.findall(r"(?m)^ \*\s+([0-9a-f]{64})$", (tmp_path / f"out/{STEM}.{end}").read_text())[:1])
    assert len(sums) == 1
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_many_at_once_into_one_folder_give_what_each_gives_alone(tmp_path: Path) -> None:
    lines = [f"--isa {name} --bits {bits} --quiet" for name in ("avr", "arm", "msp430") for bits in (32, 64)]
    for line in lines:
        shell(f"{line} --out alone", cwd=tmp_path).check_returncode()
    running = [subprocess.Popen([SQGEN, *line.split(), "--out", "new/together"], cwd=tmp_path) for line in lines]
    assert [process.wait(60) for process in running] == [0] * len(lines)
    alone, together = (texts(tmp_path / name) for name in ("alone", "new/together"))
    assert alone == together and len(alone) == 3 * len(lines)


def test_a_search_forgets_nothing_that_another_has_found_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answers.toml"
    monkeypatch.setattr(answers, "path", lambda isa, core=None: path)
    avr = isa("avr")
    record.save(avr, "sbd", "sqr", {64: [{"block": "4", "call": 2, "body": 1}]})
    assert answers.rows(avr, "sbd", "sqr", 64)
    path.write_text(path.read_text() + '72 = [{ block = "5", call = 4, body = 3 }]\n')  # the other one
    record.save(avr, "yang", "sqr", {64: [{"call": 6, "body": 5}]})
    found = [answers.rows(avr, "sbd", "sqr", bits)[0]["body"] for bits in (64, 72)]
    assert [*found, answers.rows(avr, "yang", "sqr", 64)[0]["body"]] == [1, 3, 5]


def test_two_searches_that_save_at_once_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "counter"
    path.write_text("0")
    program = f"""
from pathlib import Path
from sqgen.files import rewrite
path = Path({str(path)!r})
for _ in range(40):
    rewrite(path, lambda: str(int(path.read_text()) + 1))
"""
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    assert path.read_text() == "160"


def test_where_there_are_no_locks_files_are_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    files.write_all(tmp_path, {"a": "text"})
    assert tree(tmp_path) == {str(tmp_path / "a"): b"text"}
