"""Where tables, schedules, papers, templates lie: inside this package when installed, beside it in a bare checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
CHECKOUT = (_PACKAGE.parent / "pyproject.toml").is_file() and (_PACKAGE.parent / "schedules").is_dir()


def folder(name: str) -> Path:
    """The folder `name`: "isa", "papers", "schedules" or "templates"."""
    return (_PACKAGE.parent if CHECKOUT else _PACKAGE) / name
