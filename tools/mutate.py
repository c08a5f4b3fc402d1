"""Kernels with one instruction changed, or two, by the hundred thousand: what became of them, in `docs/mutation.json`.

A change is refused by the proof; or it is accepted, and then runs on structured operands say whether it is right, and
the second proof whether it thinks so, too.  One that is accepted and wrong is a fault of the proof: the command says
which, and fails.  Kernels that were done before, and are the same, are not done again: it may be stopped at any time.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from sqgen import files, methods, mutants
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
from sqgen.table import Core

STATE = Path(__file__).resolve().parent.parent / "docs" / "mutation.json"
RUNS = 60  # operands on which an accepted change is run
PAIRS = "pairs"
REFUSED, BOTH, ONE, WRONG = OUTCOMES = ("refused", "equivalent", "equivalent, one proof", "wrong")
SIZES: Mapping[tuple[str, str], Sequence[int]] = {  # bits of the kernels of all methods, by core
    ("avr", "atmega128"): (16, 32),
    ("arm", "cortex-m4"): (64, 96),
    ("arm", "cortex-m3"): (64,),
    ("arm", "cortex-m0"): (64,),
    ("msp430", "msp430"): (32, 64),
    ("msp430", "msp430x"): (32, 64),
    ("msp430", "msp430x-mpy32"): (32, 64),
}


@dataclass(frozen=True)
class Subject:
    """A kernel to be changed."""

    name: str
    contract: Contract
    core: Core
    image: bytes
    sha256: str

    def outcome(self, image: bytes) -> str:
        """What becomes of it with its code changed."""
        if not prove(image, self.contract, self.core).proved:
            return REFUSED
        if broken_promise(image, self.contract, self.core, RUNS):
            return WRONG
        return BOTH if prove_forward(image, self.contract, self.core).proved else ONE


@dataclass(frozen=True)
class Tally:
    """What became of the changes of a kernel, by kind, and those that are accepted and wrong as text."""

    name: str
    sha256: str
    counts: Mapping[str, Mapping[str, int]]
    wrong: Sequence[str]


def subjects(wanted: Sequence[str]) -> Iterator[Subject]:
    """The kernels of all methods on these cores, each code once."""
    seen = set()
    for (name, core), sizes in SIZES.items():
        jobs = ((op, method, bits) for op in OPS for method in methods.names(op) for bits in sizes)
        for op, method, bits in jobs if core in wanted else ():
            try:
                made = kernel_module.make(spec(name, bits, op=op, method=method, core=core))
            except UserError:  # the idioms of this core do not know the method, or not at this size
                continue
            if (core, made.sha256) not in seen:
                seen.add((core, made.sha256))
                label = f"{core}/{op}/{method}/{bits}"
                yield Subject(label, made.spec.contract, made.spec.core, made.compiled.image, made.sha256)


def tally(subject: Subject, sample: int | None, pairs: int) -> Tally:
    """Try a kernel's changes, all of them or a `sample`, and so many pairs."""
    which = subject.contract.isa
    every = list(mutants.changes(which, subject.image))
    if sample is not None and sample < len(every):
        every = random.Random(subject.name).sample(every, sample)
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

    for change in every:
        note(change.how, change)
    for both in mutants.pairs(which, subject.image, pairs, subject.name):
        note(PAIRS, *both)
    return Tally(subject.name, subject.sha256, counts, wrong)


def _tally(job: tuple[Subject, int | None, int]) -> Tally:
    return tally(*job)


def known() -> dict[str, dict[str, Any]]:
    """What was found before, by kernel."""
    return dict(json.loads(STATE.read_text())) if STATE.exists() else {}


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
@click.option("--pairs", default=300, show_default=True, help="Pairs of changes of each kernel.")
@click.option("--jobs", default=os.cpu_count() or 1, help="Kernels at once.")
@click.option("--show", is_flag=True, help="Print the table of what was found before, and do nothing.")
def main(*, cores: Sequence[str], pairs: int, jobs: int, show: bool) -> None:
    """Change kernels, and see to it that no wrong one is accepted."""
    found = known()
    if not show:
        wanted = list(subjects(cores))
        waiting = [each for each in wanted if found.get(each.name, {}).get("sha256") != each.sha256]
        waiting.sort(key=lambda each: (len(each.image), each.name))  # who stops it has something of all cores
        with Bar("mutants", len(wanted)) as bar, multiprocessing.Pool(jobs) as pool:
            for done in pool.imap_unordered(_tally, [(each, None, pairs) for each in waiting]):
                found[done.name] = {"sha256": done.sha256, "counts": done.counts, "wrong": list(done.wrong)}
                files.write_all(STATE.parent, {STATE.name: text(found)})
                bar.update(sum(name in found for name in (each.name for each in wanted)), done.name)
    click.echo(table(found), nl=False)
    wrong = [line for entry in found.values() for line in entry["wrong"]]
    if wrong:
        raise click.ClickException("accepted though wrong:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
