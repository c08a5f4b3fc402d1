"""One input of `tools/fuzz.py` given to a command, in this process, and what is wrong with how it ended."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz_inputs import FILES, Input
from patience import patience

from sqgen import objects
from sqgen.cli import main
from sqgen.contract import contract
from sqgen.errors import Exit
from sqgen.progress import WORDLESS
from sqgen.runs import counterexample
from sqgen.tables import isa

MOST = 500  # megabytes that a command may take without a word
LONGEST = 60.0  # seconds after which a command is broken off here
SLACK = 1.5  # times as long as without a fuzzer looking on
WORD = re.compile(r"still \w+ '.*'; Ctrl-C stops it\n")  # of `sqgen.progress`, when a command takes long
RUN = 5000  # instructions of an accepted kernel that are run


class Endless(BaseException):
    """A command that does not come to its end."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended: exit code, seconds, megabytes at most, and what is wrong with that, "" if nothing."""

    code: int
    seconds: float
    megabytes: int
    fault: str = ""


def outcome(given: Input, lines: Sequence[str], folder: Path) -> Outcome:
    """Give the input to its command in an empty folder."""
    for name, text in zip(FILES, (given.object, given.manifest), strict=True):
        (folder / name).write_bytes(text)
    line = lines[given.line % len(lines)]
    raw = io.BytesIO(), io.BytesIO()
    out, err = (io.TextIOWrapper(each, "utf-8", "backslashreplace", write_through=True) for each in raw)
    forget_peak()
    held = peak()  # what is no affair of this command, as it runs in a process that has run others
    start = time.process_time()
    code, trace = 0, ""
    limit = patience(LONGEST, Endless(f"no end in {LONGEST:.0f} s"))
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), limit:
        try:
            main(shlex.split(line))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else -1
        except BaseException:
            trace = traceback.format_exc()
    seconds, megabytes = time.process_time() - start, peak() - held
    printed, said = (texts.getvalue().decode("utf-8", "replace") for texts in raw)
    fault = wrong(code, printed, said, trace) or unsaid(said, seconds, megabytes)
    if code == Exit.OK and not fault and line.startswith("prove"):
        fault = refuted(line, folder)
    left = {path.name for path in folder.iterdir()} - set(FILES)
    return Outcome(code, seconds, megabytes, fault or (f"leaves {sorted(left)[0]}" if left else ""))


def wrong(code: int, out: str, err: str, trace: str) -> str:
    """What no command may do, "" if it did not."""
    if trace:
        *_, where, what = [line for line in trace.splitlines() if line.startswith("  File") or line[:1].strip()]
        return f"{what} {where.strip()}"
    if code not in set(Exit):
        return f"exit code {code}"
    lines = complaints(err).splitlines(keepends=True)
    if code == Exit.OK:
        return "" if out and not lines else "ends well, but prints nothing, or an error"
    good = len(lines) == 1 and lines[0].startswith("Error: ") and lines[0].endswith("\n") and len(lines[0]) < 2000
    return "" if good and not out else f"no one line on stderr: {err[:200]!r}"


def complaints(err: str) -> str:
    """What stands on stderr, but for the word that a command takes long, as it may on a busy machine."""
    return WORD.sub("", err, count=1)


def unsaid(err: str, seconds: float, megabytes: int) -> str:
    """What took too much without a word."""
    if complaints(err) != err:
        return ""
    if seconds > WORDLESS * SLACK:
        return f"takes {seconds:.1f} s without a word"
    return f"takes {megabytes} MB without a word" if megabytes > MOST * SLACK else ""


def refuted(line: str, folder: Path) -> str:
    """Operands for which code is wrong that was proved, "" if there are none."""
    words = shlex.split(line)
    said = dict(zip(words[2::2], words[3::2], strict=False))
    which = isa(said["--isa"])
    read = objects.read(folder / words[1], which, None)
    what = contract(which, said["--op"], int(said["--bits"]))
    found = counterexample(read.image, what, which.core(said["--core"]), read.entry, steps=RUN)
    return f"proved, but wrong for {found}" if found else ""


def forget_peak() -> None:
    """What `peak` says begins now, where the system knows how."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak() -> int:
    """Megabytes that this process held at most, 0 where the system does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) >> 10
    return 0
