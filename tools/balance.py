"""The picture of word balance: what waits in each column of a product on Cortex-M, multiplication by multiplication."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqgen import choosing
from sqgen.code import Op, Virtual
from sqgen.spec import spec
from sqgen.svg import fixed, template

BITS = 96  # few enough columns and rows to be read
TAKES_TWO = ("umaal", "umlal")
SIGNS = {"umull": "UMULL", "umaal": "UMAAL", "umlal": "UMLAL"}


@dataclass(frozen=True)
class Row:
    """One operation: its column and what it says; how many words wait in each column before it, of which its column
    gives up so many; the column whose word leaves, if it is a store."""

    column: int
    name: str
    text: str
    waiting: tuple[int, ...]
    taken: int
    stored: bool


def rows(bits: int = BITS) -> list[Row]:
    """The multiplications and stores of the fastest kernel, as it was lowered."""
    made = choosing.choose(spec("arm", bits, op="mul"))
    (function,) = made.code.functions
    columns = [0] * (2 * made.plan.limbs)
    found = []
    for op in function.ops:
        before = tuple(columns)
        if op.insn in SIGNS:
            column = product_column(op)
            taken = 2 if op.insn in TAKES_TWO else 0
            columns[column] += 1 - taken
            columns[column + 1] += 1
            text = " · ".join(f"{limb.home}" for limb in op.args[2:] if isinstance(limb, Virtual))
            found.append(Row(column, SIGNS[op.insn], text, before, taken, stored=False))
        elif op.insn == "mov_i":
            following = next(each for each in function.ops[function.ops.index(op) :] if each.insn in TAKES_TWO)
            column = product_column(following)
            columns[column] += 1
            found.append(Row(column, "zero", "", before, 0, stored=False))
        elif op.insn == "store":
            place = op.args[1]
            column = getattr(place, "offset", 0)
            columns[column] -= 1
            found.append(Row(column, "", f"{place}", before, 1, stored=True))
    return found


def product_column(op: Op) -> int:
    """Where the product of two limbs begins."""
    homes = [limb.home for limb in op.args[2:] if isinstance(limb, Virtual)]
    return sum(home.offset for home in homes if home)


@dataclass(frozen=True)
class Dot:
    """A word that waits."""

    x: str
    y: str
    taken: bool


class Page:
    """What the template asks for: texts, and numbers in page units as texts."""

    edge, font, across, down, top, left = 28, 13, 124, 26, 104, 60

    def __init__(self, found: list[Row]) -> None:
        self.rows = found
        self.columns = len(found[0].waiting)
        self.width = self.left + self.columns * self.across + self.edge
        self.bottom = self.top + len(found) * self.down
        self.height = self.bottom + 96

    def x(self, column: float) -> str:
        """The middle of a column; column 0 is on the right."""
        return fixed(self.left + (self.columns - 0.5 - column) * self.across)

    def y(self, row: float) -> str:
        return fixed(self.top + (row + 0.5) * self.down)

    def dots(self) -> Iterator[Dot]:
        """A word is drawn on the right of its column, those that are taken first."""
        for number, row in enumerate(self.rows):
            for column, count in enumerate(row.waiting):
                for word in range(count):
                    x = self.left + (self.columns - column) * self.across - 12 - 11 * word
                    yield Dot(fixed(x), self.y(number), column == row.column and word < row.taken)


def svg() -> str:
    """The picture as a stand-alone SVG document."""
    return template("balance.svg.j2").render(page=Page(rows()), bits=BITS)
