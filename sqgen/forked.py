"""Registers where code goes two ways: what is alive in both is in the same one where they begin and where they end."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from dataclasses import replace

from .code import CodeError
from .errors import Exit
from .evict import Fork
from .placing import Placed, Task, best_place, counted
from .residence import PressureError, Residence


def best_places(task: Task, found: Residence) -> Placed:
    """As `best_place`; where the code forks the other way begins with each limb where the one before has it then, and
    leaves what outlives both where that does.  What is in a register from before a fork until after it is not moved on
    the way, where that would leave it in another one than the other way does."""
    if not found.forks:
        return best_place(task)
    ways = Ways(task, found)
    while apart := ways.placed():
        if apart <= ways.task.still:
            raise PressureError("a limb is elsewhere after the other one of two ways", Exit.LIMITS)
        ways = Ways(replace(task, still=ways.task.still | apart), found)
    return counted(task, ways.where, ways.moves)


class Ways:
    """The parts of a function: what comes up to the end of the first of two ways, then the other one and what follows
    up to the end of the first of the next two, and so on."""

    def __init__(self, task: Task, found: Residence) -> None:
        self.task, self.found = task, found
        self.where: list[int] = []
        self.moves: list[tuple[int, int, int]] = []

    def placed(self) -> frozenset[int]:
        """Place all; the deaths of those that should have stayed where they were."""
        forks, births = self.found.forks, self.task.births
        cuts = [bisect.bisect_left(births, 2 * fork.other) for fork in forks]
        self.take(best_place(self.task.part(0, cuts[0])))
        for fork, end in zip(forks, (*cuts[1:], len(births)), strict=True):
            same = again(self.found, fork) if fork.meets else {}
            if len(same) == end - len(self.where):
                self.repeat(fork, same)
            else:
                self.other(fork, end)
        return frozenset(self.task.deaths[stay] for fork in forks for stay in self.apart(fork))

    def at(self, operation: int) -> dict[int, int]:
        """Where each stay is before an operation, or would be."""
        return dict(enumerate(self.where)) | {stay: to for at, stay, to in self.moves if at <= operation}

    def apart(self, fork: Fork) -> Iterator[int]:
        """The stays that do not end in one register, although what they hold is there from before both ways."""
        last = self.at(fork.end)
        for pair in fork.lasting.items():
            if len({last[stay] for stay in pair}) > 1:
                yield from pair

    def take(self, placed: Placed) -> None:
        """A part that begins behind all so far."""
        first = len(self.where)
        self.where += placed.where
        self.moves += ((at, stay + first, to) for at, stay, to in placed.moves)

    def other(self, fork: Fork, end: int) -> None:
        """Place the other way, and what follows."""
        then, last = self.at(fork.at), self.at(fork.end)
        entry = {new: then[old] for new, old in fork.twins.items()}
        met = {new: last[old] for new, old in fork.meets.items()}
        try:
            self.take(best_place(self.task.part(len(self.where), end, entry, met)))
        except CodeError as error:
            if not met:
                raise
            raise PressureError(f"{error} after both of two ways", Exit.LIMITS) from None

    def repeat(self, fork: Fork, same: Mapping[int, int]) -> None:
        """Place the other way as the first one."""
        then, later = self.at(fork.at), fork.other - fork.at
        ways = {old: new for new, old in same.items()}
        new = range(len(self.where), len(self.where) + len(same))
        self.where += [then[fork.twins[stay]] if stay in fork.twins else self.where[same[stay]] for stay in new]
        self.moves += [(at + later, ways[stay], to) for at, stay, to in self.moves if at > fork.at and stay in ways]


def again(found: Residence, fork: Fork) -> dict[int, int]:
    """The stays of the other way with those of the first one that are the same but for the time, if all are."""
    length = 2 * min(fork.other - fork.at, fork.end - fork.other)

    def within(first: int) -> list[int]:
        return [number for number, stay in enumerate(found.stays) if 0 < stay.birth - 2 * first < length]

    def since(number: int, first: int) -> tuple[int, int]:
        stay = found.stays[number]
        return max(0, stay.birth - 2 * first), min(stay.death - 2 * first, length)

    one, other = within(fork.at), within(fork.other)
    pairs = {**fork.twins, **dict(zip(other, one, strict=False))}
    same = len(one) == len(other) and all(since(b, fork.other) == since(a, fork.at) for b, a in pairs.items())
    return pairs if same else {}
