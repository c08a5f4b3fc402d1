# ruff: noqa: PLR0917  (what numba compiles are functions on arrays, without objects)
"""What the operations of `arm_words` cost: who is in a register when, as `sqgen.residence` has it, and the cycles of
loads, of which one costs two unless it finds a group that it can join.

Only the search for orders of cells uses this.  `framed`: words that find no room in the result wait on the stack.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arm_price import compiled
from .arm_words import HIGH, KIND, LEFT, LOW, NONE, OPS, OWN, ROOM, UMULL, VARIABLES, ZERO, Board, Sheet, expand

TOO_DEAR = 1 << 20  # cycles of what cannot be done; a little less the further it goes
SAVED = 2  # how much nearer the next use may be of who need not be stored to leave
NEVER = 1 << 30  # a time
FACTORS = 4  # variables of a multiplication
LOADS = 512  # at most
TURNS = 3  # in which it is found out when pointers become registers
FRAME = 2  # cycles of making and giving back one


class Desk(NamedTuple):
    """What `price` fills."""

    following: Any  # [operation, which of its variables]: when that is wanted next
    state: Any  # [variable, what]
    live: Any  # who is in registers
    taken: Any  # [half operation]: registers in use
    loads: Any  # [load]: the operation that it stands before, the variable
    tally: Any


# Of a variable: when it is wanted next, the half operation of its last use, whether it is in a register, where it may
# wait, whether its value is there.
NEXT, LAST, HERE, WAITS, CURRENT, FIELDS = range(6)
# What `tally` counts: registers in use, loads, cycles of the rest, registers that there are, whether there is a frame;
# then from which operation on the registers of the pointers are there, by operand.
LIVE, LOADED, COST, CAPACITY, SPILLED, OPENED, COUNTED = 0, 1, 2, 3, 4, 5, 7
A, B = OPENED, OPENED + 1
WHEN, WHOSE = 0, 1


def desk(b: Board) -> Desk:
    """Room enough for the operations of a board."""
    many = len(b.ops)
    shapes = ((many, FACTORS), (many, FIELDS), (64,), (2 * many + 4,), (LOADS, 2), (COUNTED,))
    made = Desk(*(np.zeros(shape, np.int64) for shape in shapes))
    made.tally[OPENED:] = NONE
    return made


@compiled
def variables(ops: Any, at: int) -> tuple[int, int]:
    """(first, last + 1) place of those that it reads."""
    if ops[at, KIND] > ZERO:
        return LOW, HIGH
    if ops[at, KIND] == ZERO:
        return LOW, LOW
    return LEFT if ops[at, KIND] == UMULL else LOW, ROOM


@compiled
def written(ops: Any, at: int) -> int:
    """How many words it writes; they are its first variables."""
    return 0 if ops[at, KIND] > ZERO else 1 if ops[at, KIND] == ZERO else 2


@compiled
def plan_uses(b: Board, d: Desk) -> None:
    """When everybody is wanted next."""
    d.state[: b.tally[VARIABLES], NEXT] = NEVER
    for at in range(b.tally[OPS] - 1, -1, -1):
        end = ROOM if b.ops[at, KIND] < ZERO else HIGH
        for place in range(LOW, end):
            d.following[at, place - LOW] = d.state[b.ops[at, place], NEXT]
        for place in range(LOW, end):
            d.state[b.ops[at, place], NEXT] = at


@compiled
def evict(state: Any, live: Any, taken: Any, counts: Any, ops: Any, at: int, two: int, framed: bool) -> bool:
    """The one whose next use is farthest leaves its register; of those that must be stored first, only if it is far
    farther.  False if nobody can."""
    found, farthest = NONE, NONE
    for place in range(counts[LIVE]):
        each = live[place]
        if each > two and state[each, WAITS] == NONE and not framed:
            continue
        pinned = False
        for other in range(LOW, ROOM if ops[at, KIND] < ZERO else HIGH):
            pinned |= ops[at, other] == each
        far = (state[each, NEXT] - at) * (SAVED if each <= two or state[each, CURRENT] else 1)
        if not pinned and (found == NONE or (far, each) > (farthest, live[found])):
            found, farthest = place, far
    if found == NONE:
        return False
    out = live[found]
    if out > two and not state[out, CURRENT]:
        state[out, CURRENT] = True
        counts[SPILLED] |= state[out, WAITS] == NONE
        counts[COST] += 1
        state[out, LAST] = max(state[out, LAST], 2 * min(state[out, LAST] // 2 + 1, at) - 1)
    remove(state, live, taken, counts, found, state[out, LAST] + 1)
    return True


@compiled
def remove(state: Any, live: Any, taken: Any, counts: Any, place: int, time: int) -> None:
    """Who is at that place leaves its register."""
    state[live[place], HERE] = False
    taken[time] -= 1
    counts[LIVE] -= 1
    live[place] = live[counts[LIVE]]


@compiled
def come(
    state: Any, live: Any, taken: Any, counts: Any, ops: Any, at: int, each: int, time: int, two: int, framed: bool
) -> bool:
    """A variable gets a register.  False if none becomes free."""
    while counts[LIVE] >= counts[CAPACITY]:
        if not evict(state, live, taken, counts, ops, at, two, framed):
            return False
    state[each, HERE] = True
    live[counts[LIVE]] = each
    counts[LIVE] += 1
    taken[time] += 1
    return True


@compiled
def read(
    following: Any,
    state: Any,
    live: Any,
    taken: Any,
    loads: Any,
    counts: Any,
    ops: Any,
    at: int,
    two: int,
    framed: bool,
) -> bool:
    """What an operation reads is loaded, if it is not there; who is not wanted again leaves."""
    first, end = variables(ops, at)
    for place in range(first, end):
        each = ops[at, place]
        if not state[each, HERE]:
            if each > two and not state[each, CURRENT]:
                return False
            if counts[LOADED] >= LOADS or not come(state, live, taken, counts, ops, at, each, 2 * at, two, framed):
                return False
            loads[counts[LOADED], WHEN], loads[counts[LOADED], WHOSE] = at, each
            counts[LOADED] += 1
        state[each, LAST] = 2 * at
    for place in range(first, end):
        state[ops[at, place], NEXT] = following[at, place - LOW]
    if ops[at, KIND] == OWN:
        state[ops[at, LOW], WAITS], state[ops[at, LOW], CURRENT] = NONE, False
    for place in range(max(first, LOW + written(ops, at)), end):
        if state[ops[at, place], HERE] and state[ops[at, place], NEXT] == NEVER:
            for where in range(counts[LIVE]):
                if live[where] == ops[at, place]:
                    remove(state, live, taken, counts, where, 2 * at + 1)
                    break
    return True


@compiled
def write(
    following: Any, state: Any, live: Any, taken: Any, counts: Any, ops: Any, at: int, two: int, framed: bool
) -> bool:
    """The words that an operation makes."""
    for which in range(written(ops, at)):
        each = ops[at, LOW + which]
        if not state[each, HERE] and not come(state, live, taken, counts, ops, at, each, 2 * at + 1, two, framed):
            return False
        state[each, LAST], state[each, NEXT] = 2 * at + 1, following[at, which]
        state[each, WAITS], state[each, CURRENT] = ops[at, ROOM + which], False
        if state[each, NEXT] == NEVER:
            return False
    return True


@compiled
def price(b: Board, d: Desk, two: int, registers: int, framed: bool) -> int:
    """Cycles of the body and of the frame, TOO_DEAR and more if the registers do not suffice."""
    plan_uses(b, d)
    following, state, live, taken, loads, counts = d
    ops = b.ops
    state[: b.tally[VARIABLES], HERE] = 0
    state[: b.tally[VARIABLES], CURRENT] = 0
    taken[: 2 * b.tally[OPS] + 4] = 0
    counts[:OPENED] = 0
    counts[CAPACITY] = registers
    for at in range(b.tally[OPS]):
        counts[CAPACITY] += (counts[A] == at) + (counts[B] == at)
        counts[COST] += ops[at, KIND] != OWN
        if not read(following, state, live, taken, loads, counts, ops, at, two, framed) or not write(
            following, state, live, taken, counts, ops, at, two, framed
        ):
            dear: int = TOO_DEAR + b.tally[OPS] - at
            return dear
    cycles: int = counts[COST] + counts[LOADED] + groups(taken, loads, counts, two, registers) + FRAME * counts[SPILLED]
    return cycles


@compiled
def groups(taken: Any, loads: Any, counts: Any, two: int, registers: int) -> int:
    """Groups of loads: one of an operand's limb goes to the group before it if a register is free all the time."""
    time = 0
    while time + 1 < 2 * loads[counts[LOADED] - 1, WHEN] + 1:
        time += 1
        taken[time] += taken[time - 1]
    found, group = 0, NONE
    for load in range(counts[LOADED]):
        if loads[load, WHOSE] == two:  # it is made, not loaded
            continue
        at = loads[load, WHEN]
        joins = group != NONE and loads[load, WHOSE] < two
        for time in range(2 * group if joins else 0, 2 * at if joins else 0):
            more = (0 <= 2 * counts[A] <= time) + (0 <= 2 * counts[B] <= time)
            if taken[time] >= registers + more:
                joins = False
                break
        if joins:
            taken[2 * group : 2 * at] += 1
        else:
            found += at != group
            group = at
    return found


@compiled
def lend(loads: Any, counts: Any, first: int, last: int) -> int:
    """When the last of these limbs is loaded."""
    at = NONE
    for load in range(counts[LOADED]):
        if first <= loads[load, WHOSE] < last:
            at = max(at, loads[load, WHEN])
    return at


@compiled
def evaluate(
    b: Board, d: Desk, cells: Sheet, order: Any, twice: Any, registers: int, framed: bool
) -> int:  # fmt: skip
    """Cycles of the body of an order.

    Pointers become registers at the last load by them, and when that is hangs on itself: it is taken to be as in the
    order that was looked at before, and where that is not so, as it is then found to be.
    """
    loads, counts = d.loads, d.tally
    n, two = cells.n, (1 if cells.square else 2) * cells.n
    if not expand(b, cells, order, twice):
        return 2 * TOO_DEAR
    best = 2 * TOO_DEAR
    for _ in range(TURNS):
        guess, guess_b = counts[A], counts[B]
        found = price(b, d, two, registers, framed)
        if found >= TOO_DEAR:  # half of it as it is
            a = b.tally[OPS] // 2
            other = NONE
        else:
            a, other = lend(loads, counts, 0, n), lend(loads, counts, n, two)
            other = NONE if other == a else other
            if (guess == NONE or a <= guess) and (guess_b == NONE or other <= guess_b):
                best = min(best, found)
        counts[A], counts[B] = a, other
        if (a, other) == (guess, guess_b):
            break
    return best
