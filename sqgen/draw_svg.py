"""The picture of a plan as SVG.  The template lays out only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from .picture import Picture, Place, picture_of, plural, shorten, tick
from .plan import Plan
from .svg import COLOURS, fixed, template

# SVG.  Cells have whole coordinates on a lattice of equilateral triangles (26 : 15 is the square root of three to one
# part in a thousand), which is scaled to the page; everything else is in the page's own units.

ACROSS, UP = 26, 15  # lattice units between columns, and for each unit of i - j; neighbours are 30 apart
DOT, RING, COARSE = 24, 4, 7  # diameter of a cell, line of one that counts once, and of one in a large picture
PAGE, EDGE, SIDE, TOP = 960, 28, 56, 124  # width, margins of text and of cells, where the highest cell is
FONT, LETTER = 13, 7.0  # height of the letters and their width, on the generous side
LARGEST = 1.8  # page units of a lattice unit, at most
NUMBERED = 12  # limbs up to which each cell shows when it is visited
ARROWS = 48  # limbs up to which the path shows its direction


@dataclass(frozen=True)
class _Mark:
    """Something at a place of the page: of CSS classes `cls`, in the colour of block `block`, with a text."""

    x: str
    y: str
    text: str
    cls: str = ""
    block: int = 0


@dataclass(frozen=True)
class _Shape:
    """Cells of one block that are drawn alike: a path with one `M` for each of them."""

    cls: str
    block: int
    title: str
    path: str


def svg(plan: Plan) -> str:
    """The picture as a stand-alone SVG document, the same bytes for the same plan."""
    return template("plan.svg.j2").render(page=_Page(picture_of(plan)))


def _lattice(cell: Place) -> str:
    return f"{-ACROSS * cell.column} {-UP * cell.height}"


def _runs(cells: Sequence[Place]) -> Iterator[tuple[Place, Place, bool]]:
    """The path through the cells as straight runs (from, to, whether its steps lead to a neighbour)."""
    if not cells:
        return
    start, step = cells[0], (0, 0)
    for cell, following in pairwise(cells):
        move = following.column - cell.column, following.height - cell.height
        if move != step:
            if cell != start:
                yield start, cell, _near(step)
            start, step = cell, move
    if cells[-1] != start:
        yield start, cells[-1], _near(step)


def _near(step: tuple[int, int]) -> bool:
    return max(map(abs, step)) <= 2


class _Page:
    """What the template asks for: texts, and numbers in page units as texts."""

    width, edge, font, colours = PAGE, EDGE, FONT, COLOURS

    def __init__(self, picture: Picture) -> None:
        n = picture.n
        self.picture = picture
        self.scale = min(LARGEST, (PAGE - 2 * SIDE) / (2 * n * ACROSS))
        self.right = (PAGE + (2 * n - 1) * ACROSS * self.scale) / 2  # of column 0
        self.middle = TOP + (n - 1 + picture.beyond) * UP * self.scale  # of height 0
        self.axis = self.y(0 if picture.triangle else 1 - n) + DOT * self.scale + 10
        self.numbered = n <= NUMBERED
        self.lines = {"dot": DOT, "ring": COARSE if n > ARROWS else RING}  # in lattice units
        self.cells = picture.cells()
        self.around = max(13.5 * self.scale, 6)  # half the width of the marks of the first and the last cell
        self.halo, self.halo_side = fixed(self.around), fixed(2 * self.around)
        self.number_size = fixed(10 * self.scale)
        self.line, self.dashes = (
            fixed(min(1.2 / self.scale, 2.4)),
            f"{fixed(2 / self.scale)} {fixed(3 / self.scale)}",
        )
        self.limb = fixed(ACROSS * self.scale - min(1, ACROSS * self.scale / 8))
        self.axis_end, self.axis_text = fixed(self.x(2 * n - 0.5) - 8), fixed(self.axis + 12)
        self.order_text = fixed(self.axis + 108)

    def x(self, column: float) -> float:
        return self.right - column * ACROSS * self.scale

    def y(self, height: float) -> float:
        return self.middle - height * UP * self.scale

    def mark(self, cell: Place, text: str, cls: str) -> _Mark:
        return _Mark(fixed(self.x(cell.column)), fixed(self.y(cell.height)), text, cls)

    @property
    def description(self) -> str:
        """The picture in words."""
        picture, top = self.picture, self.picture.n - 1
        shape, corner = ("Triangle", f"(0, {top})") if picture.triangle else ("Rhombus", f"({top}, 0)")
        blocks = "; ".join(text for _, text in picture.legend())
        return (
            f"{shape} of {picture.count()}. Cell (i, j) stands in column i + j; (0, 0) is the right corner, {corner} "
            f"the top, ({top}, {top}) the left corner. Below lies the result C[0..{2 * top + 1}]. "
            f"Blocks in the order of visits: {blocks}."
        )

    # The cells and the path through them, in lattice units.

    @property
    def lattice(self) -> str:
        return f"translate({fixed(self.right)} {fixed(self.middle)}) scale({self.scale:.5f})"

    def shapes(self) -> Iterator[_Shape]:
        """Every cell once: a dot is a line of no length with round ends, a ring two arcs."""
        across = DOT - self.lines["ring"]
        arc = f"a{across / 2:g} {across / 2:g} 0 1 0"
        ring = f"m-{across / 2:g} 0{arc} {across} 0{arc}-{across} 0z"
        for number, group in enumerate(self.picture.groups):
            title = f"{group.title}: {plural(len(group.cells), 'cell')}"
            for cls, end, once in (("dot", "h0", False), ("ring", ring, True)):
                path = "".join(f"M{_lattice(cell)}{end}" for cell in group.cells if cell.once == once)
                if path:
                    yield _Shape(cls, number % len(COLOURS), title, path)

    def trail(self, near: bool) -> str:
        """The path from cell to neighbouring cell, or all its jumps."""
        return "".join(f"M{_lattice(a)}L{_lattice(b)}" for a, b, is_near in _runs(self.cells) if is_near == near)

    def arrows(self) -> str:
        """A small triangle in the middle of every straight run."""
        if self.numbered or self.picture.n > ARROWS:
            return ""
        return "".join(self.arrow(a, b) for a, b, near in _runs(self.cells) if near)

    def arrow(self, start: Place, end: Place) -> str:
        x, y = -ACROSS * (start.column + end.column) / 2, -UP * (start.height + end.height) / 2
        across, up = -ACROSS * (end.column - start.column), -UP * (end.height - start.height)
        size = 4 / self.scale / math.hypot(across, up)
        corners = ((across, up), (-across - up, across - up), (up - across, -across - up))
        return "M" + " ".join(f"{fixed(x + size * dx)} {fixed(y + size * dy)}" for dx, dy in corners) + "z"

    # Around them, in page units.

    def numbers(self) -> Iterator[_Mark]:
        """When each cell is visited."""
        if self.numbered:
            visits = ((number, cell) for number, group in enumerate(self.picture.groups) for cell in group.cells)
            for visit, (number, cell) in enumerate(visits, 1):
                on = "paper" if cell.once else number % len(COLOURS)
                yield self.mark(cell, str(visit), f"on-{on}")

    def ends(self) -> Iterator[_Mark]:
        """Around the first and the last cell."""
        if self.cells:
            yield self.mark(self.cells[0], "", "start")
            yield self.mark(self.cells[-1], "", "end")

    def operands(self) -> Iterator[_Mark]:
        """A[i] and B[j] along the two upper sides, where their rows begin."""
        n, other = self.picture.n, self.picture.right
        beside = {"right": 0, "left": self.picture.beyond * ACROSS * self.scale}
        nearest = 1.35 * self.around + 8  # at right angles to the side
        for k in range(0, n, tick(1.2 * FONT / (UP * self.scale))):
            for column, height, name, cls in ((k, k, "A", "right"), (n - 1 + k, n - 1 - k, other, "left")):
                out = nearest + beside[cls]
                x = self.x(column) + (out / 2 if cls == "right" else -out / 2)
                yield _Mark(fixed(x), fixed(self.y(height) - 0.866 * out), f"{name}[{k}]", cls)

    def limbs(self) -> Iterator[_Mark]:
        """Left upper corners of the limbs of the result."""
        for number, group in enumerate(self.picture.groups):
            for column in group.columns:
                x = fixed(self.x(column + 0.5))
                yield _Mark(x, fixed(self.axis), f"C[{column}]: {group.title}", block=number % len(COLOURS))

    def ticks(self) -> Iterator[_Mark]:
        """Numbers of the columns, as many as fit."""
        columns = 2 * self.picture.n
        for column in range(0, columns, tick(LETTER * (len(str(columns)) + 1) / (ACROSS * self.scale))):
            yield _Mark(fixed(self.x(column)), fixed(self.axis + 32), str(column))

    def notes(self) -> list[_Mark]:
        """What each sign means; its class is the sign."""
        weights = {"dot": "counts twice (i ≠ j)", "ring": "counts once (i = j)"}
        path = {"start": "first visit", "end": "last visit", "walk": "order of visits", "jump": "jump"}
        signs = (weights if self.picture.triangle else {"dot": "cell"}) | path
        notes, x = [], EDGE + 8.0
        for sign, text in signs.items():
            notes.append(_Mark(fixed(x), fixed(self.axis + 70), text, sign))
            x += LETTER * len(text) + 50
        return notes

    @property
    def heading(self) -> str:
        return shorten(self.picture.heading, int((PAGE - 2 * EDGE) / (1.6 * LETTER)))

    @property
    def order(self) -> str:
        """The heading of the legend."""
        repeated = " (colours repeat)" if len(self.picture.groups) > len(COLOURS) else ""
        return f"Blocks in the order of visits{repeated}; C[k] has the colour of the block that stores it last"

    @property
    def legend(self) -> list[_Mark]:
        """The blocks, in as many columns as fit, read downwards."""
        limit = int((PAGE - 2 * EDGE) / LETTER) - 4
        entries = [(number, shorten(text, limit)) for number, text in self.picture.legend()]
        widest = LETTER * max((len(text) for _, text in entries), default=0) + 40
        across = max(1, int((PAGE - 2 * EDGE) // widest))
        down = -(-len(entries) // across)
        return [
            _Mark(
                fixed(EDGE + 8 + index // down * widest),
                fixed(self.axis + 132 + index % down * 22),
                text,
                "" if number is None else "block",
                (number or 0) % len(COLOURS),
            )
            for index, (number, text) in enumerate(entries)
        ]

    @property
    def height(self) -> str:
        return fixed(max((float(entry.y) for entry in self.legend), default=float(self.order_text)) + EDGE)
