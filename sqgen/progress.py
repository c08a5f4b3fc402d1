"""A progress bar on stderr, for people who wait: only on a terminal, only after a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
PATIENCE = 1.0  # seconds without a bar


def tracked(items: Sequence[T], title: str) -> Iterator[T]:
    """The items one by one; the bar counts those that are done and leaves nothing behind."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield from items
        return
    started, bar = time.monotonic(), None
    try:
        for done, item in enumerate(items):
            if bar is None and time.monotonic() - started > PATIENCE:
                bar = _bar(title, len(items))
            if bar:
                bar.update(bar.task_ids[0], completed=done)
            yield item
    finally:
        if bar:
            bar.stop()


def _bar(title: str, total: int) -> Progress:
    from rich.console import Console  # noqa: PLC0415  (slow to import)
    from rich.progress import Progress  # noqa: PLC0415

    bar = Progress(console=Console(stderr=True), transient=True)
    bar.add_task(title, total=total)
    bar.start()
    return bar
