"""Parameters found by search, kept in `schedules/answers/<isa>.toml`, so that a normal run does not search.

[sbd.sqr]
160 = [{ block = "8,4,4,6", call = 1343, body = 1267 }]

`body` and `call` are cycles on the default core, each of the kernel that is made where that is the goal: where a call
counts, fewer registers are saved.  A size has more than one row where fewer saved registers, or another core, want
other parameters than the shortest body.  `branching` is the best way to branch on signs where that is allowed, and
`branched` how registers are looked for there, if not as without (`hints.py`).  A core whose kernels have little in
common with those of the default one has a file of its own, `<isa>-<core>.toml`, as its table says (`answers`), and
another one, `...-any-time.toml`, for what may take a time that depends on operands.

`schedules/answers/<isa>-front.toml`, and that of a core with a file of its own, has for some sizes what nothing beats
in cycles, bytes and stack (`front.py`).
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from .places import folder
from .table import Core, Isa

CALL, BODY = "call", "body"
METHOD, GOAL, BYTES, STACK = "method", "goal", "bytes", "stack"
COSTS = (BODY, CALL, BYTES, STACK)
BRANCHING = "branching"  # what `signs` is where the code branches on them
BRANCHED = "branched"  # how registers are looked for there, if not as without
FIGURES = (*COSTS, METHOD, GOAL, BRANCHING, BRANCHED)  # what in a row is no parameter

Row = dict[str, str | int]


def path(isa: Isa, core: Core | None = None) -> Path:
    """The file of an instruction set's answers: those for the default core, or those that are of use on another one."""
    parts = [isa.name, core.answers if core else "", "any-time" if core and core.any_time else ""]
    return folder("schedules") / "answers" / f"{'-'.join(filter(None, parts))}.toml"


def front_path(isa: Isa, core: Core | None = None) -> Path:
    """The file of what nothing beats."""
    found = path(isa, core)
    return found.with_stem(f"{found.stem}-front")


@functools.cache
def _tables(file: Path) -> Mapping[str, Mapping[str, str]]:
    """The tables of a file by name, and in each by size what stands there, as text: to read all of it would take as
    long as to make a small kernel."""
    found: dict[str, dict[str, str]] = {}
    table: dict[str, str] = {}
    size = ""
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else []:
        if line.startswith("["):
            table = found[line.strip("[]")] = {}
        elif line[:1].isdigit():
            size, _, table[size] = line.partition(" = ")
        elif line[:1] in (" ", "]"):
            table[size] += line
    return found


class Sizes(Mapping[int, list[Row]]):
    """The rows of a table of a file by size in bits, none if it is not there; read when they are asked for."""

    def __init__(self, file: Path, name: str) -> None:
        self.texts = _tables(file).get(name, {})

    def __getitem__(self, bits: int) -> list[Row]:
        return _read(self.texts[str(bits)])

    def __iter__(self) -> Iterator[int]:
        return map(int, self.texts)

    def __len__(self) -> int:
        return len(self.texts)


@functools.cache
def _read(text: str) -> list[Row]:
    found: list[Row] = tomllib.loads(f"rows = {text}")["rows"]
    return found


def forget() -> None:
    """Read the files anew: one has been written."""
    _tables.cache_clear()


def table(isa: Isa, method: str, op: str, core: Core | None = None) -> Sizes:
    """What is known of a method, by size in bits."""
    return Sizes(path(isa, core), f"{method}.{op}")


def rows(isa: Isa, method: str, op: str, bits: int, core: Core | None = None) -> list[Row]:
    """What is known of a method at a size."""
    return table(isa, method, op, core).get(bits, [])


def best(rows: Sequence[Row], goal: str = BODY) -> Row:
    """The row with the fewest cycles of what counts, `call` or `body`, {} of none."""
    other = CALL if goal == BODY else BODY
    return min(rows, key=lambda row: (row[goal], row[other]), default={})


def parameters(
    isa: Isa, method: str, op: str, bits: int, goal: str = BODY, *, core: Core | None = None
) -> dict[str, str]:
    """The best parameters known, {} where none are."""
    return given(best(rows(isa, method, op, bits, core), goal))


def given(row: Mapping[str, str | int]) -> dict[str, str]:
    """The parameters of a row."""
    return {key: str(value) for key, value in row.items() if key not in FIGURES}


def of_part(isa: Isa, method: str, op: str, limbs: int, core: Core | None = None) -> dict[str, str]:
    """The best parameters known for a part of so many limbs: its caller saves the registers."""
    return parameters(isa, method, op, limbs * isa.limb_bits, core=core)


def known(isa: Isa, op: str, bits: int, core: Core | None = None) -> Iterator[tuple[str, Row]]:
    """(method, row) of all answers for a job."""
    for method in dict.fromkeys(name.partition(".")[0] for name in _tables(path(isa, core))):
        for row in rows(isa, method, op, bits, core):
            yield method, row


def fastest(isa: Isa, op: str, bits: int, goal: str = BODY, core: Core | None = None) -> str | None:
    """The method that the search found the fastest, None for a size it has not been run for."""
    return min(known(isa, op, bits, core), key=lambda each: (each[1][goal], each[0]), default=(None,))[0]


def fronts(isa: Isa, op: str, core: Core | None = None) -> Sizes:
    """By size in bits, the rows that nothing beats, each with its method, its goal, bytes and stack."""
    return Sizes(front_path(isa, core), op)


def costs(row: Row) -> tuple[int, ...]:
    """Cycles of body and call, bytes of code and of stack, of a row of the front."""
    return tuple(int(row[cost]) for cost in COSTS)
