"""Long work in pieces: what is found is a line of a file as soon as it is there.

It may be broken off, goes on where it was, and does again what rested on other sources."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sqgen import workers
from sqgen.garbage import uncollected
from sqgen.progress import Bar

T = TypeVar("T")
Row = Mapping[str, Any]


def rows(file: Path, version: str, key: str = "version") -> Iterator[dict[str, Any]]:
    """What stands in the file for this version, or whose `key` says that; a last line that was broken off does not
    count."""
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if row.get(key) == version:
            yield row


def work(function: Callable[[T], Sequence[Row]], wanted: Sequence[T], file: Path, version: str, **more: str) -> None:
    """Do all that is wanted, on all processors; the rows that the function returns go to the file, marked with the
    version and what `more` there is to say of all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as stream, Bar(file.stem, len(wanted)) as bar, workers.pool() as pool:
        for number, found in enumerate(pool.as_done(functools.partial(undisturbed, function), wanted)):
            stream.writelines(json.dumps({"version": version, **more, **row}) + "\n" for row in found)
            stream.flush()
            bar.update(number + 1)


@uncollected()
def undisturbed(function: Callable[[T], Sequence[Row]], wanted: T) -> Sequence[Row]:
    """One piece of it."""
    return function(wanted)
