"""The plot of a comparison as SVG: bytes over cycles, both on a logarithmic scale.  The template lays out only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .compare import Row
from .errors import Exit, UserError
from .picture import plural, shorten
from .svg import COLOURS, fixed, template

# All in page units.
PAGE, EDGE, FONT, LETTER = 960, 28, 13, 7.0  # width, margin, height of the letters and their width
LEFT, TOP, ACROSS, DOWN = 84, 84, 832, 400  # the field of points
ROOM = 1.12  # factor between the outermost points and the border of the field
LINE = 24  # between two lines of the legend
STEPS = ((1, 2, 5), (1, 2, 3, 4, 5, 6, 7, 8, 9), tuple(k / 10 for k in range(10, 100)))  # ticks of a decade
FEWEST = 4  # ticks, where a finer step gives as many

# Outlines around (0, 0); each colour meets each of them once before a pair comes again.
SHAPES = (
    "M-6.5 0a6.5 6.5 0 1 0 13 0a6.5 6.5 0 1 0 -13 0z",
    "M-5.8 -5.8h11.6v11.6h-11.6z",
    "M0 -7.6L7.4 5.6H-7.4z",
    "M0 -8L8 0L0 8L-8 0z",
    "M-2.4 -7.5h4.8v5.1h5.1v4.8h-5.1v5.1h-4.8v-5.1h-5.1v-4.8h5.1z",
)


@dataclass(frozen=True)
class _Point:
    """A row at its place, in the look of series `series`."""

    x: str
    y: str
    series: int
    front: bool
    text: str

    @property
    def colour(self) -> int:
        return self.series % len(COLOURS)

    @property
    def shape(self) -> str:
        return SHAPES[self.series % len(SHAPES)]


@dataclass(frozen=True)
class _Tick:
    """A number on an axis, at `at` of it."""

    at: str
    text: str


class _Scale:
    """Logarithmic, from numbers to places on the page."""

    def __init__(self, numbers: Sequence[int], start: float, end: float) -> None:
        self.low, self.high = min(numbers) / ROOM, max(numbers) * ROOM
        self.start, self.end = start, end

    def place(self, number: float) -> str:
        share = math.log(number / self.low) / math.log(self.high / self.low)
        return fixed(self.start + share * (self.end - self.start))

    def ticks(self) -> list[_Tick]:
        """Round numbers; the coarsest steps that give enough of them."""
        found: list[float] = []
        for steps in STEPS:
            decades = range(int(math.log10(self.low)), int(math.log10(self.high)) + 1)
            found = [step * 10**decade for decade in decades for step in steps]
            found = [number for number in found if self.low <= number <= self.high]
            if len(found) >= FEWEST:
                break
        thin = -(-len(found) // 10)
        return [
            _Tick(self.place(number), f"{number:g}" if number < 1e6 else f"{number:.0f}") for number in found[::thin]
        ]


def svg(heading: str, rows: Sequence[Row]) -> str:
    """The plot as a stand-alone SVG document, the same for the same rows.  Raises UserError without any cycles."""
    if not any(row.call and row.bytes for row in rows):
        raise UserError("there is nothing to plot: no row has cycles", Exit.UNPROVED)
    return template("plot.svg.j2").render(page=_Page(heading, rows))


class _Page:
    """What the template asks for: texts, and numbers in page units as texts."""

    width, edge, font, colours = PAGE, EDGE, FONT, COLOURS
    left, top, right, bottom, across, down = LEFT, TOP, LEFT + ACROSS, TOP + DOWN, ACROSS, DOWN

    def __init__(self, heading: str, rows: Sequence[Row]) -> None:
        self.heading = f"Cycles and bytes: {heading}"
        self.rows = [row for row in rows if row.call is not None and row.bytes is not None]
        self.series = list(dict.fromkeys(map(_series, self.rows)))
        self.x = _Scale([row.call for row in self.rows if row.call], LEFT, LEFT + ACROSS)
        self.y = _Scale([row.bytes for row in self.rows if row.bytes], TOP + DOWN, TOP)
        lines = -(-len(self.series) // 2)
        self.legend_top = TOP + DOWN + 92
        self.height = self.legend_top + lines * LINE + EDGE - 8

    @property
    def subheading(self) -> str:
        front = sum(row.front for row in self.rows)
        return f"{plural(len(self.rows), 'row')}; ringed: {front} that no other beats in cycles, bytes and stack"

    @property
    def description(self) -> str:
        """The plot in words."""
        front = "; ".join(_words(row) for row in self.rows if row.front)
        rest = "; ".join(_words(row) for row in self.rows if not row.front)
        axes = "Cycles of a call run to the right, bytes of code upwards, both on a logarithmic scale."
        return f"{axes} The front: {front}. The others: {rest}." if rest else f"{axes} The front: {front}."

    def points(self) -> list[_Point]:
        """All points, the front last, so that nothing hides it."""
        return [self.point(row) for row in sorted(self.rows, key=lambda row: row.front)]

    def point(self, row: Row) -> _Point:
        x, y = self.x.place(row.call or 0), self.y.place(row.bytes or 0)
        return _Point(x, y, self.series.index(_series(row)), row.front, _words(row))

    def legend(self) -> list[_Point]:
        """The series in two columns, read downwards, each with its fastest row."""
        down = -(-len(self.series) // 2)
        width = (PAGE - 2 * EDGE) / 2
        entries = []
        for index, name in enumerate(self.series):
            best = next(row for row in self.rows if _series(row) == name)
            x, y = EDGE + 10 + index // down * width, self.legend_top + index % down * LINE
            text = shorten(f"{name}: {best.call} cycles, {best.bytes} bytes", int((width - 40) / LETTER))
            entries.append(_Point(fixed(x), fixed(y), index, best.front, text))
        return entries


def _series(row: Row) -> str:
    """What shares a colour: a method, or a compiler."""
    return row.method if row.made_by == "sqgen" else row.made_by


def _words(row: Row) -> str:
    stack = "" if row.stack is None else f", {row.stack} bytes of stack"
    return f"{row.name}: {row.call} cycles, {row.bytes} bytes{stack}"
