"""The check after planning: every cell is in the result exactly as often as it must be.

It replays the plan's steps on symbolic columns, with no look at how a schedule made them: a cell off the diagonal
of a triangle must count twice (as a product that is doubled with the sum, or that is added twice), every other cell
once, every result limb must be stored, and nothing may come too late to be counted.
"""

from __future__ import annotations

from .plan import Apart, Block, Double, Gather, Join, Load, Plan, Product, Store


class CoverError(ValueError):
    """A schedule that does not form the product; a fault of the schedule, not of the user."""


def check(plan: Plan) -> None:
    """Raise CoverError, naming cell or column, unless `plan` forms the whole product."""
    replay = _Replay(plan)
    for step in plan.steps:
        replay.step(step)
    replay.finish()


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

    def fail(self, message: str) -> None:
        raise CoverError(f"{self.plan.method}, {self.plan.limbs} limbs: {message}")

    def step(self, step: object) -> None:
        if self.apart and isinstance(step, Apart | Double | Load | Store):
            self.fail(f"{step} comes while a sum is kept apart")
        match step:
            case Product():
                self.product(step)
            case Double():
                self.double(step)
            case Apart() | Join():
                self.part(apart=isinstance(step, Apart))
            case Gather(last):
                self.caught = {column for column in self.caught if column >= last}
            case Load(column):
                self.load(column)
            case Store(column):
                self.store(column)
            case Block():
                pass
            case _:
                self.fail(f"unknown step {step}")

    def product(self, cell: Product) -> None:
        n, triangle = self.plan.limbs, self.plan.triangle
        if not (0 <= cell.i < n and 0 <= cell.j < n):
            self.fail(f"cell ({cell.i}, {cell.j}) is outside")
        key = (min(cell.i, cell.j), max(cell.i, cell.j)) if triangle else (cell.i, cell.j)
        self.weight[key] = self.weight.get(key, 0) + cell.times * (2 if self.apart else 1)
        self.pending |= {cell.column, cell.column + 1}
        if cell.caught and cell.column + 2 < 2 * n:  # no carry leaves the result
            self.caught.add(cell.column + 2)

    def part(self, *, apart: bool) -> None:
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
