"""Processes that work side by side: the one place that starts them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from .errors import Exit, UserError


@contextlib.contextmanager
def pool(most: int | None = None) -> Iterator[ProcessPoolExecutor]:
    """As many as there are processors, or `most`.  Left by an exception, Ctrl-C among them, they end at once.

    Raises UserError if one of them is killed.
    """
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ProcessPoolExecutor(min(most or count, count), initializer=_end_quietly) as workers:
        try:
            yield workers
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
