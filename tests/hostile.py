"""How many bad inputs the tests tried, by kind: `pytest -n 0 --tried FILE` writes it when nothing failed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

REFUSED = "requests, files and manifests that must be refused in one line"
OBJECTS = "object files cut off, or with bytes changed"
CODE = "functions of instructions drawn at random"
VALUES = "values of options drawn at random"
BROKEN_OFF = "commands that are stopped or killed, or whose disk is full, at one of their steps"

_TRIED: Counter[str] = Counter()


def tried(kind: str, count: int = 1) -> None:
    """So many more have been tried."""
    _TRIED[kind] += count


def write(path: Path) -> None:
    path.write_text(json.dumps(_TRIED, indent=1, sort_keys=True) + "\n")
