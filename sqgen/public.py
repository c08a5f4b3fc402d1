"""Public code of others and published figures, from `papers/public/<isa>.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from .places import folder
from .table import Core, Isa


@dataclass(frozen=True)
class Public:
    """Code of others for one job, on the default core: cycles `body` and `call` as in `timing.Price`, bytes of code,
    None where not known.  `basis`: measured or published; `signs`: it branches on the sign of a difference."""

    bits: int
    who: str
    body: int
    basis: str
    call: int | None = None
    bytes: int | None = None
    signs: bool = False

    @property
    def note(self) -> str:
        """What is to be said about the figures."""
        return f"{self.basis}, branches on a sign" if self.signs else self.basis


def public(isa: Isa, op: str) -> list[Public]:
    """What is known for an operation, the smallest size first, the fastest first."""
    path = folder("papers") / "public" / f"{isa.name}.toml"
    document: dict[str, list[dict[str, Any]]] = tomllib.loads(path.read_text()) if path.is_file() else {}
    return sorted((Public(**row) for row in document.get(op, [])), key=lambda row: (row.bits, row.body, row.who))


def comparable(isa: Isa, core: Core) -> bool:
    """Whether the figures, which are for the default core, hold for this one."""
    return core.timing == isa.core(isa.default_core).timing
