"""Work that makes many objects and none in cycles, without looking for such."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Looking for cycles takes a fifth of the time of compiling a kernel and a tenth of that of a proof, and right
    behind a proof as much again; it finds none."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
