"""Simulated annealing, for whatever has a price and can be changed a little."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

State = TypeVar("State")


@dataclass(frozen=True)
class Cooling:
    """How many steps, and the cycles that may be lost in one, at first and at last; no step begins after `deadline`,
    a time of `time.monotonic`."""

    steps: int
    hot: float
    cold: float
    deadline: float = math.inf

    def temperature(self, step: int) -> float:
        return self.hot * math.pow(self.cold / self.hot, step / self.steps)


def anneal(
    start: State,
    change: Callable[[State, random.Random], State],
    price: Callable[[State, float], float],
    cooling: Cooling,
    rng: random.Random,
) -> Iterator[tuple[float, State]]:
    """Each state that was taken, with its price; a worse one is taken the more rarely the later it comes.

    How much worse it may be is drawn first, so that `price` need not be exact above that: it may say infinite.
    """
    current, cost = start, price(start, math.inf)
    yield cost, current
    for step in range(cooling.steps):
        if time.monotonic() > cooling.deadline:
            return
        candidate = change(current, rng)
        limit = cost - cooling.temperature(step) * math.log(1 - rng.random())
        new = price(candidate, limit)
        if new <= limit:
            current, cost = candidate, new
            yield cost, current
