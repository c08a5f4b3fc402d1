"""The tables of instruction sets with one entry changed: what in the tests sees it, in `docs/table-mutation.json`.

Each line of a meaning, each encoding, each figure of cycles and each control entry is changed, one at a time.  What is
asked is the tests' own: the reader of the table, the assemblers, the simulators, the rules of the manuals.  The first
that objects is what is written down; a change that nothing sees is a test that is missing, and fails the command.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from table_checks import CHECKS, Check, Seen  # noqa: E402

from sqgen import files, tables  # noqa: E402
from sqgen.progress import tracked  # noqa: E402
from sqgen.report import plain_table  # noqa: E402
from sqgen.statements import MeaningError  # noqa: E402
from sqgen.table import Isa, TableError  # noqa: E402

STATE = ROOT / "docs" / "table-mutation.json"
READER, NOBODY = "the table's reader", "nothing"
TIMES = ("cycles", "each", "chained", "taken")
OTHER = {"+": "-", "-": "+", "&": "|", "|": "^", "^": "&"}


@dataclass(frozen=True)
class Mutation:
    """An entry of an instruction with one thing changed."""

    isa: str
    insn: str
    field: str  # "meaning", "encoding", "cycles", "control"
    what: str
    entry: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.isa}/{self.insn}/{self.field}: {self.what}"


def raw(name: str) -> dict[str, Any]:
    """A table as TOML has it."""
    import tomllib  # noqa: PLC0415

    return tomllib.loads((tables.TABLES / f"{name}.toml").read_text())


def mutations(name: str) -> Iterator[Mutation]:
    """All changes of a table."""
    for insn, entry in raw(name)["insn"].items():
        for field, what, key, value in _changes(entry):
            changed = copy.deepcopy(entry)
            changed[key] = value
            yield Mutation(name, insn, field, what, changed)


def _changes(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, str, Any]]:
    """(field, what, key of the entry, its new value)"""
    lines = entry.get("meaning", [])
    for at, line in enumerate(lines):
        yield "meaning", f"without {line}", "meaning", [*lines[:at], *lines[at + 1 :]]
        for new in _lines(line):
            yield "meaning", f"{line} -> {new}", "meaning", [*lines[:at], new, *lines[at + 1 :]]
    yield from (("encoding", f"{entry['encoding']} -> {new}", "encoding", new) for new in _codes(entry["encoding"]))
    for key in TIMES:
        figures = entry.get(key, 1 if key == "cycles" else None)
        if isinstance(figures, int):
            yield "cycles", f"{key} = {figures + 1}", key, figures + 1
        elif figures:
            for column, figure in figures.items():
                yield "cycles", f"{key}.{column} = {figure + 1}", key, {**figures, column: figure + 1}
    control = entry.get("control", "")
    if re.search(r"[01]$", control):
        new = control[:-1] + str(1 - int(control[-1]))
        yield "control", f"{control} -> {new}", "control", new


def _lines(line: str) -> Iterator[str]:
    """A line of a meaning with another operator, or another number."""
    left, equals, right = line.partition(" = ")
    operators = [found.start() for found in re.finditer(r"(?<= )[-+&|^](?= (?!0\b))", right)]
    for at in (operators[:1] + operators[1:][-1:]) if operators else ():
        yield left + equals + right[:at] + OTHER[right[at]] + right[at + 1 :]
    if not operators and right.startswith("zero("):
        yield f"{left} = 1"
    elif not operators and right.startswith("["):
        yield f"{left} = {right[:-1]} + 2]"
    elif not operators:
        yield f"{left} = {0 if right == '1' else 1}"


def _codes(pattern: str) -> Iterator[str]:
    """An encoding with its last fixed bit the other one, and with two operands' bits exchanged."""
    at = max(place for place, bit in enumerate(pattern) if bit in "01")
    yield pattern[:at] + str(1 - int(pattern[at])) + pattern[at + 1 :]
    letters = list(dict.fromkeys(bit for bit in pattern if bit.isalpha()))
    if len(letters) > 1:
        one, other = letters[:2]
        yield "".join({one: other, other: one}.get(bit, bit) for bit in pattern)


def changed(mutation: Mutation, table: Mapping[str, Any]) -> Isa:
    """The instruction set with the change.  Raises what the reader raises."""
    path = tables.TABLES / f"{mutation.isa}.toml"
    insns = {**table["insn"], mutation.insn: mutation.entry}
    isa = tables._Loader({**table, "insn": insns}, path, "changed").isa()
    tables._check(isa.insns[mutation.insn], isa)
    return isa


def seen_by(mutation: Mutation, table: Mapping[str, Any], checks: Mapping[str, Check]) -> str:
    """What sees a change."""
    try:
        isa = changed(mutation, table)
    except (TableError, MeaningError, KeyError, ValueError):
        return READER
    for name, check in checks.items():
        try:
            check(isa, mutation.insn)
        except Seen:
            return name
    return NOBODY


def run(name: str, only: Callable[[Mutation], bool] = lambda _: True) -> list[tuple[Mutation, str]]:
    """What sees the changes of a table."""
    table = raw(name)
    wanted = [mutation for mutation in mutations(name) if only(mutation)]
    return [(mutation, seen_by(mutation, table, CHECKS[name])) for mutation in tracked(wanted, f"{name} table")]


def table(found: Mapping[str, Mapping[str, Mapping[str, int]]]) -> str:
    """By instruction set, field, and what saw it."""
    rows = [
        (f"{isa}, {field}", seer, str(count))
        for isa, fields in found.items()
        for field, seers in fields.items()
        for seer, count in seers.items()
    ]
    return plain_table(("entries", "seen by", "changes"), rows)


@click.command()
@click.option("--isa", "names", multiple=True, default=list(CHECKS), help="Only these instruction sets.")
def main(*, names: tuple[str, ...]) -> None:
    """Change every entry of the tables, and say what sees it."""
    found: dict[str, Any] = json.loads(STATE.read_text()) if STATE.exists() else {}
    missed = []
    for name in names:
        outcome = run(name)
        missed += [mutation.name for mutation, seer in outcome if seer == NOBODY]
        counts: dict[str, Counter[str]] = {}
        for mutation, seer in outcome:
            counts.setdefault(mutation.field, Counter())[seer] += 1
        found[name] = {field: dict(sorted(seers.items())) for field, seers in sorted(counts.items())}
        files.write_all(STATE.parent, {STATE.name: json.dumps(found, indent=1, sort_keys=True) + "\n"})
    click.echo(table(found), nl=False)
    if missed:
        raise click.ClickException("seen by nothing:\n" + "\n".join(missed))


if __name__ == "__main__":
    main()
