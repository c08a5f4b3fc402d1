"""Which sources something is made of, and one number for them: what was found with other ones is not known any more."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent


def imported(path: Path) -> Iterator[Path]:
    """The files beside this one that it imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for name in [node.module] if node.module else [alias.name for alias in node.names]:
                yield from (each for each in [path.parent / f"{name}.py"] if each.is_file())


def closure(names: Iterable[str]) -> Sequence[Path]:
    """These modules of sqgen, and all of sqgen that they import, directly or not."""
    found: set[Path] = set()
    waiting = [TOP / "sqgen" / f"{name}.py" for name in names]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += imported(path)
    return sorted(found)


def of_kernels(isa: str, tools: Iterable[str]) -> Sequence[Path]:
    """All that decides on the kernels of an instruction set, and these tools, which make something of them."""
    patterns = [
        *("sqgen/**/*.py", "sqgen/**/*.c", "schedules/*.py", "templates/*.j2", f"schedules/answers/{isa}*.toml"),
        *(f"isa/{isa}*", "isa/__init__.py", f"templates/{isa}/*", *(f"tools/{name}.py" for name in tools)),
    ]
    return sorted(path for pattern in patterns for path in TOP.glob(pattern) if path.is_file())


def digest(paths: Iterable[Path]) -> str:
    """Of what stands in these files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]
