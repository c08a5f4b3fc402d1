"""Places by beam search: of all ways to place the stays so far, the best few are followed.

What decides is not which register a stay has, but with whom it shares an aligned pair, and until when: that is a
state, and of two that are alike the dearer one is dropped.  Where mates find no free pair they are placed apart, or
what is in the way of one is moved; both cost a cycle.  States are compared by that, and by the time to come in which
just one register of a pair is in use, since mates cannot be there then.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

from .residence import NEVER

if TYPE_CHECKING:
    from .placing import Task

HORIZON = 200  # half operations: what is later than that is not looked at
ALONE = 200  # half operations of a register that is alone in its pair, as bad as a cycle

BOTH = 2  # sides of a pair
Times = tuple[int, int]  # until when the two registers of a pair are in use, 0 for one that is free
Move = tuple[int, int, int]  # time, stay, register
Gaps = Mapping[int, Sequence[tuple[int, int]]]  # pair -> from when until when it is not there


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


def search(task: Task, allowed: Set[int]) -> tuple[list[int], list[Move]] | None:
    """The register of each stay at its birth, and the moves, in the registers that are `allowed`.

    None if none of the ways that were followed goes on to the end.
    """
    there = {r: opening if r in allowed else NEVER for r, opening in enumerate(task.opening)} | {-1: NEVER}
    slots = slots_of(task)
    states = [State(0, tuple((there[low], there[high]) for low, high in slots))]
    gaps = {pair: task.gaps[low] for pair, (low, _) in enumerate(slots) if low in task.gaps}
    highs = {mate for mate in task.mates if mate >= 0}
    for stay, birth in enumerate(task.births):
        away = [pair for pair, each in gaps.items() if missing(birth, last_of(task, stay), each)]
        ranked: dict[object, tuple[float, State]] = {}
        for state in states:
            now = tuple([(one if one > birth else 0, other if other > birth else 0) for one, other in state.pairs])
            if stay in highs and stay not in state.apart:  # it came with its mate
                rank(ranked, State(state.cost, now, state.apart, state.last), birth, gaps)
                continue
            for after in ways(task, state, now, stay, gaps, away=away):
                rank(ranked, after, birth, gaps)
        states = [state for _, state in sorted(ranked.values(), key=operator.itemgetter(0))[: task.width]]
    return replay(task, slots, min(states, key=lambda state: state.cost).last) if states else None


def slots_of(task: Task) -> list[tuple[int, int]]:
    """The pairs of registers, and those that have no neighbour with -1."""
    return [(r, n) for r, n in enumerate(task.neighbours) if task.low[r] or n < 0]


def place_of(task: Task, register: int) -> tuple[int, int]:
    """The pair in which a register is, and its side."""
    return next((pair, slot.index(register)) for pair, slot in enumerate(slots_of(task)) if register in slot)


def rank(ranked: dict[object, tuple[float, State]], state: State, now: int, gaps: Gaps) -> None:
    """Keep a state, with what it is judged by, if none that is like it is cheaper."""
    times = sorted([pair if pair[0] <= pair[1] else (pair[1], pair[0]) for pair in state.pairs])
    key = (state.apart, *[state.pairs[pair] for pair in gaps], *times)
    if key not in ranked or state.cost < ranked[key][1].cost:
        alone = 0
        for first, last in times:
            if first != last:  # both later than now, or the first is 0
                time = last - (first or now)
                alone += time if time < HORIZON else HORIZON
        ranked[key] = (state.cost + alone / ALONE, state)


def ways(
    task: Task, state: State, now: tuple[Times, ...], stay: int, gaps: Gaps, *, away: Sequence[int]
) -> Iterator[State]:
    """The states after a stay; `now` are the state's times at its birth; some pairs are `away` in its time."""
    hidden = {pair: now[pair] for pair in away}
    for pair in hidden:
        now = put(now, pair, (NEVER, NEVER))
    for after in placings(task, state, now, stay, gaps):
        pairs = after.pairs
        for pair, times in hidden.items():
            pairs = put(pairs, pair, times)
        yield after._replace(pairs=pairs) if hidden else after


def last_of(task: Task, stay: int) -> int:
    """The death of a stay, or of its mate, if that dies later."""
    mate = task.mates[stay]
    return max(task.deaths[stay], task.deaths[mate]) if mate >= 0 else task.deaths[stay]


def missing(birth: int, death: int, gaps: Sequence[tuple[int, int]]) -> bool:
    """Whether a register that has gaps is not there all the time from birth to death."""
    return any(birth < end and death > begin for begin, end in gaps)


def placings(task: Task, state: State, now: tuple[Times, ...], stay: int, gaps: Gaps) -> Iterator[State]:
    """As `ways`, in all registers that are free at the times `now`."""
    death, mate = task.deaths[stay], task.mates[stay]
    if stay in task.entry:
        pair, side = place_of(task, task.entry[stay])
        if not now[pair][side]:
            times = (death, now[pair][1]) if side == 0 else (now[pair][0], death)
            yield State(state.cost, put(now, pair, times), state.apart, Step(state.last, stay, pair, side))
        return
    if mate < 0:
        apart = tuple([other for other in state.apart if other != stay])
        yield from alone(State(state.cost, now, apart, state.last), stay, death)
        return
    both = (death, task.deaths[mate])
    if (0, 0) in now:
        pair = now.index((0, 0))
        yield State(state.cost, put(now, pair, both), state.apart, Step(state.last, stay, pair, BOTH))
        return
    yield from alone(State(state.cost + 1, now, (*state.apart, mate), state.last), stay, death)
    for pair, side, to in moves(task, state, now, stay, gaps):
        there, place = to
        moved = (now[pair][side], now[there][1]) if place == 0 else (now[there][0], now[pair][side])
        after = put(put(now, pair, both), there, moved)
        yield State(state.cost + 1, after, state.apart, Step(state.last, stay, pair, side, to))


def alone(state: State, stay: int, death: int) -> Iterator[State]:
    """A stay in a register by itself: of those whose neighbours are free at the same time one will do."""
    seen = set()
    for pair, (one, other) in enumerate(state.pairs):
        if not one and other not in seen:
            seen.add(other)
            after = put(state.pairs, pair, (death, other))
            yield State(state.cost, after, state.apart, Step(state.last, stay, pair, 0))
        elif not other and one not in seen:
            seen.add(one)
            after = put(state.pairs, pair, (one, death))
            yield State(state.cost, after, state.apart, Step(state.last, stay, pair, 1))


def moves(
    task: Task, state: State, now: tuple[Times, ...], stay: int, gaps: Gaps
) -> Iterator[tuple[int, int, tuple[int, int]]]:
    """(pair, side of what is in the way there, pair and side to which it can move) so that mates can be placed."""
    before = task.births[stay] // 2 * 2  # the move stands before the operation, which may read what moves
    stuck = {*task.opening, *task.still, NEVER, *unborn(task, stay, before)}
    half = [(pair, 1 if times[1] else 0) for pair, times in enumerate(now) if 0 in times]
    for pair, side in half:
        if now[pair][side] in stuck:
            continue
        seen = set()
        for to, other in half:
            if to in gaps and missing(before, now[pair][side], gaps[to]):
                continue
            if to != pair and now[to][other] not in seen and state.pairs[to][1 - other] <= before:
                seen.add(now[to][other])
                yield pair, side, (to, 1 - other)


def unborn(task: Task, stay: int, before: int) -> Iterator[int]:
    """Deaths of stays that are placed before a stay, but not born at the time `before`: they cannot move then."""
    while stay > 0 and task.births[stay := stay - 1] >= before - 2:
        for other in (stay, task.mates[stay]):
            if other >= 0 and task.births[other] >= before:
                yield task.deaths[other]


def put(pairs: tuple[Times, ...], at: int, times: Times) -> tuple[Times, ...]:
    return (*pairs[:at], times, *pairs[at + 1 :])


def replay(task: Task, slots: Sequence[Times], last: Step | None) -> tuple[list[int], list[Move]]:
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
