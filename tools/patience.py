"""What takes too long is broken off."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


@contextmanager
def patience(seconds: float, error: BaseException) -> Iterator[None]:
    """Raises the error in what takes longer."""

    def ring(number: int, frame: object) -> NoReturn:
        raise error

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
