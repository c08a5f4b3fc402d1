"""Parity sweeps: blocks of columns in which products two columns apart are added in one carry run.

A product is two limbs long, so products whose columns are two apart lie side by side, and one chain of additions takes
them all.  A block is cut into layers with at most one cell in each column, a layer into its even and its odd columns:
each is a *sweep*.  Where the sum is still empty a sweep seeds it, and its last carry waits in the top product of the
next sweep if that ends one column further.

    columns  9 8 7 6 5 4 3 2 1
                     a b a b a      n = 6, one block, order i: the row of a[0],
                 c d c d            that of a[1],
               e f e                that of a[2],
             h g h                  the last two rows; the sweeps a, b, c, ... in turn

`ends` are the columns where blocks end, `orders` how their layers follow each other, the last one repeated:

* i, I: rows, a layer the cells of one a[i] with greater j; ascending i, descending i
* j, J: the cells of one a[j] with smaller i; ascending j, descending j
* v, r: the first cell of each column, then the second one; from the diagonal outwards, towards the diagonal
* c: column by column, each cell by itself: 1 or 2 cycles more for each column, but it needs no pairs of registers

Cells that are named `ahead` are added one block before theirs: a limb that its carries would need cleared is seeded by
one of them, or the one above, which spares a cycle or two where registers are free.

In place of blocks all `runs` may be given in turn, as a search finds them: what each seeds, where its carry goes and
which limbs of the operand it wants is then decided run by run, for some cycles less.

At the columns `stages`, when the blocks have come that far, the sum is doubled, the squares are added, and the limbs
leave.  Stages that end at an even column let the carries wait in the low limb of the next square, at an odd one in the
high limb of the last square.

Cost: 5 cycles for each cell, less 1 for each limb that is seeded, about 2 for each block and 2 or 3 for each stage.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from sqgen import run_order
from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Double, Product, Run, Step, Store
from sqgen.run_order import name, triangle

TITLE = "sweeps over columns two apart, in blocks of columns"
REFERENCE = "SBD13"
OPS = ("sqr",)
ORDERS = ("i", "I", "j", "J", "v", "r", "c")
WIDTH = 6  # columns of a block or stage where nothing is given


def even_ends(n: int) -> str:
    """Ends of blocks, and of stages, that fit the registers at any size."""
    return ",".join(str(min(end, 2 * n)) for end in range(min(9, 2 * n), 2 * n + WIDTH, WIDTH))


PARAMETERS = (
    Parameter("ends", "columns where blocks end, from the lowest up", even_ends, many=True),
    Parameter("orders", "order of the cells in each block, the last one repeated", "i", many=True, choices=ORDERS),
    Parameter("stages", "columns up to which limbs are doubled and leave", even_ends, many=True),
    Parameter("ahead", "cells I.J, as in 0.4,2.8, that are added in the block before theirs", "", text=True),
    Parameter("runs", "runs in turn, as in 0.1+0.3 0.2, in place of blocks; the rest comes last", "", text=True),
)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs; block and stage ends that lie beyond the last column, or do not ascend, mean nothing."""
    top = 2 * n
    orders = values.words_of("orders")
    stages = ascending([end for end in values.many("stages") if end != top - 1], top)  # no stage of the top limb alone
    if values.word("runs"):
        yield from in_order(run_order.read(n, values.word("runs")), stages)
        return
    ends = ascending(values.many("ends"), top - 2)
    cells = in_blocks(n, ends, values.word("ahead"))
    filled: set[int] = set()
    first, done = 1, 0
    for number, end in enumerate(ends):
        yield Block(f"block of columns {first}..{end - 1}")
        yield from block(n, cells[number], end, orders[min(number, len(orders) - 1)], filled)
        first = end
        while stages and (stages[0] <= end or end == top - 2):
            yield from stage(done, stages[0])
            done = stages.pop(0)


def in_blocks(n: int, ends: Sequence[int], ahead: str) -> list[list[Product]]:
    """The cells of each block, column by column; those that `ahead` names one block before theirs, if there is one."""
    early = named(n, ahead)
    found: list[list[Product]] = [[] for _ in ends]
    for cell in triangle(n):
        found[max(0, bisect.bisect(ends, cell.column) - (cell in early))].append(cell)
    return found


def named(n: int, text: str) -> set[Product]:
    """The cells that a text names.  Raises UserError."""
    return set(run_order.named(n, text.split(","))) if text else set()


def ascending(ends: Sequence[int], last: int) -> list[int]:
    """Ends in ascending order, the last one at `last`."""
    return sorted({end for end in ends if 0 < end < last} | {last})


def block(n: int, cells: Sequence[Product], end: int, order: str, filled: set[int]) -> Iterator[Run]:
    """The sweeps of a block; `filled` are the columns of the sum that hold something."""
    runs: list[Run] = []
    for layer in layers(n, cells, order):
        runs += filling(layer, filled)
    filled.add(end + 1)  # the carries that leave the block's own limbs
    if runs and len(runs[-1].cells) == 1 and order in "vr":
        runs = late_tops(runs, end - 1)
    yield from runs


def late_tops(runs: Sequence[Run], top: int) -> list[Run]:
    """The sweeps that end at column `top` put off until after the next one that ends below.

    Then the sweep of a single cell comes last and alone: if it took up a carry, it would wait in registers for nothing.
    """
    found: list[Run] = []
    late: list[Run] = []
    for run in runs:
        if run.cells[-1].column == top:
            late.append(run)
        else:
            found.append(run)
            if len(late) > 0 and len(found) > 1:
                found.append(late.pop(0))
    return found + late


def layers(n: int, cells: Sequence[Product], order: str) -> list[list[Product]]:
    """The cells in groups with at most one in each column.

    The last two rows, of two cells and one, are one layer: their cells in columns 2n-5 and 2n-3 make one run.
    """
    last_row = n - 3
    groups: dict[int, list[Product]] = {}
    outwards = order == "v"
    seen: dict[int, int] = {}
    for cell in sorted(cells, key=lambda cell: -cell.i if outwards else cell.i):
        rank = seen[cell.column] = seen.get(cell.column, 0) + 1
        by_column = n * cell.column + cell.i
        index = {"i": min(cell.i, last_row), "I": -cell.i, "j": cell.j, "J": -cell.j, "c": by_column}.get(order, rank)
        groups.setdefault(index, []).append(cell)
    return [groups[index] for index in sorted(groups)]


def sweeps(layer: Sequence[Product], filled: set[int]) -> list[Run]:
    """The layer as runs over columns two apart.

    The run that goes furthest is the last one, so that it takes up the carry of the one before; but it comes first
    where it ends in an empty limb, which it seeds, and which can then take that carry.
    """
    runs: list[list[Product]] = []
    for cell in sorted(layer, key=lambda cell: (cell.column % 2, cell.column)):
        if runs and runs[-1][-1].column == cell.column - 2:
            runs[-1].append(cell)
        else:
            runs.append([cell])
    runs.sort(key=lambda run: (run[-1].column + 1 in filled, run[-1].column))
    return [Run(tuple(run)) for run in runs]


def filling(layer: Sequence[Product], filled: set[int]) -> Iterator[Run]:
    """The same, their limbs added to the columns that are `filled`."""
    for run in sweeps(layer, filled):
        filled |= {column for cell in run.cells for column in (cell.column, cell.column + 1)}
        yield run


def in_order(runs: Sequence[Run], stages: Sequence[int]) -> Iterator[Step]:
    """Runs in the order in which they are, each stage as soon as its columns are complete."""
    done = 0
    yield Block(columns(done, stages[0]))
    for step in run_order.in_stages(runs, stages):
        if isinstance(step, Run):
            yield step
            continue
        yield from stage(done, step)
        done = step
        if done < stages[-1]:
            yield Block(columns(done, next(end for end in stages if end > done)))


def columns(first: int, last: int) -> str:
    return f"columns {first}..{last - 1}"


def stage(first: int, last: int) -> Iterator[Step]:
    """Limbs `first` to `last` - 1 doubled, the squares that begin in them added, and stored."""
    yield Double(first, last)
    for i in range((first + 1) // 2, (last + 1) // 2):
        yield Product(i, i)
    for column in range(first, last):
        yield Store(column)


# ---- for the search ------------------------------------------------------------------------------------------------


BLOCKS, STAGES = ("order", "end", "both", "cut", "join"), ("stage", "cut stage", "join stages")
CHANGES = (*("order", "end", "stage", "both", "ahead", "ahead") * 2, "cut", "join", "cut stage", "join stages")
FREED, OF_STAGES = 0.003, 0.07  # shares of the changes
REACH = (0, 0, 1, 1, 2, 3)  # columns from the end of a block to a cell that is taken along


@dataclass
class Given:
    """Parameters as lists that can be changed: an order for each end, and the cells ahead."""

    ends: list[int]
    orders: list[str]
    stages: list[int]
    ahead: set[Product]

    @staticmethod
    def read(given: Mapping[str, str]) -> Given:
        ends, stages = ([int(end) for end in given[name].split(",")] for name in ("ends", "stages"))
        orders = given["orders"].split(",")
        cells = (cell.split(".") for cell in given.get("ahead", "").split(",") if cell)
        ahead = {Product(int(i), int(j)) for i, j in cells}
        return Given(ends, orders + orders[-1:] * (len(ends) - len(orders)), stages, ahead)

    def written(self) -> dict[str, str]:
        """The same as parameters; none for the cells ahead if there are none."""
        ends, stages = (",".join(map(str, columns)) for columns in (self.ends, self.stages))
        ahead = ",".join(map(name, sorted(self.ahead, key=lambda cell: (cell.i, cell.j))))
        found = {"ends": ends, "orders": ",".join(self.orders), "stages": stages, "ahead": ahead}
        return {parameter: text for parameter, text in found.items() if text}


def fitted(n: int, given: Mapping[str, str]) -> dict[str, str]:
    """Parameters found for another size, made to fit this one: ends and cells that lie beyond it are left out."""
    if given.get("runs"):
        ends = [end for end in map(int, given["stages"].split(",")) if end < 2 * n - 1] + [2 * n]
        return {"stages": ",".join(map(str, ends)), "runs": run_order.fitted(n, given["runs"])}
    found = Given.read(given)
    kept = [(end, order) for end, order in zip(found.ends, found.orders, strict=False) if end < 2 * n - 2]
    last = found.orders[len(kept)] if len(kept) < len(found.orders) else found.orders[-1]
    return Given(
        [end for end, _ in kept] + [max(1, 2 * n - 2)],
        [*(order for _, order in kept), last],
        [s for s in found.stages if s < 2 * n - 1] + [2 * n],
        {cell for cell in found.ahead if cell.j < n},
    ).written()


def changed(n: int, given: Mapping[str, str], rng: Random) -> dict[str, str]:
    """One random change, or two: an end moved, a stage's end with it or alone, a block or stage cut in two or joined
    with the next, another order, a cell taken along by the block before or no more; or, rarely, from there on the runs
    of all blocks by themselves (`run_order`)."""
    if given.get("runs"):
        return changed_order(n, given, rng)
    found = Given.read(given)
    if rng.random() < FREED:
        return ordered(runs_of(n, found), found.stages)
    for _ in range(rng.choice((1, 1, 2))):
        change = rng.choice(CHANGES)
        if change in BLOCKS:
            change_blocks(change, found, n, rng)
        elif change in STAGES:
            change_stages(change, found.stages, n, rng)
        else:
            take_along(found, n, rng)
    return found.written()


def mixed(n: int, given: Mapping[str, str], other: Mapping[str, str], rng: Random) -> dict[str, str]:
    """The blocks, stages and cells ahead of one below a random column, above it those of another one."""
    if given.get("runs") or other.get("runs"):
        return changed(n, given, rng)
    low, high = Given.read(given), Given.read(other)
    at = rng.randrange(1, 2 * n - 2) if n > 2 else 1
    blocks = [block for block in zip(low.ends, low.orders, strict=True) if block[0] < at]
    blocks += [block for block in zip(high.ends, high.orders, strict=True) if block[0] >= at]
    stages = [end for end in low.stages if end < at] + [end for end in high.stages if end >= at]
    ahead = {cell for cell in low.ahead if cell.column < at} | {cell for cell in high.ahead if cell.column >= at}
    return Given([end for end, _ in blocks], [order for _, order in blocks], stages, ahead).written()


def runs_of(n: int, given: Given) -> list[Run]:
    """The runs of all blocks."""
    filled: set[int] = set()
    cells = in_blocks(n, given.ends, ",".join(map(name, given.ahead)))
    blocks = zip(cells, given.ends, given.orders, strict=True)
    return [run for inside, end, order in blocks for run in block(n, inside, end, order, filled)]


def ordered(runs: Sequence[Run], stages: Sequence[int]) -> dict[str, str]:
    """Runs and stages as parameters."""
    return {"stages": ",".join(map(str, stages)), "runs": run_order.written(runs)}


def changed_order(n: int, given: Mapping[str, str], rng: Random) -> dict[str, str]:
    """One random change, or two, of runs or stages."""
    runs, stages = run_order.read(n, given["runs"]), [int(end) for end in given["stages"].split(",")]
    for _ in range(rng.choice((1, 1, 2))):
        if rng.random() < OF_STAGES:
            change_stages(rng.choice(("stage", *STAGES)), stages, n, rng)
        else:
            runs = run_order.changed(runs, rng)
    return ordered(runs, stages)


def change_blocks(change: str, given: Given, n: int, rng: Random) -> None:
    """Another order of a block, another end, or a block more or less."""
    ends, orders = given.ends, given.orders
    match change:
        case "order":
            orders[rng.randrange(len(orders))] = rng.choice(ORDERS)
        case "end":
            move(ends, 2 * n - 2, rng)
        case "both":
            move_both(ends, given.stages, n, rng)
        case "cut":
            at = rng.randrange(1, 2 * n - 2)
            if at not in ends:
                index = sum(end < at for end in ends)
                ends.insert(index, at)
                orders.insert(index, rng.choice(ORDERS))
        case "join" if len(ends) > 1:
            index = rng.randrange(len(ends) - 1)
            del ends[index]
            del orders[index + rng.randrange(2)]


def change_stages(change: str, stages: list[int], n: int, rng: Random) -> None:
    """Another end of a stage, or a stage more or less."""
    match change:
        case "stage":
            move(stages, 2 * n, rng)
        case "cut stage":
            stages[:] = sorted({*stages, rng.randrange(1, 2 * n - 1)})
        case "join stages" if len(stages) > 1:
            del stages[rng.randrange(len(stages) - 1)]


def take_along(given: Given, n: int, rng: Random) -> None:
    """A cell just above the end of a block is taken along by it, or no more: often the outermost or innermost one."""
    column = rng.choice(given.ends) + rng.choice(REACH)
    cells = [cell for cell in triangle(n) if cell.column == column]
    if cells:
        given.ahead ^= {rng.choice((cells[0], cells[-1], rng.choice(cells)))}


def move_both(ends: list[int], stages: list[int], n: int, rng: Random) -> None:
    """Move the end of a block, and the stage that ends there or one column before, by the same."""
    was, by = move(ends, 2 * n - 2, rng)
    moved = {stage + by if stage in (was, was - 1) else stage for stage in stages[:-1]}
    stages[:] = [*sorted(stage for stage in moved if 0 < stage < stages[-1]), stages[-1]]


def move(ends: list[int], last: int, rng: Random) -> tuple[int, int]:
    """Move an end, but not the last one, a little between its neighbours: where it was, and by how much."""
    if len(ends) == 1:
        return last, 0
    index = rng.randrange(len(ends) - 1)
    was = ends[index]
    low, high = ends[index - 1] if index else 0, ends[index + 1]
    ends[index] = min(max(was + rng.choice((-2, -1, 1, 2)), low + 1), min(high, last) - 1)
    return was, ends[index] - was
