"""Bounds on time, held where nothing else runs: `pytest -m clock -n 0`, before all other tests.

Two tests at once may halve each other's pace, so such a bound beside other tests would say nothing about the program.
Nor would one on a machine whose other users slow it down: a bound is as much longer as the machine is slower, beside
the call, than the one for which the bounds were set; but never more than four times as long.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

TRIES = 5
ROUNDS = 500_000  # of what the pace is measured by
PACE = 0.04  # seconds for them where a 256-bit product for AVR takes 0.8 s, as it did when the bounds were last set
MOST = 4.0  # times a bound, at most
T = TypeVar("T")


def quick(call: Callable[[], object], most: float, clock: Callable[[], float] = time.process_time) -> bool:
    """Whether a call takes less than `most` seconds of a clock, once in a few tries."""
    return any(within(call, most, clock) for _ in range(TRIES))


def soon(call: Callable[[], T], most: float) -> T:
    """What a call gives in less than `most` seconds of processor time, once in a few tries."""
    found: list[T] = []
    assert quick(lambda: found.append(call()), most)
    return found[-1]


def within(call: Callable[[], object], most: float, clock: Callable[[], float]) -> bool:
    """Whether a call takes less than `most` seconds, or as much more as the machine is slower before and after it."""
    before, taken, after = seconds(steady, clock), seconds(call, clock), seconds(steady, clock)
    return taken < most * slower((before + after) / 2)


def slower(pace: float) -> float:
    """By what a bound is longer where the fixed work takes `pace` seconds."""
    return min(MOST, max(1.0, pace / PACE))


def seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    """What a call takes."""
    start = clock()
    call()
    return clock() - start


def steady() -> None:
    """Work that is always the same: objects made and looked up, as in a proof."""
    held = {}
    for number in range(ROUNDS):
        held[number & 1023] = (number, number >> 1)
