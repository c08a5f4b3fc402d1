"""Kernels with one instruction changed, or two, by the hundred thousand: what became of them, in `docs/mutation.json`.

A change is refused by the proof; or it is accepted, and then runs on structured operands say whether it is right, and
the second proof whether it thinks so, too.  One that is accepted and wrong is a fault of the proof: the command says
which, and fails.  Of small kernels every change of one instruction is tried, of larger ones a sample; pairs of each.
Kernels that were done before are not done again, as long as they and the sources of the provers are the same: it may be
stopped at any time.
"""

from __future__ import annotations

import functools
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import sources

from sqgen import files, methods, mutants, workers
from sqgen import kernel as kernel_module
from sqgen.contract import OPS, Contract
from sqgen.errors import UserError
from sqgen.forward_proof import prove_forward
from sqgen.interpret import broken_promise
from sqgen.mutants import Change
from sqgen.progress import Bar
from sqgen.prove import prove
from sqgen.report import plain_table
from sqgen.spec import spec
from sqgen.table import Core, Isa

STATE = Path(__file__).resolve().parent.parent / "docs" / "mutation.json"
PROVERS = ("prove", "forward_proof", "interpret", "mutants", "tables")  # what decides on outcomes, in sqgen/
RUNS = 60  # operands on which an accepted change is run
COUNT, SAMPLE = 300, 150  # pairs of changes of a small kernel; changes, and pairs of them, of a larger one
PAIRS = "pairs"
REFUSED, BOTH, ONE, WRONG = OUTCOMES = ("refused", "equivalent", "equivalent, one proof", "wrong")
Sizes = Mapping[tuple[str, str], Sequence[int]]
SIZES: Sizes = {  # bits of the small kernels of all methods, by core
    ("avr", "atmega128"): (16, 32),
    ("arm", "cortex-m4"): (64, 96),
    ("arm", "cortex-m3"): (64,),
    ("arm", "cortex-m0"): (64,),
    ("msp430", "msp430"): (32, 64),
    ("msp430", "msp430x"): (32, 64),
    ("msp430", "msp430x-mpy32"): (32, 64),
}
LARGER: Sizes = {  # and of the larger ones
    ("avr", "atmega128"): (64, 128),
    ("arm", "cortex-m4"): (128, 256),
    ("arm", "cortex-m3"): (128,),
    ("arm", "cortex-m0"): (96, 128),
    ("msp430", "msp430"): (128,),
    ("msp430", "msp430x"): (128,),
    ("msp430", "msp430x-mpy32"): (128,),
}


@dataclass(frozen=True)
class Subject:
    """A kernel to be changed; a `sample` is how many of its changes are tried, None if all."""

    name: str
    contract: Contract
    core: Core
    image: bytes
    sha256: str
    sample: int | None

    def outcome(self, image: bytes) -> str:
        """What becomes of it with its code changed."""
        if not prove(image, self.contract, self.core).proved:
            return REFUSED
        if broken_promise(image, self.contract, self.core, RUNS):
            return WRONG
        return BOTH if prove_forward(image, self.contract, self.core).proved else ONE


@dataclass(frozen=True)
class Tally:
    """What became of the changes of a kernel, by kind, and those that are accepted and wrong as text; how many changes
    of one instruction it has in all, tried or not."""

    name: str
    changes: int
    counts: Mapping[str, Mapping[str, int]]
    wrong: Sequence[str]


def subjects(wanted: Sequence[str], every: Sizes = SIZES, sample: int | None = None) -> Iterator[Subject]:
    """The kernels of all methods on these cores, each code once."""
    seen = set()
    for (name, core), sizes in every.items():
        jobs = ((op, method, bits) for op in OPS for method in methods.names(op) for bits in sizes)
        for op, method, bits in jobs if core in wanted else ():
            try:
                made = kernel_module.make(spec(name, bits, op=op, method=method, core=core))
            except UserError:  # the idioms of this core do not know the method, or not at this size
                continue
            if (core, made.sha256) not in seen:
                seen.add((core, made.sha256))
                label = f"{core}/{op}/{method}/{bits}"
                yield Subject(label, made.spec.contract, made.spec.core, made.compiled.image, made.sha256, sample)


def tally(subject: Subject, pairs: int) -> Tally:
    """Try a kernel's changes, and so many pairs."""
    which = subject.contract.isa
    every = list(mutants.changes(which, subject.image))
    chosen = every
    if subject.sample is not None and subject.sample < len(every):
        chosen = random.Random(subject.name).sample(every, subject.sample)
    counts: dict[str, Counter[str]] = {}
    wrong = []

    def note(how: str, *some: Change) -> None:
        image = subject.image
        for change in some:
            image = change.apply(image)
        found = subject.outcome(image)
        counts.setdefault(how, Counter())[found] += 1
        if found == WRONG:
            wrong.append(f"{subject.name}: " + " and ".join(change.text() for change in some))

    for change in chosen:
        note(change.how, change)
    for both in mutants.pairs(which, subject.image, pairs, subject.name):
        note(PAIRS, *both)
    return Tally(subject.name, len(every), counts, wrong)


def known() -> dict[str, dict[str, Any]]:
    """What was found before, by kernel."""
    return dict(json.loads(STATE.read_text())) if STATE.exists() else {}


@functools.cache
def prover() -> str:
    """Which provers: one number for the sources of all that decides on outcomes."""
    return sources.digest(sources.closure(sources.modules(PROVERS)))


def basis(subject: Subject) -> dict[str, str]:
    """What an outcome rests on: the code, the provers, the table."""
    return {"sha256": subject.sha256, "prover": prover(), "table": table_of(subject.contract.isa)}


def table_of(isa: Isa) -> str:
    """Which table."""
    return isa.digest[:16]


def is_known(subject: Subject, found: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether what was found before says what becomes of this kernel's changes now."""
    return basis(subject).items() <= found.get(subject.name, {}).items()


def work(waiting: Sequence[Subject], found: dict[str, dict[str, Any]], jobs: int | None) -> None:
    """Try the changes of these kernels; what is found of one is written when it is there."""
    with Bar("mutants", len(waiting)) as bar, workers.pool(jobs) as pool:
        running = {pool.submit(tally, each, each.sample or COUNT): each for each in waiting}
        for number, future in enumerate(as_completed(running)):
            done = future.result()
            facts = {"changes": done.changes, "counts": done.counts, "wrong": list(done.wrong)}
            found[done.name] = basis(running[future]) | facts
            files.write_all(STATE.parent, {STATE.name: text(found)})
            bar.update(number + 1, done.name)


def text(found: Mapping[str, Mapping[str, Any]]) -> str:
    """A line for each kernel."""
    rows = [f"{json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found)]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """What became of all changes, by core and kind."""
    totals: dict[tuple[str, str], Counter[str]] = {}
    for name, entry in found.items():
        for how, counts in entry["counts"].items():
            for key in ((name.split("/", maxsplit=1)[0], how), ("all", how), ("all", "all")):
                totals.setdefault(key, Counter()).update(counts)
    cores = [core for _, core in SIZES if any(key[0] == core for key in totals)]
    rows = []
    for core in [*cores, "all"]:
        for how in (*mutants.KINDS, PAIRS, "all"):
            counts = totals.get((core, how), Counter())
            if counts:
                figures = (str(counts[outcome]) for outcome in OUTCOMES)
                rows.append((f"{core}, {how}", str(counts.total()), *figures))
    return plain_table(("changes", "tried", *OUTCOMES), rows)


@click.command()
@click.option("--core", "cores", multiple=True, default=[core for _, core in SIZES], help="Only these processors.")
@click.option("--jobs", type=int, help="Kernels at once.  [default: as many as there are processors]")
@click.option("--show", is_flag=True, help="Print the table of what was found before, and do nothing.")
def main(*, cores: Sequence[str], jobs: int | None, show: bool) -> None:
    """Change kernels, and see to it that no wrong one is accepted."""
    found = known()
    if not show:
        wanted = [*subjects(cores), *subjects(cores, LARGER, SAMPLE)]
        names = {each.name for each in wanted}
        found = {name: each for name, each in found.items() if name in names or name.split("/")[0] not in cores}
        waiting = [each for each in wanted if not is_known(each, found)]
        waiting.sort(key=lambda each: (each.sample or 0, len(each.image), each.name))  # the sooner it has all cores
        work(waiting, found, jobs)
    click.echo(table(found), nl=False)
    wrong = [line for each in found.values() for line in each["wrong"]]
    if wrong:
        raise click.ClickException("accepted though wrong:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
