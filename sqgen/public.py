"""Public code of others and published figures, from `papers/public/<isa>.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from .places import folder
from .table import Core, Isa


@dataclass(frozen=True)
class Public:
    """Code of others for one job: cycles `body` and `call` as in `timing.Price`, bytes of code, None where not known.

    `basis`: measured or published; `leaks`: what secrets decide, if anything; `core`: whose cycles these are, the
    default one's where nothing is said; `counts`: which of the two figures is compared.
    """

    bits: int
    who: str
    basis: str
    body: int | None = None
    call: int | None = None
    bytes: int | None = None
    leaks: str = ""
    core: str = ""
    counts: str = "body"

    @property
    def cycles(self) -> int:
        """The figure that is compared."""
        figure = self.body if self.counts == "body" else self.call
        assert figure is not None, f"{self.who}, {self.bits} bits: no cycles by {self.counts}"
        return figure

    @property
    def note(self) -> str:
        """What is to be said about the figures."""
        return f"{self.basis}, {self.leaks}" if self.leaks else self.basis


def alike(core: Core, other: Core) -> bool:
    """Whether the same code takes the same cycles on two cores: they have the same devices, too."""
    return core.timing == other.timing and core.devices.keys() == other.devices.keys()


def public(isa: Isa, op: str, core: Core | None = None) -> list[Public]:
    """What is known for an operation on a core, or the default one, or any that takes the same cycles: the smallest
    size first, the fastest first."""
    path = folder("papers") / "public" / f"{isa.name}.toml"
    document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    counts = document.get("counts", "body")
    rows = [Public(**row, counts=counts) for row in document.get(op, [])]
    wanted = core or isa.core(isa.default_core)
    there = [row for row in rows if alike(isa.core(row.core or isa.default_core), wanted)]
    return sorted(there, key=lambda row: (row.bits, row.cycles, row.who))
