"""Which limbs may make up one number: what neighbouring places hold, and above them registers into which carries lead.

To both proofs that is a guess, like where arms meet (`meeting`): whether it is so they see for themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

Place = tuple[str, int]  # buffer, offset in limbs
Spot = int | Place  # where a limb is: a slot, or a place in memory
Limb = Mapping[Any, int]  # what it is made of -> how often that counts


def runs(places: Sequence[Place]) -> list[list[Place]]:
    """Sorted places, split where they are no neighbours."""
    found: list[list[Place]] = []
    for buffer, offset in places:
        if found and found[-1][-1] == (buffer, offset - 1):
            found[-1].append((buffer, offset))
        else:
            found.append([(buffer, offset)])
    return found


def numbers(
    places: Collection[Place], slots: Collection[int], size: int, limb: Callable[[Spot], Limb]
) -> Iterator[tuple[list[Spot], list[Spot]]]:
    """The spots of what may be one number each, lowest first, and those of them that are places; all places are in
    some.  `size`: what a limb is below."""
    every: list[Spot] = [*places, *slots]
    limbs = {spot: limb(spot) for spot in every}
    waiting = runs(sorted(places))
    while waiting:
        row = waiting.pop()
        spots = _tied(row, slots, size, limbs)
        inside = spots[: sum(not isinstance(spot, int) for spot in spots)]
        yield spots, inside
        if rest := row[len(inside) :]:
            waiting.append(rest)


def _tied(row: Sequence[Place], slots: Collection[int], size: int, limbs: Mapping[Spot, Limb]) -> list[Spot]:
    """The spots of one number, which begins in a row of places: what is carried out of a limb, and counts so often
    there, counts once in the next one, most of it at least, lest that is something else that was carried into.  That is
    the next place, unless it is one of the slots."""
    found: list[Spot] = [row[0]]
    places: list[Spot] = list(row[1:])
    registers: list[Spot] = list(slots)
    while True:
        carried = {what: -c // size for what, c in limbs[found[-1]].items() if c % size == 0}.items()
        shared = {spot: len(carried & limbs[spot].items()) for spot in (*places[:1], *registers)}
        best = max(shared, key=lambda spot: shared[spot], default=row[0])
        if best in registers and 2 * shared[best] > len(carried):
            places.clear()
            registers.remove(best)
            found.append(best)
        elif places:
            found.append(places.pop(0))
        else:
            return found
