"""The picture of a plan as plain text."""

from __future__ import annotations

from collections import Counter
from string import ascii_letters

from .picture import Picture, Place, picture_of, shorten, tick
from .plan import Plan

MARGIN = 3  # characters left of the picture: "C" and the first digits of the leftmost number
NARROWEST = 24  # characters below which no picture is made


def terminal(plan: Plan, width: int = 100) -> str:
    """The picture in Unicode text without colours, at most `width` characters (at least 24) wide.

    Blocks are letters in the order of visits, a cell that counts once in a square has a `*` before its letter.  While
    4n columns fit, a column takes two characters and each i - j a line of its own; while 2n fit, one character, and two
    i - j share a line, which do not collide since one lies in even and one in odd columns.  Above that one character
    stands for several cells and shows the block that most of them are in.
    """
    picture = picture_of(plan)
    canvas = _Canvas(picture, max(width, NARROWEST))
    lines = [picture.heading, picture.count(), "", *canvas.lines(), "", *canvas.notes(), *canvas.legend()]
    return "".join(f"{shorten(line.rstrip(), canvas.width)}\n" for line in lines)


class _Canvas:
    """A Picture on a grid of characters."""

    def __init__(self, picture: Picture, width: int) -> None:
        self.picture, self.width = picture, width
        columns, room = 2 * picture.n, width - MARGIN
        self.pitch = 2 if 2 * columns <= room else 1  # characters of one column
        self.scale = -(-columns // room)  # columns of one character
        self.fold = 1 if self.pitch == 2 else 2 * self.scale  # values of i - j on one line

    def x(self, column: int) -> int:
        shown = -(-2 * self.picture.n // self.scale)
        return MARGIN + (shown - 1 - column // self.scale) * self.pitch + self.pitch - 1

    def y(self, cell: Place) -> int:
        """The cell's line, counted upwards from 0."""
        if self.picture.triangle:
            return -(-cell.height // self.fold)  # rounded up, so that the diagonal has the lowest line for itself
        return (cell.height + self.picture.n - 1) // self.fold

    def letter(self, number: int) -> str:
        return ascii_letters[number % len(ascii_letters)]

    def lines(self) -> list[str]:
        """The cells, then the result, then its numbers."""
        tally: dict[tuple[int, int], Counter[int]] = {}
        single: set[tuple[int, int]] = set()
        for number, group in enumerate(self.picture.groups):
            for cell in group.cells:
                place = self.y(cell), self.x(cell.column)
                tally.setdefault(place, Counter())[number] += 1
                if cell.once and self.scale == 1:
                    single.add(place)
        rows = [[" "] * self.width for _ in range(max((y for y, _ in tally), default=0) + 1)]
        for (y, x), numbers in tally.items():
            rows[y][x] = self.letter(min(numbers, key=lambda number: (-numbers[number], number)))
        for y, x in single:
            if rows[y][x - 1] == " ":
                rows[y][x - 1] = "*"
        lowest = min((y for y, _ in tally), default=0)
        return ["".join(row) for row in reversed(rows[lowest:])] + ["", *self.axis()]

    def axis(self) -> list[str]:
        limbs, numbers = ["C", *" " * (self.width - 1)], [" "] * self.width
        for number, group in reversed(list(enumerate(self.picture.groups))):
            for column in group.columns:
                limbs[self.x(column)] = self.letter(number)
        digits = len(str(2 * self.picture.n - 1))
        for column in range(0, 2 * self.picture.n, tick((digits + 1) * self.scale / self.pitch)):
            end = self.x(column) + 1
            numbers[end - len(str(column)) : end] = str(column)
        return ["".join(limbs), "".join(numbers)]

    def notes(self) -> list[str]:
        """How to read it, each line only where it applies."""
        picture, top = self.picture, self.picture.n - 1
        corners = f"A[0]*A[{top}]" if picture.triangle else f"A[{top}]*{picture.right}[0]"
        notes = [f"right corner [0]*[0], left [{top}]*[{top}], top {corners}", "C: the block that stores it last"]
        if picture.triangle:
            notes.append("a counts twice, " + ("*a once" if self.scale == 1 else "on the lowest line once"))
        if self.scale > 1:
            notes += [f"a character stands for up to {self.scale**2} cells", "the SVG shows every cell"]
        if len(picture.groups) > len(ascii_letters):
            notes.append(f"{len(picture.groups)} blocks: the letters repeat")
        return notes

    def legend(self) -> list[str]:
        """The blocks in the order of visits, in as many columns as fit, read downwards."""
        entries = [
            text if number is None else f"{self.letter(number)}  {text}" for number, text in self.picture.legend()
        ]
        widest = min(max(map(len, entries)) + 3, self.width)
        height = -(-len(entries) // max(1, self.width // widest))
        return ["".join(shorten(entry, widest).ljust(widest) for entry in entries[y::height]) for y in range(height)]
