"""Registers where code goes two ways: what is alive in both is in the same one where they begin and where they end."""

from __future__ import annotations

import bisect

from .code import CodeError
from .errors import Exit
from .evict import Fork
from .placing import Placed, Task, best_place, counted
from .residence import PressureError, Residence


def best_places(task: Task, found: Residence) -> Placed:
    """As `best_place`; where the code forks the other way begins with each limb where the one before has it then, and
    leaves what outlives both where that does."""
    if not found.forks:
        return best_place(task)
    where: list[int] = []
    moves: list[tuple[int, int, int]] = []
    cuts = [bisect.bisect_left(task.births, 2 * fork.other) for fork in found.forks]
    for fork, end in zip((None, *found.forks), (*cuts, len(task.births)), strict=True):
        first, entry, met = len(where), {}, {}
        same = again(found, fork) if fork and fork.meets else {}
        if fork:
            then = dict(enumerate(where)) | {stay: to for at, stay, to in moves if at <= fork.at}
            last = then | {stay: to for _, stay, to in moves}
            entry = {new: then[old] for new, old in fork.twins.items()}
            met = {new: last[old] for new, old in fork.meets.items()}
        if fork and len(same) == end - first:
            where += [entry.get(new, where[same[new]]) for new in range(first, end)]
            later, ways = fork.other - fork.at, {old: new for new, old in same.items()}
            moves += [(at + later, ways[stay], to) for at, stay, to in moves if at > fork.at and stay in ways]
        else:
            try:
                placed = best_place(task.part(first, end, entry, met))
            except CodeError as error:
                if not met:
                    raise
                raise PressureError(f"{error} after both of two ways", Exit.LIMITS) from None
            where += placed.where
            moves += ((at, stay + first, to) for at, stay, to in placed.moves)
    return counted(task, where, moves)


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
