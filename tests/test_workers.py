"""Processes side by side: what they return, and that they end without a word."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import pytest

from sqgen import workers
from sqgen.errors import UserError

# Far more jobs than processes: most of them wait when the pool is left.
LEFT = """
import time
from sqgen import workers
with workers.pool() as pool:
    for _ in pool.map(time.sleep, [0.1] * 999):
        raise SystemExit(7)
"""


def test_what_each_job_returns_comes_in_order() -> None:
    with workers.pool() as pool:
        assert list(pool.map(pow, [2, 3, 4], [5, 6, 7])) == [2**5, 3**6, 4**7]
        assert sorted(pool.as_done(pow, [2, 3, 4], [5, 6, 7])) == [2**5, 3**6, 4**7]


@pytest.mark.parametrize("_turn", range(8))  # what went wrong hung on which of two threads was first
def test_a_pool_that_is_left_in_the_middle_says_nothing(_turn: int) -> None:
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")
    assert time.monotonic() - started < 20  # four processors would take 25 s for all of them


def failing(number: int) -> Callable[..., None]:
    """What raises this error."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def test_where_no_process_can_be_started_at_all_this_one_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "ProcessPoolExecutor", failing(errno.EROFS))  # no semaphore can be made
    with workers.pool() as pool:
        assert list(pool.map(os.path.join, "ab", "cd")) == ["a/c", "b/d"]
        assert list(pool.as_done(os.getpgid, [0])) == [os.getpgid(0)]


def test_a_process_that_cannot_be_started_now_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessPoolExecutor, "submit", failing(errno.EAGAIN))  # as where it forks
    with pytest.raises(UserError, match="no process can be started: Resource"), workers.pool() as pool:
        pool.map(pow, [2], [5])
