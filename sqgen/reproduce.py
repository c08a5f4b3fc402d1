"""A paper's table with ours, measured now, beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from . import kernel, methods
from .errors import Exit, UserError
from .formula import evaluate
from .paper import Ours, Row, Table
from .spec import spec
from .tables import isa
from .timing import body_counts

Figures = Mapping[str, Fraction]
# A measure of ours -> the class of instructions (`timing.body_counts`) that it counts.
CLASSES = {
    "load": "load",
    "store": "store",
    "mul": "mul",
    "add": "add",
    "shift": "shift",
    "push": "save",
    "pop": "restore",
}
SUMMARIES: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "min": min,
    "max": max,
    "mean": lambda values: sum(values, Fraction(0)) / len(values),
}


@dataclass(frozen=True)
class Request:
    """A kernel to measure."""

    isa: str
    core: str
    bits: int
    ours: Ours


@dataclass(frozen=True)
class Measured:
    """Figures of one kernel, or why there is none."""

    figures: Figures
    absent: str = ""


@dataclass(frozen=True)
class Mine:
    """Our line of a row: figures by column, and what is missing in it."""

    label: str
    methods: Mapping[str, Ours]
    figures: Figures
    absent: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """A row: what is printed, what is derived where nothing is, and ours."""

    row: Row
    printed: Figures
    derived: Figures
    mine: tuple[Mine, ...]

    def difference(self, mine: Mine, column: str) -> Fraction | None:
        """Ours less the paper's, or less what is derived where the paper's is not known."""
        wanted = self.printed.get(column, self.derived.get(column))
        found = mine.figures.get(column)
        return None if wanted is None or found is None else found - wanted


@dataclass(frozen=True)
class Fault:
    """A printed figure that is not what the other printed figures of its row give."""

    row: str
    column: str
    printed: Fraction
    given: Fraction


@dataclass(frozen=True)
class Reproduction:
    """A table, filled."""

    table: Table
    rows: tuple[Result, ...]
    faults: tuple[Fault, ...]


def requests(table: Table) -> list[Request]:
    """The kernels that a table needs, each once."""
    found = [
        Request(table.isa, table.core, row.bits, ours)
        for row in table.rows
        if row.bits
        for ours in (*row.ours, *table.kernels.values())
    ]
    return list(dict.fromkeys(found))


def measure(request: Request) -> Measured:
    """Compile, prove and price a kernel.  A method or parameter that is not here, or does not fit, is no error."""
    ours = request.ours
    if ours.method not in methods.names():
        return Measured({}, f"{ours.method}: no method here")
    try:
        wanted = spec(
            request.isa,
            request.bits,
            op=ours.op,
            core=request.core,
            method=ours.method,
            parameters=dict(ours.parameters),
        )
        made = kernel.make(wanted)
    except UserError as error:
        if error.code == Exit.USAGE:
            return Measured({}, f"{ours.label}: no method here")
        if error.code == Exit.LIMITS:
            return Measured({}, f"{ours.label}, {request.bits} bits: {error}")
        raise
    counts = body_counts(wanted.contract.isa, made.compiled.image, made.verdict.path)
    figures = {name: counts[kind] for name, kind in CLASSES.items()} | {"total": made.price.body, "bytes": made.size}
    return Measured({name: Fraction(ours.times * figure) for name, figure in figures.items()})


def fill(table: Table, measured: Mapping[Request, Measured]) -> Reproduction:
    """The table with the kernels measured for it."""
    results: list[Result] = []
    for row in table.rows:
        names = _names(table, row)
        printed = {**row.printed, **_evaluated(table, row.formulas, names)}
        derived = _completed(table, _evaluated(table, row.derived, names), names)
        mine = _summary(row, table, results) if row.summary else _mine(table, row, names, measured)
        results.append(Result(row, printed, derived, tuple(mine)))
    return Reproduction(table, tuple(results), tuple(faults(table)))


def faults(table: Table) -> Iterator[Fault]:
    """Where a paper's own figures do not agree."""
    for row in table.rows:
        known = {**_names(table, row), **row.printed}
        for column, formula in table.computed.items():
            if column in row.printed and _named(formula, known):
                given = rounded(evaluate(formula, known), table.decimals.get(column, 0))
                if given != row.printed[column]:
                    yield Fault(row.label, column, row.printed[column], given)


def rounded(value: Fraction, decimals: int) -> Fraction:
    """To so many decimals, halves up, as the papers do."""
    return Fraction(math.floor(value * 10**decimals + Fraction(1, 2)), 10**decimals)


def _names(table: Table, row: Row) -> dict[str, Fraction]:
    """n, the length in limbs, and what the row defines with it."""
    names = {"n": Fraction(-(-row.bits // isa(table.isa).limb_bits))}
    for name, formula in row.where.items():
        names[name] = evaluate(formula, names)
    return names


def _evaluated(table: Table, formulas: Mapping[str, str], names: Figures) -> dict[str, Fraction]:
    return {
        column: rounded(evaluate(formula, names), table.decimals.get(column, 0)) for column, formula in formulas.items()
    }


def _named(formula: str, names: Figures) -> bool:
    """Whether all names in the formula have a value."""
    try:
        evaluate(formula, names)
    except KeyError:
        return False
    return True


def _mine(table: Table, row: Row, names: Figures, measured: Mapping[Request, Measured]) -> Iterator[Mine]:
    """Our lines of a row: one for each kernel of the row, or one of the table's kernels by column."""
    for ours in row.ours:
        found = measured[Request(table.isa, table.core, row.bits, ours)]
        figures = {column: found.figures[column] for column in table.columns if column in found.figures}
        methods_used = dict.fromkeys(table.columns, ours)
        yield Mine(ours.label, methods_used, _completed(table, figures, names), (found.absent,) * bool(found.absent))
    if table.kernels:
        by_column = {
            column: measured[Request(table.isa, table.core, row.bits, ours)] for column, ours in table.kernels.items()
        }
        figures = {
            column: found.figures[table.kernels[column].measure or "total"]
            for column, found in by_column.items()
            if not found.absent
        }
        absent = dict.fromkeys(found.absent for found in by_column.values() if found.absent)
        yield Mine("ours", table.kernels, _completed(table, figures, names), tuple(absent))


def _completed(table: Table, figures: dict[str, Fraction], names: Figures) -> Figures:
    """With the columns that follow from others, where there is anything to follow from."""
    if not figures:
        return figures
    for column, formula in table.computed.items():
        known = {**names, **figures}
        if _named(formula, known):
            figures[column] = rounded(evaluate(formula, known), table.decimals.get(column, 0))
    return figures


def _summary(row: Row, table: Table, above: Iterable[Result]) -> Iterator[Mine]:
    """Our line of a summary: of what was computed in the rows above."""
    figures: dict[str, Fraction] = {}
    for column in table.computed:
        values = [mine.figures[column] for result in above for mine in result.mine if column in mine.figures]
        if values:
            figures[column] = rounded(SUMMARIES[row.summary](values), table.decimals.get(column, 0))
    if figures:
        yield Mine("ours", {}, figures, ())


# ---- why, and records for programs ----------------------------------------------------------------------------------


def why(table: Table, result: Result, mine: Mine, column: str) -> str:
    """The reason for a difference, "" if there is none or it follows from other columns."""
    difference = result.difference(mine, column)
    if not difference or column not in mine.methods or _follows(table, result, mine, column):
        return ""
    ours = mine.methods[column]
    than = "fewer" if difference < 0 else "more"
    measured = ours.measure or (column if column not in table.kernels else "total")
    own = any(reason.method == ours.label for reason in table.reasons)
    for reason in table.reasons:
        if (reason.method, reason.than) == (ours.label if own else ours.method, than) and measured in reason.columns:
            return reason.text
    return "not explained"


def _follows(table: Table, result: Result, mine: Mine, column: str) -> bool:
    """Whether a figure differs because others in its row do: a total, or what is computed from them."""
    computed = {name for name in table.computed if name != "others"} | ({"total"} if "load" in table.columns else set())
    parts = [other for other in table.columns if other not in computed]
    return column in computed and any(result.difference(mine, part) for part in parts)


def records(filled: Reproduction) -> Iterator[dict[str, Any]]:
    """One record for each figure and kernel of ours; the paper's alone where we have no kernel."""
    table = filled.table
    for result in filled.rows:
        for mine in result.mine or (None,):
            for column, head in table.columns.items():
                ours = mine.methods.get(column) if mine else None
                yield {
                    "paper": table.paper,
                    "table": table.name,
                    "place": result.row.place,
                    "row": result.row.label,
                    "bits": result.row.bits or None,
                    "figure": head,
                    "printed": number(result.printed.get(column)),
                    "derived": number(result.derived.get(column)),
                    "method": ours.label if ours else None,
                    "ours": number(mine.figures.get(column)) if mine else None,
                    "difference": number(result.difference(mine, column)) if mine else None,
                    "why": (why(table, result, mine, column) or None) if mine else None,
                }


def number(value: Fraction | None) -> int | float | None:
    """For JSON and CSV."""
    if value is None:
        return None
    return int(value) if value.denominator == 1 else float(value)


def document(filled: Reproduction) -> dict[str, Any]:
    """Everything about a table, for JSON."""
    table = filled.table
    return {
        "paper": table.paper,
        "table": table.names,
        "title": table.title,
        "core": table.core,
        "missing": table.missing or None,
        "absent": list(dict.fromkeys(text for result in filled.rows for mine in result.mine for text in mine.absent)),
        "faults": [
            {
                "row": fault.row,
                "figure": table.columns[fault.column],
                "printed": number(fault.printed),
                "others_give": number(fault.given),
            }
            for fault in filled.faults
        ],
        "figures": list(records(filled)),
    }
