"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from .errors import Exit, UserError


def write_all(folder: Path, contents: Mapping[str, str]) -> list[Path]:
    """Write text files into `folder`, made if need be: all beside their places first, then each renamed into place.

    Ctrl-C waits until they are there.  Of two programs that write the same files one comes after the other.  Raises
    UserError, with everything as it was before, if the folder or a file cannot be written.
    """
    return _write(folder, lambda: contents)


def rewrite(path: Path, text: Callable[[], str]) -> None:
    """Write a file whose new text follows from what is there: no other program writes between reading and writing.

    Raises UserError, with everything as it was before, if it cannot be written.
    """
    _write(path.parent, lambda: {path.name: text()})


def _write(folder: Path, contents: Callable[[], Mapping[str, str]]) -> list[Path]:
    made = [parent for parent in (folder, *folder.parents) if not os.path.lexists(parent)]
    staged: list[Path] = []
    with uninterrupted():
        try:
            _make_folder(folder)
            with alone(folder):
                texts = contents()
                places = [_place(folder / name) for name in texts]
                for place, text in zip(places, texts.values(), strict=True):
                    staged.append(_beside(place))
                    _fill(staged[-1], text)
                _exchange(staged, places)
            return [folder / name for name in texts]
        except OSError as error:
            raise UserError(
                f"cannot write to '{folder}': {error.strerror or error}; nothing was changed", Exit.FILE
            ) from None
        finally:
            _remove(staged)
            for parent in made:  # deepest first; one that holds something stays
                with contextlib.suppress(OSError):
                    parent.rmdir()


def require_writable(path: Path) -> None:
    """UserError if a file beside `path` cannot be made now: better before a long search than behind it."""
    try:
        _beside(path).unlink()
    except OSError as error:
        raise UserError(f"cannot write to '{path.parent}': {error.strerror or error}", Exit.FILE) from None


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other program does this with the folder, and keep others waiting; where there are no locks (some
    network file systems, Windows) nobody waits."""
    with contextlib.ExitStack() as open_files:
        with contextlib.suppress(ImportError, OSError):
            import fcntl  # noqa: PLC0415  (not on all systems)

            handle = os.open(folder, os.O_RDONLY)
            open_files.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C counts behind the block: between a rename and the note that it was done nothing may come."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(came[0], None)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(20, "it is no folder") from None


def _place(path: Path) -> Path:
    """Where the file itself lies, behind symbolic links.  Raises OSError where something else than a file is there."""
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_file():
        raise FileExistsError(17, f"'{path.name}' is there and is no regular file")
    return place


def _beside(place: Path) -> Path:
    """A new empty file in the same folder."""
    handle, name = tempfile.mkstemp(prefix=".sqgen-", dir=place.parent)
    os.close(handle)
    return Path(name)


def _fill(path: Path, text: str) -> None:
    """Write, with the permissions of any new file, and wait until the disk has it."""
    umask = os.umask(0)
    os.umask(umask)
    with path.open("wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    path.chmod(0o666 & ~umask)


def _remove(temporaries: Iterable[Path]) -> None:
    """One that cannot be removed stays: what was asked for is done, or undone, all the same."""
    for path in temporaries:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _exchange(staged: list[Path], places: list[Path]) -> None:
    """Rename each staged file into its place; if one cannot be, put back what was there before."""
    before: dict[Path, Path] = {}
    done: list[Path] = []
    try:
        for place in places:
            if place.exists():
                before[place] = _beside(place)
                shutil.copy2(place, before[place])
        for temporary, place in zip(staged, places, strict=True):
            temporary.replace(place)
            done.append(place)
    except BaseException:
        for place in done:
            if place in before:
                os.replace(before[place], place)
            else:
                place.unlink(missing_ok=True)
        raise
    finally:
        _remove(before.values())
