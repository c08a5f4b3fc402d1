"""Pointers on MSP430 that read operands: where each stands in every column, and how its limbs are read there.

A read through `@Rn+` takes a cycle less than one through `x(Rn)`, but the pointer must be brought back for the next
column, which takes one cycle for 2, 4 and 8 bytes, and two for others.  So the code is lowered twice: first every
column's reads are noted, then the cheapest way through all columns is found, step by step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .msp430_writer import LIMB

SHORT = (1, 2, 4)  # limbs that a pointer is moved by in one cycle, by a constant that the CPU makes itself


@dataclass(frozen=True)
class Read:
    """How a limb is read: "p" through `@Rn+`, "m" through `@Rn`, "x" through `offset(Rn)`."""

    way: str
    register: str
    offset: int = 0

    @property
    def args(self) -> tuple[str | int, ...]:
        return (self.register, self.offset) if self.way == "x" else (self.register,)


@dataclass
class Pointer:
    """A pointer register that stands at limb `at` of what it points into.

    `columns` are the limbs that each column reads, in order; `ways` says what is best: where to stand at its beginning,
    and whether to walk on; none while they are noted.  `home`: the limb at which the stack pointer stands, and from
    which column on.
    """

    register: str
    at: int
    home: tuple[int, int] | None = None
    columns: list[list[int]] = field(default_factory=list)
    ways: list[tuple[int, bool]] = field(default_factory=list)
    walking: bool = False

    def begin(self, column: int) -> int:
        """A column begins: where to go, in limbs from where it stands."""
        while len(self.columns) <= column:
            self.columns.append([])
        if not self.ways:
            return 0
        target, self.walking = self.ways[column]
        distance, self.at = target - self.at, target
        return distance

    def read(self, limb: int, *, again: bool = False) -> Read:
        """The next read; `again`: the same limb is read once more."""
        self.columns[-1].append(limb)
        if not self.ways:
            return Read("m", self.register)
        if limb != self.at:
            return Read("x", self.register, LIMB * (limb - self.at))
        if again or not self.walking:
            return Read("m", self.register)
        self.at += 1
        return Read("p", self.register)


def at_home(limb: int, home: tuple[int, int] | None, column: int) -> bool:
    """Whether the stack pointer stands at a limb in a column."""
    return home is not None and limb == home[0] and column >= home[1]


def moving(distance: int, *, home: bool) -> int:
    """Cycles to move a pointer by so many limbs, or to where the stack pointer stands."""
    return 0 if distance == 0 else 1 if home or abs(distance) in SHORT else 2


def walked(at: int, limbs: Sequence[int], *, walk: bool) -> tuple[int, int] | None:
    """(cycles more than from registers, where it stands then) of reading limbs from `at`; None if one lies below."""
    cost = 0
    for index, limb in enumerate(limbs):
        if limb < at:
            return None
        cost += 1 if limb == at else 2
        if walk and limb == at and limbs[index + 1 : index + 2] != [limb]:
            at += 1
    return cost, at


def cheapest(start: int, home: tuple[int, int] | None, columns: Sequence[list[int]]) -> list[tuple[int, bool]]:
    """For each column where to stand at its beginning, and whether to walk, so that all takes the fewest cycles."""
    best: dict[int, tuple[int, tuple[tuple[int, bool], ...]]] = {start: (0, ())}
    for column, limbs in enumerate(columns):
        following: dict[int, tuple[int, tuple[tuple[int, bool], ...]]] = {}
        for at, (cost, ways) in best.items():
            for target in sorted({at, *limbs[:1], *([min(limbs)] if limbs else [])}):
                for walk in (True, False):
                    found = walked(target, limbs, walk=walk)
                    if found is None:
                        continue
                    total = cost + moving(target - at, home=at_home(target, home, column)) + found[0]
                    if found[1] not in following or total < following[found[1]][0]:
                        following[found[1]] = (total, (*ways, (target, walk)))
        best = following
    return list(min(best.values())[1])
