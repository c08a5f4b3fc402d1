"""Processes that work side by side: the one place that starts them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import Exit, UserError

T = TypeVar("T")


@dataclass(frozen=True)
class Pool:
    """What processes at work are asked.  No job is ever cancelled: that of Python's pool, ended, trips over those."""

    executor: ProcessPoolExecutor

    def submit(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Have one job done."""
        return self.executor.submit(function, *arguments)

    def map(self, function: Callable[..., T], *arguments: Iterable[Any]) -> Iterator[T]:
        """What the function returns for each, in order; all are begun before the first is asked for."""
        jobs = [self.submit(function, *each) for each in zip(*arguments, strict=True)]
        return (job.result() for job in jobs)


@contextlib.contextmanager
def pool(most: int | None = None) -> Iterator[Pool]:
    """As many as there are processors, or `most`.  Left by an exception, Ctrl-C among them, they end at once.

    Raises UserError if one of them is killed.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ProcessPoolExecutor(min(most or count, count), initializer=_end_quietly) as workers:
        try:
            yield Pool(workers)
        except BrokenProcessPool as error:  # the others have ended with it
            message = "a process at work was killed, most likely for want of memory; what it did is not written"
            raise UserError(message, Exit.UNPROVED) from error
        except BaseException:
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise


def _end_quietly() -> None:
    """Ctrl-C reaches workers, too, but what it means is said once; it means nothing to a script's job in background."""
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
