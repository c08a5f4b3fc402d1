"""Processes that work side by side: the one place that starts them."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, TypeVar

from .errors import Exit, UserError

T = TypeVar("T")
Order = Callable[[Iterable[Future[Any]]], Iterator[Future[Any]]]  # in which jobs are waited for


@dataclass(frozen=True)
class Pool:
    """What processes at work are asked, or this one where no other can be started.  No job is ever cancelled: that of
    Python's pool, ended, trips over those."""

    executor: ProcessPoolExecutor | None

    def map(self, function: Callable[..., T], *arguments: Iterable[Any]) -> Iterator[T]:
        """What the function returns for each, in order; processes begin all before the first is asked for."""
        return self._results(iter, function, *arguments)

    def as_done(self, function: Callable[..., T], *arguments: Iterable[Any]) -> Iterator[T]:
        """The same, each as soon as it is there."""
        return self._results(as_completed, function, *arguments)

    def _results(self, order: Order, function: Callable[..., T], *arguments: Iterable[Any]) -> Iterator[T]:
        each = zip(*arguments, strict=True)
        if not self.executor:
            return itertools.starmap(function, each)
        try:
            jobs = [self.executor.submit(function, *some) for some in each]
        except OSError as error:
            message = f"no process can be started: {error.strerror}; try again when fewer are running"
            raise UserError(message, Exit.UNPROVED) from None
        return (job.result() for job in order(jobs))


@contextlib.contextmanager
def pool(most: int | None = None) -> Iterator[Pool]:
    """As many as there are processors, or `most`.  Left by an exception, Ctrl-C among them, they end at once.

    Raises UserError if one of them is killed, or cannot be started now.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        executor = ProcessPoolExecutor(min(most or count, count), initializer=_end_quietly)
    except (NotImplementedError, OSError):  # a Python without semaphores, a machine without a /dev/shm
        yield Pool(None)
        return
    with executor:
        try:
            yield Pool(executor)
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
