"""What a manifest says, read with distrust."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .errors import Exit, UserError

LARGEST = 1 << 20  # bytes of a manifest


def read(path: Path, kinds: Mapping[str, type], *, needed: bool = True) -> dict[str, Any]:
    """The manifest in a file; of what it has, `kinds` says of which type it must be.  Raises UserError.

    Where no file is and none is `needed`, it is {}.
    """
    try:
        if not path.is_file():
            if not needed:
                return {}
            what = "is a folder" if path.is_dir() else "is no regular file" if path.exists() else "does not exist"
            raise UserError(f"'{path}' {what}; give the .json file that sqgen wrote", Exit.FILE)
        with path.open("rb") as stream:
            text = stream.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise ValueError("it is too long")
        manifest = json.loads(text)
        if not isinstance(manifest, dict):
            raise ValueError("it is no JSON object")
        for name, kind in kinds.items():
            if name in manifest and not is_a(manifest[name], kind):
                raise ValueError(f"its '{name}' is not of type {kind.__name__}")
        return manifest
    except OSError as error:
        raise UserError(f"cannot read '{path}': {error.strerror or error}", Exit.FILE) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"'{path}' is no manifest: {error}", Exit.FILE) from None


def is_a(value: object, kind: type) -> bool:
    """Whether a value is of a type; true and false are no numbers."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
