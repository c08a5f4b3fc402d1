# ruff: noqa: PLR0912, PLR0915, PLR0917  (what numba compiles are long functions on arrays, without objects)
"""What an order of operations costs: the beam of `arm_fit` once more, on tables of numbers and without what it
remembers, so that numba, where it is installed, makes machine code of it.

Only searches use this.  Both give the same cycles for the same order; without numba this one is no faster.
A state is a row: cycles, a hash of what is where, how many values are in low registers, in high ones, on the stack,
and in high ones without having been fetched from there, and which.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from .arm_fit import FARTHEST, MEMORY, MOVE, NEVER
from .arm_values import Operation

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function as machine code, if numba is there."""
    try:
        from numba import njit  # noqa: PLC0415  (not installed with sqgen)
    except ImportError:
        return function
    return cast(Function, njit(function))  # not cached: it would not see that another file has changed


COST, HASH, N_LOW, N_HIGH, N_STACK, N_FRESH, LOW, HIGH, FRESH, STACK, ROW = 0, 1, 2, 3, 4, 5, 6, 22, 30, 38, 86
KINDS = 4
NONE, DOUBLE, TO_HIGH, TO_STACK = -1, 1, 2, 3
POOL = 512  # candidates for one step, at most; behind them is room for two rows and for notes
WAYS = 8
READS = 6
# Columns of the table of operations.
R, W, T = 0, READS, 2 * READS + 2  # distinct values read, values written, what may be overwritten
N_R, N_W = 2 * READS, 2 * READS + 1
WIDE = 2 * READS + 4


class Table:
    """Operations as numbers."""

    def __init__(self, ops: Sequence[Operation], constants: Collection[int], count: int) -> None:
        self.ops = np.full((len(ops), WIDE), NONE, np.int64)
        for row, op in zip(self.ops, ops, strict=True):
            reads = list(dict.fromkeys(op.reads))
            over = list(dict.fromkeys(op.reads[place] for place in op.tied))
            row[N_R], row[N_W] = len(reads), len(op.writes)
            for base, found in ((R, reads), (W, op.writes), (T, over)):
                row[base : base + len(found)] = found
        self.constant = np.zeros(count, np.int64)
        self.constant[list(constants)] = 1
        self.hashes = np.random.default_rng(1).integers(1, 1 << 62, (KINDS, count))
        self.used = np.zeros(count, np.int64)
        for op in ops:
            self.used[list(op.reads)] = 1


@compiled
def place(row: Any, base: int, count: int, value: int) -> int:
    """Where a value is in a part of a row, -1 if it is not."""
    for at in range(base, base + count):
        if row[at] == value:
            return at
    return -1


@compiled
def put(row: Any, kind: int, base: int, value: int, hashes: Any) -> None:
    """Add a value, if it is not there."""
    count = row[N_LOW + kind]
    if place(row, base, count, value) < 0:
        row[base + count] = value
        row[N_LOW + kind] = count + 1
        row[HASH] ^= hashes[kind, value]


@compiled
def take(row: Any, kind: int, base: int, value: int, hashes: Any) -> None:
    """Remove a value, if it is there."""
    count = row[N_LOW + kind]
    at = place(row, base, count, value)
    if at >= 0:
        row[at] = row[base + count - 1]
        row[N_LOW + kind] = count - 1
        row[HASH] ^= hashes[kind, value]


@compiled
def copy_to(row: Any, other: Any) -> None:
    """What counts of another row."""
    for at in range(STACK + other[N_STACK]):
        row[at] = other[at]


@compiled
def rank(row: Any) -> int:
    """As in `arm_fit`."""
    cost: int = row[COST]
    for at in range(HIGH, HIGH + row[N_HIGH]):
        if place(row, LOW, row[N_LOW], row[at]) < 0:
            cost += MOVE
    for at in range(STACK, STACK + row[N_STACK]):
        if place(row, LOW, row[N_LOW], row[at]) < 0 and place(row, HIGH, row[N_HIGH], row[at]) < 0:
            cost += MEMORY
    return cost


@compiled
def make_room(row: Any, before: Any, op: Any, left: Any, chosen: Any, value: int, after: Any, hashes: Any) -> bool:
    """A high register becomes free for a value: what is in it is elsewhere, too, or else rests longer and turns out to
    be on the stack.  False if there is none."""
    out, rests = NONE, NONE
    for at in range(HIGH, HIGH + row[N_HIGH]):
        other = row[at]
        here = place(before, LOW, before[N_LOW], other) >= 0
        fetched = not here and place(op, R, op[N_R], other) >= 0
        if fetched or place(chosen, 0, len(chosen), other) >= 0:
            continue
        if place(row, STACK, row[N_STACK], other) >= 0 or (here and place(left, 0, len(left), other) < 0):
            if out == NONE or (after[other], other) > (after[out], out):
                out = other
        elif after[other] > after[value] and place(row, FRESH, row[N_FRESH], other) >= 0:  # noqa: SIM102  (as above)
            if rests == NONE or (after[other], other) > (after[rests], rests):
                rests = other
    if out == NONE and rests == NONE:
        return False
    if out == NONE:
        out = rests
        put(row, 2, STACK, out, hashes)
        row[COST] += MEMORY - MOVE
    take(row, 1, HIGH, out, hashes)
    take(row, 3, FRESH, out, hashes)
    return True


@compiled
def enter(pool: Any, count: int, row: Any, limit: int) -> int:
    """Put a candidate in the pool, or in the place of a dearer one of the same values; the number of candidates."""
    if row[N_LOW] > limit or count == POOL:
        return count
    for at in range(count):
        if pool[at, HASH] == row[HASH]:
            if row[COST] < pool[at, COST]:
                copy_to(pool[at], row)
            return count
    copy_to(pool[count], row)
    return count + 1


@compiled
def follow(
    pool: Any, count: int, before: Any, op: Any, after: Any, constant: Any, used: Any, hashes: Any, low: int, high: int
) -> int:
    """Put the states behind an operation in the pool; the number of candidates."""
    start = pool[POOL]
    copy_to(start, before)
    for at in range(R, R + op[N_R]):
        value = op[at]
        if place(before, LOW, before[N_LOW], value) < 0:
            near = constant[value] or place(before, HIGH, before[N_HIGH], value) >= 0
            start[COST] += MOVE if near else MEMORY
            take(start, 3, FRESH, value, hashes)
            put(start, 0, LOW, value, hashes)
    dying = 0
    for at in range(R, R + op[N_R]):
        dying += after[op[at]] == NEVER
    for choice in range(2):
        over = op[T + choice]
        if over == NONE and (choice or op[T] != NONE):
            break
        lives = over != NONE and after[over] != NEVER
        backed = (
            not lives
            or constant[over]
            or place(start, HIGH, start[N_HIGH], over) >= 0
            or place(start, STACK, start[N_STACK], over) >= 0
        )
        following = start[N_LOW] - dying + op[N_W] - (1 if lives else 0)
        for copy in range(0, 1) if backed else range(DOUBLE, TO_STACK + 1):
            more = 1 if copy == DOUBLE else 0
            leave = max(start[N_LOW], following) + more - low
            count = leaving(
                pool, count, before, start, op, over, copy, max(0, leave), after, constant, used, hashes, low, high
            )
    return count


@compiled
def leaving(
    pool: Any, count: int, before: Any, start: Any, op: Any, over: int, copy: int, leave: int,
    after: Any, constant: Any, used: Any, hashes: Any, low: int, high: int,
) -> int:  # fmt: skip
    """The same for one way to overwrite an operand, when so many values must leave the low registers."""
    notes = pool[POOL + 2]
    able, left, homeless, chosen = notes[:16], notes[16 : 16 + leave], notes[32:48], notes[48 : 49 + leave]
    there = 0
    if leave:
        while there < leave + FARTHEST - 1:
            best = NONE
            for at in range(LOW, LOW + start[N_LOW]):
                value = start[at]
                if place(op, R, op[N_R], value) >= 0 or place(able, 0, there, value) >= 0:
                    continue
                if best == NONE or (after[value], value) > (after[best], best):
                    best = value
            if best == NONE:
                break
            able[there] = best
            there += 1
        if there < leave:
            return count
    left[:] = able[:leave]
    for last in range(leave - 1, max(there, leave)):
        if leave:
            left[leave - 1] = able[last]
        n = 0
        for at in range(leave):
            value = left[at]
            if (
                not constant[value]
                and place(start, HIGH, start[N_HIGH], value) < 0
                and place(start, STACK, start[N_STACK], value) < 0
            ):
                homeless[n] = value
                n += 1
        fixed = 0
        if copy in (TO_HIGH, TO_STACK):
            homeless[n] = over
            fixed = 1
        for way in range(min(WAYS, 1 << n)):
            row = pool[POOL + 1]
            copy_to(row, start)
            chosen[:] = NONE
            for at in range(n + fixed):
                stacked = copy == TO_STACK if at == n else (way >> (n - 1 - at)) & 1
                if not stacked:
                    chosen[at] = homeless[at]
            good = True
            for at in range(n + fixed):
                if chosen[at] == NONE:
                    put(row, 2, STACK, homeless[at], hashes)
                    row[COST] += MEMORY
                    continue
                if row[N_HIGH] >= high and not make_room(row, before, op, left, chosen, homeless[at], after, hashes):
                    good = False
                    break
                put(row, 1, HIGH, homeless[at], hashes)
                put(row, 3, FRESH, homeless[at], hashes)
                row[COST] += MOVE
            if not good or row[N_STACK] > ROW - STACK - READS:
                continue
            for value in left:
                take(row, 0, LOW, value, hashes)
            if copy == DOUBLE:
                row[COST] += MOVE
            elif over != NONE:
                take(row, 0, LOW, over, hashes)
            for at in range(R, R + op[N_R]):
                value = op[at]
                if after[value] == NEVER:
                    take(row, 0, LOW, value, hashes)
                    take(row, 1, HIGH, value, hashes)
                    take(row, 3, FRESH, value, hashes)
                    take(row, 2, STACK, value, hashes)
            for at in range(W, W + op[N_W]):
                if used[op[at]]:
                    put(row, 0, LOW, op[at], hashes)
            count = enter(pool, count, row, low)
    return count


@compiled
def cheapest(pool: Any, count: int, states: Any, width: int) -> int:
    """The best candidates become the states; how many."""
    ranks = np.empty(count, np.int64)
    for at in range(count):
        ranks[at] = rank(pool[at])
    found = min(width, count)
    for number in range(found):
        best = 0
        for at in range(1, count):
            if ranks[at] < ranks[best]:
                best = at
        copy_to(states[number], pool[best])
        ranks[best] = NEVER
    return found


@compiled
def uses(first: int, sequence: Any, ops: Any, following: Any, after: Any) -> None:
    """For each operation from `first` on where what it reads is read next; `after`: where each value is read first."""
    after[:] = NEVER
    for at in range(len(sequence) - 1, first - 1, -1):
        op = ops[sequence[at]]
        for place_ in range(op[N_R]):
            following[at, place_] = after[op[R + place_]]
        for place_ in range(op[N_R]):
            after[op[R + place_]] = at


@compiled
def walk(
    first: int, last: int, limit: int, new: Any, n_new: Any, old: Any, n_old: Any, sequence: Any, following: Any,
    after: Any, pool: Any, ops: Any, constant: Any, used: Any, hashes: Any, low: int, high: int, width: int,
) -> int:  # fmt: skip
    """States before each operation from `first` on, into `new`, until they are those of `old` again, behind `last`, but
    for what they cost; where that is, -1 if the registers do not suffice or they are behind by more than `limit`."""
    n_new[first] = n_old[first]
    new[first] = old[first]
    for at in range(first, len(sequence)):
        more = new[at, 0, COST] - old[at, 0, COST]
        if more > limit:
            return -1
        if at >= last and n_new[at] == n_old[at]:
            same = True
            for s in range(n_new[at]):
                same &= new[at, s, HASH] == old[at, s, HASH] and new[at, s, COST] - old[at, s, COST] == more
            if same:
                return at
        op = ops[sequence[at]]
        for read in range(op[N_R]):
            after[op[R + read]] = following[at, read]
        count = 0
        for s in range(n_new[at]):
            count = follow(pool, count, new[at, s], op, after, constant, used, hashes, low, high)
        n_new[at + 1] = cheapest(pool, count, new[at + 1], width)
        if not n_new[at + 1]:
            return -1
    return len(sequence)
