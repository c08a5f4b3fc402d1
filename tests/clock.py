"""Bounds on time, held where nothing else runs: `pytest -m clock -n 0`, before all other tests.

Two tests at once may halve each other's pace, so such a bound beside other tests would say nothing about the program.
"""

from __future__ import annotations

import time
from collections.abc import Callable

TRIES = 5


def quick(call: Callable[[], object], most: float, clock: Callable[[], float] = time.process_time) -> bool:
    """Whether a call takes less than `most` seconds of a clock, once in a few tries."""

    def seconds() -> float:
        start = clock()
        call()
        return clock() - start

    return any(seconds() < most for _ in range(TRIES))
