"""Blocks of rows: some rows of the rhombus at a time, whose cells are added across while the other operand walks by.

    columns  6 5 4 3 2 1 0
                   b a . .      n = 4, two rows in a block: for each limb of the other operand the cells a, then b, then
                 b a . .        c, ... of both rows; the lowest limb of the sum comes back from memory before, and is
               d c . .          stored behind
             d c . .

The limbs of the block's rows stay in registers, and so does one limb of the sum for each.  A limb of the other operand
is loaded once for all rows of a block, and one limb of the sum is loaded and stored.  Of a square it is the triangle
off the diagonal; the columns that a block completes, two for each of its rows, are doubled and the diagonal is added:
the lowest ones, which few cells wait for, there and then, so that their sums are not stored before; the others behind
the block, where registers are free again.

Cost: n^2 cells (square: n(n+1)/2 and 2n-2 doublings); for each limb of each block, two loads and a store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Double, Load, Product, Step, Store

TITLE = "blocks of rows, the sum in memory"
REFERENCE = "MOV96"
OPS = ("sqr", "mul")
HEAT = (3.0, 0.3)  # cycles that may be lost in one change, at first and at last
PARAMETERS = (
    Parameter("rows", "rows of each block, the last number repeated", lambda n: str(min(3, 2 * n)), many=True),
    Parameter("ahead", "limbs of the other operand that walk by at a time, in each block", "1", many=True),
    Parameter("early", "columns of each block that a square doubles there and then", lambda n: str(2 * n), many=True),
)


def points(limbs: int) -> list[dict[str, str]]:
    """Parameters that may be the fastest, the likely best first."""
    heights = dict.fromkeys(min(rows, 2 * limbs) for rows in ((3, 4) if limbs < 24 else (4, 3)))
    low = [{"rows": str(rows), "ahead": str(ahead)} for rows in heights for ahead in (1, 2)]
    return low if limbs < 24 else [{"rows": "5", "ahead": "1", "early": str(early)} for early in (3, 4)] + low


def changed(n: int, given: Mapping[str, str], rng: Random) -> dict[str, str]:
    """One random change: of the rows of a block, of how many limbs walk by, of the columns that are doubled early, of
    the number of blocks that are given."""
    lists = {name: [int(number) for number in numbers.split(",")] for name, numbers in given.items()}
    most = 2 * max(lists["rows"]) + 1  # columns that a block completes
    lists["early"] = [min(number, most) for number in lists["early"]]
    mine = lists[rng.choice(("rows", "rows", "ahead", "early", "early"))]
    at = rng.randrange(len(mine))
    match rng.choice(("step", "step", "cut", "join")):
        case "cut" if len(mine) < n:
            mine.insert(at, mine[at])
        case "join" if len(mine) > 1:
            del mine[at]
        case _:
            mine[at] = max(1, min(2 * n, mine[at] + rng.choice((-2, -1, 1, 2))))
    return fitted(n, {name: ",".join(map(str, numbers)) for name, numbers in lists.items()})


def fitted(n: int, given: Mapping[str, str]) -> dict[str, str]:
    """The same for another size: no more numbers than blocks, the default in place of what is not said."""
    found = {parameter.name: given.get(parameter.name, parameter.standard(n)).split(",") for parameter in PARAMETERS}
    rows = [int(number) for number in found["rows"]]
    blocks, left = 0, n
    while left > 0:
        left -= rows[min(blocks, len(rows) - 1)]
        blocks += 1
    for numbers in found.values():
        del numbers[blocks:]
        while numbers[1:] and numbers[-1] == numbers[-2]:
            del numbers[-1]
    return {name: ",".join(numbers) for name, numbers in found.items()}


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    rows, ahead, early = (values.many(name) for name in ("rows", "ahead", "early"))
    walk, first, block = Walk(op, n), 0, 0
    while first < n:
        last = min(first + rows[min(block, len(rows) - 1)], n)
        last = n if op == "sqr" and last == n - 1 else last  # the last row of a triangle has the diagonal alone
        yield Block(f"rows {first}..{last - 1}")
        yield from walk.block(first, last, ahead[min(block, len(ahead) - 1)], early[min(block, len(early) - 1)])
        first, block = last, block + 1


@dataclass
class Walk:
    """The columns of the sum that lie in memory, from block to block."""

    op: str
    n: int
    stored: set[int] = field(default_factory=set)

    def block(self, first: int, last: int, ahead: int, early: int) -> Iterator[Step]:
        """The cells of some rows, so many limbs of the other operand at a time, then what is left of the sum."""
        n = self.n
        if self.op == "mul":
            begin, final = 0, 2 * n if last == n else 0
        else:
            begin, complete = first + (first > 0), 2 * n if last == n else 2 * last + 1
            final = min(complete, 2 * first + (first > 0) + early)
        for start in range(begin, n, ahead):
            limbs = range(start, min(start + ahead, n))
            for j in limbs:
                yield from self.back(first + j)
            for j in limbs:
                yield from (Product(i, j) for i in range(first, last if self.op == "mul" else min(last, j)))
                yield from self.leave(first + j, final)
        for column in range(first + n, 2 * n if last == n else n + last):
            yield from self.back(column)
            yield from self.leave(column, final)
        for column in range(final, complete if self.op == "sqr" else 0):
            yield from self.back(column)
            yield from self.leave(column, complete)

    def back(self, column: int) -> Iterator[Step]:
        """A limb of the sum comes back, if it was stored."""
        if column in self.stored:
            self.stored.remove(column)
            yield Load(column)

    def leave(self, column: int, final: int) -> Iterator[Step]:
        """A limb of the sum is stored; that of a square below the column `final` is doubled before."""
        if self.op == "sqr" and column < final:
            yield Double(column, column + 1)
            if column % 2 == 0:
                yield Product(column // 2, column // 2)
        else:
            self.stored.add(column)
        yield Store(column)
