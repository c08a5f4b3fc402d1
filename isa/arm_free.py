# ruff: noqa: PLR0917  (as in `arm_words`)
"""The search for orders of cells, and of doublings, on cores with UMAAL: simulated annealing of `free-order`.

    python -m sqgen.isa.arm_free --least 64 --most 384 --rounds 16 --steps 2000000

A word of the order moves to another place, or a cell of a square is added twice at once or no more; the price is what
`arm_word_price` says of the operations that `arm_words` makes of it, some ten thousand times a second with numba
(`pip install sqgen[search]`).  Without it, the same orders are found, much slower.  Most rounds begin at orders by
chance, column by column or by some rows at a time, which the first heat forgets; the others at the best known, with
little heat.  The last of the best orders of a round are compiled, and those that are kept are proved.

Rounds go side by side; what is better is written after each batch of them.  Seed, rounds, steps and the answers that
are there decide what is found.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from sqgen import answers, files, methods, record, workers
from sqgen.contract import OPS
from sqgen.errors import UserError
from sqgen.kernel import make
from sqgen.progress import Bar
from sqgen.search import Job, kept
from sqgen.spec import spec

from .arm_moves import random as chance
from .arm_price import compiled
from .arm_word_price import TOO_DEAR, desk, evaluate
from .arm_words import Sheet, board, sheet

ISA, CORE, METHOD = "arm", "cortex-m4", "free-order"
LIMB_BITS = 32
REGISTERS = {"sqr": 11, "mul": 10}  # beside the pointers
HOT, WARM, COLD = 0.8, 0.5, 0.12  # cycles that a step may lose: at first, at first where much is known, at last
FAR = 10  # places that a word is moved by most changes
ANYWHERE, TWICE = 20, 3  # of 100 changes: those that move a word to any place; those that change how a cell is added
KEPT = 16  # of the best orders of a round: the last ones are compiled
BATCH, KNOWN = 4, 1  # rounds side by side; those of them that begin at the best known
TRIES = 40  # orders by chance, for one that can be done
JUMBLED = (0.0, 0.5, 1.0)  # how far from their columns words are in an order by chance, in columns
HEIGHTS = range(3, 6)  # rows of a product at a time


@compiled
def change(order: Any, twice: Any, cells: Sheet, state: Any) -> None:
    """One random change."""
    at, which = chance(state, len(order)), chance(state, 100)
    word = order[at]
    if cells.square and which < TWICE and word < len(cells.rows) and cells.rows[word] != cells.columns[word]:
        twice[word] = not twice[word]
        return
    far = len(order) if which >= 100 - ANYWHERE else FAR
    to = min(max(at + chance(state, 2 * far + 1) - far, 0), len(order) - 1)
    step = 1 if to > at else -1
    for place in range(at, to, step):
        order[place] = order[place + step]
    order[to] = word


@compiled
def annealed(
    order: Any, twice: Any, cells: Sheet, board: Any, desk: Any, registers: int, framed: bool, steps: int, hot: float,
    state: Any, best: Any, best_twice: Any,
) -> int:  # fmt: skip
    """Change an order `steps` times, while it cools; how many rows of `best` are filled, with orders that cost as
    little as any.  `state`: of the chance, and then those cycles."""
    cost = evaluate(board, desk, cells, order, twice, registers, framed)
    candidate, candidate_twice = order.copy(), twice.copy()
    least, found = cost, 0
    for step in range(steps):
        candidate[:], candidate_twice[:] = order, twice
        for _ in range(1 + (chance(state, 3) == 0)):
            change(candidate, candidate_twice, cells, state)
        new = evaluate(board, desk, cells, candidate, candidate_twice, registers, framed)
        heat = hot * math.pow(COLD / hot, step / steps)
        if new > cost and (new >= TOO_DEAR or math.exp((cost - new) / heat) * (1 << 30) <= chance(state, 1 << 30)):
            continue
        if new < least:
            least, found = new, 0
        if new == least and (new < cost or found == 0 or chance(state, 20) == 0):
            best[found % len(best)], best_twice[found % len(best)] = candidate, candidate_twice
            found += 1
        order[:], twice[:], cost = candidate, candidate_twice, new
    state[1] = least
    return min(found, len(best))


@dataclass(frozen=True)
class Round:
    """Steps from a start, an order's text, or from an order by chance if it is empty."""

    op: str
    n: int
    start: str
    steps: int
    seed: int
    framed: bool

    def run(self) -> tuple[int, list[str]]:
        """(cycles of the body and of the frame, the best orders)."""
        cells, rng = sheet(self.op, self.n), random.Random(self.seed)
        fields = board(self.n)
        places, registers = desk(fields), REGISTERS[self.op]
        starts = [self.start] if self.start else [fresh(self.op, self.n, rng) for _ in range(TRIES)]
        for text in starts:
            order, twice = numbers(self.op, self.n, text)
            if evaluate(fields, places, cells, order, twice, registers, self.framed) < 2 * TOO_DEAR:
                break
        best = np.zeros((KEPT, len(order)), np.int64), np.zeros((KEPT, len(twice)), np.bool_)
        state = np.array([1 + self.seed % 2147483646, 0], np.int64)
        hot = WARM if self.start else HOT
        found = annealed(
            order, twice, cells, fields, places, registers, self.framed, self.steps, hot, state, *best
        )  # fmt: skip
        return int(state[1]), [written(self.op, self.n, *(each[at] for each in best)) for at in range(found)]


def words(op: str, n: int) -> list[str]:
    """The words of an order by their numbers: cells as `arm_words.sheet` has them, then doublings by column."""
    cells = sheet(op, n)
    doublings = [f"={column}" for column in range(2 * n)] if op == "sqr" else []
    return [f"{i}.{j}" for i, j in zip(cells.rows, cells.columns, strict=True)] + doublings


def numbers(op: str, n: int, text: str) -> tuple[Any, Any]:
    """(the words of an order as numbers, by cell whether it is added twice at once)."""
    order = [str(word) for word in methods.method(METHOD).read(op, n, text)]  # type: ignore[attr-defined]
    number = {word: at for at, word in enumerate(words(op, n))}
    twice = np.zeros(len(sheet(op, n).rows), np.bool_)
    for word in order:
        if word.startswith("+"):
            twice[number[word[1:]]] = True
    return np.array([number[word.removeprefix("+")] for word in order], np.int64), twice


def written(op: str, n: int, order: Any, twice: Any) -> str:
    """The text of an order."""
    cells, names = sheet(op, n), words(op, n)
    off = cells.rows != cells.columns
    return " ".join(
        f"+{names[word]}" if op == "sqr" and word < len(twice) and twice[word] and off[word] else names[word]
        for word in order
    )


def fresh(op: str, n: int, rng: random.Random) -> str:
    """An order by chance."""
    if op == "mul" and rng.random() < 0.5:
        height = rng.choice(HEIGHTS)
        first = [f"{i}.{column - i}" for column in range(rng.randrange(height)) for i in range(column + 1)]
        blocks = (range(at, min(at + height, n)) for at in range(0, n, height))
        return " ".join(dict.fromkeys([*first, *(f"{i}.{j}" for rows in blocks for j in range(n) for i in rows)]))
    far = rng.choice(JUMBLED)
    order, _ = numbers(op, n, "+0.1" if op == "sqr" else "")
    texts = [str(word) for word in methods.method(METHOD).read(op, n, "")]  # type: ignore[attr-defined]
    keys = [at + rng.gauss(0, 1) * far * len(order) / (2 * n) for at in range(len(texts))]
    jumbled = [texts[at] for at in sorted(range(len(texts)), key=keys.__getitem__)]
    return " ".join("+0.1" if op == "sqr" and word == "0.1" else word for word in jumbled)


def batches(job: Job, rounds: int, steps: int, seed: int) -> Iterator[answers.Row | None]:
    """The best answer known after each batch of rounds."""
    best = job.before()
    with workers.pool(BATCH) as pool:
        for batch in range(-(-rounds // BATCH)):
            known = str(best["order"]) if best else ""
            jobs = [
                Round(
                    job.op,
                    job.limbs,
                    known if each < KNOWN else "",
                    steps,
                    seed * 1000003 + 7919 * (batch * BATCH + each),
                    framed=(batch + each) % 2 == 1,
                )
                for each in range(BATCH)
            ]
            found = sorted(pool.map(Round.run, jobs))
            rows = [row for _, texts in found for text in texts for row in priced(job, text)]
            best = min(filter(None, [best, *rows]), key=lambda row: int(row[answers.CALL]), default=None)
            yield best


def priced(job: Job, text: str) -> Sequence[answers.Row]:
    """The order as an answer, none if it does not compile."""
    try:
        return [job.priced({"order": text})]
    except UserError:
        return []


def improve(op: str, limbs: int, rounds: int, steps: int, seed: int) -> None:
    """Search for one size; what is better, and proved, is kept after each batch."""
    job = Job(ISA, op, limbs, METHOD)
    files.require_writable(answers.path(job.isa, job.core))
    best = job.before()
    with Bar(f"{op} {job.bits}", rounds) as bar:
        for number, found in enumerate(batches(job, rounds, steps, seed), 1):
            if found and found != best:
                keep(job, found)
            best = found
            bar.update(number * BATCH, f"{op} {job.bits}: {best and best[answers.CALL]} cycles")
    click.echo(f"{op} {job.bits}: {best and best[answers.CALL]} cycles per call")


def keep(job: Job, row: answers.Row) -> None:
    """Write an answer beside those that are there.  Raises UserError if its kernel is not proved."""
    make(spec(ISA, job.bits, op=job.op, method=METHOD, core=CORE, parameters=answers.given(row)))
    rows = [*answers.rows(job.isa, METHOD, job.op, job.bits, job.core), row]
    best = kept(job.isa, job.op, job.limbs, METHOD, rows)
    record.save(job.isa, METHOD, job.op, {job.bits: best}, job.core)


@click.command()
@click.option("--op", type=click.Choice(OPS), default=None, help="One operation; both if not given.")
@click.option("--least", type=int, default=64, show_default=True, help="Bits, at least.")
@click.option("--most", type=int, default=256, show_default=True, help="Bits, at most.")
@click.option("--rounds", type=click.IntRange(1), default=8, show_default=True, help="Rounds for each size.")
@click.option("--steps", type=click.IntRange(1), default=500000, show_default=True, help="Changes in each round.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the chance.")
def main(**asked: Any) -> None:
    """Look for better orders of cells for cores with UMAAL, and keep them."""
    for op in (asked["op"],) if asked["op"] else OPS:
        for limbs in range(max(2, -(-asked["least"] // LIMB_BITS)), asked["most"] // LIMB_BITS + 1):
            improve(op, limbs, asked["rounds"], asked["steps"], asked["seed"])


if __name__ == "__main__":
    main()
