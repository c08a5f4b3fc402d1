"""The picture of a plan: the rhombus or triangle of cells, before it is known how it is drawn.

It is the picture of the papers [SBD13, Fig. 1 and 2]: cell (i, j) stands in column i + j, column 0 on the right, and
the higher the larger i - j is (in a triangle: |i - j|, so that the diagonal lies at the bottom).  Below is the result
C[0..2n-1], each limb in the colour or letter of the block that stores it last.

`draw_svg` and `draw_text` draw it.
"""

from __future__ import annotations

from dataclasses import dataclass

from .plan import Block, Plan, Product, Store

LEGEND_LIMIT = 24  # more blocks than this, and the legend leaves out the middle
LEGEND_HEAD, LEGEND_TAIL = 17, 3


@dataclass(frozen=True)
class Place:
    """A cell's place: its column i + j from the right, its height i - j (in a triangle |i - j|) above the middle."""

    column: int
    height: int


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

    def once(self, cell: Place) -> bool:
        """On the diagonal of a triangle: the cells that are not doubled."""
        return self.triangle and cell.height == 0

    def cells(self) -> list[Place]:
        return [cell for group in self.groups for cell in group.cells]

    def count(self) -> str:
        """`78 cells in 6 blocks: 66 count twice, 12 once`."""
        cells = self.cells()
        single = sum(map(self.once, cells))
        weights = f": {len(cells) - single} count twice, {single} once" if self.triangle else ""
        return f"{plural(len(cells), 'cell')} in {plural(len(self.groups), 'block')}{weights}"

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
    square, triangle = plan.op == "sqr", plan.triangle
    titles = [plan.method]  # for cells before the first heading, if any
    cells: list[list[Place]] = [[]]
    storer: dict[int, int] = {}
    for step in plan.steps:
        match step:
            case Block(title):
                titles.append(title)
                cells.append([])
            case Product(i, j):
                cells[-1].append(Place(i + j, abs(i - j) if triangle else i - j))
            case Store(column):
                storer[column] = len(titles) - 1
            case _:  # no cells of its own; a step that holds plans, if there is one, is to be taken apart here
                pass
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
