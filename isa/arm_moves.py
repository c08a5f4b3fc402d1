# ruff: noqa: PLR0912, PLR0917  (what numba compiles are long functions on arrays, without objects)
"""Simulated annealing of the order of units, for `arm_anneal`, on the tables of `arm_price`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arm_fit import NEVER
from .arm_price import COST, LOW, POOL, READS, ROW, compiled, flattened, put, uses, walk


@compiled
def random(state: Any, below: int) -> int:
    """A number from 0 up, by Lehmer's generator."""
    state[0] = state[0] * 48271 % 2147483647
    found: int = state[0] * below // 2147483647
    return found


@compiled
def change(order: Any, before: Any, state: Any, reach: int) -> tuple[int, int]:
    """Move some neighbours in an order to another place to which they may go; (first, last) place that changed."""
    n = len(order)
    size = 1 + (random(state, 6) if random(state, 3) == 0 else 0)
    size = min(size, n - 1)
    first = random(state, n - size + 1)
    some = order[first : first + size].copy()
    far = 0
    if random(state, 2):  # earlier
        while far < min(first, reach):
            other = order[first - far - 1]
            stop = False
            for each in some:
                stop |= before[each, other]
            if stop:
                break
            far += 1
        if not far:
            return 0, -1
        far = 1 + random(state, far)
        for at in range(first - 1, first - far - 1, -1):
            order[at + size] = order[at]
        order[first - far : first - far + size] = some
        return first - far, first + size - 1
    while far < min(n - first - size, reach):
        other = order[first + size + far]
        stop = False
        for each in some:
            stop |= before[other, each]
        if stop:
            break
        far += 1
    if not far:
        return 0, -1
    far = 1 + random(state, far)
    for at in range(first + size, first + size + far):
        order[at - size] = order[at]
    order[first + far : first + far + size] = some
    return first, first + far + size - 1


@compiled
def annealed(
    order: Any, best: Any, before: Any, entry: Any, spans: Any, ops: Any, constant: Any, used: Any, hashes: Any,
    low: int, high: int, width: int, steps: int, hot: float, cold: float, reach: int, state: Any,
) -> tuple[int, int]:  # fmt: skip
    """Change an order `steps` times, while it cools; (cycles of moves at the end, and of the best order)."""
    total = len(ops)
    old, new = np.zeros((total + 1, width, ROW), np.int64), np.zeros((total + 1, width, ROW), np.int64)
    n_old, n_new = np.zeros(total + 1, np.int64), np.zeros(total + 1, np.int64)
    pool = np.zeros((POOL + 3, ROW), np.int64)
    sequence, changed = np.zeros(total, np.int64), np.zeros(total, np.int64)
    following, after = np.zeros((total, READS), np.int64), np.zeros(len(constant), np.int64)
    n_old[0] = 1
    for value in entry:
        put(old[0, 0], 0, LOW, value, hashes)
    flattened(order, spans, sequence)
    uses(0, sequence, ops, following, after)
    if (
        walk(
            0,
            total,
            old,
            n_old,
            old,
            n_old,
            sequence,
            following,
            after,
            pool,
            ops,
            constant,
            used,
            hashes,
            low,
            high,
            width,
        )
        < 0
    ):
        return -1, -1
    cost = old[total, 0, COST]
    least = cost
    best[:] = order
    candidate = order.copy()
    for step in range(steps):
        first, last = change(candidate, before, state, reach)
        if last < 0:
            continue
        begin, end = 0, 0
        for at in range(last + 1):
            unit = candidate[at]
            if at < first:
                begin += spans[unit, 1] - spans[unit, 0]
            end += spans[unit, 1] - spans[unit, 0]
        at = begin
        changed[:] = sequence
        for place_ in range(first, last + 1):
            for op in range(spans[candidate[place_], 0], spans[candidate[place_], 1]):
                changed[at] = op
                at += 1
        # How much dearer it may become.
        bound = -hot * math.pow(cold / hot, step / steps) * math.log((1 + random(state, 1 << 30)) / (1 << 30))
        delta, stop = NEVER, -1
        # What is before the change hangs on it, too, by the next uses: so all is walked before it is taken.
        for start in (begin, 0):
            uses(start, changed, ops, following, after)
            stop = walk(
                start,
                end,
                new,
                n_new,
                old,
                n_old,
                changed,
                following,
                after,
                pool,
                ops,
                constant,
                used,
                hashes,
                low,
                high,
                width,
            )
            delta = NEVER if stop < 0 else new[stop, 0, COST] - old[stop, 0, COST]
            if delta > bound:
                break
        if delta <= bound:
            begin = 0
            cost += delta
            old[begin : stop + 1] = new[begin : stop + 1]
            n_old[begin : stop + 1] = n_new[begin : stop + 1]
            if delta:
                old[stop + 1 :, :, COST] += delta
            sequence[:] = changed
            order[first : last + 1] = candidate[first : last + 1]
            if cost < least:
                least = cost
                best[:] = order
        else:
            candidate[first : last + 1] = order[first : last + 1]
    return cost, least
