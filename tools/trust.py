"""What was tried so far, and with what outcome: `docs/trust-report.md`, and a line of the README.  Run by `make trust`.

python tools/trust.py            print the report
python tools/trust.py --write    write both, with what `make matrix`, `make reproduce` and `make hostile` left in build/

Every figure is in a file that a command wrote: docs/mutation.json, docs/table-mutation.json, docs/fuzz.json, surveys,
and docs/trust.json, which keeps the counts of what lies in build/.  It also says which figures are of older sources.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import figures
import jinja2
import matrix
import mutate
import mutate_tables
import reproduce
from results import between

from sqgen import mutants
from sqgen.files import write_all
from sqgen.tables import isa, isa_names

TOP = Path(__file__).resolve().parent.parent
DOCS = TOP / "docs"
KEPT, FUZZ, REPORT, README = DOCS / "trust.json", DOCS / "fuzz.json", DOCS / "trust-report.md", TOP / "README.md"
HOSTILE = TOP / "build" / "hostile.json"
MARKERS = "<!-- trust: made by `make trust` -->", "<!-- end of trust -->"
SOURCES = "sources"  # the key of a digest of those that figures are of
Counts = Mapping[str, int]
Rows = Mapping[str, Mapping[str, Any]]


# ---- what was found -------------------------------------------------------------------------------------------------


def document(path: Path) -> dict[str, Any]:
    """A file of figures, {} if there is none."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def gathered(kept: Rows) -> dict[str, dict[str, Any]]:
    """What was kept, and what lies in build/ and was made from the sources as they are."""
    found = {
        "matrix": {name: of_matrix(name) for name in isa_names()},
        "reproduce": {path.stem: made_again(path) for path in sorted(reproduce.FOLDER.glob("*.jsonl"))},
        "hostile": document(HOSTILE),
    }
    return {
        kind: {**kept.get(kind, {}), **{name: row for name, row in rows.items() if row}} for kind, rows in found.items()
    }


def of_matrix(name: str) -> dict[str, Any]:
    """What `make matrix` has found of an instruction set, {} if nothing; `complete` up to so many bits."""
    done = matrix.done(matrix.FOLDER / f"{name}.jsonl", matrix.version(name))
    if not done:
        return {}
    jobs = list(matrix.jobs([name]))
    missing = min((job.bits for job in jobs if job not in done), default=max(matrix.SIZES) + 1)
    report = matrix.report([done[job] for job in jobs if job in done])
    return {
        SOURCES: matrix.version(name),
        "cores": len({job.core for job, outcome in done.items() if outcome.verdict != matrix.NONE}),
        "combinations": len(jobs),
        "tried": report["kernels"] + report["none"],
        "complete": max((job.bits for job in jobs if job.bits < missing), default=0),
        "kernels": report["kernels"],
        "right": report["right"],
        "wrong": len(report["wrong"]),
        "simulated": report["simulated"],
        "counted": report["cycles confirmed by a simulator"],
        "traces": report["traces compared"],
    }


def made_again(path: Path) -> dict[str, Any]:
    """What `make reproduce` has made of an instruction set by one Python, {} if nothing."""
    name = path.stem.partition("-")[0]
    found, recorded = reproduce.known(path, reproduce.version(name)), reproduce.recorded()
    if not found:
        return {}
    jobs = [str(job) for job in reproduce.jobs(isa(name))]
    made = [job for job in jobs if job in found]
    same = sum(found[job] == recorded.get(job) for job in made)
    return {SOURCES: reproduce.version(name), "of": len(jobs), "kernels": len(made), "same": same}


# ---- the report -----------------------------------------------------------------------------------------------------


def facts() -> dict[str, Any]:
    """All that the report is made of."""
    kept, mutation, tables, fuzz = (document(path) for path in (KEPT, mutate.STATE, mutate_tables.STATE, FUZZ))
    grid, again = kept["matrix"], kept["reproduce"]
    changed = added(counts for entry in mutation.values() for counts in entry["counts"].values())
    return {
        **kept,
        "simulated": added(row["simulated"] for row in grid.values()).total()
        - sum(row["simulated"].get(matrix.NOWHERE, 0) for row in grid.values()),
        "surveys": {name: len(figures.known(survey)) for name, survey in figures.SURVEYS.items()},
        "mutation": mutation,
        "whole": [name for name, entry in mutation.items() if is_whole(entry)],
        "provers": Counter(f"{entry['prover']} and {entry['second']}" for entry in mutation.values()),
        "changes": [*by_core(mutation), *by_kind(mutation), ("all", changed)],
        "changed": changed,
        "outcomes": mutate.OUTCOMES,
        "wrong": mutate.WRONG,
        "tables": tables,
        "entries": added(counts for fields in tables.values() for counts in fields.values()),
        "nobody": mutate_tables.NOBODY,
        "fuzz": fuzz,
        "bad": sum(kept["hostile"].values()) + sum(row["tried"] for row in fuzz.values()),
        "pythons": {name.partition("-")[2] for name in again},
        "different": sum(row["kernels"] - row["same"] for row in again.values()),
    }


def added(some: Iterable[Counts]) -> Counter[str]:
    return sum((Counter(counts) for counts in some), Counter[str]())


def is_whole(entry: Mapping[str, Any]) -> bool:
    """Whether all changes of one instruction of a kernel were tried."""
    tried = added(counts for how, counts in entry["counts"].items() if how != mutate.PAIRS)
    return bool(tried.total() == entry["changes"])


def by_core(found: Rows) -> Iterator[tuple[str, Counter[str]]]:
    """What became of changed kernels."""
    for _, core in mutate.SIZES:
        some = [entry for name, entry in found.items() if name.startswith(f"{core}/")]
        yield core, added(counts for entry in some for counts in entry["counts"].values())


def by_kind(found: Rows) -> Iterator[tuple[str, Counter[str]]]:
    """The same by how they were changed."""
    for how in (*mutants.KINDS, mutate.PAIRS):
        yield how, added(entry["counts"].get(how, {}) for entry in found.values())


def laid_out(name: str, values: Mapping[str, Any]) -> str:
    """A text by its template."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["n"] = "{:,}".format
    environment.filters["listed"] = lambda counts: ", ".join(
        f"{count:,} {key}" for key, count in sorted(counts.items())
    )
    return environment.get_template(name).render(values, tracing=matrix)


def report(values: Mapping[str, Any]) -> str:
    """docs/trust-report.md."""
    return laid_out("trust-report.md.j2", values)


def filled(readme: str, values: Mapping[str, Any]) -> str:
    """The README with its line fresh."""
    return between(readme, MARKERS, f"\n{laid_out('trust-line.md.j2', values)}\n")


def older(mutation: Rows, kept: Mapping[str, Rows]) -> Iterator[str]:
    """What rests on other sources than there are now."""
    names = {core: name for name, core in mutate.SIZES}
    proofs = {"prover": mutate.prover(), "second": mutate.prover(mutate.SECOND)}
    now = {core: proofs | {"table": mutate.table_of(isa(name))} for core, name in names.items()}
    old = [name for name, entry in mutation.items() if not now[name.partition("/")[0]].items() <= entry.items()]
    if old:
        yield f"{len(old)} of {len(mutation)} kernels were changed when provers or tables were others: make mutate"
    for kind, version in (("matrix", matrix.version), ("reproduce", reproduce.version)):
        for name, row in kept[kind].items():
            if row[SOURCES] != version(name.partition("-")[0]):
                yield f"{name}: the figures are of other sources: make {kind}"


@click.command()
@click.option("--write", is_flag=True, help="Write it, and the README's line.")
def main(*, write: bool) -> None:
    """Say what was tried."""
    if not write:
        click.echo(report(facts()), nl=False)
        return
    kept = gathered(document(KEPT))
    write_all(DOCS, {KEPT.name: json.dumps(kept, indent=1, sort_keys=True) + "\n"})
    now = facts()
    write_all(DOCS, {REPORT.name: report(now)})
    write_all(TOP, {README.name: filled(README.read_text(encoding="utf-8"), now)})
    for line in older(now["mutation"], kept):
        click.echo(line, err=True)


if __name__ == "__main__":
    main()
