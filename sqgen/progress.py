"""What people who wait are told on stderr: a bar, only on a terminal and after a second, or a word."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
PATIENCE = 1.0  # seconds without a bar
WORDLESS = 2.0  # seconds without a word


class Bar:
    """A bar that leaves nothing behind when it is left."""

    def __init__(self, title: str, total: float) -> None:
        self.title, self.total = title, total
        self.started = time.monotonic()
        self.shown: Progress | None = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.shown:
            self.shown.stop()

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self.started

    def update(self, done: float, title: str | None = None) -> None:
        """So much of the total is done, and what it says from now on."""
        self.title = title or self.title
        if self.shown is None and self.elapsed > PATIENCE and sys.stderr is not None and sys.stderr.isatty():
            self.shown = _bar(self.title, self.total)
        if self.shown:
            self.shown.update(self.shown.task_ids[0], completed=done, description=self.title)


@contextlib.contextmanager
def word(what: str) -> Iterator[None]:
    """A line that says `what` takes so long, if it takes longer than `WORDLESS` seconds."""

    def say() -> None:
        if sys.stderr is not None:
            with contextlib.suppress(OSError):
                print(f"still {what}; Ctrl-C stops it", file=sys.stderr, flush=True)

    timer = threading.Timer(WORDLESS, say)
    timer.daemon = True
    with contextlib.suppress(RuntimeError):  # no thread can be started: no word, then
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def tracked(items: Sequence[T], title: str) -> Iterator[T]:
    """The items one by one; the bar counts those that are done."""
    with Bar(title, len(items)) as bar:
        for done, item in enumerate(items):
            bar.update(done)
            yield item


def _bar(title: str, total: float) -> Progress:
    from rich.console import Console  # noqa: PLC0415  (slow to import)
    from rich.progress import Progress  # noqa: PLC0415

    bar = Progress(console=Console(stderr=True), transient=True)
    bar.add_task(title, total=total)
    with contextlib.suppress(RuntimeError):  # no thread can be started: the bar stays where it is
        bar.start()
    return bar
