"""The check after planning: every cell is in the result exactly as often as it must be.

It replays the plan's steps on symbolic columns, with no look at how a schedule made them: a cell off the diagonal
of a triangle must count twice (as a product that is doubled with the sum, or that is added twice), every other cell
once, every result limb must be stored, and nothing may come too late to be counted.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping

from .plan import (
    Apart,
    Block,
    Copy,
    Difference,
    Double,
    Gather,
    Join,
    Load,
    Part,
    Plan,
    Product,
    Recombine,
    Run,
    Slice,
    Store,
    Strip,
)


class CoverError(ValueError):
    """A schedule that does not form the product; a fault of the schedule, not of the user."""


def check(plan: Plan) -> None:
    """Raise CoverError, naming cell or column, unless `plan` forms the whole product."""
    replay = _Replay(plan)
    for step in plan.steps:
        replay.step(step)
    replay.finish()


@functools.lru_cache(maxsize=64)
def _check_part(plan: Plan) -> None:
    """The same, once for parts that are alike."""
    check(plan)


class _Replay:
    """Weights of the cells so far, and which columns are stored."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.weight: dict[tuple[int, int], int] = {}
        self.apart = False  # whether products go to a sum of their own, to be doubled
        self.doubled_up_to = 0
        self.stored: set[int] = set()
        self.pending: set[int] = set()  # columns of the sum that hold something not yet stored
        self.caught: set[int] = set()  # columns at which carries wait
        self.differences: dict[str, tuple[Slice, Slice, Slice]] = {}  # by sign: where it lies, and what of what
        self.waiting: set[Slice] = set()  # where differences and copies lie that nothing was stored over
        self.copies: dict[Slice, Slice] = {}  # where longer operands lie, and what they are copies of
        self.formed: list[tuple[Slice, Slice, Slice]] = []  # parts: where they lie, and their factors

    def fail(self, message: str) -> None:
        raise CoverError(f"{self.plan.method}, {self.plan.limbs} limbs: {message}")

    def step(self, step: object) -> None:
        if self.apart and isinstance(step, Apart | Double | Load | Store):
            self.fail(f"{step} comes while a sum is kept apart")
        match step:
            case Product() | Run():
                self.visit(step)
            case Double():
                self.double(step)
            case Apart() | Join():
                self.switch(apart=isinstance(step, Apart))
            case Gather(last):
                self.caught = {column for column in self.caught if column >= last}
            case Load(column):
                self.load(column)
            case Store(column):
                self.store(column)
            case Block() | Strip():
                pass
            case Difference() | Part() | Copy() | Recombine():
                self.put_together(step)
            case _:
                self.fail(f"unknown step {step}")

    def visit(self, step: Product | Run) -> None:
        """One cell, or those of a run: neighbours, each once, their carries not caught."""
        if isinstance(step, Product):
            self.product(step)
            return
        columns = [cell.column for cell in step.cells]
        if not columns or columns != list(range(columns[0], columns[0] + 2 * len(columns), 2)):
            self.fail(f"a run has columns {columns}, which are not two apart")
        for cell in step.cells:
            if cell.times != 1 or cell.caught:
                self.fail(f"cell ({cell.i}, {cell.j}) of a run is added {cell.times} times, or its carry caught")
            self.product(cell)

    def product(self, cell: Product) -> None:
        n, triangle = self.plan.limbs, self.plan.triangle
        if not (0 <= cell.i < n and 0 <= cell.j < n):
            self.fail(f"cell ({cell.i}, {cell.j}) is outside")
        key = (min(cell.i, cell.j), max(cell.i, cell.j)) if triangle else (cell.i, cell.j)
        self.weight[key] = self.weight.get(key, 0) + cell.times * (2 if self.apart else 1)
        self.pending |= {cell.column, cell.column + 1}
        if cell.caught and cell.column + 2 < 2 * n:  # no carry leaves the result
            self.caught.add(cell.column + 2)

    def switch(self, *, apart: bool) -> None:
        """Products go to a sum of their own, or to the running one again."""
        if self.caught:
            self.fail(f"carries caught at columns {sorted(self.caught)} wait where another sum begins")
        if not (apart or self.apart):
            self.fail("nothing is apart that could be joined")
        self.apart = apart

    def double(self, step: Double) -> None:
        if not self.plan.triangle:
            self.fail("a rhombus doubles nothing")
        if step.first != self.doubled_up_to or step.last <= step.first:
            self.fail(f"columns {step.first}..{step.last - 1} are doubled, but {self.doubled_up_to} is next")
        for key in self.weight:
            if step.first <= sum(key) < step.last:
                self.weight[key] *= 2
        self.doubled_up_to = step.last

    def load(self, column: int) -> None:
        if column not in self.stored:
            self.fail(f"column {column} is loaded before it was stored")
        self.stored.remove(column)
        self.pending.add(column)

    def store(self, column: int) -> None:
        if column in self.stored:
            self.fail(f"column {column} is stored over what it held")
        if any(other < column for other in self.pending):
            self.fail(f"column {column} is stored before the columns below it")
        if any(other <= column for other in self.caught):
            self.fail(f"column {column} is stored before the carries caught up to it are gathered")
        self.stored.add(column)
        self.pending.discard(column)

    # ---- products of parts ------------------------------------------------------------------------------------

    def put_together(self, step: Difference | Part | Copy | Recombine) -> None:
        """A step that makes a factor, a product of such, or puts products together."""
        match step:
            case Difference():
                self.form_difference(step)
            case Part():
                self.part(step)
            case Copy():
                self.copy(step)
            case Recombine():
                self.recombine(step)

    def form_difference(self, step: Difference) -> None:
        """A factor of a part; where it lies in the result no product may be yet."""
        if step.into.name == "r" and not self.stored.isdisjoint(_columns(step.into)):
            self.fail(f"{step.into} takes a difference, but holds a product")
        self.differences[step.sign] = (step.into, step.left, step.right)
        self.waiting.add(step.into)

    def part(self, step: Part) -> None:
        """A product formed by another plan: its cells, where it lies in the result."""
        _check_part(step.plan)
        for factor in (step.left, step.right):
            if factor.name not in ("a", "b") and factor not in self.waiting:
                self.fail(f"{factor} holds no difference and no copy")
        if not (step.left.count == step.right.count == step.plan.limbs) or step.into.count != 2 * step.plan.limbs:
            self.fail(f"{step.into} = {step.left} * {step.right} does not fit {step.plan.limbs} limbs")
        if step.plan.op == "sqr" and step.left != step.right:
            self.fail(f"{step.left} * {step.right} is no square")
        self.formed.append((step.into, step.left, step.right))
        if step.into.name == "r" and {step.left.name, step.right.name} <= {"a", "b"}:
            if step.into.first != step.left.first + step.right.first:
                self.fail(f"{step.left} * {step.right} does not begin at column {step.into.first}")
            self.add(_cells(_limbs(step.left), _limbs(step.right)))
            self.stored |= set(_columns(step.into))
        overlaid = {old for old in self.waiting if old.name == step.into.name and set(_columns(old)) & self.stored}
        self.waiting -= overlaid

    def copy(self, step: Copy) -> None:
        """A longer operand, or the limbs of a product of such that may not be zero."""
        if step.limbs.name in ("a", "b"):
            if step.into.name == "r" or step.into.count < step.limbs.count or step.into in self.copies:
                self.fail(f"{step.limbs} is copied to {step.into}")
            self.copies[step.into] = step.limbs
            self.waiting.add(step.into)
            return
        _, first, second = self.held(Slice(step.limbs.name, 0, self.formed[-1][0].count if self.formed else 0))
        factors = [self.copies.get(each) for each in (first, second)]
        whole = Slice("r", 0, 2 * self.plan.limbs), Slice(step.limbs.name, 0, 2 * self.plan.limbs)
        names = ["a", "a" if self.plan.op == "sqr" else "b"]
        wanted = [Slice(name, 0, self.plan.limbs) for name in names]
        if factors != wanted or (step.into, step.limbs) != whole or self.stored:
            self.fail(f"{step.limbs}, which is copied to {step.into}, is not the product of the operands")
        self.add(_cells(*map(_limbs, wanted)))
        self.stored |= set(_columns(step.into))

    def add(self, cells: Counter[tuple[int, int]], times: int = 1) -> None:
        """Count cells that lie in their own columns."""
        for (i, j), weight in cells.items():
            key = (min(i, j), max(i, j)) if self.plan.triangle else (i, j)
            self.weight[key] = self.weight.get(key, 0) + times * weight

    def recombine(self, step: Recombine) -> None:
        """L + H - M, written out as cells: what does not belong into its column must cancel."""
        half, away = step.half, (step.high - step.low) * step.half
        low, high = (
            self.held(Slice("r", 2 * half * at, 2 * min(half, self.plan.limbs - half * at)))
            for at in (step.low, step.high)
        )
        *_, first, second = self.held(step.middle)
        found: dict[tuple[int, int, int], int] = defaultdict(int)
        for (_, left, right), times, shift in ((low, 1, away), (high, 1, -away)):
            for (i, j), weight in _cells(_limbs(left), _limbs(right)).items():
                found[i, j, i + j + shift] += times * weight
        if first != second and len(step.signs) != 2:
            self.fail(f"{step.middle} has a sign that is left out")
        x, y = self.difference(first, step.signs[:1]), self.difference(second, step.signs[-1:])
        for i, of_i in enumerate(x):
            for j, of_j in enumerate(y):
                for (k, one), (m, other) in itertools.product(of_i.items(), of_j.items()):
                    found[k, m, step.column + i + j] -= one * other
        if self.plan.op == "sqr":
            found = _unordered(found)
        strange = [cell for cell, weight in found.items() if weight and cell[0] + cell[1] != cell[2]]
        if strange:
            self.fail(f"cell {strange[0][:2]} lands in column {strange[0][2]}")
        self.add(Counter({cell[:2]: weight for cell, weight in found.items() if weight}))

    def held(self, where: Slice) -> tuple[Slice, Slice, Slice]:
        """The part that lies there."""
        for part in reversed(self.formed):
            if part[0] == where:
                return part
        self.fail(f"{where} holds no product")
        raise AssertionError

    def difference(self, where: Slice, signs: tuple[str, ...]) -> list[Counter[int]]:
        """The limbs of the difference that lies there, without its sign, as sums of operand limbs."""
        for sign, (into, left, right) in self.differences.items():
            if into == where and (not signs or signs == (sign,)):
                limbs = [Counter(dict(limb)) for limb in _limbs(left)]
                for limb, other in zip(limbs, _limbs(right), strict=False):
                    limb.subtract(other)
                return limbs
        self.fail(f"{where} is no difference of this sign")
        raise AssertionError

    def finish(self) -> None:
        if self.apart:
            self.fail("a sum that was kept apart is never joined")
        n, triangle = self.plan.limbs, self.plan.triangle
        for i in range(n):
            for j in range(i if triangle else 0, n):
                wanted = 2 if triangle and i != j else 1
                found = self.weight.get((i, j), 0)
                if found != wanted:
                    self.fail(f"cell ({i}, {j}) counts {found} times instead of {wanted}")
        if self.caught:
            self.fail(f"carries caught at columns {sorted(self.caught)} are never gathered")
        if self.pending:
            self.fail(f"columns {sorted(self.pending)} got something that was never stored")
        missing = [column for column in range(2 * n) if column not in self.stored]
        if missing or len(self.stored) != 2 * n:
            self.fail(f"columns {missing or sorted(self.stored)[2 * n :]} are stored wrongly")


def _columns(which: Slice) -> range:
    """The limbs of a slice of the result."""
    return range(which.first, which.first + which.count)


def _limbs(which: Slice) -> list[Counter[int]]:
    """Each limb of a slice of an operand as a sum of operand limbs."""
    return [Counter({which.first + index: 1}) for index in range(which.count)]


def _cells(left: list[Counter[int]], right: list[Counter[int]]) -> Counter[tuple[int, int]]:
    """The cells of a product."""
    return Counter((i, j) for of_i in left for of_j in right for i in of_i for j in of_j)


def _unordered(cells: Mapping[tuple[int, int, int], int]) -> dict[tuple[int, int, int], int]:
    """Cells of a square: (i, j) and (j, i) are one."""
    found: dict[tuple[int, int, int], int] = defaultdict(int)
    for (i, j, column), weight in cells.items():
        found[min(i, j), max(i, j), column] += weight
    return found
