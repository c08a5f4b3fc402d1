"""Parameters found by search, kept in `schedules/answers/<isa>.toml`, so that a normal run does not search.

[sbd.sqr]
160 = { block = "8,4,4,6", cycles = 1343 }

`hints`, where a row has them, say which register a stay of a variable should have (`allocate.py`): `17:r4 33:r20`.
They hold for these parameters alone.  `cycles` are those of a call on the default core; the fastest method of a size
is the one that needs the fewest.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import methods
from .places import folder
from .plan import Plan
from .table import Isa

CYCLES, HINTS = "cycles", "hints"

Row = dict[str, str | int]


def path(isa: Isa) -> Path:
    """The file of an instruction set's answers."""
    return folder("schedules") / "answers" / f"{isa.name}.toml"


@functools.cache
def _document(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text()) if file.is_file() else {}


def forget() -> None:
    """Read the files anew: one has been written."""
    _document.cache_clear()


def parameters(isa: Isa, method: str, op: str, bits: int) -> dict[str, str]:
    """The best parameters known, {} where none are."""
    return given(rows(isa, method, op).get(str(bits), {}))


def given(row: Row) -> dict[str, str]:
    """The parameters of a row."""
    return {key: str(value) for key, value in row.items() if key not in (CYCLES, HINTS)}


def hints(isa: Isa, method: str, op: str, bits: int, parameters: Mapping[str, str]) -> dict[int, str]:
    """Which stays should have which registers, if the search was for these parameters."""
    row = rows(isa, method, op).get(str(bits), {})
    pairs = (pair.split(":") for pair in str(row.get(HINTS, "")).split())
    return {int(stay): register for stay, register in pairs} if given(row) == parameters else {}


def hints_of(isa: Isa, plan: Plan) -> dict[int, str]:
    """Which stays should have which registers in a function that does this plan."""
    bits = plan.limbs * isa.limb_bits
    known = given(rows(isa, plan.method, plan.op).get(str(bits), {}))
    standard = methods.defaults(plan.method, plan.limbs)
    same = {**standard, **known} == {**standard, **dict(plan.parameters)}
    return hints(isa, plan.method, plan.op, bits, known) if same else {}


def spelled(hints: Mapping[int, str]) -> str:
    """Hints as a row has them."""
    return " ".join(f"{stay}:{register}" for stay, register in sorted(hints.items()))


def rows(isa: Isa, method: str, op: str) -> dict[str, Row]:
    """What is known of a method, by size in bits."""
    found: dict[str, Row] = _document(path(isa)).get(method, {}).get(op, {})
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
