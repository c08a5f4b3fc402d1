"""What stays where in code of values: in the low registers, which all instructions reach, in the high ones, which only
moves do, or on the stack.

A value is written once, so a copy of it stays good: what was fetched from a high register need not be moved back.  An
instruction that writes its result over an operand takes one whose copy is elsewhere, or that nobody needs any more, or
else it is copied before.  Where registers do not suffice, limbs leave whose next use is far away, to a high register
(one cycle, and one back) or to the stack (two and two).  Where no high register is free, one is taken from a limb that
will rest there longer: it turns out to have gone to the stack at once, so that those that rest there are the ones with
the nearest uses.  A beam follows the best few ways through the code.

Source: research/arm_kernels.md, section M0, "the tool".
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .arm_values import Operation

WIDTH = 6  # states that go on
MOVE, MEMORY = 1, 2  # cycles
FARTHEST = 3  # choices of limbs that leave
NEVER = 1 << 30


class Event(NamedTuple):
    """`fetch` to a low register, `high` or `spill` a copy from there, `double` it in another low register, `drop` it
    from low registers, `forget` it in high ones, `do` the operation over the value; NONE of none.  While the beam runs
    there is `turn`, too: what went to a high register goes to the stack instead."""

    what: str
    value: int


class State(NamedTuple):
    """Which values are where before an operation, and the cycles of moves so far; `fresh`: those in high registers that
    were not fetched from there."""

    low: frozenset[int]
    high: frozenset[int]
    stack: frozenset[int]
    fresh: frozenset[int]
    cost: int
    events: tuple[Event, ...]
    before: State | None


NONE = -1


@dataclass(frozen=True)
class Fitted:
    """For each operation what happens before it and with it; `cost`: cycles of all moves."""

    cost: int
    steps: tuple[tuple[Event, ...], ...]


class Fit:
    """The beam.  `low` and `high`: how many registers there are; `entry`: values that are in low ones at the start."""

    def __init__(
        self, ops: Sequence[Operation], constants: Collection[int], entry: Sequence[int], low: int, high: int
    ) -> None:
        self.ops, self.constants, self.low, self.high = ops, frozenset(constants), low, high
        self.entry = frozenset(entry)
        self.uses: dict[int, list[int]] = {}
        for at, op in enumerate(ops):
            for value in dict.fromkeys(op.reads):
                self.uses.setdefault(value, []).append(at)

    def run(self, width: int = WIDTH) -> Fitted | None:
        """The cheapest way found, None if the registers do not suffice."""
        states = [State(self.entry, frozenset(), frozenset(), frozenset(), 0, (), None)]
        self.next = {value: uses[0] for value, uses in self.uses.items()}
        for at, op in enumerate(self.ops):
            for value in op.reads:
                self.next[value] = next((use for use in self.uses[value] if use > at), NEVER)
            best: dict[tuple[frozenset[int], ...], State] = {}
            for state in states:
                for new in self.step(state, op):
                    key = new.low, new.high, new.stack, new.fresh
                    if key not in best or new.cost < best[key].cost:
                        best[key] = new
            states = heapq.nsmallest(width, best.values(), key=self.rank)
            if not states:
                return None
        last: State | None = states[0]
        cost, steps = states[0].cost, []
        while last and last.before:
            steps.append(last.events)
            last = last.before
        return Fitted(cost, turned(steps))

    def rank(self, state: State) -> int:
        """What was lost, and what fetching all values back will take."""
        away = len(state.high - state.low)
        return state.cost + MOVE * away + MEMORY * (len(state.stack - state.low - state.high))

    def step(self, state: State, op: Operation) -> Iterator[State]:
        """The states behind an operation."""
        wanted = frozenset(op.reads)
        missing = [value for value in dict.fromkeys(op.reads) if value not in state.low]
        cost, low, fresh = state.cost, state.low, state.fresh
        for value in missing:
            cost += MOVE if value in state.high or value in self.constants else MEMORY
        if missing:
            low, fresh = low | wanted, fresh.difference(missing)
        ready = State(low, state.high, state.stack, fresh, cost, tuple(Event("fetch", v) for v in missing), state)
        dying = frozenset(value for value in wanted if self.next[value] == NEVER)
        outs = frozenset(op.writes)
        kept = frozenset(value for value in outs if value in self.uses)
        for over in dict.fromkeys(op.reads[place] for place in op.tied) or (NONE,):
            backed = (
                over == NONE or over in dying or over in state.high or over in state.stack or over in self.constants
            )
            after = len(low - dying) + len(outs) - (0 if over == NONE or over in dying else 1)
            for copy in ("",) if backed else ("double", "high", "spill"):
                over_low = max(len(low), after) + (copy == "double") - self.low
                for left in self.leaving(low - wanted, over_low) if over_low > 0 else [()]:
                    yield from self.moved(ready, left, over, copy, (dying, kept))

    def leaving(self, able: frozenset[int], count: int) -> Iterator[tuple[int, ...]]:
        """Values that leave the low registers: those whose next use is farthest, or nearly."""
        ordered = heapq.nlargest(count + FARTHEST - 1, able, key=lambda value: (self.next[value], value))
        if len(ordered) < count:
            return
        yield tuple(ordered[:count])
        for last in range(count, len(ordered)):
            yield (*ordered[: count - 1], ordered[last])

    def moved(
        self, state: State, left: Sequence[int], over: int, copy: str, after: tuple[frozenset[int], frozenset[int]]
    ) -> Iterator[State]:
        """The states when these values have left, to where there is room, and what is overwritten was copied; `after`:
        values that nobody needs any more, and new ones."""
        homeless = [v for v in left if v not in state.high and v not in state.stack and v not in self.constants]
        ways = [[("high", v), ("spill", v)] for v in homeless]
        if copy in ("high", "spill"):
            ways.append([(copy, over)])
        dying, outs = after
        needed = left if over == NONE or over in dying or copy else (*left, over)  # what is elsewhere must stay there
        gone = dying.union(left) if over == NONE or copy == "double" else dying.union(left, (over,))
        low = (state.low - gone) | outs
        then = (*(Event("drop", v) for v in left), *state.events)
        then = (*then, Event("double", over), Event("do", over)) if copy == "double" else (*then, Event("do", over))
        for way in itertools.islice(itertools.product(*ways), 8):
            found = self.put(state, way, needed) if way else (state.high, state.stack, state.fresh, state.cost, ())
            if found is None:
                continue
            high, stack, fresh, cost, events = found
            events = (*events, *then, *(Event("forget", v) for v in sorted(dying & high)))
            cost += MOVE if copy == "double" else 0
            yield State(
                low, without(high, dying), without(stack, dying), without(fresh, dying), cost, events, state.before
            )

    def put(
        self, state: State, way: Sequence[tuple[str, int]], needed: Sequence[int]
    ) -> tuple[frozenset[int], frozenset[int], frozenset[int], int, tuple[Event, ...]] | None:
        """(high, stack, fresh, cycles, events) when values were copied to high registers or the stack, and those that
        are `needed` are not forgotten for it; None if there is no room."""
        high, stack, fresh, cost = state.high, state.stack, state.fresh, state.cost
        here = state.before.low if state.before else frozenset[int]()  # before anything is fetched
        fetched = {event.value for event in state.events}
        events: list[Event] = []
        for what, value in way:
            if what == "spill":
                stack |= {value}
                cost += MEMORY
                events.append(Event(what, value))
                continue
            if len(high) >= self.high:
                able = [v for v in high if (what, v) not in way and v not in fetched]
                spare = [v for v in able if v in stack or (v in here and v not in needed)]
                rests = [v for v in able if v in fresh and self.next[v] > self.next[value]]
                if not spare and not rests:
                    return None
                out = max(spare or rests, key=lambda v: (self.next[v], v))
                high, fresh = high - {out}, fresh - {out}
                if not spare:
                    stack |= {out}
                    cost += MEMORY - MOVE
                events.append(Event("forget" if spare else "turn", out))
            high, fresh = high | {value}, fresh | {value}
            cost += MOVE
            events.append(Event(what, value))
        return high, stack, fresh, cost, tuple(events)


def without(values: frozenset[int], some: frozenset[int]) -> frozenset[int]:
    """The values but for some; the same set, whose hash is known, where it has none of them."""
    return values if values.isdisjoint(some) else values - some


def turned(steps: Sequence[tuple[Event, ...]]) -> tuple[tuple[Event, ...], ...]:
    """The events of all operations, given from the last to the first: what turns out to have gone to the stack does."""
    waiting: set[int] = set()
    found: list[tuple[Event, ...]] = []
    for events in steps:
        kept: list[Event] = []
        for event in reversed(events):
            if event.what == "turn":
                waiting.add(event.value)
            elif event.what == "high" and event.value in waiting:
                waiting.remove(event.value)
                kept.append(Event("spill", event.value))
            else:
                kept.append(event)
        found.append(tuple(reversed(kept)))
    return tuple(reversed(found))
