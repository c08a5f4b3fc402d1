"""The clock that bounds on time are held against."""

from __future__ import annotations

import time

import pytest
from clock import MOST, PACE, quick, slower


def test_a_bound_is_longer_on_a_slower_machine_alone_and_never_without_end() -> None:
    paces = [PACE / 3, PACE, PACE * 1.5, PACE * 5]
    assert [slower(pace) for pace in paces] == [1, 1, pytest.approx(1.5), MOST]


def test_what_takes_longer_than_any_machine_may_is_not_quick() -> None:
    assert not quick(lambda: time.sleep(0.05), 0.05 / MOST, time.perf_counter)
    assert quick(lambda: time.sleep(0.05), 1, time.perf_counter)
