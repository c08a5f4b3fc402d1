"""Writes the files of answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from . import answers, methods
from .contract import OPS
from .files import rewrite
from .table import Core, Isa


def save(isa: Isa, method: str, op: str, new: Mapping[int, Sequence[answers.Row]], core: Core | None = None) -> None:
    """Write the answers' file with other rows for some sizes (bits) of a method; all else stays, also what another
    search has found meanwhile.

    Raises UserError if it cannot be written.
    """

    def text() -> str:
        lines = ["# Found by search, `make answers` and others; sqgen/answers.py reads it."]
        for each_op in OPS:
            for each in methods.names(each_op):
                table: dict[int, Sequence[answers.Row]] = {**answers.table(isa, each, each_op, core)}
                if (each, each_op) == (method, op):
                    table |= new
                lines += _section(f"{each}.{each_op}", table)
        return _joined(lines)

    _rewrite(answers.path(isa, core), text)


def save_fronts(isa: Isa, new: Mapping[str, Mapping[int, Sequence[answers.Row]]], core: Core | None = None) -> None:
    """Write the file of what nothing beats with the fronts of some sizes (bits) by operation; all else stays.

    Raises UserError if it cannot be written.
    """

    def text() -> str:
        lines = ["# Found by `make answers`; sqgen/front.py says what it is."]
        for op in OPS:
            lines += _section(op, {**answers.fronts(isa, op, core), **new.get(op, {})})
        return _joined(lines)

    _rewrite(answers.front_path(isa, core), text)


def _rewrite(path: Path, text: Callable[[], str]) -> None:
    """Write a file from what stands in it now, not from what stood in it when it was read first."""

    def current() -> str:
        answers.forget()
        return text()

    rewrite(path, current)
    answers.forget()


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _section(name: str, table: Mapping[int, Sequence[answers.Row]]) -> list[str]:
    """A table of the file, by size; nothing for an empty one."""
    sizes = [line for bits in sorted(table) for line in _size(bits, [_text(row) for row in table[bits]])]
    return ["", f"[{name}]", *sizes] if table else []


def _size(bits: int, rows: Sequence[str]) -> list[str]:
    """All rows of a size, one a line."""
    if len(rows) == 1:
        return [f"{bits} = [{rows[0]}]"]
    return [f"{bits} = [", *(f"  {row}," for row in rows), "]"]


def _text(row: answers.Row) -> str:
    """One row as TOML."""
    shown = (f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in row.items())
    return f"{{ {', '.join(shown)} }}"
