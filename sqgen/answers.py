"""Parameters found by search, kept in `schedules/answers/<isa>.toml`, so that a normal run does not search.

[sbd.sqr]
160 = { block = "8,4,4,6", cycles = 1343 }

`cycles` are those of a call on the default core; the fastest method of a size is the one that needs the fewest.
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from .places import folder
from .table import Isa

CYCLES = "cycles"


def path(isa: Isa) -> Path:
    """The file of an instruction set's answers."""
    return folder("schedules") / "answers" / f"{isa.name}.toml"


@functools.cache
def _document(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text()) if file.is_file() else {}


def parameters(isa: Isa, method: str, op: str, bits: int) -> dict[str, str]:
    """The best parameters known, {} where none are."""
    return {key: str(value) for key, value in rows(isa, method, op).get(str(bits), {}).items() if key != CYCLES}


def rows(isa: Isa, method: str, op: str) -> dict[str, dict[str, str | int]]:
    """What is known of a method, by size in bits."""
    found: dict[str, dict[str, str | int]] = _document(path(isa)).get(method, {}).get(op, {})
    return found


def of_part(isa: Isa, method: str, op: str, limbs: int) -> dict[str, str]:
    """The best parameters known for a part of so many limbs."""
    return parameters(isa, method, op, limbs * isa.limb_bits)


def fastest(isa: Isa, op: str, bits: int) -> str | None:
    """The method that the search found the fastest, None for a size it has not been run for."""
    known = {
        method: row[CYCLES]
        for method, tables in _document(path(isa)).items()
        if (row := tables.get(op, {}).get(str(bits)))
    }
    return min(known, key=lambda method: (known[method], method), default=None)
