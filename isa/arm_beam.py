"""The search for orders of a square's cells on cores with UMAAL, by a beam over what registers hold.

    python -m sqgen.isa.arm_beam --bits 256 --width 200

A state says which cells and doublings are done, how many words wait in each column of both sums, and which limbs of
the operand are in registers.  Each step does one more multiplication, and before it the loads, or the leaving of limbs,
that it needs.  Of all states after a step those stay that are the best by their cycles and the least that is still to
come: multiplications, zeros where a column's words have the wrong parity, stores, loads.

The order of the best way of each round is compiled, where `arm_stays` looks anew for who leaves when; the best one is
kept if it is better than what is known, and proved.  Seed, width and limbs loaded at first decide what is found.

Source: research/arm_kernels.md, M4 ideas 1 to 5.
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterator
from typing import NamedTuple

import click

from sqgen import answers, files, workers
from sqgen.progress import Bar
from sqgen.search import Job

from .arm_free import ISA, LIMB_BITS, METHOD, keep, priced

REGISTERS = 12  # for words, limbs, the constant two, and the pointer of the operand
FIELD = 4  # bits that count the words of a column
TWICE = (0, 1)  # the cell that is added twice, not doubled: that takes an operation less
AHEAD, LEAVING = 2, 2  # limbs that are loaded before they are wanted, and that leave for it, at most
WORST = 1 << 20
CHANCE = 10  # registers that chance outweighs


class State(NamedTuple):
    """Bits of what is done; words by column; limbs, and whether two and the pointer are in registers; cycles."""

    done: int
    cross: int
    final: int
    here: int
    two: bool
    pointer: bool
    cycles: int


Way = tuple[State, str, "Way | None"]  # the latest multiplication, and the way to it


class Beam:
    """The search for a square of n limbs, some of which are `loaded` at first."""

    def __init__(self, n: int, loaded: int, width: int, seed: int) -> None:
        self.n, self.loaded, self.top, self.width = n, loaded, 2 * n - 2, width
        self.rng = random.Random(f"{n} {seed}")
        self.cells = [(i, j) for i in range(n) for j in range(i, n)]
        numbers = itertools.count()
        self.bit = {cell: 1 << next(numbers) for cell in self.cells}
        self.again = 1 << next(numbers)  # the first time of the cell that is added twice
        off = [(i, j) for i, j in self.cells if i != j and (i, j) != TWICE]
        self.off = [sum(self.bit[i, j] for i, j in off if i + j == k) for k in range(2 * n)]
        reach = [k for k in range(2 * n) if self.off[k] or (k and self.off[k - 1])]
        self.doubling = {k: 1 << next(numbers) for k in reach}
        self.stored = {k: 1 << next(numbers) for k in range(2 * n)}
        square = [self.bit[k // 2, k // 2] if k % 2 == 0 and k <= self.top else 0 for k in range(2 * n)]
        self.own = [square[k] | self.doubling.get(k, 0) for k in range(2 * n)]
        self.own[sum(TWICE)] |= self.bit[TWICE] | self.again
        self.steps = len(self.cells) + 1 + len(self.doubling)

    def run(self) -> str:
        """The order of the best way, "" if there is none."""
        limbs = (1 << self.loaded) - 1
        ways: list[Way] = [(State(0, 0, 0, limbs, False, self.loaded < self.n, 1 + self.loaded), "", None)]
        for _ in range(self.steps):
            found: dict[tuple[int, ...], Way] = {}
            for way in ways:
                for state, word in self.after(way[0]):
                    known = found.get(state[:-1])
                    if known is None or state.cycles < known[0].cycles:
                        found[state[:-1]] = (state, word, way)
            ranked = sorted((self.rank(way[0]), at, way) for at, way in enumerate(found.values()))
            ways = [way for rank, _, way in ranked[: self.width] if rank[0] < WORST]
        return text(ways[0]) if ways else ""

    def rank(self, state: State) -> tuple[int, float]:
        """What is better has a smaller rank; of those that are as good, who uses less registers has a better chance."""
        return state.cycles + self.least(state), self.live(state) + CHANCE * self.rng.random()

    # ---- what is still to come ----------------------------------------------------------------------------------

    def least(self, state: State) -> int:
        """Cycles that are still to come at least, `WORST` if the words cannot come out right."""
        cycles = below = 0
        for k in self.doubling:
            left = (self.off[k] & ~state.done).bit_count()
            if not state.done & self.doubling[k]:
                cycles += self.column(left, below, count(state.cross, k))
            below = left
        below = 0
        for k in range(2 * self.n):
            left, last = self.left(state.done, k), self.last(state.done, k)
            if not state.done & self.stored[k]:
                cycles += self.column(left, below, count(state.final, k)) + last + 1
            below = left
        missing = self.needed(state.done) & ~state.here
        if missing:
            cycles += 1 + missing.bit_count() if state.pointer else WORST
        return cycles + (not state.two and self.doubles(state.done))

    @staticmethod
    def column(left: int, below: int, words: int) -> int:
        """Multiplications and zeros of a column in which one word is left at the end: each UMULL is one word more, each
        UMAAL one less, and one comes up from each multiplication `below`."""
        surplus = 1 + left - words - below  # zeros, and UMULLs twice
        return WORST if surplus < 0 else left + max(surplus % 2, surplus - 2 * left)

    def left(self, done: int, k: int) -> int:
        """Multiplications of the result's column that are still to come, but for the UMLAL that is the very last."""
        return (self.own[k] & ~done).bit_count() - self.last(done, k)

    def last(self, done: int, k: int) -> bool:
        """Whether the UMLAL of the last column but one is still to come."""
        return k == self.top and bool(self.own[k] & ~done)

    def needed(self, done: int) -> int:
        """Limbs that are wanted again."""
        found = 0
        for (i, j), bit in self.bit.items():
            if not done & bit:
                found |= 1 << i | 1 << j
        return found

    def doubles(self, done: int) -> bool:
        """Whether columns are still to be doubled."""
        return any(not done & bit for bit in self.doubling.values())

    def live(self, state: State) -> int:
        """Registers in use."""
        words = sum(state.cross >> at & 15 for at in range(0, 2 * self.n * FIELD, FIELD))
        words += sum(state.final >> at & 15 for at in range(0, 2 * self.n * FIELD, FIELD))
        return words + state.here.bit_count() + state.two + state.pointer

    # ---- a step -------------------------------------------------------------------------------------------------

    def after(self, state: State) -> Iterator[tuple[State, str]]:
        """What one more multiplication leads to."""
        for (i, j), bit in self.bit.items():
            if not state.done & bit:
                again = (i, j) == TWICE and not state.done & self.again
                cross = i != j and (i, j) != TWICE
                for ready in self.ready(state, 1 << i | 1 << j):
                    for done in self.multiplied(ready, self.again if again else bit, i + j, cross=cross):
                        yield done, "" if again else ("+" if (i, j) == TWICE else "") + f"{i}.{j}"
        for k, bit in self.doubling.items():
            whole = not (self.off[k] | self.off[k - 1]) & ~state.done
            if not state.done & bit and whole and count(state.cross, k) == 1:
                for ready in self.ready(state, 0, two=True):
                    taken = ready._replace(cross=ready.cross - (1 << k * FIELD))
                    for done in self.multiplied(taken, bit, k, cross=False):
                        yield done, f"={k}"

    def ready(self, state: State, limbs: int, *, two: bool = False) -> Iterator[State]:
        """With what is multiplied in registers."""
        if two and not state.two:
            state = state._replace(two=True, cycles=state.cycles + 1)
        missing = limbs & ~state.here
        if missing and not state.pointer:
            return
        further = powers(self.needed(state.done) & ~state.here & ~limbs)
        for many in range(1 + min(AHEAD, len(further)) if missing else 1):
            for ahead in itertools.combinations(further, many):
                group = missing | sum(ahead)
                cycles = state.cycles + group.bit_count() + bool(group)
                loaded = state._replace(here=state.here | group, cycles=cycles)
                yield from self.thinned(loaded, limbs | group, two=two)
                if group and not self.needed(state.done) & ~loaded.here:
                    yield from self.thinned(loaded._replace(pointer=False), limbs | group, two=two)

    def thinned(self, state: State, pinned: int, *, two: bool) -> Iterator[State]:
        """With as few limbs less as there must be, and perhaps with one less: a multiplication may want room."""
        over = max(0, self.live(state) - REGISTERS)
        able = powers(state.here & ~pinned) if state.pointer else []
        if state.two and not two:
            able.append(0)
        for many in range(over, min(over + 2, LEAVING + 1)):
            for leaving in itertools.combinations(able, many):
                yield state._replace(here=state.here & ~sum(leaving), two=state.two and 0 not in leaving)

    def multiplied(self, state: State, bit: int, k: int, *, cross: bool) -> Iterator[State]:
        """By UMULL, by UMAAL with zeros for words that are missing, or by UMLAL."""
        done, words = state.done | bit, count(state.cross if cross else state.final, k)
        here = state.here & self.needed(done)
        then = state._replace(done=done, here=here, two=state.two and self.doubles(done), cycles=state.cycles + 1)
        if not cross and k == self.top and not self.own[k] & ~done:
            if words == count(state.final, k + 1) == 1:
                yield from self.fitting(then)
            return
        above, one = 1 << (k + 1) * FIELD, 1 << k * FIELD
        ways = [(one + above, 0)]  # UMULL
        if words >= 2:
            ways.append((above - one, 0))
        elif words and self.live(state) < REGISTERS:
            ways.append((above, 1))
        for more, cycles in ways:
            cost = then.cycles + cycles
            if cross:
                yield from self.fitting(then._replace(cross=then.cross + more, cycles=cost))
            else:
                yield from self.fitting(then._replace(final=then.final + more, cycles=cost))

    def fitting(self, state: State) -> Iterator[State]:
        """The state, if there are registers enough, without the limbs of the result that are final."""
        if self.live(state) > REGISTERS:
            return
        for k, bit in self.stored.items():
            whole = not (self.own[k] | (self.own[k - 1] if k else 0)) & ~state.done
            if whole and not state.done & bit and count(state.final, k) == 1:
                final = state.final - (1 << k * FIELD)
                state = state._replace(done=state.done | bit, final=final, cycles=state.cycles + 1)
        yield state


def count(words: int, column: int) -> int:
    """Words of a column."""
    return words >> column * FIELD & ((1 << FIELD) - 1)


def powers(number: int) -> list[int]:
    """The powers of two that it is the sum of."""
    return [1 << at for at in range(number.bit_length()) if number >> at & 1]


def text(way: Way | None) -> str:
    """The words of an order, the first one first."""
    found: list[str] = []
    while way:
        found.append(way[1])
        way = way[2]
    return " ".join(word for word in reversed(found) if word)


def order(n: int, loaded: int, width: int, seed: int) -> str:
    """The best one of a round."""
    return Beam(n, min(n, loaded), width, seed).run()


@click.command()
@click.option("--bits", type=click.IntRange(7 * LIMB_BITS), default=256, show_default=True, help="Of an operand.")
@click.option("--loaded", type=click.IntRange(2), default=5, show_default=True, help="Limbs that are loaded at first.")
@click.option("--width", type=click.IntRange(1), default=200, show_default=True, help="States that stay after a step.")
@click.option("--rounds", type=click.IntRange(1), default=4, show_default=True, help="Each with a seed of its own.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the first round.")
def main(bits: int, loaded: int, width: int, rounds: int, seed: int) -> None:
    """Look for a better order of a square's cells, and keep it."""
    job = Job(ISA, "sqr", bits // LIMB_BITS, METHOD)
    files.require_writable(answers.path(job.isa, job.core))
    best = before = job.before()
    with Bar(f"sqr {bits}", rounds) as bar, workers.pool(rounds) as pool:
        seeds = range(seed, seed + rounds)
        found = pool.map(functools.partial(order, job.limbs, loaded, width), seeds)
        for number, given in enumerate(found, 1):
            rows = [*filter(None, [best]), *(priced(job, given) if given else ())]
            best = min(rows, key=lambda row: int(row[answers.CALL]), default=None)
            bar.update(number, f"sqr {bits}: {best and best[answers.CALL]} cycles")
    if best and best != before:
        keep(job, best)
    click.echo(f"sqr {bits}: {best and best[answers.CALL]} cycles per call; before: {before and before[answers.CALL]}")


if __name__ == "__main__":
    main()
