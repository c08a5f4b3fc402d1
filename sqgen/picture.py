"""The picture of a plan: the rhombus or triangle of cells, before it is known how it is drawn.

It is the picture of the papers [SBD13, Fig. 1 and 2]: cell (i, j) stands in column i + j, column 0 on the right, and
the higher the larger i - j is (in a triangle: |i - j|, so that the diagonal lies at the bottom).  Below is the result
C[0..2n-1], each limb in the colour or letter of the block that stores it last.

A part that another plan forms lies where its operands say.  The middle product of Karatsuba, |a_lo - a_hi| * |b_lo -
b_hi|, has the place of the upper one of the two products that it spares, a_hi * b_lo in a rhombus; where the size is
odd it is a row larger than that, and stands out over the side, or over its neighbour within a larger one.  Of longer
operands what is not zero is drawn.

`draw_svg` and `draw_text` draw it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .plan import Block, Difference, Part, Plan, Product, Recombine, Run, Slice, Store
from .plan import cells as cells_of

LEGEND_LIMIT = 24  # more blocks than this, and the legend leaves out the middle
LEGEND_HEAD, LEGEND_TAIL = 17, 3


@dataclass(frozen=True)
class Place:
    """A cell's place: its column i + j from the right, its height i - j (in a triangle |i - j|) above the middle.

    `once`: it lies on the diagonal of a square and is not doubled.
    """

    column: int
    height: int
    once: bool = False


@dataclass(frozen=True)
class Group:
    """One block: its cells in the order of their visits, and the columns of the result it is the last to store."""

    title: str
    cells: tuple[Place, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Picture:
    """What there is to draw, before it is known how.  `right`: the name of the right operand, A in a square."""

    n: int
    triangle: bool
    right: str
    heading: str
    groups: tuple[Group, ...]

    def cells(self) -> list[Place]:
        return [cell for group in self.groups for cell in group.cells]

    @property
    def beyond(self) -> int:
        """Rows of cells that stand out over the upper left side."""
        return max([0, *(cell.height - (self.n - 1) for cell in self.cells())])

    def count(self) -> str:
        """`78 cells in 6 blocks: 66 count twice, 12 once`."""
        cells = self.cells()
        single = sum(cell.once for cell in cells)
        weights = f": {len(cells) - single} count twice, {single} once" if self.triangle else ""
        hidden = len(cells) - len({(cell.column, cell.height) for cell in cells})
        behind = f"; {hidden} of them behind others" if hidden else ""
        return f"{plural(len(cells), 'cell')} in {plural(len(self.groups), 'block')}{weights}{behind}"

    def legend(self) -> list[tuple[int | None, str]]:
        """(number of the block, text) of each block; where the middle is left out, (None, how many)."""
        entries: list[tuple[int | None, str]] = [
            (number, f"{group.title}: {plural(len(group.cells), 'cell')}") for number, group in enumerate(self.groups)
        ]
        if len(entries) > LEGEND_LIMIT:
            entries[LEGEND_HEAD:-LEGEND_TAIL] = [(None, f"… {len(entries) - LEGEND_HEAD - LEGEND_TAIL} more …")]
        return entries


def picture_of(plan: Plan) -> Picture:
    """The plan's blocks, without those that neither visit a cell nor are the last to store a limb."""
    shape = next(plan.parts()).plan if plan.copies else plan
    square, triangle = plan.op == "sqr", shape.triangle and shape.operands == ("a",)
    reach = plan.limbs if plan.copies else 2 * plan.limbs  # of halves that are not alike, some stands out
    titles = [plan.method]  # for cells before the first heading, if any
    cells: list[list[Place]] = [[]]
    storer: dict[int, int] = {}
    for step in unfolded(plan, triangle, (0, 0), 0, ""):
        match step:
            case Block(title):
                titles.append(title)
                cells.append([])
            case Store(column) if column < 2 * plan.limbs:
                storer[column] = len(titles) - 1
            case (i, j, once) if max(i, j) < reach:
                cells[-1].append(Place(i + j, abs(i - j) if triangle else i - j, once))
    groups = (
        Group(title, tuple(cells[number]), tuple(sorted(k for k, block in storer.items() if block == number)))
        for number, title in enumerate(titles)
    )
    what = "square" if square else "product"
    parameters = "".join(f", {name} {value}" for name, value in plan.parameters)
    heading = f"{plan.method}{parameters}: {what} of {plan.limbs} limbs"
    return Picture(
        plan.limbs,
        triangle,
        "A" if square else "B",
        heading,
        tuple(group for group in groups if group.cells or group.columns),
    )


def unfolded(
    plan: Plan, triangle: bool, origin: tuple[int, int], into: int | None, title: str
) -> Iterator[Block | Store | tuple[int, int, bool]]:
    """The headings, cells (i, j, whether it counts once) and stores of a plan and of those that form its parts.

    `triangle`: whether that is the shape of the whole; `origin`: i and j of the plan's own cell (0, 0); `into`: the
    column of its limb 0, None where the result is only taken up by others; `title`: of the block that it is a part of.
    Blocks of a part that has no parts are not told.
    """
    within = title
    differences: dict[Slice, Difference] = {}
    alone = bool(title) and not any(plan.parts())
    for step in plan.steps:
        match step:
            case Block(text) if not alone:
                within = f"{title}: {text}" if title else text
                yield Block(within)
            case Product() | Run():
                for cell in cells_of(step):
                    yield origin[0] + cell.i, origin[1] + cell.j, plan.triangle and cell.i == cell.j
            case Store(column) if into is not None:
                yield Store(into + column)
            case Difference():
                differences[step.into] = step
            case Part():
                i, j = step.left.first, step.right.first
                if step.left in differences:
                    left, right = differences[step.left], differences[step.right]
                    i, j = (left.left.first, right.right.first) if triangle else (left.right.first, right.left.first)
                stored = into is not None and (step.into.name == "r" or plan.copies)
                place = into + step.into.first if into is not None and stored else None
                yield from unfolded(step.plan, triangle, (origin[0] + i, origin[1] + j), place, within or plan.method)
            case Recombine(low=0, high=1) if into is not None:
                yield from (Store(into + column) for column in range(step.half, 2 * plan.limbs))


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def tick(least: float) -> int:
    """The smallest power of two that is at least `least`: the columns between two numbers on the axis."""
    step = 1
    while step < least:
        step *= 2
    return step


def shorten(text: str, width: int) -> str:
    """The text, cut with an ellipsis if it is longer than `width` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"
