"""Devices: places in the address space at which no memory is, as the table of an instruction set describes them.

A device has a state of its own, limbs like those of registers.  Each of its ports is a limb of the address space: one
to read is a limb of the state, a write to another one changes the state by its meaning lines, in which `written` is
what was written.  What a write computes may be there only some cycles later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .statements import Statement, parse

WRITTEN = "written"


@dataclass(frozen=True)
class Port:
    """One limb of a device's part of the address space, `at` bytes from its start.

    It is to read, and then shows the limb `reads` of the state, or else to write, and then does what `statements` say;
    what they change can be read in the cycle `ready` behind the write, where 1 is the next one, and no port be written
    before the cycle `busy`.  Limbs of the state that the write `forgets` hold afterwards what nobody knows.
    """

    name: str
    at: int
    reads: str
    statements: tuple[Statement, ...]
    meaning: tuple[str, ...]
    ready: Mapping[str, int]
    busy: int
    forgets: tuple[str, ...]


@dataclass(frozen=True)
class Device:
    """A device: its limbs of state and its ports, by name; `base`: the option that says where it is on a part."""

    name: str
    title: str
    base: str
    state: tuple[str, ...]
    ports: tuple[Port, ...]

    @property
    def slots(self) -> tuple[str, ...]:
        """Its state, and what was written to it last."""
        return (*self.state, f"{self.name}.{WRITTEN}")


def read(raw: Mapping[str, Any]) -> dict[str, Device]:
    """The devices of a table, `[devices]` in it."""
    found = {}
    for name, entry in raw.items():
        ports = tuple(
            Port(
                port,
                given["at"],
                given.get("reads", ""),
                tuple(map(parse, given.get("meaning", ()))),
                tuple(given.get("meaning", ())),
                given.get("ready", {}),
                given.get("busy", 0),
                tuple(given.get("forgets", ())),
            )
            for port, given in entry["ports"].items()
        )
        found[name] = Device(name, entry["title"], entry.get("base", ""), tuple(entry["state"]), ports)
    return found
