"""Any order of cells, one by one: for machines on which the carries of a product go nowhere, so that any order will do.

    order = "0.0 0.1 =1 0.2 1.1 =2 0.3 1.2 =3 ..."      n = 4: cells (0, 0), (0, 1), column 1 doubled, and so on

`+0.1` adds cell (0, 1) twice at once, where the others of a triangle wait for the doubling of their column, `=1`.  A
doubling waits until its column is complete, what is not doubled until that is done; limbs leave as soon as they are
final.  A column may be begun before those below it are done: that spares a limb of the operand its second load, or ends
the life of one.  What the order leaves out comes at its end, column by column.

Cost: n^2 cells (square: n(n+1)/2), 2n-2 doublings of a square, 2n stores, and what the order makes of the loads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from sqgen.errors import UserError
from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Double, Product, Step, Store

TITLE = "cells in an order of their own"
REFERENCE = "Comba90"
OPS = ("sqr", "mul")
PARAMETERS = (Parameter("order", "cells I.J, or +I.J twice at once, and doublings =COLUMN", "", text=True),)
HEAT = (0.8, 0.25)  # cycles that may be lost in one change, at first and at last
FAR = 12  # places that a word is moved at most by one change
TWICE = 0.05  # share of the changes that let a cell wait for its doubling no more, or wait again


@dataclass(frozen=True)
class Cell:
    """A cell, to be doubled with its column or added twice."""

    i: int
    j: int
    twice: bool = False

    @property
    def column(self) -> int:
        return self.i + self.j

    @property
    def off(self) -> bool:
        """Whether it is in the sum that is doubled, in a triangle."""
        return self.i != self.j and not self.twice

    def __str__(self) -> str:
        return f"{'+' if self.twice else ''}{self.i}.{self.j}"


@dataclass(frozen=True)
class Doubling:
    """A column of the sum off the diagonal is doubled."""

    column: int

    def __str__(self) -> str:
        return f"={self.column}"


Word = Cell | Doubling


def columns(op: str, n: int) -> Iterator[Word]:
    """Column by column, from the outside to the middle; a square's column is doubled when it is complete."""
    for column in range(2 * n - 1):
        first = max(0, column - n + 1)
        if op == "mul":
            yield from (Cell(i, column - i) for i in range(first, column - first + 1))
            continue
        yield from (Cell(i, column - i) for i in range(first, (column + 1) // 2))
        if column:
            yield Doubling(column)
        if column % 2 == 0:
            yield Cell(column // 2, column // 2)


def read(op: str, n: int, text: str) -> list[Word]:
    """The words of an order, and behind them those that it leaves out.  Raises UserError for what is none."""
    wanted = {str(word): word for word in columns(op, n)}
    found: dict[str, Word] = {}
    for given in text.split():
        word = wanted.get(given.removeprefix("+"))
        if word is None or (given.startswith("+") and not (op == "sqr" and isinstance(word, Cell) and word.off)):
            raise UserError(f"'{given}' is no cell or doubling of a {op} of {n} limbs; write 0.1, +0.1 or =1")
        if str(word) in found:
            raise UserError(f"'{given}' comes twice in the order")
        twice = isinstance(word, Cell) and given.startswith("+")
        found[str(word)] = Cell(word.i, word.j, True) if twice and isinstance(word, Cell) else word
    return [*found.values(), *(word for text, word in wanted.items() if text not in found)]


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    yield Block("cells in an order of their own")
    yield from Replay(op, n, read(op, n, values.word("order"))).steps()


class Replay:
    """The words of an order as steps, each as soon as it can be done."""

    def __init__(self, op: str, n: int, order: Sequence[Word]) -> None:
        self.op, self.n, self.order = op, n, order
        cells = [word for word in order if isinstance(word, Cell)]
        self.left = Counter(cell.column for cell in cells)
        self.off = Counter(cell.column for cell in cells if cell.off and op == "sqr")
        nothing = range(min((column for column in self.off if self.off[column]), default=2 * n))
        self.asked = {*nothing, 2 * n - 1}  # columns that may be doubled: there is nothing in these
        self.late: list[Cell] = []  # cells that wait until their column is doubled, for they are not
        self.doubled = 0 if op == "sqr" else 2 * n
        self.stored = 0

    def steps(self) -> Iterator[Step]:
        """All of them."""
        yield from self.finish()
        for word in self.order:
            if isinstance(word, Doubling):
                self.asked.add(word.column)
            elif not word.off and word.column >= self.doubled:
                self.late.append(word)
            else:
                yield self.visit(word)
            yield from self.finish()

    def visit(self, cell: Cell) -> Product:
        """A cell is added."""
        self.left[cell.column] -= 1
        self.off[cell.column] -= cell.off
        return Product(cell.i, cell.j, 2 if cell.twice else 1)

    def finish(self) -> Iterator[Step]:
        """What can be done now: doublings that were asked for, cells that waited for them, limbs that are final."""
        first, top = self.doubled, 2 * self.n
        while self.doubled < top and self.doubled in self.asked and self.off[self.doubled] <= 0:
            self.doubled += 1
        if self.doubled > first:
            yield Double(first, self.doubled)
        for cell in [cell for cell in self.late if cell.column < self.doubled]:
            self.late.remove(cell)
            yield self.visit(cell)
        while self.stored < self.doubled and self.left[self.stored] == 0 and self.stored < top:
            yield Store(self.stored)
            self.stored += 1


def changed(n: int, given: Mapping[str, str], rng: Random) -> dict[str, str]:
    """One random change, or two: a word moved, or a cell of a triangle added twice at once or not."""
    op = operation(given)
    order = read(op, n, given["order"])
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(len(order))
        word = order.pop(at)
        if op == "sqr" and isinstance(word, Cell) and word.i != word.j and rng.random() < TWICE:
            order.insert(at, Cell(word.i, word.j, not word.twice))
        else:
            order.insert(max(0, at + rng.randint(-FAR, FAR)), word)
    return {"order": " ".join(map(str, order))}


def operation(given: Mapping[str, str]) -> str:
    """Of a complete order: that of a product has cells on either side of the diagonal."""
    return "mul" if "1.0" in given["order"].split() else "sqr"


def fitted(n: int, given: Mapping[str, str]) -> dict[str, str]:
    """The order, for this size: words that it has not are left out.  None stays none."""
    if not given["order"]:
        return dict(given)
    op = operation(given)
    known = {str(word) for word in columns(op, n)}
    kept = [word for word in given["order"].split() if word.removeprefix("+") in known]
    return {"order": " ".join(map(str, read(op, n, " ".join(kept))))}
