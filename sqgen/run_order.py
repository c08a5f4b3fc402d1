"""Runs of a square's cells in an order of their own: as text, with its stages, and as a search changes it.

    0.1+0.3 0.2 1.2 1.3 2.3        n = 4: five runs, the first one of cells (0, 1) and (0, 3)

A word is a run, of cells off the diagonal whose columns ascend by two; those that the text leaves out come last, column
by column, each by itself.  Source: `schedules/sweeps.py`, whose blocks are some of these orders.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from random import Random

from .errors import UserError
from .plan import Product, Run

APART = 2  # columns from one cell of a run to the next one
NEAR, FAR = 6, 20  # runs between which a cell goes over, mostly and at most
PLACES = 3  # that a run is moved, on average
DIGITS = 10  # of what is no index any more


def triangle(n: int) -> Iterator[Product]:
    """The cells off the diagonal, column by column."""
    for column in range(1, 2 * n - 2):
        yield from (Product(i, column - i) for i in range(max(0, column - n + 1), (column + 1) // 2))


def name(cell: Product) -> str:
    return f"{cell.i}.{cell.j}"


def named(n: int, words: Sequence[str]) -> list[Product]:
    """The cells that words name.  Raises UserError."""
    known = {name(cell): cell for cell in triangle(n)}
    for word in words:
        if word not in known:
            raise UserError(f"'{word}' is no cell off the diagonal of a square of {n} limbs; write 0.1")
    return [known[word] for word in words]


def read(n: int, text: str) -> list[Run]:
    """The runs of a text, and behind them what it leaves out.  Raises UserError for what are none."""
    words = [word.split("+") for word in text.split()]
    cells = iter(named(n, list(chain.from_iterable(words))))
    runs = [Run(tuple(islice(cells, len(word)))) for word in words]
    for run in runs:
        if any(above.column - below.column != APART for below, above in pairwise(run.cells)):
            raise UserError(f"'{written([run])}' is no run: columns, I + J, ascend by two; write 0.1+0.3")
    count = Counter(cell for run in runs for cell in run.cells)
    if twice := next((cell for cell, times in count.items() if times > 1), None):
        raise UserError(f"'{name(twice)}' comes twice in the order of runs")
    return [*runs, *(Run((cell,)) for cell in triangle(n) if cell not in count)]


def written(runs: Sequence[Run]) -> str:
    """The same as text."""
    return " ".join("+".join(map(name, run.cells)) for run in runs)


def fitted(n: int, text: str) -> str:
    """A text made for another size without the cells that n limbs have not."""
    found: list[list[str]] = []
    for word in text.split():
        found.append([])
        for cell in word.split("+"):
            if not beyond(n, cell):
                found[-1].append(cell)
            elif found[-1]:
                found.append([])
    return " ".join("+".join(run) for run in found if run)


def beyond(n: int, cell: str) -> bool:
    """Whether a cell's larger index is none of n limbs."""
    last = cell.rpartition(".")[2]
    return last.isascii() and last.isdigit() and len(last) < DIGITS and int(last) >= n


def in_stages(runs: Sequence[Run], ends: Sequence[int]) -> Iterator[Run | int]:
    """The runs, and the end of each stage as soon as all cells below that column are there."""
    left = Counter(cell.column for run in runs for cell in run.cells)
    waiting = [*ends]
    for run in runs:
        yield run
        left -= Counter(cell.column for cell in run.cells)
        while waiting and all(column >= waiting[0] for column in left):
            yield waiting.pop(0)
    yield from waiting


# ---- for the search ------------------------------------------------------------------------------------------------


def changed(runs: Sequence[Run], rng: Random) -> list[Run]:
    """One random change: a run moved, cut in two or joined with another one, a cell that goes over to another run, or
    comes by itself, or changes places with one of its column."""
    cells = [[*run.cells] for run in runs]
    if cells:
        change = rng.choice((move, move, move, move_cell, move_cell, move_cell, join, exchange, cut))
        change(cells, rng)
    return [Run(tuple(run)) for run in cells if run]


def move(runs: list[list[Product]], rng: Random) -> None:
    at = rng.randrange(len(runs))
    run = runs.pop(at)
    by = 1 + int(rng.expovariate(1 / PLACES))
    runs.insert(max(0, at + rng.choice((-by, by))), run)


def beside(runs: Sequence[object], at: int, reach: int) -> range:
    return range(max(0, at - reach), min(len(runs), at + reach + 1))


def move_cell(runs: list[list[Product]], rng: Random) -> None:
    """A cell, often the first or the last one of its run, leaves that, which is cut in two if it was between."""
    at = rng.randrange(len(runs))
    run = runs[at]
    place = rng.choice((0, -1, rng.randrange(len(run)))) % len(run)
    cell = run[place]
    runs[at : at + 1] = [part for part in (run[:place], run[place + 1 :]) if part]
    near = [runs[k] for k in beside(runs, at, rng.choice((NEAR, NEAR, FAR)))]
    below = [other for other in near if other[-1].column == cell.column - APART]
    above = [other for other in near if other[0].column == cell.column + APART]
    if (below or above) and rng.random() < 2 / 3:
        other = rng.choice([*below, *above])
        other.insert(len(other) if other[-1].column < cell.column else 0, cell)
    else:
        runs.insert(rng.choice(beside(runs, at, NEAR) or [0]), [cell])


def join(runs: list[list[Product]], rng: Random) -> None:
    """Two runs, one of which goes on where the other ends, in the place of either."""
    at = rng.randrange(len(runs))
    others = [k for k in beside(runs, at, NEAR) if runs[k][0].column == runs[at][-1].column + APART]
    if others:
        other = rng.choice(others)
        whole = runs[at] + runs[other]
        kept, gone = rng.choice(((at, other), (other, at)))
        runs[kept] = whole
        del runs[gone]


def exchange(runs: list[list[Product]], rng: Random) -> None:
    at = rng.randrange(len(runs))
    place = rng.randrange(len(runs[at]))
    cell = runs[at][place]
    alike = [
        (run, number)
        for run in (runs[k] for k in beside(runs, at, FAR) if k != at)
        for number, other in enumerate(run)
        if other.column == cell.column
    ]
    if alike:
        run, number = rng.choice(alike)
        runs[at][place], run[number] = run[number], cell


def cut(runs: list[list[Product]], rng: Random) -> None:
    at = rng.randrange(len(runs))
    if len(runs[at]) > 1:
        place = rng.randrange(1, len(runs[at]))
        parts = [runs[at][:place], runs[at][place:]]
        rng.shuffle(parts)
        runs[at : at + 1] = parts
