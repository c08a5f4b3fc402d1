"""Plans of cells on ARMv6-M: products of limbs in a plan's order, however many they are.

A limb of an operand is loaded where it is wanted, and stays for those that follow if they want it too.  A square's
products off the diagonal have a sum of their own, as in `arm_chains`.  When columns of it are complete, it is added
twice to the squares of the diagonal, and limbs of the result leave, from the lowest up.  What waits is in registers or
on the stack, as `arm_fit` finds.

Sources: [Comba90]; research/arm_kernels.md, M0 ideas 1 and 3.
"""

from __future__ import annotations

from sqgen.plan import Plan, Product

from .arm_cells import Cells
from .arm_chains import begins, order, there
from .arm_digits import product_limb, square_limb
from .arm_values import Values

KEPT = 3  # limbs of operands that stay for a while
PAGE = 32  # limbs that a pointer reaches
CHUNK = 4  # columns that are doubled at a time


class Operands:
    """The limbs of the operands, loaded when they are asked for."""

    def __init__(self, values: Values, pointers: dict[str, int]) -> None:
        self.values = values
        self.pages = {(name, 0): pointer for name, pointer in pointers.items()}
        self.there: dict[tuple[str, int], int] = {}  # those that were asked for last

    def limb(self, name: str, index: int) -> int:
        """A limb of an operand."""
        found = self.there.pop((name, index), None)
        if found is None:
            found = self.values.one("at", self.page(name, index // PAGE), number=index % PAGE)
        self.there[name, index] = found
        if len(self.there) > KEPT:
            del self.there[next(iter(self.there))]
        return found

    def page(self, name: str, number: int) -> int:
        """A pointer that reaches some limbs."""
        if (name, number) not in self.pages:
            self.pages[name, number] = self.values.step(self.page(name, number - 1), PAGE)
        return self.pages[name, number]


class Scan:
    """The values of a plan without parts; `r` points at the result."""

    def __init__(self, plan: Plan, values: Values, pointers: dict[str, int], r: int) -> None:
        self.plan, self.values = plan, values
        self.operands = Operands(values, pointers)
        self.final = Cells(values)
        self.cross = Cells(values) if plan.triangle else self.final
        self.steps = list(order(plan))
        self.missing = [0] * (2 * plan.limbs)  # cells to come, by column
        for step in self.steps:
            if isinstance(step, Product):
                self.missing[step.column] += 1
        self.squared = 0  # squares of the diagonal that are in the sum
        self.there = there(plan)  # columns of the result whose limbs are to be added
        self.done = begins(plan)  # columns below have left
        self.r = values.step(r, self.done)

    def all(self) -> None:
        """Everything, in the plan's order."""
        self.finish()
        for step in self.steps:
            if isinstance(step, Product):
                left = self.operands.limb("a", step.i)
                right = self.operands.limb(self.plan.operands[-1], step.j)
                self.cross.add(step.column, product_limb(self.values, left, right))
                self.missing[step.column] -= 1
            if not (self.there and isinstance(step, Product)):  # what comes back does so for a block at a time
                self.finish()
        self.finish()

    def finish(self) -> None:
        """Let the columns go that are complete; of a square when there are some, or nothing is to come."""
        end = next((column for column, count in enumerate(self.missing) if count), len(self.missing))
        if not self.plan.triangle:
            self.leave(end)
            return
        last = end == len(self.missing)
        while self.done + CHUNK <= end or (last and self.done < end):
            self.double(min(self.done + CHUNK, end))

    def double(self, end: int) -> None:
        """Columns of a square up to an even one: those of the diagonal, and twice what is off it."""
        for i in range(self.squared, min(end // 2 + 1, self.plan.limbs)):  # one more, which takes the carries
            self.final.add(2 * i, square_limb(self.values, self.operands.limb("a", i)))
            self.squared = i + 1
        limbs = [self.cross.sum.get(column) for column in range(self.done, end)]
        for _ in range(2):
            self.final.take(self.done, limbs)
        for column in range(self.done, end):
            self.cross.leave(column)
        self.leave(end)

    def leave(self, end: int) -> None:
        """Limbs of the result below a column are stored."""
        back = [column - self.done for column in range(self.done, end) if column in self.there]
        if back:
            pages = [self.values.step(self.r, first) for first in range(0, len(back), PAGE)]
            found = [self.values.one("at", pages[at // PAGE], number=at % PAGE) for at in back]
            self.final.take(self.done, found)
        limbs = [self.final.leave(column) for column in range(self.done, end)]
        for limb in limbs:
            self.r = self.values.store(self.r, [limb])
        self.done = max(self.done, end)
