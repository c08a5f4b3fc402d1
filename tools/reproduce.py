"""All kernels whose parameters were searched for, made again: is their code still what it was, on every Python?

python tools/reproduce.py                       compare with schedules/answers/sha256.txt; some twenty minutes
python tools/reproduce.py --python python3.13   the same by another Python, with this one's packages
python tools/reproduce.py --python tools/python_wasm.mjs --most 128   and by the newest, as WebAssembly: `make newest`
python tools/reproduce.py --write               write that file; its changes show which kernels changed
python tools/reproduce.py --isa arm --most 256

A line of the file: sha256 and length of the code, file of answers, operation, bits, method, goal, and the number of the
row where a size has several.  A kernel without a row is what `--method auto` gives on a core.

What was made is kept in build/reproduce, by instruction set and Python, as long as the answers of that instruction set
and all that makes code of them are the same: it may be broken off and goes on where it was.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import journal
import sources
from figures import SURVEYS

from sqgen import answers, choosing, methods
from sqgen.attempts import TIMES
from sqgen.compile import compile_plan
from sqgen.contract import OPS
from sqgen.errors import UserError
from sqgen.files import write_all
from sqgen.spec import spec
from sqgen.table import Core, Isa
from sqgen.tables import isa, isa_names

TOP = Path(__file__).resolve().parent.parent
FOLDER = TOP / "build" / "reproduce"
RECORD = TOP / "schedules" / "answers" / "sha256.txt"
HEAD = "# The code of all kernels whose parameters were searched for; tools/reproduce.py explains and makes it.\n"
PYTHON = "-".join([platform.python_version(), *([] if sys.platform == "linux" else [sys.platform])])
AUTO, FRONT = "auto", "front"  # as a method, and at the end of the name of a file
FAILED = 1


@dataclass(frozen=True, order=True)
class Job:
    """A kernel: what it is for, and the `row` of a file of answers, `source`, that it is made from; for `auto` that is
    a core."""

    isa: str
    core: str
    any_time: bool
    source: str
    op: str
    bits: int
    method: str
    goal: str
    row: int

    def __str__(self) -> str:
        return f"{self.source} {self.op} {self.bits} {self.method} {self.goal} {self.row}"


def jobs(which: Isa) -> Iterator[Job]:
    """All kernels of an instruction set."""
    yield from answered(which)
    yield from on_the_front(which)
    survey = SURVEYS[which.name]
    for name, op, bits, goal in itertools.product(survey.cores, OPS, survey.sizes, TIMES):
        yield Job(which.name, name, False, name, op, bits, AUTO, goal, 0)


def answered(which: Isa) -> Iterator[Job]:
    """Those of the answers, each for both goals that it is for."""
    for core in homes(which):
        source = answers.path(which, core).stem
        for op in OPS:
            for method in methods.names(op):
                for bits, rows in answers.table(which, method, op, core).items():
                    for goal, number in itertools.product(TIMES, range(len(rows))):
                        yield Job(which.name, core.name, core.any_time, source, op, bits, method, goal, number)


def on_the_front(which: Isa) -> Iterator[Job]:
    """Those that nothing beats at their size."""
    for core, op in itertools.product(homes(which), OPS):
        source = answers.front_path(which, core).stem
        for bits, rows in answers.fronts(which, op, core).items():
            for number, row in enumerate(rows):
                method, goal = str(row[answers.METHOD]), str(row[answers.GOAL])
                yield Job(which.name, core.name, core.any_time, source, op, bits, method, goal, number)


def homes(which: Isa) -> list[Core]:
    """The cores that the files of answers are for."""
    cores = [which.core(name) for name in dict.fromkeys(c.answers or which.default_core for c in which.cores.values())]
    able = [core for each in cores for core in (each, which.at_any_time(each))]
    by_file = {answers.path(which, core): core for core in reversed(able)}  # a core that has no slower time is itself
    return [core for path, core in reversed(by_file.items()) if path.is_file()]


def code(job: Job) -> bytes:
    """The kernel's code.  Raises UserError where it cannot be made."""
    which = isa(job.isa)
    core = which.core(job.core)
    core = which.at_any_time(core) if job.any_time else core
    if job.method == AUTO:
        return choosing.choose(spec(which, job.bits, op=job.op, core=job.core, goal=job.goal)).image
    if job.source.endswith(FRONT):
        row = answers.fronts(which, job.op, core)[job.bits][job.row]
    else:
        row = answers.rows(which, job.method, job.op, job.bits, core)[job.row]
    known = functools.partial(answers.of_part, which, core=core)
    plan = methods.plan(job.op, job.bits // which.limb_bits, job.method, answers.given(row), known)
    return compile_plan(plan, which, job.goal, core).image


def line(job: Job) -> str:
    """The line of a kernel."""
    try:
        made = code(job)
    except UserError:  # few registers saved do not suffice everywhere
        return f"{'-' * 64} {0:6} {job}"
    return f"{hashlib.sha256(made).hexdigest()} {len(made):6} {job}"


def lines(job: Job) -> Sequence[Mapping[str, str]]:
    """The line of a kernel as a row of what is kept."""
    return [{"line": line(job)}]


def recorded() -> dict[str, str]:
    """The lines of the file by kernel."""
    text = RECORD.read_text(encoding="utf-8") if RECORD.is_file() else ""
    return by_kernel(each for each in text.splitlines() if not each.startswith("#"))


def by_kernel(lines: Iterable[str]) -> dict[str, str]:
    return {each.split(maxsplit=2)[2]: each for each in lines}


def made(name: str, wanted: Sequence[Job]) -> dict[str, str]:
    """The lines of an instruction set's kernels; those that are not known are made now, on all processors."""
    file, now = FOLDER / f"{name}-{PYTHON}.jsonl", version(name)
    before = known(file, now)
    journal.work(lines, [job for job in wanted if str(job) not in before], file, now)
    after = known(file, now)
    return {str(job): after[str(job)] for job in wanted}


def version(name: str) -> str:
    """Of all that decides on the code of an instruction set's kernels."""
    return sources.digest([*sources.of_code(name), *sources.tools(["reproduce"])])


def known(file: Path, version: str) -> dict[str, str]:
    """The lines of kernels in such a file, made from these sources."""
    return by_kernel(row["line"] for row in journal.rows(file, version))


def by(python: str, arguments: Sequence[str]) -> int:
    """The same by another Python; its exit code."""
    paths = os.pathsep.join([str(TOP), str(TOP / "tools"), sysconfig.get_path("purelib")])
    command = [python, str(Path(__file__)), *arguments]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False).returncode


@click.command()
@click.option("--write", is_flag=True, help="Write the file.")
@click.option("--isa", "names", multiple=True, help="Only these instruction sets.")
@click.option("--most", default=1 << 16, help="Largest size in bits.")
@click.option("--python", "pythons", multiple=True, help="By this Python; may be repeated.")
def main(*, write: bool, names: tuple[str, ...], most: int, pythons: tuple[str, ...]) -> None:
    """Make all kernels, and compare or write."""
    if pythons:
        same = ["--most", str(most), *(word for name in names for word in ("--isa", name))]
        sys.exit(max([0, *(by(python, same) for python in pythons)]))
    every = [job for name in isa_names() for job in jobs(isa(name))]
    wanted = [job for job in every if job.bits <= most and (not names or job.isa in names)]
    before = recorded()
    found: dict[str, str] = {}
    for name in dict.fromkeys(job.isa for job in wanted):
        found |= made(name, [job for job in wanted if job.isa == name])
    if write:
        both = before | found
        kept = [both[str(job)] for job in every if str(job) in both]
        write_all(RECORD.parent, {RECORD.name: HEAD + "\n".join(kept) + "\n"})
    different = [key for key, each in found.items() if before.get(key) != each]
    gone = [key for key in before if key not in found and not names and most == 1 << 16]
    for key in (*different, *gone):
        click.echo(f"{'gone' if key in gone else 'new' if key not in before else 'changed'}: {key}", err=True)
    click.echo(f"Python {PYTHON}: {len(found)} kernels made, {len(found) - len(different)} the same as recorded")
    sys.exit(FAILED if (different or gone) and not write else 0)


if __name__ == "__main__":
    main()
