"""Every method at every size on every core: made, proved, and held against its manifest.  Run by `make matrix`.

python tools/matrix.py                                 all; hours, may be broken off and goes on where it was
python tools/matrix.py --isa avr --op sqr --method sbd --core atmega128 --most 128

Each kernel runs in the outside simulator of its core, where there is one, and in the interpreter (tools/observe.py).
Cores that differ in their names alone have the same kernels, which are made and proved once for all of them.
What is done stands in build/matrix/<isa>.jsonl, and counts as long as the sources of the kernels are the same.  When
they are not, all is compiled again; code that comes out as it was is the same to the proof and to the simulator, so
what they said stands, if their own sources are the same.  report.json and report.html are made from it: what failed,
and the command that repeats it.
"""

from __future__ import annotations

import html
import itertools
import json
import math
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import click
import figures
import journal
import observe
import sources
from observe import Seen

from sqgen import check, choosing, emit, kernel, methods
from sqgen.compile import Compiled
from sqgen.contract import OPS, Verdict
from sqgen.digest import sha256
from sqgen.errors import Exit, UserError
from sqgen.files import write_all
from sqgen.idioms import idioms
from sqgen.kernel import Kernel
from sqgen.spec import Spec, spec
from sqgen.table import Core
from sqgen.tables import isa, isa_names

TOP = Path(__file__).resolve().parent.parent
FOLDER = TOP / "build" / "matrix"
SIZES = (*range(16, 257, 8), *range(288, 513, 32), *range(576, 1025, 64), 2048, 4096)  # bits
RUNS = 40  # operands tried in the simulator
TRACES, FEWER, LARGE = 8, 2, 256  # and in the interpreter; the same above so many bits, and of overlaps
RIGHT, NONE, WRONG = "right", "none", "wrong"
SIGHT = "sight"  # the key of a digest of the sources of proof and simulator
NOWHERE, NOT_OUTSIDE = "no simulator", ("", "interpreter")  # in reports; in tables


@dataclass(frozen=True)
class Job(figures.Job):
    """A kernel to be made by a method."""

    method: str

    @property
    def command(self) -> str:
        """What repeats it."""
        words = [f"--{name}={value}" for name, value in asdict(self).items() if name != "bits"]
        return shlex.join(["python", "tools/matrix.py", *words, f"--least={self.bits}", f"--most={self.bits}"])


@dataclass(frozen=True)
class Outcome:
    """What became of a job: `right`, `wrong`, or that there is `none`, and why; the simulator that ran it, the cycles
    of a call and whether the simulator counted them too; how many traces were compared; the sum of the code."""

    job: Job
    verdict: str
    reason: str
    simulator: str = ""
    cycles: int = 0
    counted: bool = False
    traces: int = 0
    code: str = ""


FIELDS = tuple(each.name for each in fields(Outcome) if each.name != "job")


def jobs(names: Sequence[str]) -> Iterator[Job]:
    """All kernels of some instruction sets."""
    for name in names:
        which = isa(name)
        for core, op, bits in itertools.product(which.cores, OPS, SIZES):
            if bits % which.limb_bits == 0 and bits <= min(which.max_bits, which.core(core).max_bits):
                yield from (Job(name, core, op, bits, method) for method in ("auto", *methods.names(op)))


@dataclass
class Known:
    """Of kernels that go together: their code, and those that were made, with their manifests, by all that matters in a
    core; proofs of code; runs of a code, by its sum and what matters to them in the core, which cycles do not; what is
    wrong with it where r overlaps an operand, by what is promised, too."""

    compiled: dict[tuple[str, int | None], Sequence[Compiled]] = field(default_factory=dict)
    chosen: dict[str, Compiled] = field(default_factory=dict)
    made: dict[str, tuple[Kernel, Mapping[str, Any]]] = field(default_factory=dict)
    verdicts: dict[tuple[bytes, str], Verdict] = field(default_factory=dict)
    seen: dict[tuple[str, str], Sequence[Seen]] = field(default_factory=dict)
    overlapping: dict[tuple[str, ...], Sequence[str]] = field(default_factory=dict)

    def code(self, wanted: Spec) -> tuple[str, Compiled]:
        """The code, which may have been made for a core of another name, with no less room; by what it is known."""
        core, room = kind(wanted.core), choosing.room_of(wanted)
        if core in self.chosen and room is not None and len(self.chosen[core].image) > room:
            core += f", {room} bytes"
        if core not in self.chosen:
            self.chosen[core] = choosing.choose(wanted, self.candidates)
        return core, self.chosen[core]

    def make(self, wanted: Spec) -> tuple[Kernel, Mapping[str, Any]]:
        """The kernel and its manifest."""
        core, compiled = self.code(wanted)
        if core not in self.made:
            made = kernel.described(wanted, compiled, self.proved(wanted, compiled))
            self.made[core] = made, emit.manifest(made)
        return self.made[core]

    def candidates(self, wanted: Spec) -> Sequence[Compiled]:
        """What could be asked for, compiled once for all cores of a kind."""
        key = kind(wanted.core), wanted.max_bytes
        if key not in self.compiled:
            self.compiled[key] = choosing.candidates(wanted)
        return self.compiled[key]

    def proved(self, wanted: Spec, compiled: Compiled) -> Verdict:
        """The proof: it looks at cycles for devices alone, and where there is none, cores may differ in them."""
        core = wanted.core if wanted.core.devices else replace(wanted.core, timing="")
        same = compiled.image, kind(replace(core, answers=""))
        if same not in self.verdicts:
            self.verdicts[same] = kernel.proved(wanted, compiled)
        return self.verdicts[same]

    def faults(self, made: Kernel, manifest: Mapping[str, Any]) -> tuple[int, Sequence[str]]:
        """How many traces were compared, and where the kernel does not do what its manifest says."""
        code = made.compiled.image, made.spec.contract, made.spec.core
        small = made.spec.bits <= LARGE
        same = made.sha256, kind(replace(made.spec.core, answers="", timing=""))
        traces = 0 if same in self.seen else TRACES if small else FEWER
        if traces:
            self.seen[same] = observe.alone(*code, traces)
        placed = *same, repr(manifest["aliasing"])
        if placed not in self.overlapping:
            self.overlapping[placed] = list(observe.overlaps(*code, manifest, observe.OVERLAPS if small else FEWER))
        unlike = observe.unlike(self.seen[same], *code, manifest)
        return traces, [*dict.fromkeys(unlike), *self.overlapping[placed]]


def kind(core: Core) -> str:
    """All that matters in a core to its kernels, which is not its name nor how large they may be."""
    return repr(replace(core, name="", without=(), max_bits=0))


def outcome(job: Job, known: Known, before: Outcome | None = None) -> Outcome:
    """Make a kernel, and look at it, unless its code is that of the outcome `before`, which was right.  A fault of
    sqgen's own is wrong, too, and stops nobody."""
    try:
        wanted = spec(job.isa, job.bits, op=job.op, core=job.core, method=job.method)
        if before and before.verdict == RIGHT and before.code == sha256(known.code(wanted)[1].image):
            return before
        made, manifest = known.make(wanted)
    except UserError as error:
        wrong = error.code not in (Exit.USAGE, Exit.LIMITS)
        return Outcome(job, WRONG if wrong else NONE, str(error))
    except Exception as error:
        return Outcome(job, WRONG, f"{type(error).__name__}: {error}")
    try:
        return judged(job, wanted.core, made, manifest, known)
    except UserError as error:
        return Outcome(job, WRONG, str(error))
    except Exception as error:
        return Outcome(job, WRONG, f"{type(error).__name__}: {error}")


def judged(job: Job, core: Core, made: Kernel, manifest: Mapping[str, Any], known: Known) -> Outcome:
    """The kernel beside its manifest.  Raises UserError where the simulator of the core sees something wrong."""
    traces, found = known.faults(made, manifest)
    simulated = Outcome(job, RIGHT, "", cycles=made.price.call, traces=traces, code=made.sha256)
    if made.spec.contract.isa.timings[core.timing].judge not in NOT_OUTSIDE:
        simulated = beside(simulated, core, made, manifest)
    if found:
        return replace(simulated, verdict=WRONG, reason="; ".join([*found[:3], simulated.reason]))
    return simulated


def beside(outcome: Outcome, core: Core, made: Kernel, manifest: Mapping[str, Any]) -> Outcome:
    """What the simulator makes of it."""
    try:
        seen = check.run(made.compiled.image, made.spec.contract, core, 0, RUNS, branches=False)
    except UserError as error:
        if error.code != Exit.LIMITS:
            raise
        return replace(outcome, reason=str(error))  # the core has no room for the code
    claimed = (*manifest["cycles"].values(), manifest["stack"])
    measured = (seen.body, seen.call, seen.stack) if seen.call else (*claimed[:2], seen.stack)
    if measured == claimed:
        return replace(outcome, simulator=seen.simulator, counted=bool(seen.call))
    reason = f"{seen.simulator} counts (body, call, stack) = {measured}, the manifest says {claimed}"
    return replace(outcome, verdict=WRONG, reason=reason, simulator=seen.simulator)


def together(jobs: Mapping[Job, Outcome | None]) -> Sequence[Mapping[str, Any]]:
    """Outcomes of jobs, with those of other sources, as rows of the file; of cores that differ in name alone, the one
    with the most room comes first."""
    known = Known()
    return [asdict(outcome(job, known, jobs[job])) for job in sorted(jobs, key=room, reverse=True)]


def room(job: Job) -> float:
    """Bytes of code that the core's part can hold."""
    which = isa(job.isa)
    return idioms(which).room(which.core(job.core)) or math.inf


def version(name: str) -> str:
    """Of all that decides on the outcomes of an instruction set."""
    return sources.digest(sources.of_kernels(name))


def sight(name: str) -> str:
    """Of all that decides on the outcome of a code."""
    return sources.digest(sources.of_sight(name))


def done(file: Path, version: str, key: str = "version") -> dict[Job, Outcome]:
    """What is known of these sources, or of the others that the `key` names."""
    found: dict[Job, Outcome] = {}
    for row in journal.rows(file, version, key):
        job = Job(**row["job"])
        found[job] = Outcome(job, **{name: row[name] for name in FIELDS if name in row})
    return found


def work(wanted: Sequence[Job], out: Path) -> Iterator[Outcome]:
    """All outcomes, those that are not known worked out before; kernels that differ in the core alone go together."""
    for name in dict.fromkeys(job.isa for job in wanted):
        file, now = out / f"{name}.jsonl", version(name)
        mine = [job for job in wanted if job.isa == name]
        known, seen = done(file, now), sight(name)
        before = done(file, seen, SIGHT)
        groups: dict[tuple[int, str, str], dict[Job, Outcome | None]] = {}
        for job in mine:
            if job not in known:
                groups.setdefault((job.bits, job.op, job.method), {})[job] = before.get(job)
        journal.work(together, [groups[key] for key in sorted(groups)], file, now, **{SIGHT: seen})
        known = done(file, now)
        yield from (known[job] for job in mine)


def report(found: Sequence[Outcome]) -> dict[str, Any]:
    """Counts, and what failed with the command that repeats it."""
    made = [each for each in found if each.verdict != NONE]
    return {
        "kernels": len(made),
        "right": sum(each.verdict == RIGHT for each in found),
        "none": len(found) - len(made),
        "simulated": dict(sorted(Counter(each.simulator or NOWHERE for each in made).items())),
        "cycles confirmed by a simulator": sum(each.counted for each in made),
        "traces compared": sum(each.traces for each in made),
        "wrong": [
            {**asdict(each.job), "reason": each.reason, "repeat": each.job.command}
            for each in found
            if each.verdict == WRONG
        ],
    }


def page(facts: dict[str, Any]) -> str:
    """The same as HTML."""
    rows = [(name, value) for name, value in facts.items() if name != "wrong"]
    counts = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows)
    wrong = "".join(
        f"<tr><td><code>{html.escape(each['repeat'])}</code></td><td>{html.escape(each['reason'])}</td></tr>"
        for each in facts["wrong"]
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>sqgen: the matrix</title>'
        f"<h1>Every method, size and core</h1><table>{counts}</table>"
        f"<h2>Wrong: {len(facts['wrong'])}</h2><table>{wrong}</table></html>\n"
    )


@click.command()
@click.option("--isa", "names", multiple=True, help="Only these instruction sets.")
@click.option("--core", "core_", multiple=True, help="Only these cores.")
@click.option("--op", "op_", multiple=True, help="Only these operations.")
@click.option("--method", "method_", multiple=True, help="Only these methods.")
@click.option("--least", default=0, help="Smallest size in bits.")
@click.option("--most", default=1 << 16, help="Largest size in bits.")
@click.option("--out", type=click.Path(path_type=Path), default=FOLDER, help="Folder for what is done and the reports.")
def main(*, names: tuple[str, ...], least: int, most: int, out: Path, **only: tuple[str, ...]) -> None:
    """Do all that is not done, and report."""
    chosen = {name[:-1]: words for name, words in only.items() if words}
    wanted = [
        job
        for job in jobs(names or isa_names())
        if least <= job.bits <= most and all(getattr(job, field) in words for field, words in chosen.items())
    ]
    facts = report(list(work(wanted, out)))
    write_all(out, {"report.json": json.dumps(facts, indent=2) + "\n", "report.html": page(facts)})
    for each in facts["wrong"]:
        click.echo(f"wrong: {each['repeat']}: {each['reason']}", err=True)
    click.echo(f"{facts['kernels']} kernels, {facts['right']} right; {facts['none']} combinations without one; {out}")
    sys.exit(1 if facts["wrong"] else 0)


if __name__ == "__main__":
    main()
