"""Sums by chains of ADCS, on cores without UMAAL: a word for each column, products of two words added to them.

A carry that leaves a product goes on to the next word, as long as `bounds.Sum` cannot exclude it.  It costs nothing in
two cases: another product begins where the first one ends, and the chain goes on with that; or the word above is still
empty and becomes the upper word of a product that is to be added next, which is at most 2^32 - 2.

A square's products off the diagonal have a sum of their own.  When columns of it are complete, some at a time, it is
added twice to the squares of the diagonal, whose words lie side by side.

Sources: [Comba90]; research/arm_kernels.md, M0 ideas 1 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqgen.bounds import Sum
from sqgen.code import Builder, Flag, Memory, Virtual
from sqgen.plan import Block, Load, Plan, Product, Store, cells

from .arm_balance import CONSTANT
from .arm_halves import Limb, Pair, Way

PARKED = 2  # products that wait at a time to be added
CHUNK = 4  # columns that are doubled at a time
LIMB_BITS = 32

Parked = tuple[int, Pair]  # a product, at its column
Leave = Callable[[int, Virtual], None]  # what is done with a word of the result that is final, at its column


def nothing(build: Builder) -> Virtual:
    """A word of zero, to be added to."""
    zero, word = build.limb("zero", Memory(CONSTANT, 0)), build.limb("carry")
    build.emit("mov", word, zero)
    return word


def more(
    build: Builder, word: Virtual, other: Virtual | None, carry: Flag | None, into: Virtual | None = None
) -> Flag | None:
    """into, or else word, = word + other, in a chain or at its beginning; `other` may be nothing but the carry."""
    into = into or word
    if other is None:
        return build.emit("adcs_wi", into, word, 0, takes=carry)
    if carry:
        return build.emit("adcs_w", into, word, other, takes=carry)
    return build.emit("adds_w", into, word, other)


def less(
    build: Builder, word: Virtual, other: Virtual | None, carry: Flag | None, into: Virtual | None = None
) -> Flag | None:
    """The same of word - other."""
    into = into or word
    if other is None:
        return build.emit("sbcs_wi", into, word, 0, takes=carry)
    if carry:
        return build.emit("sbcs_w", into, word, other, takes=carry)
    return build.emit("subs_w", into, word, other)


def mask_of(build: Builder, carry: Flag | None, name: str = "mask", comment: str = "") -> Virtual:
    """A carry as a mask, all ones where it is zero."""
    mask = build.limb(name)
    build.emit("sbcs_w", mask, mask, mask, takes=carry, fresh=True, comment=comment)
    return mask


def restored(build: Builder, mask: Virtual) -> Flag | None:
    """The carry that a mask was made of."""
    return build.emit("rsbs_w", build.limb("lost"), mask, 0)


class Words:
    """A sum: a word for each column that holds something, and how large it can be."""

    def __init__(self, build: Builder, name: str, top: int) -> None:
        self.build, self.name, self.top = build, name, top  # nothing is carried to the column `top`
        self.words: dict[int, Virtual] = {}
        self.bounds = Sum(LIMB_BITS)

    def put(self, column: int, word: Virtual, carry: Flag | None) -> Flag | None:
        """Add a word and a carry; the carry that this gives, if any."""
        mine = self.words.get(column)
        if mine is None:
            self.words[column] = word
            return more(self.build, word, None, carry) if carry else None
        return more(self.build, mine, word, carry)

    def add_products(self, parked: Sequence[Parked]) -> None:
        """Add products, in ascending columns."""
        todo = list(parked)
        early: set[int] = set()  # columns of those whose upper word is in the sum
        while todo:
            column, (low, high) = todo.pop(0)
            self.bounds.add_product(column)
            carry = self.put(column, low, None)
            if column in early:
                self.ripple(column + 1, carry, [], early)
                continue
            carry = self.put(column + 1, high, carry)
            self.ripple(column + 2, carry, todo, early)

    def ripple(self, at: int, carry: Flag | None, todo: list[Parked], early: set[int]) -> None:
        """Take a carry to a column and on, as far as it can go; products that it meets are added on the way."""
        while carry and at < self.top and self.bounds.carries(at - 1):
            following = next((each for each in todo if each[0] == at), None)
            if following:
                todo.remove(following)
                column, (low, high) = following
                self.bounds.add_product(column)
                carry = self.put(column + 1, high, self.put(column, low, carry))
                at += 2
                continue
            self.bounds.add_carry(at)
            below = next((pair for column, pair in todo if column == at - 1 and column not in early), None)
            if at in self.words:
                carry = more(self.build, self.words[at], None, carry)
            elif below:
                early.add(at - 1)
                carry = self.put(at, below[1], carry)
            else:
                carry = self.put(at, nothing(self.build), carry)
            at += 1

    def add_sum(self, other: Words, columns: Sequence[int]) -> None:
        """Add the words of another sum at some columns, each once."""
        carry = None
        for column in columns:
            word = other.words.get(column)
            if word:
                self.bounds.add_limb(column)
                carry = self.put(column, word, carry)
            elif carry:
                before, carry = carry, None
                self.ripple(column, before, [], set())
        self.ripple(columns[-1] + 1, carry, [], set())

    def drop(self, column: int) -> Virtual | None:
        """The lowest word leaves."""
        self.bounds.drop(column)
        return self.words.pop(column, None)


def order(plan: Plan) -> Iterator[Product | Block]:
    """Headings, and the cells that are added one by one: of a triangle each off the diagonal once."""
    seen: set[tuple[int, int]] = set()
    for step in plan.steps:
        if isinstance(step, Block):
            yield step
        for cell in cells(step):
            place = cell.i, cell.j
            if not (plan.triangle and (cell.i == cell.j or place in seen)):
                seen.add(place)
                yield cell


def begins(plan: Plan) -> int:
    """The lowest column that has cells."""
    return min(cell.column for step in plan.steps for cell in cells(step))


def there(plan: Plan) -> set[int]:
    """Columns at which the result has limbs already, to which the cells are added: those that come back but were not
    stored before.  What the plan itself stores is not given up here, and need not come back."""
    stored, found = set[int](), set[int]()
    for step in plan.steps:
        if isinstance(step, Store):
            stored.add(step.column)
        elif isinstance(step, Load) and step.column not in stored:
            found.add(step.column)
    return found


class Leaf:
    """A product whose plan has no parts."""

    def __init__(
        self, plan: Plan, build: Builder, way: Way, operands: tuple[Sequence[Limb], Sequence[Limb]], leave: Leave
    ) -> None:
        self.plan, self.build, self.way, self.leave = plan, build, way, leave
        self.left, self.right = operands
        self.final = Words(build, "s", 2 * plan.limbs)
        self.cross = Words(build, "x", 2 * plan.limbs) if plan.triangle else self.final
        self.squared = 0  # squares on the diagonal that are in the sum
        self.there = there(plan)  # columns of the result whose limbs are to be added
        self.steps = list(order(plan))
        self.missing = [0] * (2 * plan.limbs)  # cells to come, by column
        for step in self.steps:
            if isinstance(step, Product):
                self.missing[step.column] += 1
        self.done = begins(plan)  # columns below have left

    def all(self) -> None:
        """Everything, in the plan's order."""
        group: list[Product] = []
        for step in self.steps:
            if isinstance(step, Product):
                group = self.grown(group, step)
            else:
                self.add(group)
                self.finish()
                self.build.heading(step.title)
        self.add(group)
        self.finish()

    def grown(self, group: list[Product], cell: Product) -> list[Product]:
        """The group with one more cell, or a new one where they cannot be added together."""
        if group and (len(group) == PARKED or cell.column - group[-1].column not in (1, 2)):
            self.add(group)
            return [cell]
        return [*group, cell]

    def add(self, group: list[Product]) -> None:
        """Form some products and add them to the sum off the diagonal, or of all."""
        parked = []
        for cell in group:
            comment = cell.text("a", "a" if self.plan.op == "sqr" else "b")
            pair = self.way.product(self.left[cell.i], self.right[cell.j], comment)
            parked.append((cell.column, pair))
            self.missing[cell.column] -= 1
        self.cross.add_products(parked)
        group.clear()

    def take_in(self, columns: Sequence[int]) -> None:
        """Limbs of the result that are there come into the sum: late, for they make more carries possible."""
        found = Words(self.build, "r", 0)
        for column in columns:
            found.words[column] = self.build.limb("r")
            self.build.memory("load", found.words[column], Memory("r", column))
        self.final.add_sum(found, columns)

    def finish(self) -> None:
        """Let the columns go that are complete; an even number of a square's, in which diagonal cells are whole."""
        end = next((column for column, count in enumerate(self.missing) if count), len(self.missing))
        end -= end % 2 if self.plan.triangle else 0
        if back := [column for column in range(self.done, end) if column in self.there]:
            self.take_in(back)
        if self.plan.triangle:
            for first in range(self.done, end, CHUNK):
                self.double(first, min(first + CHUNK, end))
        else:
            self.go(end)

    def double(self, first: int, end: int) -> None:
        """Some columns of a square: those of the diagonal, and twice what is off it."""
        self.squares(end // 2 + 1)  # one more, which takes the carries
        columns = range(first, end)
        for _ in range(2):
            self.final.add_sum(self.cross, columns)
        for column in columns:
            self.cross.drop(column)
        self.go(end)

    def squares(self, end: int) -> None:
        """The diagonal's cells below a row, which lie side by side."""
        for i in range(self.squared, min(end, self.plan.limbs)):
            self.final.add_products([(2 * i, self.way.square(self.left[i], f"a{i}^2"))])
        self.squared = max(self.squared, min(end, self.plan.limbs))

    def go(self, end: int) -> None:
        """Words below a column leave."""
        for column in range(self.done, end):
            word = self.final.drop(column)
            self.leave(column, word if word else nothing(self.build))
        self.done = max(self.done, end)
