"""The command line with something going wrong at its n-th step in a folder, for every n: run as a program by the tests.

    python faults.py HOW BEFORE FOLDER LINE...

`HOW` is what goes wrong: `kill` (SIGKILL), `stop` (Ctrl-C), `full` (the disk is full) or `call` (Ctrl-C, but the steps
are calls of Python functions, and only some of them).  Each run begins with `FOLDER` as `BEFORE` is.  Prints a JSON
object a run: exit code (less than 0: the signal that ended it), what stderr got, the files that are not as before (null
for one that is gone); the last run is the one in which nothing went wrong.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

# What Python reports of a program that writes files; a write has no event of its own, but is flushed by fsync here.
EVENTS = {
    *("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "os.link", "os.symlink"),
    *("os.utime", "shutil.copyfile", "shutil.copystat", "tempfile.mkstemp", "fcntl.flock"),
}
FIRST_CALL, STRIDE = 4, 2.2  # the calls at which Ctrl-C comes: the first in the program, how much later the next
UNTOUCHED = "nothing went wrong"


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


FAULTS: dict[str, Callable[[], None]] = {"kill": kill, "stop": stop, "full": full}


def at_step(folder: Path, number: int, fault: Callable[[], None]) -> list[int]:
    """Let it go wrong at a step; the list grows with every step."""
    seen: list[int] = []

    def step(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR):
            return
        names = [os.fsdecode(each) for each in arguments if isinstance(each, (str, bytes))]
        inside = any(os.path.abspath(name).startswith(str(folder)) for name in names)
        if event in EVENTS and (inside or event == "fcntl.flock"):
            seen.append(1)
            if len(seen) == number:
                fault()

    fsync = os.fsync
    os.fsync = lambda handle: (step("os.truncate", (str(folder),)), fsync(handle))[1]  # type: ignore[assignment,func-returns-value]
    sys.addaudithook(step)
    return seen


def at_call(number: int) -> list[int]:
    """Ctrl-C at a call of a function."""
    seen: list[int] = []

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.append(1)
            if len(seen) == number:
                stop()

    sys.setprofile(profile)
    return seen


def child(how: str, folder: Path, number: int, words: list[str]) -> NoReturn:
    """One run, in a process of its own."""
    from sqgen.__main__ import main  # noqa: PLC0415

    seen = at_call(number) if how == "call" else at_step(folder, number, FAULTS[how])
    code: Any = 1
    try:
        main(words)
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        sys.setprofile(None)
        if len(seen) < number:
            print(UNTOUCHED, file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def run(how: str, before: Path, folder: Path, number: int, words: list[str]) -> dict[str, Any]:
    """One run, and what it left."""
    with tempfile.TemporaryFile() as errors, open(os.devnull, "w") as nothing:
        process = os.fork()
        if not process:
            os.setpgid(0, 0)
            os.dup2(nothing.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            os.chdir(folder)
            child(how, folder, number, words)
        _, status = os.waitpid(process, 0)
        errors.seek(0)
        said = errors.read().decode()
    was, now = texts(before), texts(folder)
    changed = {name: now.get(name) for name in sorted({*was, *now}) if was.get(name) != now.get(name)}
    return {"code": os.waitstatus_to_exitcode(status), "stderr": said, "changed": changed}


def texts(folder: Path) -> dict[str, str]:
    """The files of a folder that are not hidden; what Python compiles is none of ours."""
    return {
        str(path.relative_to(folder)): path.read_bytes().decode(errors="replace")
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".") and path.suffix != ".pyc"
    }


def once(words: list[str]) -> None:
    """Do it, so that everything is loaded."""
    from sqgen.cli import main  # noqa: PLC0415

    printed, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    with contextlib.suppress(SystemExit):
        main(words)
    sys.stdout.flush()
    os.dup2(printed, 1)


def main(how: str, before: str, place: str, *words: str) -> None:
    """All runs, each forked from a process that has done it once, if it may, and so has everything loaded."""
    folder, number = Path(place), FIRST_CALL if how == "call" else 1
    shutil.copytree(before, folder)
    importlib.invalidate_caches()  # a copy of the package may lie in it
    import sqgen.answers  # noqa: PLC0415
    import sqgen.cli  # noqa: F401, PLC0415

    os.chdir(folder)
    if not (folder / "checkout").exists():  # what a search began, such as its workers, does not outlive a fork
        once(list(words))
    while True:
        os.chdir("/")
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
        sqgen.answers.forget()  # it stands in the folder, too, where that has a copy of the package
        done = run(how, Path(before), folder, number, list(words))
        print(json.dumps(done), flush=True)
        if UNTOUCHED in done["stderr"]:
            return
        number = int(number * STRIDE) + 1 if how == "call" else number + 1


if __name__ == "__main__":
    main(*sys.argv[1:])
