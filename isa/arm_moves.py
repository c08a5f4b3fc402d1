# ruff: noqa: PLR0917  (what numba compiles are long functions on arrays, without objects)
"""Simulated annealing of the order of operations, for `arm_anneal`, on the tables of `arm_price`.

What moves is an operation, or a chain that hands on the carry with all that stands between its operations, or some of
these that follow each other.  What does not touch the carry may go into a chain.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arm_fit import NEVER
from .arm_price import COST, LOW, N_R, N_W, POOL, READS, ROW, R, W, compiled, put, uses, walk

SLACK = 6  # cycles that an order may be behind on its way, beyond what it may cost in the end
SOME = 6  # operations and chains that move at a time, at most


@compiled
def random(state: Any, below: int) -> int:
    """A number from 0 up, by Lehmer's generator."""
    state[0] = state[0] * 48271 % 2147483647
    found: int = state[0] * below // 2147483647
    return found


@compiled
def block(order: Any, where: Any, chain: Any, state: Any) -> tuple[int, int]:
    """(first, last) place of what is to move."""
    number = order[random(state, len(order))]
    first, last = where[chain[number, 0]], where[chain[number, 1]]
    more = random(state, SOME) if random(state, 4) == 0 else 0
    while more and last + 1 < len(order) and chain[order[last + 1], 0] == order[last + 1]:
        last = where[chain[order[last + 1], 1]]
        more -= 1
    return first, last


@compiled
def steps_away(
    order: Any, first: int, last: int, way: int, before: Any, chain: Any, free: Any, reach: int, state: Any
) -> int:
    """How many places the block goes, to earlier ones if the way is -1, to later ones if it is 1; 0 if it stays."""
    neutral = True
    for at in range(first, last + 1):
        neutral &= free[order[at]]
    inside, found, choices = False, 0, 0
    at = first - 1 if way < 0 else last + 1
    far = 0
    while 0 <= at < len(order) and far < reach:
        other = order[at]
        for place in range(first, last + 1):
            if before[order[place], other] if way < 0 else before[other, order[place]]:
                return found
        far += 1
        at += way
        if chain[other, 0] != chain[other, 1]:
            inside = other != chain[other, 0 if way < 0 else 1]
        if neutral or not inside:
            choices += 1
            if random(state, choices) == 0:  # each of them as likely
                found = far
    return found


@compiled
def change(order: Any, where: Any, before: Any, chain: Any, free: Any, reach: int, state: Any) -> tuple[int, int]:
    """Move some neighbours in an order to another place to which they may go; (first, last) place that changed."""
    first, last = block(order, where, chain, state)
    way = 2 * random(state, 2) - 1
    far = steps_away(order, first, last, way, before, chain, free, reach, state)
    if not far:
        return 0, -1
    some = order[first : last + 1].copy()
    if way < 0:
        for at in range(first - 1, first - far - 1, -1):
            order[at + len(some)] = order[at]
        first -= far
        order[first : first + len(some)] = some
    else:
        for at in range(last + 1, last + far + 1):
            order[at - len(some)] = order[at]
        last += far
        order[last + 1 - len(some) : last + 1] = some
    for at in range(first, last + 1):
        where[order[at]] = at
    return first, last


@compiled
def felt(first: int, last: int, order: Any, ops: Any, seen: Any) -> int:
    """The first place that hangs on what changed there: from where on the next use of some limb is another one."""
    missing = 0
    for at in range(first, last + 1):
        op = ops[order[at]]
        for read in range(op[N_R]):
            if not seen[op[R + read]]:
                seen[op[R + read]] = True
                missing += 1
    at = first
    while missing and at:
        at -= 1
        op = ops[order[at]]
        for column in range(op[N_R] + op[N_W]):
            value = op[R + column if column < op[N_R] else W + column - op[N_R]]
            if seen[value]:
                seen[value] = False
                missing -= 1
    seen[:] = False
    return at


@compiled
def annealed(
    order: Any, best: Any, before: Any, chain: Any, free: Any, entry: Any, ops: Any, constant: Any, used: Any,
    hashes: Any, low: int, high: int, width: int, steps: int, hot: float, cold: float, reach: int, state: Any,
) -> tuple[int, int]:  # fmt: skip
    """Change an order `steps` times, while it cools; (cycles of moves at the end, and of the best order)."""
    total = len(ops)
    old, new = np.zeros((total + 1, width, ROW), np.int64), np.zeros((total + 1, width, ROW), np.int64)
    n_old, n_new = np.zeros(total + 1, np.int64), np.zeros(total + 1, np.int64)
    pool = np.zeros((POOL + 3, ROW), np.int64)
    following, after = np.zeros((total, READS), np.int64), np.zeros(len(constant), np.int64)
    where, seen = np.zeros(total, np.int64), np.zeros(len(constant), np.bool_)
    for at in range(total):
        where[order[at]] = at
    n_old[0] = 1
    for value in entry:
        put(old[0, 0], 0, LOW, value, hashes)
    uses(0, order, ops, following, after)
    rest = (pool, ops, constant, used, hashes, low, high, width)
    if walk(0, total, NEVER, old, n_old, old, n_old, order, following, after, *rest) < 0:
        return -1, -1
    cost = old[total, 0, COST]
    least = cost
    best[:] = order
    candidate = order.copy()
    for step in range(steps):
        first, last = change(candidate, where, before, chain, free, reach, state)
        if last < 0:
            continue
        # How much dearer it may become.
        bound = -hot * math.pow(cold / hot, step / steps) * math.log((1 + random(state, 1 << 30)) / (1 << 30))
        delta, stop, begin = NEVER, -1, first
        # What is before the change hangs on it, too, by the next uses: so that is walked before it is taken.
        for again in range(2):
            begin = felt(first, last, candidate, ops, seen) if again else first
            uses(begin, candidate, ops, following, after)
            limit = int(min(bound, NEVER)) + SLACK
            stop = walk(begin, last + 1, limit, new, n_new, old, n_old, candidate, following, after, *rest)
            delta = NEVER if stop < 0 else new[stop, 0, COST] - old[stop, 0, COST]
            if delta > bound:
                break
        if delta <= bound:
            cost += delta
            old[begin : stop + 1] = new[begin : stop + 1]
            n_old[begin : stop + 1] = n_new[begin : stop + 1]
            if delta:
                old[stop + 1 :, :, COST] += delta
            order[first : last + 1] = candidate[first : last + 1]
            if cost < least:
                least = cost
                best[:] = order
        else:
            candidate[first : last + 1] = order[first : last + 1]
            for at in range(first, last + 1):
                where[candidate[at]] = at
    return cost, least
