"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .errors import Exit, UserError


def write_all(folder: Path, contents: Mapping[str, str]) -> list[Path]:
    """Write text files into `folder`, made if need be: all beside their places first, then each renamed into place.

    Raises UserError, with everything as it was before, if the folder or a file cannot be written.
    """
    paths = [folder / name for name in contents]
    made = [parent for parent in (folder, *folder.parents) if not os.path.lexists(parent)]
    staged: list[Path] = []
    try:
        _make_folder(folder)
        places = [_place(path) for path in paths]
        for place, text in zip(places, contents.values(), strict=True):
            staged.append(_beside(place))
            _fill(staged[-1], text)
        _exchange(staged, places)
    except OSError as error:
        raise UserError(
            f"cannot write to '{folder}': {error.strerror or error}; nothing was changed", Exit.FILE
        ) from None
    finally:
        for temporary in staged:
            temporary.unlink(missing_ok=True)
        for parent in made:  # deepest first; one that holds something stays
            with contextlib.suppress(OSError):
                parent.rmdir()
    return paths


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
        for copy in before.values():
            copy.unlink(missing_ok=True)
