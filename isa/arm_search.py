"""Orders of cells to begin a search with, on cores with UMAAL: a beam over what has been done.

A state is a set of products done, with the words that wait in each column and the operand limbs in registers.  A step
adds one more product, by the rules of `arm_balance`: UMAAL if two words wait, else UMULL or a zero, as it must be;
limbs are loaded when they are wanted, and leave where registers do not suffice.  States with as many products done are
compared by the cycles they lost so far, and by what still has to be kept in registers; the best few go on.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

METHOD = "free-order"
LARGEST = 16  # limbs of an operand, above which it takes too long
WIDTH = 200  # states that go on
RELOAD = 1.3  # cycles of a load: 1, and another one for the first of several that follow each other
VICTIMS = 3  # limbs that are tried to leave, where one must
# Registers for limbs and words, and what one that will be needed counts: no choice is the best at all sizes.
TRIALS = [(registers, live, live * part) for registers in (9, 10, 11) for live in (1, 2, 4) for part in (0.5, 1, 2)]
# Below so many limbs all cells are added twice at once, above only that of the first column off the diagonal.
FEW = 7


def starts(op: str, n: int) -> Iterator[dict[str, str]]:
    """Parameters of the method `METHOD`."""
    if n > LARGEST:
        return
    cells = [(i, j) for j in range(n) for i in range(j)] if n < FEW else [(0, 1)]
    found = {Problem(op, n, cells, TRIALS[0]).by_columns(): None}
    if op == "mul":
        found |= dict.fromkeys(by_rows(n, height, corner) for height in (3, 4, 5) for corner in range(height))
    for trial in TRIALS:
        found |= dict.fromkeys(beam(Problem(op, n, cells, trial), WIDTH))
    yield from ({"order": order} for order in found)


def by_rows(n: int, height: int, corner: int) -> str:
    """Rows of a product, some at a time, limb by limb of the other operand, but its first columns column by column, for
    a column of cells makes fewer words than a row."""
    found = [f"{i}.{column - i}" for column in range(corner) for i in range(column + 1)]
    for first in range(0, n, height):
        found += [f"{i}.{j}" for j in range(n) for i in range(first, min(first + height, n))]
    return " ".join(dict.fromkeys(found))


@dataclass(frozen=True)
class Product:
    """One addition to a column: of a cell, or of a word of the sum off the diagonal times two."""

    word: str  # as the order has it
    kind: int  # 0 the sum off the diagonal, 1 the final one
    column: int
    limbs: tuple[int, ...]  # bits of the operand limbs, or of the constant two
    doubled: bool = False


@dataclass(frozen=True)
class State:
    """What was done, as bits; `words` by kind and column, `live` of them in all."""

    cost: float  # cycles that were lost
    done: int
    words: tuple[int, ...]
    live: int
    inside: int  # limbs in registers, as bits
    seen: int  # limbs that were loaded before, as bits
    needed: int  # how many limbs are still needed
    last: int  # the product done last
    before: State | None


class Problem:
    """A job: products, and what hangs on what."""

    def __init__(self, op: str, n: int, twice: Sequence[tuple[int, int]], trial: tuple[int, float, float]) -> None:
        self.op, self.n = op, n
        self.registers, self.live, self.needed = trial
        self.top = 2 * n - 1
        self.size = 2 * n + 2  # columns of a kind
        self.products = list(square(n, twice) if op == "sqr" else rectangle(n))
        self.of_column = [0] * (2 * self.size)  # products of a column, as bits
        self.users = [0] * (2 * n + 1)  # products that use a limb
        for number, product in enumerate(self.products):
            self.of_column[product.kind * self.size + product.column] |= 1 << number
            for limb in product.limbs:
                self.users[limb] |= 1 << number
        self.two = 2 * n
        self.pointers = [(1 << n) - 1] if op == "sqr" else [(1 << n) - 1, ((1 << n) - 1) << n]

    def left(self, done: int, kind: int, column: int) -> int:
        """Products of a column that are still to come."""
        return (self.of_column[kind * self.size + column] & ~done).bit_count() if column >= 0 else 0

    def complete(self, done: int, kind: int, column: int) -> bool:
        """Whether nothing comes to a column any more."""
        return not (self.left(done, kind, column) or self.left(done, kind, column - 1))

    def start(self) -> State:
        return State(0, 0, (0,) * (2 * self.size), 0, 0, 0, 2 * self.n, -1, None)

    def following(self, state: State) -> Iterator[State]:
        """States after one more product."""
        for number, product in enumerate(self.products):
            if not state.done >> number & 1:
                yield from self.step(state, number, product)

    def step(self, state: State, number: int, product: Product) -> Iterator[State]:
        """The states after this product, one for each choice of limbs that leave."""
        added = self.added(state, product)
        if added is None:
            return
        words, cost = added
        peak = max(sum(words), sum(state.words))
        done = state.done | 1 << number
        cost += self.store(done, words)
        wanted = sum(1 << limb for limb in product.limbs)
        again = wanted & ~state.inside & state.seen
        cost += RELOAD * again.bit_count() - (RELOAD - 1) * (again >> self.two & 1)
        inside, live = state.inside | wanted, sum(words)
        used = sum(1 << limb for limb, users in enumerate(self.users) if users & ~done)
        capacity = self.registers + sum(not used & ~inside & pointer for pointer in self.pointers)
        over = peak + inside.bit_count() - capacity - (inside & ~used & ~wanted).bit_count()
        for kept in self.leaving(inside, wanted, used, done, over):
            if (kept & used).bit_count() + live <= capacity:
                limbs = kept & used, state.seen | wanted, used.bit_count()
                yield State(state.cost + cost, done, tuple(words), live, *limbs, number, state)

    def added(self, state: State, product: Product) -> tuple[list[int], float] | None:
        """Words and cycles when the product was added, None if it cannot be yet."""
        done, kind, column = state.done, product.kind, product.column
        if product.doubled and not self.complete(done, 0, column):
            return None
        if not product.doubled and kind and self.op == "sqr" and not self.may_be_final(done, column):
            return None
        at = kind * self.size + column
        waiting, left = state.words[at], self.left(done, kind, column)
        wanted = 1 + left - waiting - self.left(done, kind, column - 1)
        if waiting < 2 and wanted <= 0:
            return None
        here, above, cost = self.balance(state, product, waiting, left, wanted)
        words = list(state.words)
        words[at] = here
        words[at + 1] += above
        if product.doubled:
            words[column] = 0
        return words, cost

    def may_be_final(self, done: int, column: int) -> bool:
        """Whether the doublings up to a column are done, as far as there are any: the plan wants that first."""
        return all(
            done >> number & 1
            for number, product in enumerate(self.products)
            if product.doubled and product.column <= column
        )

    def balance(self, state: State, product: Product, words: int, left: int, wanted: int) -> tuple[int, int, float]:
        """(words in the column, more words above, cycles) of a product."""
        if product.kind == 1 and product.column == self.top - 1:
            if state.words[self.size + self.top]:
                return max(words, 1), 0, 1 + (words < 1)
            return 1, 1, 1 + max(0, 2 - words)
        if words >= 2 and left > wanted // 2:
            return words - 1, 1, 1
        if wanted >= 2 or not words:
            return words + 1, 1, 1
        return words, 1, 2

    def store(self, done: int, words: list[int]) -> float:
        """Limbs of the result leave; the cycles."""
        cost = 0
        for column in range(self.top + 1):
            at = self.size + column
            if self.left(done, 1, column):
                break
            if words[at]:
                cost += 1 + 2 * (words[at] - 1)
                words[at + 1] += words[at] - 1
                words[at] = 0
        return cost

    def leaving(self, inside: int, wanted: int, used: int, done: int, over: int) -> Iterator[int]:
        """What stays in registers, if so many limbs too many are there."""
        if over <= 0:
            yield inside
            return
        others = inside & ~wanted & used
        uses = sorted(
            ((self.users[limb] & ~done).bit_count(), limb) for limb in range(2 * self.n + 1) if others >> limb & 1
        )
        if len(uses) < over:
            return
        for first in range(min(VICTIMS, len(uses) - over + 1)):
            kept = inside
            for _, limb in uses[first : first + over]:
                kept &= ~(1 << limb)
            yield kept

    def rank(self, state: State) -> tuple[float, int, int]:
        """What makes a state better than another with as many products done."""
        return state.cost + self.live * state.live + self.needed * state.needed, state.live, state.done

    def by_columns(self) -> str:
        """The order column by column."""
        ordered = sorted(self.products, key=lambda product: (product.column, product.kind, product.doubled))
        return " ".join(dict.fromkeys(product.word for product in ordered))

    def order(self, state: State) -> str:
        """The words of the order that leads to a state."""
        found: list[str] = []
        step: State | None = state
        while step and step.before:
            found.append(self.products[step.last].word)
            step = step.before
        return " ".join(dict.fromkeys(reversed(found)))


def square(n: int, twice: Sequence[tuple[int, int]]) -> Iterator[Product]:
    """The products of a square; cells that are added `twice` are not in the sum off the diagonal."""
    first = min((i + j for j in range(n) for i in range(j) if (i, j) not in twice), default=2 * n)
    for i in range(n):
        for j in range(i, n):
            if i == j:
                yield Product(f"{i}.{i}", 1, 2 * i, (i,))
            elif (i, j) in twice:
                yield Product(f"+{i}.{j}", 1, i + j, (i, j))
                yield Product(f"+{i}.{j}", 1, i + j, (i, j))
            else:
                yield Product(f"{i}.{j}", 0, i + j, (i, j))
    for column in range(first, 2 * n - 1):
        yield Product(f"={column}", 1, column, (2 * n,), doubled=True)


def rectangle(n: int) -> Iterator[Product]:
    """The products of two numbers."""
    for i in range(n):
        for j in range(n):
            yield Product(f"{i}.{j}", 1, i + j, (i, n + j))


def beam(problem: Problem, width: int) -> Iterator[str]:
    """The orders of the best states, those with the fewest cycles first."""
    states = [problem.start()]
    for _ in problem.products:
        best: dict[tuple[int, int], State] = {}
        for state in states:
            for new in problem.following(state):
                key = new.done, new.inside
                if key not in best or (new.cost, new.live) < (best[key].cost, best[key].live):
                    best[key] = new
        states = heapq.nsmallest(width, best.values(), key=problem.rank)
        if not states:
            return
    yield from dict.fromkeys(problem.order(state) for state in states)
