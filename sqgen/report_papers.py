"""The tables of papers that are reproduced, for people and for documents."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from .report import WIDTH, _table

if TYPE_CHECKING:
    from .paper import Table as PaperTable
    from .reproduce import Reproduction


def papers_table(tables: Sequence[PaperTable]) -> str:
    """The tables of the papers that are reproduced."""
    return _table(("paper", "table", "its title", "what it holds"), list(map(_described, tables)))


def reproduction_table(filled: Reproduction) -> str:
    """A paper's table with ours below each row, where they differ, and below that why."""
    heads = ("", *filled.table.columns.values())
    notes = [f"{name}:\n" + "".join(map(_item, items)) for name, items in _notes(filled)]
    lines = textwrap.wrap(_reproduction_title(filled.table), WIDTH) + textwrap.wrap(filled.table.holds, WIDTH)
    return "\n".join([*lines, "", _table(heads, _lines(filled), numbers=True), *notes])


def reproduction_markdown(filled: Reproduction) -> str:
    """The same for a document."""
    rows = [("", *filled.table.columns.values()), ("---", *("---:" for _ in filled.table.columns)), *_lines(filled)]
    table = "".join("| " + " | ".join(cell.strip().replace("|", "\\|") for cell in row) + " |\n" for row in rows)
    notes = [f"{name}:\n\n" + "".join(f"- {item}\n" for item in items) for name, items in _notes(filled)]
    return "\n".join([f"### {_reproduction_title(filled.table)}\n\n{filled.table.holds}\n", table, *notes])


def papers_markdown(tables: Sequence[PaperTable]) -> str:
    """The list of tables for a document."""
    rows = [("paper", "table", "its title", "what it holds"), ("---",) * 4, *map(_described, tables)]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _described(table: PaperTable) -> tuple[str, str, str, str]:
    return table.paper, table.names, table.title, table.holds


def _reproduction_title(table: PaperTable) -> str:
    return f"{table.paper}, {table.names}: {table.title} ({table.place})"


def _lines(filled: Reproduction) -> list[tuple[str, ...]]:
    """A line for what the paper prints, then for each kernel of ours its figures and the differences."""
    lines: list[tuple[str, ...]] = []
    for result in filled.rows:
        lines.append((result.row.label, *_cells(filled.table, result.printed, "?" if filled.table.missing else "-")))
        if result.derived:
            lines.append(("  derived", *_cells(filled.table, result.derived)))
        for mine in result.mine:
            differences = {column: result.difference(mine, column) for column in filled.table.columns}
            label = f"  {mine.label}" if mine.figures else f"  {mine.label}: not here"
            lines.append((label, *_cells(filled.table, mine.figures)))
            if any(differences.values()):
                lines.append(("    differs by", *_cells(filled.table, differences, signed="+")))
    return lines


def _cells(table: PaperTable, figures: Mapping[str, Fraction | None], empty: str = "", signed: str = "") -> list[str]:
    """Figures in the order of the table's columns, `empty` where there is none; differences are `signed`."""
    cells = []
    for column in table.columns:
        value = figures.get(column)
        text = empty if value is None else f"{float(value):{signed}.{table.decimals.get(column, 0)}f}"
        cells.append("=" if signed and value == 0 else text)
    return cells


def _item(text: str) -> str:
    """One note."""
    return "\n".join(textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")) + "\n"


def _notes(filled: Reproduction) -> list[tuple[str, list[str]]]:
    """What is to be said below a table, by heading."""
    missing = [filled.table.missing] if filled.table.missing else []
    absent = dict.fromkeys(text for result in filled.rows for mine in result.mine for text in mine.absent)
    faults = [
        f"{fault.row}: {filled.table.columns[fault.column]} is printed as {float(fault.printed):g}, the other figures"
        f" of the row give {float(fault.given):g}"
        for fault in filled.faults
    ]
    notes = [
        ("Why ours differ", _reasons(filled)),
        ("Not here", list(absent)),
        ("Not printed in our copy of the paper (?)", missing),
        ("Formulas, n = bits / 8", _formulas(filled)),
        ("Where the paper disagrees with itself, see docs/errata.md", faults),
    ]
    return [(name, items) for name, items in notes if items]


def _reasons(filled: Reproduction) -> list[str]:
    """Each reason once, with the kernel and the figures that it is about."""
    from .reproduce import why  # noqa: PLC0415  (imports the compiler)

    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for result in filled.rows:
        for mine in result.mine:
            for column, head in filled.table.columns.items():
                text, difference = why(filled.table, result, mine, column), result.difference(mine, column)
                if text and difference:
                    key = mine.methods[column].label, "fewer" if difference < 0 else "more", text
                    found.setdefault(key, {})[head] = None
    return [f"{label}, {than} {', '.join(heads)}: {text}" for (label, than, text), heads in found.items()]


def _formulas(filled: Reproduction) -> list[str]:
    """The formulas of a table as printed, or as derived where none is."""
    found: dict[str, None] = {}
    for result in filled.rows:
        row = result.row
        for kind, formulas in (("", row.formulas), (", derived", row.derived)):
            if formulas:
                parts = [f"{filled.table.columns[column]} = {formula}" for column, formula in formulas.items()]
                parts += [f"{name} = {formula}" for name, formula in row.where.items()]
                found[f"{row.name}{kind}: {', '.join(parts)}"] = None
    return list(found)
