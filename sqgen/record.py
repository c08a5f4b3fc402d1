"""Writes the file of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import answers, methods
from .contract import OPS
from .files import write_all
from .table import Isa


def save(isa: Isa, method: str, op: str, new: Mapping[int, Sequence[answers.Row]]) -> None:
    """Write the answers' file with other rows for some sizes (bits) of a method; all else stays.

    Raises UserError if it cannot be written.
    """
    lines = ["# Found by search, `make answers` and others; sqgen/answers.py reads it."]
    for each_op in OPS:
        for each in methods.names(each_op):
            table: dict[int, Sequence[answers.Row]] = {**answers.table(isa, each, each_op)}
            if (each, each_op) == (method, op):
                table |= new
            if table:
                lines += ["", f"[{each}.{each_op}]"]
            for bits in sorted(table):
                lines += _size(bits, [text(row) for row in table[bits]])
    path = answers.path(isa)
    write_all(path.parent, {path.name: "\n".join(lines) + "\n"})
    answers.forget()


def _size(bits: int, rows: Sequence[str]) -> list[str]:
    """All rows of a size, one a line."""
    if len(rows) == 1:
        return [f"{bits} = [{rows[0]}]"]
    return [f"{bits} = [", *(f"  {row}," for row in rows), "]"]


def text(row: answers.Row) -> str:
    """One row as TOML."""
    shown = (f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in row.items())
    return f"{{ {', '.join(shown)} }}"
