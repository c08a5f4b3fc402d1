"""What the papers print: one file each in `papers/`, read here.

    key = "SBD13"                       # of docs/bibliography.md
    isa = "..."
    core = "atmega128"
    [reasons.sbd]                       # why ours differ, by method, or "sbd -p block=4", direction and columns
    fewer."load store" = "..."
    [[tables]]
    name = "Table 3"
    also = ["Figure 6"]                 # other names of the same figures
    title = "..."
    holds = "..."                       # for the list of tables
    place = "section 4.1"
    missing = "..."                     # why our copy of the paper lacks figures, where it does
    columns = { load = "load", total = "total" }     # name in formulas = heading
    decimals = { gain = 3 }             # 0 unless said
    computed = { gain = "100*(1 - SBD/LD)" }         # columns that follow from others
    [tables.kernels.SBD]                # columns that are one measure of a kernel of ours
    op = "sqr"
    method = "sbd"
    measure = "total"
    [[tables.rows]]
    name = "Our method (SBD)"
    op = "sqr"
    bits = 160                          # or several: a row for each
    where = { e = "10", m = "n - e" }   # names in formulas besides n, the limbs; { 128 = "..." } for values by size
    printed = { load = 58 }
    formulas = { load = "3*n" }         # printed as formulas
    derived = { load = "3*n" }          # not printed: from the definition of the method, or from printed figures
    summary = "mean"                    # of the rows above: mean, min or max
    place = "abstract"                  # where it stands, if not in the table
    ours = [{ method = "sbd", parameters = { block = "4" }, times = 2 }]    # the figures of two such kernels

`op`, `bits`, `where` and `ours` of a table hold for rows that do not say their own.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .errors import UserError
from .places import folder
from .table import nearest


@dataclass(frozen=True)
class Ours:
    """A kernel of ours, `times` over; `measure` is the one figure of it that is wanted, "" for all."""

    op: str
    method: str
    parameters: tuple[tuple[str, str], ...] = ()
    measure: str = ""
    times: int = 1

    @property
    def label(self) -> str:
        """As one writes it on the command line."""
        many = f"{self.times} x " if self.times > 1 else ""
        return many + self.method + "".join(f" -p {name}={value}" for name, value in self.parameters)


@dataclass(frozen=True)
class Reason:
    """Why ours has `than` ("fewer" or "more") of these columns.  `method`: a label, or a method for all others."""

    method: str
    than: str
    columns: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class Row:
    """A row at one size; `bits` is 0 for a summary of other rows.  `label`: its name, and its size if it has many."""

    name: str
    label: str
    place: str
    bits: int
    printed: Mapping[str, Fraction]
    formulas: Mapping[str, str]
    derived: Mapping[str, str]
    where: Mapping[str, str]
    summary: str
    ours: tuple[Ours, ...]


@dataclass(frozen=True)
class Table:
    """A table of a paper; the module's docstring explains the fields."""

    paper: str
    isa: str
    core: str
    name: str
    also: tuple[str, ...]
    title: str
    holds: str
    place: str
    missing: str
    columns: Mapping[str, str]
    decimals: Mapping[str, int]
    computed: Mapping[str, str]
    kernels: Mapping[str, Ours]
    reasons: tuple[Reason, ...]
    rows: tuple[Row, ...]

    @property
    def names(self) -> str:
        """All its names, for people."""
        return ", ".join((self.name, *self.also))


def known() -> list[str]:
    """The papers whose tables are here."""
    return sorted(path.stem.upper() for path in folder("papers").glob("*.toml"))


@functools.cache
def tables(key: str) -> tuple[Table, ...]:
    """All tables of a paper, in its order.  Raises UserError with the nearest key for an unknown one."""
    if key.upper() not in known():
        raise UserError(f"no tables of a paper '{key}'{nearest(key.upper(), known())}")
    with (folder("papers") / f"{key.lower()}.toml").open("rb") as file:
        document = tomllib.load(file, parse_float=Fraction)
    reasons = tuple(_reasons(document.get("reasons", {})))
    return tuple(_table(entry, document, reasons) for entry in document["tables"])


def find(key: str, name: str | None = None) -> tuple[Table, ...]:
    """The tables of that name, a bare number for "Table N"; all of the paper if None.

    Raises UserError with the nearest name.
    """
    there = tables(key)
    if name is None:
        return there
    wanted = f"Table {name}" if name.isdigit() else name
    found = tuple(
        table for table in there if wanted.casefold() in {each.casefold() for each in (table.name, *table.also)}
    )
    if not found:
        names = list(dict.fromkeys(each for table in there for each in (table.name, *table.also)))
        raise UserError(f"{there[0].paper} has no '{wanted}' here{nearest(wanted, names)}")
    return found


def _table(entry: dict[str, Any], document: dict[str, Any], reasons: tuple[Reason, ...]) -> Table:
    return Table(
        document["key"],
        document["isa"],
        document["core"],
        entry["name"],
        tuple(entry.get("also", ())),
        entry["title"],
        entry["holds"],
        entry["place"],
        entry.get("missing", ""),
        entry["columns"],
        entry.get("decimals", {}),
        entry.get("computed", {}),
        {column: _ours(kernel, entry) for column, kernel in entry.get("kernels", {}).items()},
        reasons,
        tuple(row for each in entry["rows"] for row in _rows(each, entry)),
    )


def _rows(entry: dict[str, Any], table: dict[str, Any]) -> Iterator[Row]:
    """The row of an entry, or one for each of its sizes."""
    bits: int | list[int] = 0 if "summary" in entry else entry.get("bits", table.get("bits", 0))
    for size in bits if isinstance(bits, list) else [bits]:
        where = {**table.get("where", {}), **entry.get("where", {})}
        yield Row(
            entry["name"],
            f"{entry['name']}, {size} bits" if isinstance(bits, list) else entry["name"],
            entry.get("place", table["place"]),
            size,
            {column: Fraction(value) for column, value in entry.get("printed", {}).items()},
            entry.get("formulas", {}),
            entry.get("derived", {}),
            {name: _of_size(value, size) for name, value in where.items()},
            entry.get("summary", ""),
            tuple(_ours(each, {**table, **entry}) for each in entry.get("ours", table.get("ours", ()))),
        )


def _of_size(value: str | dict[str, str], bits: int) -> str:
    return value if isinstance(value, str) else value[str(bits)]


def _ours(entry: dict[str, Any], around: dict[str, Any]) -> Ours:
    op = entry.get("op") or around["op"]
    parameters = tuple(entry.get("parameters", {}).items())
    return Ours(op, entry["method"], parameters, entry.get("measure", ""), entry.get("times", 1))


def _reasons(entries: dict[str, dict[str, dict[str, str]]]) -> Iterator[Reason]:
    for method, directions in entries.items():
        for than, texts in directions.items():
            for columns, text in texts.items():
                yield Reason(method, than, tuple(columns.split()), text)
