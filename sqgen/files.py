"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .errors import Exit, UserError


def write_all(folder: Path, contents: Mapping[str, str]) -> list[Path]:
    """Write text files into `folder`, made if need be: all beside their places first, then each renamed into place.

    Raises UserError, with nothing changed, if the folder or a file cannot be written.
    """
    waiting: list[tuple[Path, Path]] = []
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in contents.items():
            if (folder / name).is_dir():
                raise IsADirectoryError(21, "is a folder", str(folder / name))
            handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
            waiting.append((Path(temporary), folder / name))
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        for temporary_path, path in waiting:
            temporary_path.chmod(0o666 & ~umask)
            temporary_path.replace(path)
    except OSError as error:
        for temporary_path, _ in waiting:
            temporary_path.unlink(missing_ok=True)
        for parent in made:
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
        raise UserError(
            f"cannot write to '{folder}': {error.strerror or error}; choose another --out", Exit.FILE
        ) from None
    return [path for _, path in waiting]
