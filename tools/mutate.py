"""Kernels with one instruction changed, or two, by the hundred thousand: what became of them, in `docs/mutation.json`.

A change is refused by the proof, as are branches on operands but in kernels that are made with these; or it is
accepted, and then runs on structured operands say whether it is right, and the second proof whether it thinks so, too.
One that is accepted and wrong is a fault of the proof: the command says which, and fails.  Of small kernels every
change of one instruction is tried, of larger ones a sample; pairs of each.
Kernels that were done before are not done again, as long as they and the sources of the provers are the same: it may be
stopped at any time.  Where just the second proof is another one, it alone looks again at what was accepted.
"""

from __future__ import annotations

import functools
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
FIRST = ("prove", "interpret", "mutants", "tables")  # what decides on what is accepted, and on what is wrong, in sqgen/
SECOND = ("forward_proof",)  # and on whether both proofs say so
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
IN_PLACE = {"levels": "1", "parts": "inline", "signs": "branched"}
CALLED = {"levels": "2", "parts": "inline", "recombine": "unrolled", "signs": "everywhere"}
NESTED = {"levels": "2", "parts": "nested", "recombine": "unrolled", "signs": "branched"}
PASSING = {"levels": "3", "parts": "inline", "recombine": "unrolled"}
PASSING_MORE = {"levels": "3", "parts": "nested", "recombine": "unrolled"}
Form = tuple[str, str, int, Mapping[str, str]]
FORMS: Mapping[tuple[str, str], Sequence[Form]] = {  # kernels of what no method is by itself at these sizes, by core
    ("avr", "atmega128"): (  # those that branch on operands; then functions that find limbs of operands in registers
        *(("mul", "karatsuba", bits, IN_PLACE) for bits in (16, 32, 64, 128)),
        ("mul", "karatsuba", 96, CALLED),
        *(("mul", "karatsuba", bits, NESTED) for bits in (168, 208)),  # arms of parts, which both proofs join
        ("mul", "karatsuba", 128, PASSING),
        ("mul", "karatsuba", 192, PASSING_MORE),
        *(("sqr", "karatsuba-squaring", bits, PASSING) for bits in (128, 256)),
    ),
}


@dataclass(frozen=True)
class Subject:
    """A kernel to be changed; a `sample` is how many of its changes are tried, None if all; whether it may have
    `branches` on operands."""

    name: str
    contract: Contract
    core: Core
    image: bytes
    sha256: str
    sample: int | None
    branches: bool = False

    def outcome(self, image: bytes) -> str:
        """What becomes of it with its code changed."""
        if not prove(image, self.contract, self.core, branches=self.branches).proved:
            return REFUSED
        broken = broken_promise(image, self.contract, self.core, RUNS, branches=self.branches)
        return WRONG if broken else self.agreed(image)

    def agreed(self, image: bytes) -> str:
        """What the second proof says of code that is accepted."""
        return BOTH if prove_forward(image, self.contract, self.core, branches=self.branches).proved else ONE


@dataclass(frozen=True)
class Tally:
    """What became of the changes of a kernel, by kind, and those that are accepted and wrong as text; which ones are
    `accepted` and not wrong, counted from 0 as they were tried; how many changes of one instruction there are in all.
    """

    name: str
    changes: int
    counts: Mapping[str, Mapping[str, int]]
    wrong: Sequence[str]
    accepted: Sequence[int]


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


def in_forms(wanted: Sequence[str], sample: int | None = None) -> Iterator[Subject]:
    """The kernels in forms of their own on these cores; of the larger ones a sample."""
    for (name, core), forms in FORMS.items():
        for op, method, bits, given in forms if core in wanted else ():
            branches = "signs" in given
            asked = spec(name, bits, op=op, method=method, core=core, parameters=given, allow_branches=branches)
            made = kernel_module.make(asked)
            few = sample if bits in SIZES[name, core] else SAMPLE
            label = f"{core}/{op}/{method}/{bits}/{given['signs' if branches else 'parts']}"
            yield Subject(label, asked.contract, asked.core, made.compiled.image, made.sha256, few, branches)


def trials(subject: Subject, pairs: int) -> tuple[int, list[tuple[Change, ...]]]:
    """How many changes a kernel has, and those that are tried, with so many pairs."""
    which = subject.contract.isa
    every = list(mutants.changes(which, subject.image))
    chosen = every
    if subject.sample is not None and subject.sample < len(every):
        chosen = random.Random(subject.name).sample(every, subject.sample)
    both = mutants.pairs(which, subject.image, pairs, subject.name)
    return len(every), [*((change,) for change in chosen), *both]


def kind(trial: Sequence[Change]) -> str:
    return trial[0].how if len(trial) == 1 else PAIRS


def changed(subject: Subject, trial: Sequence[Change]) -> bytes:
    """The kernel's code with some changes."""
    image = subject.image
    for change in trial:
        image = change.apply(image)
    return image


def tally(subject: Subject, pairs: int) -> Tally:
    """Try a kernel's changes, and so many pairs."""
    changes, every = trials(subject, pairs)
    counts: dict[str, Counter[str]] = {}
    wrong, accepted = [], []
    for number, trial in enumerate(every):
        found = subject.outcome(changed(subject, trial))
        counts.setdefault(kind(trial), Counter())[found] += 1
        if found == WRONG:
            wrong.append(f"{subject.name}: " + " and ".join(change.text() for change in trial))
        elif found != REFUSED:
            accepted.append(number)
    return Tally(subject.name, changes, counts, wrong, accepted)


def again(subject: Subject, pairs: int, before: Tally) -> Tally:
    """The same with what the second proof says now of what was accepted."""
    _, every = trials(subject, pairs)
    counts = {
        how: Counter({k: n for k, n in some.items() if k not in (BOTH, ONE)}) for how, some in before.counts.items()
    }
    for trial in (every[number] for number in before.accepted):
        counts[kind(trial)][subject.agreed(changed(subject, trial))] += 1
    return replace(before, counts=counts)


def fate(subject: Subject, pairs: int, before: Tally | None) -> Tally:
    """What becomes of them, if it was found `before` but for the second proof."""
    return again(subject, pairs, before) if before else tally(subject, pairs)


def known() -> dict[str, dict[str, Any]]:
    """What was found before, by kernel."""
    return dict(json.loads(STATE.read_text())) if STATE.exists() else {}


@functools.cache
def prover(which: Sequence[str] = FIRST) -> str:
    """Which proof: one number for the sources of all that decides on it."""
    return sources.digest(sources.closure(sources.modules(which)))


def basis(subject: Subject) -> dict[str, str]:
    """What an outcome rests on: the code, the provers, the table."""
    table = table_of(subject.contract.isa)
    return {"sha256": subject.sha256, "prover": prover(), "second": prover(SECOND), "table": table}


def table_of(isa: Isa) -> str:
    """Which table."""
    return isa.digest[:16]


def is_known(subject: Subject, found: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether what was found before says what becomes of this kernel's changes now."""
    return basis(subject).items() <= found.get(subject.name, {}).items()


def half_known(subject: Subject, found: Mapping[str, Mapping[str, Any]]) -> Tally | None:
    """What was found before, if all but the second proof is as it was."""
    entry = found.get(subject.name, {})
    first = {key: value for key, value in basis(subject).items() if key != "second"}
    if "accepted" not in entry or not first.items() <= entry.items():
        return None
    return Tally(subject.name, entry["changes"], entry["counts"], entry["wrong"], entry["accepted"])


def work(waiting: Sequence[Subject], found: dict[str, dict[str, Any]], jobs: int | None) -> None:
    """Try the changes of these kernels; what is found of one is written when it is there."""
    with Bar("mutants", len(waiting)) as bar, workers.pool(jobs) as pool:
        subjects = {each.name: each for each in waiting}
        pairs = [each.sample or COUNT for each in waiting]
        before = [half_known(each, found) for each in waiting]
        for number, done in enumerate(pool.as_done(fate, waiting, pairs, before)):
            entry = {key: value for key, value in vars(done).items() if key != "name"}
            found[done.name] = basis(subjects[done.name]) | entry
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
        wanted = [*subjects(cores), *subjects(cores, LARGER, SAMPLE), *in_forms(cores)]
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
