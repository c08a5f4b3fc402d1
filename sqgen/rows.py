"""Rows of figures for programs and documents: the same dictionaries as JSON, CSV or Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence

Row = Mapping[str, object]


def as_json(facts: Mapping[str, object]) -> str:
    """An object of facts, some of which may be lists of rows."""
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"


def as_csv(rows: Sequence[Row]) -> str:
    """A line of names and a line for each row; what is None is empty."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def as_markdown(rows: Sequence[Row]) -> str:
    """A table; what is None is an empty cell, yes and no are `*` and nothing."""
    heads = list(rows[0]) if rows else []
    lines = [heads, ["---"] * len(heads), *([_cell(row[head]) for head in heads] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value: object) -> str:
    if value is None or value is False:
        return ""
    return "*" if value is True else str(value).replace("|", "\\|").replace("*", "\\*").replace("\n", " ")
