"""Which sources something is made of, and one number for them: what was found with other ones is not known any more."""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import tokenize
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from sqgen import tables

TOP = Path(__file__).resolve().parent.parent
BESIDE = ("isa", "schedules")  # parts of the package that lie beside its folder
MAKERS = (  # modules by which code is made, and nothing else
    *("allocate", "answers", "attempts", "choosing", "frame", "idioms", "layout", "looking", "methods"),
    *("padding", "plan", "replay", "residence", "wiping"),
)


def imported(path: Path) -> Iterator[Path]:
    """The files of sqgen that this one imports, at the start or later."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".") if node.module else []
            folder = path.parent
            if node.level == 0:
                if module[0] != "sqgen":
                    continue
                part = module[1] if len(module) > 1 and module[1] in BESIDE else ""
                folder, module = TOP / (part or "sqgen"), module[2 if part else 1 :]
            for name in ["/".join(module)] if module else [alias.name for alias in node.names]:
                yield from (each for each in [folder / f"{name}.py"] if each.is_file())


def closure(starts: Iterable[Path], without: Collection[Path] = ()) -> list[Path]:
    """These files, and all of sqgen that they import, directly or not, but for some."""
    found: set[Path] = set()
    waiting = list(starts)
    while waiting:
        path = waiting.pop()
        if path not in found and path not in without:
            found.add(path)
            waiting += imported(path)
    return sorted(found)


def modules(names: Iterable[str]) -> list[Path]:
    """Files of sqgen by name."""
    return [TOP / "sqgen" / f"{name}.py" for name in names]


def tools(names: Iterable[str]) -> list[Path]:
    return [TOP / "tools" / f"{name}.py" for name in names]


def of_code(isa: str) -> list[Path]:
    """All that decides on the code of an instruction set's kernels, which the proof does not."""
    starts = [*modules(["choosing"]), TOP / "isa" / f"{isa}.py", *TOP.glob("schedules/*.py")]
    return [*closure(starts, modules(["prove"])), *answers(isa)]


def of_kernels(isa: str) -> list[Path]:
    """All that decides on kernels, on what is said of them, and on what the matrix sees of them."""
    templates = (path for folder in (".", isa) for path in TOP.glob(f"templates/{folder}/*.j2"))
    asked = judges(isa)
    seen = closure([*tools(["matrix", "observe"]), *(path for path in asked if path.suffix == ".py")])
    return sorted({*of_code(isa), *seen, *asked, *templates})


def of_sight(isa: str) -> list[Path]:
    """All that decides on what the matrix sees of a code and on its proof, whatever made it."""
    asked = judges(isa)
    starts = [*tools(["matrix", "observe"]), *(path for path in asked if path.suffix == ".py")]
    return sorted({*closure(starts, modules(MAKERS)), *asked, TOP / "isa" / f"{isa}.toml"})


def judges(isa: str) -> list[Path]:
    """What asks the outside simulators of its cores."""
    names = {timing.judge for timing in tables.isa(isa).timings.values() if timing.judge}
    return sorted(path for name in ("__init__", *names) for path in TOP.glob(f"sqgen/oracles/{name}*"))


def answers(isa: str) -> list[Path]:
    """The table of an instruction set, and what was found by search for it."""
    return [TOP / "isa" / f"{isa}.toml", *sorted(TOP.glob(f"schedules/answers/{isa}*.toml"))]


def digest(paths: Sequence[Path]) -> str:
    """Of what stands in these files; of a program, of what it does."""
    texts = (path.read_text(encoding="utf-8") for path in paths)
    found = (bare(text) if path.suffix == ".py" else text for path, text in zip(paths, texts, strict=True))
    return hashlib.sha256("".join(found).encode()).hexdigest()[:16]


@functools.cache
def bare(program: str) -> str:
    """A program without comments, docstrings and empty lines, none of which decides on anything."""
    lines = program.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(program).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, documented) and ast.get_docstring(node):
            said = node.body[0]
            for row in range(said.lineno, (said.end_lineno or said.lineno) + 1):
                lines[row - 1] = ""
    return "".join(f"{line.rstrip()}\n" for line in lines if line.strip())
