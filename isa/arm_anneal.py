"""The search for orders of the operations of pieces on cores without long multiplication: simulated annealing.

    python -m sqgen.isa.arm_anneal --least 64 --most 256 --rounds 12 --steps 400000
    python -m sqgen.isa.arm_anneal --op mul --least 288 --most 1056 --rounds 1 --steps 2500000

An operation, or a chain that hands on the carry, or some neighbours, move to another place to which they may; the price
is what `arm_fit` finds.  What such moves hardly change is which part is formed before which.  So rounds take turns: one
begins at the order that is known, the next ones at orders by chance, each made from the end to the beginning: before an
operation comes all that it needs, whatever of that is drawn first before the others, with all that this needs.  Of many
of these the cheapest go on for a while, and the best one to the end.  Rows around a product begin at their columns'
order in all rounds.

Each size is written when something better is found, so the search may be broken off.  Seed, rounds, steps and the
answers that are there decide what is found.  With numba installed (`pip install sqgen[search]`) it is a hundred times
as fast, and finds the same.
"""

from __future__ import annotations

import itertools
import random
import string
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import click
import numpy as np

from sqgen import methods
from sqgen.contract import OPS
from sqgen.errors import UserError
from sqgen.files import rewrite
from sqgen.kernel import make
from sqgen.places import folder
from sqgen.plan import Plan
from sqgen.progress import Bar
from sqgen.spec import spec

from . import arm_orders, arm_price, arm_seeds, arm_small
from .arm_calls import around, rows_of
from .arm_cells import LIMB_BITS
from .arm_chains import there
from .arm_fit import NEVER
from .arm_moves import annealed
from .arm_orders import Order, Registers
from .arm_piece import Piece
from .arm_values import before, chains, cycles, flat, touches

ISA, CORE = "arm", "cortex-m0"
HALVED = {"sqr": "karatsuba-squaring", "mul": "karatsuba"}  # methods whose parts are pieces that are called
HEATS = (0.35, 0.5, 0.8)  # cycles that a step may lose, at first, where a round begins at what is known; in turns
TRYING, FRESH = 2.0, 1.2  # the same for orders by chance, while they are tried, and for the best one
COLD = 0.15  # the same at the end
WIDTHS = (1, 2, 4)  # states of the beam, in rounds that take turns; what they find is tried with all
REACH = 160  # operations that a move passes over, at most
CHUNKS = 20  # of a round, between which the bar moves
TURNS = 4  # rounds of which one begins at what is known
DRAWN, CHOSEN = 400, 6  # orders by chance in a round, and those that go on for a chunk or some
TRIAL = 4  # chunks of theirs
TEXT = 120  # characters in a line of the answers' file
HEAD = "# Orders of the operations of pieces on cores without long multiplication: isa/arm_anneal.py found them.\n"


class Problem:
    """A piece whose operations are put in order."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.piece = plan, Piece(plan)
        values = self.piece.values
        self.ops = flat(values.units)
        needs = before(values.units)
        self.table = arm_price.Table(self.ops, values.constants, values.count)
        self.before = np.zeros((len(self.ops),) * 2, np.bool_)
        for number, others in enumerate(needs):
            self.before[number, list(others)] = True
        self.chain = np.array([[number, number] for number in range(len(self.ops))], np.int64)
        for chain in chains(values.units):
            self.chain[chain] = chain[0], chain[-1]
        ends = [*itertools.accumulate(len(unit) for unit in values.units)]
        self.spans = [range(end - len(unit), end) for end, unit in zip(ends, values.units, strict=True)]
        unit_of = [number for number, span in enumerate(self.spans) for _ in span]
        self.unit_needs = [
            {unit_of[other] for at in span for other in needs[at]} - {number} for number, span in enumerate(self.spans)
        ]
        self.free = np.array([not touches(op) for op in self.ops])
        self.entry = np.array(list(self.piece.entry), np.int64)
        self.own = sum(cycles(op) for op in self.ops)
        self.called = bool(there(plan))  # rows around a part do not stand alone
        choices = arm_small.Module(()).choices(plan, "called" if self.called else "")
        self.choices = [Registers(low, len(high), WIDTHS[0]) for low, high in choices]

    def cost(self, order: Order) -> int:
        """Cycles without the frame, NEVER if the registers do not suffice."""
        its = self.registers(order)
        fitted = arm_seeds.fitted(self.piece, order.numbers, its)
        return self.own + arm_seeds.price(fitted, its, self.called) if fitted else NEVER

    def registers(self, order: Order) -> Registers:
        """Those that the search is about."""
        its = order.called if self.called else order.alone
        assert its
        return its

    def order(self, numbers: tuple[int, ...], its: Registers) -> Order:
        """An order with its registers."""
        return Order(numbers, called=its) if self.called else Order(numbers, alone=its)

    def widths(self, numbers: tuple[int, ...], its: Registers) -> Order:
        """The order with the width of the beam that is best for it."""
        return min((self.order(numbers, Registers(its.low, its.high, width)) for width in WIDTHS), key=self.cost)

    def known(self) -> Order:
        """The order to begin with, with the registers that are best for it."""
        numbers = tuple(arm_orders.order(self.piece))
        own = arm_orders.found(self.plan, self.piece)
        return own or min((self.widths(numbers, its) for its in self.choices), key=self.cost)

    def drawn(self, rng: random.Random) -> tuple[int, ...]:
        """An order by chance: all that an operation needs is before it, one after the other."""
        keys = [rng.random() for _ in self.spans]
        found: dict[int, None] = {}
        waiting = list(range(len(self.spans)))
        while waiting:
            last = waiting[-1]
            more = sorted((other for other in self.unit_needs[last] if other not in found), key=keys.__getitem__)
            if more:
                waiting.append(more[0])
            else:
                found.setdefault(waiting.pop())
        return tuple(at for unit in found for at in self.spans[unit])

    def anneal(
        self, numbers: tuple[int, ...], registers: Registers, steps: int, heats: tuple[float, float], seed: int
    ) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """(cycles of moves, the best order, the last one); NEVER if the registers do not suffice."""
        order, table = np.array(numbers, np.int64), self.table
        found = order.copy()
        _, cost = annealed(
            order, found, self.before, self.chain, self.free, self.entry, table.ops, table.constant, table.used,
            table.hashes, registers.low, registers.high, registers.width, steps, *heats, REACH,
            np.array([1 + seed % 2147483646], np.int64),
        )  # fmt: skip
        return (NEVER if cost < 0 else cost), tuple(found.tolist()), tuple(order.tolist())

    def begun(self, registers: Registers, steps: int, seed: int) -> Iterator[tuple[int, ...]]:
        """The best of some orders by chance that went on for a while; it comes last."""
        rng = random.Random(seed)
        narrow = replace(registers, width=WIDTHS[0])
        many = [self.drawn(rng) for _ in range(DRAWN)]
        cheap = sorted(many, key=lambda each: self.anneal(each, narrow, 0, (1.0, 1.0), 1)[0])[:CHOSEN]
        best: tuple[int, tuple[int, ...]] | None = None
        for number, each in enumerate(cheap):
            cost, found, _ = self.anneal(each, narrow, steps * TRIAL // CHUNKS, (TRYING, COLD), seed + number)
            if cost < NEVER and (best is None or cost < best[0]):
                best = cost, found
            yield best[1] if best else each

    def round(
        self, start: tuple[int, ...], registers: Registers, steps: int, hot: float, seed: int
    ) -> Iterator[tuple[int, ...]]:
        """The best order so far, each time that some steps are done."""
        least, best, order = NEVER, start, start
        for chunk in range(CHUNKS):
            heats = tuple(hot * (COLD / hot) ** (at / CHUNKS) for at in (chunk, chunk + 1))
            cost, found, order = self.anneal(order, registers, steps // CHUNKS, heats, seed + chunk)
            if cost < least:
                least, best = cost, found
            yield best


def search(
    plan: Plan, rounds: int, steps: int, seed: int, accepts: Callable[[Plan, Order], bool]
) -> Iterator[tuple[int, Order]]:
    """(cycles without the frame, order), the best so far of those that are accepted, many times in each round."""
    problem = Problem(plan)
    best = problem.known()
    least = problem.cost(best)
    yield least, best
    for number in range(rounds):
        registers = problem.choices[number] if number < len(problem.choices) else problem.registers(best)
        registers = replace(registers, width=WIDTHS[number % len(WIDTHS)])
        own = seed * 1000003 + number * 7919
        turns = 1 if problem.called else TURNS  # rows are in order already
        start, tried, hot = best.numbers, None, HEATS[number // turns % len(HEATS)]
        if number % turns:
            hot = FRESH
            for begun in problem.begun(registers, steps, own):
                start = begun
                yield least, best
        for found in problem.round(start, registers, steps, hot, own):
            if found != tried:
                order = problem.widths(found, registers)
                cost = problem.cost(order)
                if cost < least and accepts(plan, order):
                    least, best = cost, order
            tried = found
            yield least, best


def stored(key: str, order: Order) -> None:
    """Write an order to the answers, beside what another search has found meanwhile."""

    def text() -> str:
        arm_orders.known.cache_clear()
        rows = {**arm_orders.known(), key: order}
        return HEAD + "".join(section(each, rows[each]) for each in sorted(rows, key=place))

    rewrite(folder("schedules") / "answers" / arm_orders.FILE, text)
    arm_orders.known.cache_clear()


def place(key: str) -> tuple[str, int]:
    """Where an order stands: by what is computed, and bits."""
    what = key.rstrip(string.digits)
    return what, int(key[len(what) :])


def section(key: str, row: Order) -> str:
    """The lines of an order."""
    lines = [f"\n[{key}]"]
    for where, its in (("alone", row.alone), ("called", row.called)):
        if its:
            seed = "" if its.seed is None else f", seed = {its.seed}"
            lines.append(f"{where} = {{ low = {its.low}, high = {its.high}, width = {its.width}{seed} }}")
    return "\n".join([*lines, f'numbers = """\n{filled(row.numbers)}\n"""\n'])


def filled(numbers: tuple[int, ...]) -> str:
    """Numbers in lines."""
    lines = [""]
    for number in map(str, numbers):
        if len(lines[-1]) + len(number) + 1 > TEXT:
            lines.append("")
        lines[-1] += f" {number}" if lines[-1] else number
    return "\n".join(lines)


@click.command()
@click.option("--op", type=click.Choice(["sqr", "mul"]), default=None, help="One operation; both if not given.")
@click.option("--least", type=int, default=64, show_default=True, help="Bits, at least.")
@click.option("--most", type=int, default=256, show_default=True, help="Bits, at most.")
@click.option("--rounds", type=click.IntRange(1), default=9, show_default=True, help="Rounds for each size.")
@click.option("--steps", type=click.IntRange(CHUNKS), default=200000, show_default=True, help="Moves in each round.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the chance.")
def main(**asked: Any) -> None:
    """Look for better orders of operations for cores without long multiplication, and keep them."""
    for op in (asked["op"],) if asked["op"] else OPS:
        for limbs in range(max(2, -(-asked["least"] // LIMB_BITS)), asked["most"] // LIMB_BITS + 1):
            method, given = arm_small.preferred(op, limbs)[0]
            plan = methods.plan(op, limbs, method, given)
            rows = bool(around(plan))
            if rows or not arm_small.calls(plan):
                improve(rows_of(plan) if rows else plan, asked["rounds"], asked["steps"], asked["seed"])


def improve(plan: Plan, rounds: int, steps: int, seed: int) -> None:
    """Search for one piece; what is better, and proved, is written as it is found, the best one with its registers."""
    title, least = arm_orders.name(plan), NEVER
    with Bar(title, rounds * (CHUNKS + CHOSEN)) as bar:
        for done, (cost, order) in enumerate(search(plan, rounds, steps, seed, proved)):
            bar.update(done, f"{title}: {cost} cycles without the frame")
            if done and cost < least:
                stored(title, order)
            least, best = cost, order
        bar.update(done, f"{title}: registers")
        if (chosen := arm_seeds.seeded(Piece(plan), best)) != best and proved(plan, chosen):
            stored(title, chosen)
    click.echo(f"{title}: {least} cycles without the frame")


def proved(plan: Plan, order: Order) -> bool:
    """Whether the proof succeeds for this order, and where it is a function."""
    rows, title = arm_orders.known(), arm_orders.name(plan)
    before_it = dict(rows)
    rows[title] = order
    try:
        make(spec(ISA, LIMB_BITS * plan.limbs, op=plan.op, core=CORE))
        if not there(plan):  # nor is it called by that
            twice = {"parts": "whole", "piece": str(plan.limbs)}
            make(spec(ISA, 2 * LIMB_BITS * plan.limbs, op=plan.op, core=CORE, method=HALVED[plan.op], parameters=twice))
    except UserError:
        return False
    finally:
        rows.clear()
        rows.update(before_it)
    return True


if __name__ == "__main__":
    main()
