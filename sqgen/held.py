"""What registers and memory may hold in the proof, what a walk notes on its way, and what it raises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .linear import Form


class Refused(Exception):
    """The code does something that the contract forbids."""


class Split(Exception):
    """The proof needs to know whether an atom of value 0 or 1 is which."""

    def __init__(self, atom: int) -> None:
        super().__init__(atom)
        self.atom = atom


@dataclass(frozen=True)
class ZeroTest:
    """A flag that says whether all of `forms` are zero."""

    forms: tuple[Form, ...]


@dataclass(frozen=True)
class Return:
    """One limb of a return address: `part` of the place `target`, None for the caller's."""

    target: int | None
    part: int


class Event(NamedTuple):
    """What one can see of a running function but for the numbers in it: an access to memory or a branch's decision.

    `at`: address of the instruction; `kind`: "read", "write" or "branch"; `place`: buffer or flag; `number`: offset in
    limbs or value of the flag.
    """

    at: int
    kind: str
    place: str
    number: int


class Ways(NamedTuple):
    """The paths from a branch to where its arms meet, as offsets in bytes, and how many there are with those of what
    they call."""

    paths: tuple[tuple[int, ...], ...]
    ways: int

    def path(self, call: int) -> tuple[int, ...]:
        """That of the call with this number: they take turns."""
        return self.paths[call % len(self.paths)]


Value = Form | ZeroTest | None  # None: whatever was left there
Cell = Form | Return
Place = tuple[str, int]  # buffer, offset in limbs


class Call(NamedTuple):
    """How things stood when a function was called: stack pointer, number of events, atoms and relations, atoms when its
    caller first multiplied, memory.

    What the function computes are later atoms; the earlier ones are what it was given.
    """

    depth: int
    events: int
    atoms: int
    relations: int
    unmultiplied: int
    memory: dict[Place, Cell]
