"""Word balance: the sums of a plan without carries, on cores with UMAAL.

In each column wait *words*, 32 bits each, whose sum is what the column holds.  UMULL makes of a product two of them,
one in its column k and one in k + 1.  UMAAL takes any two words of column k along, and gives one in k and one in k + 1:
it never overflows, touches no flag and needs no register.  So a column is finished when all its products are in and
one word is left; how many UMULL it needs, or a zero as an accumulator, follows from how many words come up from below:

    words that came + UMULLs + zeros - UMAALs = 1

Which two words a UMAAL takes does not matter, and the order of products is free.  Two words that no product takes along
are summed by a UMAAL of zeros; what comes up then is at most one, and sums of such carries are made by ADD.

A square has two kinds of words: those of the sum off the diagonal, and the final ones.  A column of the first kind,
when it is finished, is doubled by being multiplied by two: an operation of the second kind like any other.

Sources: research/arm_kernels.md, M4 ideas 1, 2, 3 and 9; [Comba90] for the columns.
"""

from __future__ import annotations

import bisect
import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqgen.code import Builder, Memory, Virtual
from sqgen.plan import Apart, Block, Double, Gather, Join, Load, Plan, Product, Run, Store, Strip

from .arm_sums import Sums

CROSS, FINAL = "x", "s"  # the sum off the diagonal, to be doubled; the result
CONSTANT = "#"  # the base of what a move loads: constants
TWO = Memory(CONSTANT, 2)


class Term(NamedTuple):
    """A product to be added: cells, or a word of the sum off the diagonal (its column is `i`) times two."""

    kind: str
    column: int
    i: int
    j: int
    doubled: bool = False


class Close(NamedTuple):
    """A column is complete; `stored`: its word leaves for the result, or else it waits for its doubling."""

    kind: str
    column: int
    stored: bool


class Recall(NamedTuple):
    """A stored word comes back."""

    kind: str
    column: int


Action = Term | Close | Recall | Block


def actions(plan: Plan) -> Iterator[Action]:
    """The plan as products to be added, columns to be closed, and stored words to come back."""
    kind = CROSS if plan.triangle and any(isinstance(step, Double) for step in plan.steps) else FINAL
    reach: set[int] = set()  # columns of the sum off the diagonal that hold something
    doubled = 0
    apart = False
    for step in plan.steps:
        match step:
            case Block():
                yield step
            case Product() | Run():
                for cell in (step,) if isinstance(step, Product) else step.cells:
                    cross = apart or (kind == CROSS and cell.i != cell.j and cell.column >= doubled)
                    if cross:
                        reach |= {cell.column, cell.column + 1}
                    for _ in range(cell.times):
                        yield Term(CROSS if cross else FINAL, cell.column, cell.i, cell.j)
            case Double(first, last):
                yield from double(reach, first, last)
                doubled = last
            case Apart() | Join():
                apart = isinstance(step, Apart)
                if not apart:
                    yield from double(reach, 0, 2 * plan.limbs)
            case Load(column):
                reach |= {column} if kind == CROSS else set()
                yield Recall(kind, column)
            case Store(column):
                early = kind == CROSS and column >= doubled
                reach -= {column} if early else set()
                yield Close(CROSS if early else FINAL, column, True)
            case Gather() | Strip():
                pass


def double(reach: set[int], first: int, last: int) -> Iterator[Action]:
    """The columns `first` to `last` - 1 of the sum off the diagonal, as far as they hold something."""
    for column in range(first, last):
        if column in reach:
            reach.remove(column)
            yield Close(CROSS, column, False)
            yield Term(FINAL, column, column, column, doubled=True)


class Ahead:
    """What is still to come in each column before it is closed, by position in the list of actions."""

    def __init__(self, todo: Sequence[Action]) -> None:
        self.terms: dict[tuple[str, int], list[int]] = {}
        self.closes: dict[tuple[str, int], list[int]] = {}
        self.recalls: dict[tuple[str, int], list[int]] = {}
        groups = {Term: self.terms, Close: self.closes, Recall: self.recalls}
        for at, action in enumerate(todo):
            if not isinstance(action, Block):
                groups[type(action)].setdefault((action.kind, action.column), []).append(at)
        self.end = len(todo)

    def close(self, kind: str, column: int, at: int) -> int:
        """When the column is closed next."""
        return next(iter(between(self.closes.get((kind, column), []), at, self.end)), self.end)

    def left(self, kind: str, column: int, at: int) -> int:
        """How many terms are still to be added to the column after position `at`."""
        return len(between(self.terms.get((kind, column), []), at, self.close(kind, column, at)))

    def coming(self, kind: str, column: int, at: int) -> int:
        """How many words are still to come up from the column below, or back from memory."""
        end = self.close(kind, column, at)
        below = between(self.terms.get((kind, column - 1), []), at, end)
        return len(below) + len(between(self.recalls.get((kind, column), []), at, end))

    def final(self, column: int, at: int) -> bool:
        """Whether a column that is stored does not come back."""
        recalls = (self.recalls.get((kind, column), []) for kind in (CROSS, FINAL))
        return all(not places or places[-1] < at for places in recalls)

    def recall(self, kind: str, column: int, at: int) -> int | None:
        """Where a stored word of the column comes back before it is closed."""
        found = between(self.recalls.get((kind, column), []), at, self.close(kind, column, at))
        return found[0] if found else None


def between(places: Sequence[int], after: int, before: int) -> Sequence[int]:
    """The positions behind one and before another."""
    return places[bisect.bisect_right(places, after) : bisect.bisect_left(places, before)]


class Balance:
    """Words in columns, and the operations that move them."""

    def __init__(self, plan: Plan, build: Builder, left: list[Virtual], right: list[Virtual], sums: Sums) -> None:
        self.plan, self.build, self.left, self.right = plan, build, left, right
        self.words: dict[tuple[str, int], list[Virtual]] = {}
        self.closed: dict[int, Virtual] = {}  # words off the diagonal that wait for their doubling
        self.carries: set[Virtual] = set()  # words that are sums of carries: none is as large as there are operations
        self.waiting: defaultdict[tuple[str, int], list[Term]] = defaultdict(list)
        self.two = build.limb("two", TWO)
        self.todo = list(actions(plan))
        self.ahead = Ahead(self.todo)
        self.sums = sums
        self.recalled: set[int] = set()  # positions of what came back before its turn
        self.top = 2 * plan.limbs - 1

    def all(self) -> None:
        """Everything, in order."""
        for at, action in enumerate(self.todo):
            match action:
                case Block(title):
                    self.build.heading(title)
                    for row, limb in self.sums.begin(self.rows(at)).items():
                        self.left[row] = limb
                case Term():
                    self.add(action, at)
                case Recall(kind, column) if at not in self.recalled:
                    self.recall(kind, column)
                case Close(kind, column, stored):
                    while self.waiting[kind, column]:
                        self.add(self.waiting[kind, column].pop(), at)
                    self.close(kind, column, at, stored=stored)

    def rows(self, at: int) -> list[int]:
        """The rows of the block that begins at position `at`."""
        here = itertools.takewhile(lambda action: not isinstance(action, Block), self.todo[at + 1 :])
        return sorted({action.i for action in here if isinstance(action, Term) and not action.doubled})

    def column(self, kind: str, column: int) -> list[Virtual]:
        """The words that wait there."""
        return self.words.setdefault((kind, column), [])

    def new(self, kind: str, column: int) -> Virtual:
        """A new word."""
        word = self.build.limb(f"{kind}{column}")
        self.column(kind, column).append(word)
        return word

    def zero(self, kind: str, column: int) -> None:
        """A zero as a word, to take a product in."""
        word = self.new(kind, column)
        self.build.emit("mov_i", word, 0)
        self.sums.enter(word, column)

    def recall(self, kind: str, column: int) -> None:
        """A stored word comes back."""
        self.column(kind, column).append(self.sums.recall(column))

    def add(self, term: Term, at: int) -> None:
        """Add a product by what its column needs: a UMULL for two words more, a zero for one, or nothing more.

        It waits where it needs words that are still to come from the column below.
        """
        kind, column = term.kind, term.column
        words = self.column(kind, column)
        while len(words) < 2 and (early := self.ahead.recall(kind, column, at)) and early not in self.recalled:
            self.recalled.add(early)
            self.recall(kind, column)
        left = 1 + len(self.waiting[kind, column]) + self.ahead.left(kind, column, at)
        wanted = 1 + left - len(words) - self.coming(kind, column, at)
        if len(words) < 2 and wanted <= 0:
            self.waiting[kind, column].append(term)
        elif kind == FINAL and column == self.top - 1:
            self.add_to_top(term)
        elif len(words) >= 2 and left > wanted // 2:
            self.multiply("umaal", term)
        elif wanted >= 2 or not words:
            self.multiply("umull", term)
        else:
            self.zero(kind, column)
            self.multiply("umaal", term)
        while self.waiting[kind, column + 1] and len(self.column(kind, column + 1)) >= 2:
            self.add(self.waiting[kind, column + 1].pop(), at)

    def coming(self, kind: str, column: int, at: int) -> int:
        """Words that are still to come, but for those that came early."""
        end = self.ahead.close(kind, column, at)
        early = sum(
            1 for place in between(self.ahead.recalls.get((kind, column), []), at, end) if place in self.recalled
        )
        return self.ahead.coming(kind, column, at) - early + len(self.waiting[kind, column - 1])

    def add_to_top(self, term: Term) -> None:
        """The last column but one: what is there cannot run over, so that UMLAL takes one word of each column along."""
        words, above = self.column(FINAL, self.top - 1), self.column(FINAL, self.top)
        if above:
            if not words:
                self.zero(FINAL, self.top - 1)
            factors = self.factors(term)
            self.build.emit("umlal", words[0], above[0], *factors, comment=self.comment(term))
            self.sums.leave(factors[0])
            return
        while len(words) < 2:
            self.zero(FINAL, self.top - 1)
        self.multiply("umaal", term)

    def multiply(self, name: str, term: Term) -> None:
        """UMULL or UMAAL: one word in the product's column, one above."""
        kind, column = term.kind, term.column
        factors = self.factors(term)
        self.sums.leave(factors[0])
        if name == "umull":
            low, high = self.new(kind, column), self.new(kind, column + 1)
        else:
            low, high = self.take_two(kind, column)
        self.build.emit(name, low, high, *factors, comment=self.comment(term))
        self.sums.enter(low, column)
        self.sums.enter(high, column + 1)

    def factors(self, term: Term) -> tuple[Virtual, Virtual]:
        """What is multiplied."""
        if term.doubled:
            return self.closed.pop(term.i), self.two
        return self.left[term.i], self.right[term.j]

    def comment(self, term: Term) -> str:
        """What the instruction is for."""
        if term.doubled:
            return f"column {term.column} off the diagonal, doubled"
        return f"a[{term.i}] * {'a' if self.plan.op == 'sqr' else 'b'}[{term.j}] at column {term.column}"

    def close(self, kind: str, column: int, at: int, *, stored: bool) -> None:
        """Only one word is left in a column, which leaves it."""
        words = self.column(kind, column)
        while len(words) > 1:
            self.merge(kind, column, at)
        if not words:
            self.zero(kind, column)
        word = words.pop()
        if stored:
            self.sums.store(word, column, final=self.ahead.final(column, at))
        else:
            self.closed[column] = word

    def merge(self, kind: str, column: int, at: int) -> None:
        """Two words of a column become one, and one above: a product of zeros takes them in, or else they are small."""
        words = self.column(kind, column)
        if self.carries_summed(kind, column):
            return
        if column == self.top:
            other = words.pop(1)
            self.build.emit("adds_w", words[0], words[0], other, comment="the product ends here: no carry")
            self.sums.leave(other)
            return
        nothing = self.build.limb("zero", Memory(CONSTANT, 0))
        low, high = self.take_two(kind, column)
        self.build.emit("umaal", low, high, nothing, nothing, comment="two words in one, and its carry")
        self.sums.enter(low, column)
        self.sums.enter(high, column + 1)
        self.carries.add(high)
        there = len(self.column(kind, column + 1)) + self.coming(kind, column + 1, at)
        if there > 1 + self.ahead.left(kind, column + 1, at):  # more than products will take along
            self.carries_summed(kind, column + 1)

    def carries_summed(self, kind: str, column: int) -> bool:
        """Whether two words of a column were sums of carries, and became one."""
        words = self.column(kind, column)
        small = [word for word in words if word in self.carries]
        if len(small) < 2:
            return False
        word, other = small[:2]
        self.build.emit("add_w", word, word, other, comment="carries that no product takes along")
        self.carries.remove(other)
        words.remove(other)
        self.sums.leave(other)
        return True

    def take_two(self, kind: str, column: int) -> tuple[Virtual, Virtual]:
        """Two words of a column, of which the first stays there, and the second is then one of the column above."""
        words = self.column(kind, column)
        low, high = words.pop(0), words.pop(0)
        words.append(low)
        self.column(kind, column + 1).append(high)
        self.carries -= {low, high}
        return low, high
