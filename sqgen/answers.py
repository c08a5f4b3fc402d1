"""Parameters found by search, kept in `schedules/answers/<isa>.toml`, so that a normal run does not search.

[sbd.sqr]
160 = { block = "8,4,4,6" }
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path
from typing import Any

from .places import folder
from .table import Isa


def path(isa: Isa) -> Path:
    """The file of an instruction set's answers."""
    return folder("schedules") / "answers" / f"{isa.name}.toml"


@functools.cache
def _document(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text()) if file.is_file() else {}


def parameters(isa: Isa, method: str, op: str, bits: int) -> dict[str, str]:
    """The best parameters known, {} where none are."""
    found: dict[str, str] = _document(path(isa)).get(method, {}).get(op, {}).get(str(bits), {})
    return dict(found)


def of_part(isa: Isa, method: str, op: str, limbs: int) -> dict[str, str]:
    """The same, for a part of so many limbs."""
    return parameters(isa, method, op, limbs * isa.limb_bits)


def fastest(isa: Isa, op: str, bits: int) -> str | None:
    """The method that the search found the fastest, None for a size it has not been run for."""
    found: str | None = _document(path(isa)).get("fastest", {}).get(op, {}).get(str(bits))
    return found
