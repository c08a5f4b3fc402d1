"""Places by beam search: of all ways to place the stays so far, the best few are followed.

What decides is not which register a stay has, but with whom it shares an aligned pair, and until when: that is a
state, and of two that are alike the dearer one is dropped.  Where mates find no free pair they are placed apart, or
what is in the way of one is moved; both cost a cycle.  States are compared by that, and by the time to come in which
just one register of a pair is in use, since mates cannot be there then.

Both times of a pair are one number, which is sorted and looked up in half the time that two take.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .placing import Task

HORIZON = 200  # half operations: what is later than that is not looked at
ALONE = 200  # half operations of a register that is alone in its pair, as bad as a cycle

BOTH = 2  # sides of a pair
BITS = 24  # of a time
LATEST = (1 << BITS) - 1  # what is later is as late
Times = int  # until when the two registers of a pair are in use, 0 for one that is free: side 0 above side 1
Move = tuple[int, int, int]  # time, stay, register
Gaps = Mapping[int, Sequence[tuple[int, int]]]  # pair -> from when until when it is not there, perhaps never


class Step(NamedTuple):
    """Where a stay went: to one `side` of a pair, or with its mate to both, of which what was at `side` before may
    have gone to another pair."""

    before: Step | None
    stay: int
    pair: int
    side: int
    to: tuple[int, int] | None = None


class State(NamedTuple):
    """All stays so far are placed, and the mates of some that come later.  `apart`: mates that are to be placed by
    themselves."""

    cost: int
    pairs: tuple[Times, ...]
    apart: tuple[int, ...] = ()
    last: Step | None = None


Ranked = dict[object, tuple[float, State]]  # by what makes states alike: what it is judged by, and the cheapest one


def times(one: int, other: int) -> Times:
    return one << BITS | other


def at(side: int, pair: Times) -> int:
    """Until when the register at a side is in use."""
    return pair & LATEST if side else pair >> BITS


def with_side(pair: Times, side: int, time: int) -> Times:
    """The pair where that side is in use until then."""
    return times(pair >> BITS, time) if side else times(time, pair & LATEST)


class Ordered(dict[Times, Times]):
    """Pairs with the sooner time first."""

    def __missing__(self, pair: Times) -> Times:
        self[pair] = found = times(*sorted((at(0, pair), at(1, pair))))
        return found


class Uneven(dict[Times, int]):
    """For how long one register of an ordered pair is in use behind the other, if both are now."""

    def __missing__(self, pair: Times) -> int:
        first, last = at(0, pair), at(1, pair)
        self[pair] = found = min(last - first, HORIZON) if first else 0
        return found


def search(task: Task, allowed: Set[int]) -> tuple[list[int], list[Move]] | None:
    """The register of each stay at its birth, and the moves, in the registers that are `allowed`.

    None if none of the ways that were followed goes on to the end.
    """
    opening = {r: min(time if r in allowed else LATEST, LATEST) for r, time in enumerate(task.opening)}
    slots = slots_of(task)
    states = [State(0, tuple(times(opening[low], opening.get(high, LATEST)) for low, high in slots))]
    gaps = {pair: task.gaps.get(low, ()) for pair, (low, _) in enumerate(slots)}
    judge = Judge(gaps)
    highs = {mate for mate in task.mates if mate >= 0}
    ends = sorted({*task.opening, *task.deaths})
    over, before = 0, -1
    for stay, birth in enumerate(task.births):
        mated = stay in highs  # it came with its mate, if that is not said to be apart
        if mated and birth == before and all(stay not in state.apart for state in states):
            continue
        was_over, over, before = over, bisect.bisect_right(ends, birth), birth
        death = last_of(task, stay)
        there = {pair: each for pair, each in gaps.items() if not each or not missing(birth, death, each)}
        ranked: Ranked = {}
        for state in states:
            now = cleared(state.pairs, birth) if over > was_over else state.pairs
            if mated and stay not in state.apart:
                judge.rank(ranked, [State(state.cost, now, state.apart, state.last)], birth)
            else:
                judge.rank(ranked, ways(task, state, now, stay, there), birth)
        states = [state for _, state in sorted(ranked.values(), key=operator.itemgetter(0))[: task.width]]
    return replay(task, slots, min(states, key=lambda state: state.cost).last) if states else None


def slots_of(task: Task) -> list[tuple[int, int]]:
    """The pairs of registers, and those that have no neighbour with -1."""
    return [(r, n) for r, n in enumerate(task.neighbours) if task.low[r] or n < 0]


def place_of(task: Task, register: int) -> tuple[int, int]:
    """The pair in which a register is, and its side."""
    return next((pair, slot.index(register)) for pair, slot in enumerate(slots_of(task)) if register in slot)


def cleared(pairs: Sequence[Times], now: int) -> tuple[Times, ...]:
    """The same without times that are over."""
    later = times(now + 1, 0)
    return tuple(
        [
            (pair if pair >= later else pair & LATEST)
            if pair & LATEST > now
            else (pair - (pair & LATEST) if pair >= later else 0)
            for pair in pairs
        ]
    )


class Judge:
    """Which states are alike, and what speaks against one; pairs that have `gaps` are not as others are."""

    def __init__(self, gaps: Gaps) -> None:
        self.gaps = tuple(pair for pair, each in gaps.items() if each)
        self.ordered, self.uneven = Ordered().__getitem__, Uneven().__getitem__

    def rank(self, ranked: Ranked, states: Iterable[State], now: int) -> None:
        """Keep states, with what they are judged by, if none that is like one is cheaper."""
        for state in states:
            pairs = sorted(map(self.ordered, state.pairs))
            key = (state.apart, *[state.pairs[pair] for pair in self.gaps], *pairs)
            other = ranked.get(key)
            if other is None or state.cost < other[1].cost:
                alone = sum(map(self.uneven, pairs))
                for pair in pairs:  # of the first ones one register is free, or both
                    if pair > LATEST:
                        break
                    if pair:
                        alone += min(pair - now, HORIZON)
                ranked[key] = (state.cost + alone / ALONE, state)


def last_of(task: Task, stay: int) -> int:
    """The death of a stay, or of its mate, if that dies later."""
    mate = task.mates[stay]
    return max(task.deaths[stay], task.deaths[mate]) if mate >= 0 else task.deaths[stay]


def missing(birth: int, death: int, gaps: Sequence[tuple[int, int]]) -> bool:
    """Whether a register that has gaps is not there all the time from birth to death."""
    return any(birth < end and death > begin for begin, end in gaps)


def ways(task: Task, state: State, now: tuple[Times, ...], stay: int, there: Gaps) -> Iterator[State]:
    """The states after a stay; `now` are the state's times at its birth; `there` are the pairs that are there as long
    as it lives, with their gaps."""
    death, mate = task.deaths[stay], task.mates[stay]
    if stay in task.entry:
        pair, side = place_of(task, task.entry[stay])
        if pair in there and not at(side, now[pair]):
            pairs = put(now, pair, with_side(now[pair], side, death))
            yield State(state.cost, pairs, state.apart, Step(state.last, stay, pair, side))
        return
    if mate < 0:
        apart = tuple([other for other in state.apart if other != stay]) if state.apart else ()
        yield from alone(State(state.cost, now, apart, state.last), stay, death, there)
        return
    both = times(death, task.deaths[mate])
    for pair in there:
        if not now[pair]:
            yield State(state.cost, put(now, pair, both), state.apart, Step(state.last, stay, pair, BOTH))
            return
    yield from alone(State(state.cost + 1, now, (*state.apart, mate), state.last), stay, death, there)
    for pair, side, to in moves(task, state, now, stay, there):
        other, place = to
        moved = with_side(now[other], place, at(side, now[pair]))
        after = put(put(now, pair, both), other, moved)
        yield State(state.cost + 1, after, state.apart, Step(state.last, stay, pair, side, to))


def alone(state: State, stay: int, death: int, there: Gaps) -> Iterator[State]:
    """A stay in a register by itself: of those whose neighbours are free at the same time one will do."""
    cost, pairs, apart, last = state
    seen = set()
    for pair in there:
        both = pairs[pair]
        if both <= LATEST:
            side, neighbour, after = 0, both, death << BITS | both
        elif not both & LATEST:
            side, neighbour, after = 1, both >> BITS, both | death
        else:
            continue
        if neighbour not in seen:
            seen.add(neighbour)
            yield State(cost, (*pairs[:pair], after, *pairs[pair + 1 :]), apart, Step(last, stay, pair, side))


def moves(
    task: Task, state: State, now: tuple[Times, ...], stay: int, there: Gaps
) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """(pair, side of what is in the way there, pair and side to which it can move) so that mates can be placed."""
    before = task.births[stay] // 2 * 2  # the move stands before the operation, which may read what moves
    stuck = {*task.opening, *task.still, LATEST, *unborn(task, stay, before)}
    half = [(pair, 1 if now[pair] <= LATEST else 0) for pair in there if now[pair] <= LATEST or not now[pair] & LATEST]
    for pair, side in half:
        time = at(side, now[pair])
        if time in stuck:
            continue
        seen = set()
        for to, other in half:
            if missing(before, time, there[to]):
                continue
            neighbour = at(other, now[to])
            if to != pair and neighbour not in seen and at(1 - other, state.pairs[to]) <= before:
                seen.add(neighbour)
                yield pair, side, (to, 1 - other)


def unborn(task: Task, stay: int, before: int) -> Iterator[int]:
    """Deaths of stays that are placed before a stay, but not born at the time `before`: they cannot move then."""
    while stay > 0 and task.births[stay := stay - 1] >= before - 2:
        for other in (stay, task.mates[stay]):
            if other >= 0 and task.births[other] >= before:
                yield task.deaths[other]


def put(pairs: tuple[Times, ...], place: int, pair: Times) -> tuple[Times, ...]:
    return (*pairs[:place], pair, *pairs[place + 1 :])


def replay(task: Task, slots: Sequence[tuple[int, int]], last: Step | None) -> tuple[list[int], list[Move]]:
    """Registers and moves that lead to a state."""
    steps: list[Step] = []
    while last:
        steps.append(last)
        last = last.before
    where, held = [-1] * len(task.births), [[-1, -1] for _ in slots]
    found: list[Move] = []
    for step in reversed(steps):
        if step.to:
            pair, side = step.to
            held[pair][side] = moved = held[step.pair][step.side]
            found.append((task.births[step.stay] // 2, moved, slots[pair][side]))
        mate = task.mates[step.stay]
        sides = {0: step.stay, 1: mate} if step.side == BOTH or step.to else {step.side: step.stay}
        for side, limb in sides.items():
            held[step.pair][side] = limb
            where[limb] = slots[step.pair][side]
    return where, found
