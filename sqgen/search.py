"""Search by simulated annealing for methods with many parameters, and for registers.  Run by `make search`.

Two stages for each size.  First the parameters: the method says what a random `change` of them is, and a plan is
priced by its code without registers' names, and what a quick placing loses.  Then, for the best plans, hints to the
allocator: which register a stay should have (`allocate.py`).

Everything hangs on the seed and on the answers that are there: the search begins with those of this size and of the
sizes beside it, and writes a row only if it is better.  So it can be broken off, and goes on where it is run again.
"""

from __future__ import annotations

import functools
import math
import operator
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import click
from rich.progress import track

from . import answers, frame, measure, methods
from .allocate import Task, best_place, place
from .compile import Compiled, compile_plan
from .errors import UserError
from .idioms import idioms
from .plan import Plan
from .residence import residence
from .table import Core, Isa
from .tables import isa
from .tune import save

State = TypeVar("State")
Given = dict[str, str]  # parameters by name
Hints = dict[int, int]  # register, by number, of stays

HOT, COLD = 6.0, 0.4  # for parameters: of the order of what one change of a block costs
WARM, COOL = 1.0, 0.1  # for hints
NARROW = 4  # states followed to price the places of a plan: 3 cycles more than what is found in the end, and faster
FINALISTS = 3  # plans whose registers are searched
ACCESS = 2  # cycles of a load or store: only differences matter here


@dataclass(frozen=True)
class Cooling:
    """How many steps, and the cycles that may be lost in one, at first and at last."""

    steps: int
    hot: float
    cold: float

    def temperature(self, step: int) -> float:
        return self.hot * math.pow(self.cold / self.hot, step / self.steps)


def anneal(
    start: State,
    change: Callable[[State, random.Random], State],
    price: Callable[[State], float],
    cooling: Cooling,
    rng: random.Random,
) -> Iterator[tuple[float, State]]:
    """Each state that was taken, with its price; a worse one is taken the more rarely the later it comes."""
    current, cost = start, price(start)
    yield cost, current
    for step in range(cooling.steps):
        candidate = change(current, rng)
        new = price(candidate)
        if new <= cost or rng.random() < math.exp((cost - new) / cooling.temperature(step)):
            current, cost = candidate, new
            yield cost, current


@dataclass(frozen=True)
class Job:
    """The search for one method at one size."""

    isa: Isa
    op: str
    limbs: int
    method: str
    seed: int

    @property
    def bits(self) -> int:
        return self.limbs * self.isa.limb_bits

    @property
    def core(self) -> Core:
        return self.isa.core(self.isa.default_core)

    @property
    def way(self) -> methods.Searched:
        """The method; UserError for one whose parameters are not searched by chance."""
        found = methods.searched(self.method)
        if found is None:
            raise UserError(f"`make answers` searches the parameters of {self.method}")
        return found

    def plan(self, given: Given) -> Plan:
        return methods.plan(self.op, self.limbs, self.method, given)

    def task(self, given: Given) -> tuple[int, Task]:
        """(cycles without what places cost, what is to be placed).  Raises UserError."""
        (function,) = idioms(self.isa).lower(self.plan(given), self.isa).functions
        found = residence(function)
        task = Task.of(found, frame.prices(self.isa), self.isa.pairs())
        accesses = sum(op.insn in ("load", "store") for op in function.ops)
        accesses += sum(map(len, (*found.loads, *found.stores)))
        insns = [self.isa.insns[op.insn] for op in function.ops if op.insn in self.isa.insns]
        own = sum(self.isa.cycles(insn, self.core) for insn in insns)
        return own + ACCESS * accesses - sum(mate >= 0 for mate in task.mates), task

    def estimate(self, given: Given) -> float:
        """Cycles of a kernel, about, infinite if it needs too many registers."""
        try:
            cycles, task = self.task(given)
        except UserError:
            return math.inf
        return cycles + best_place(task, {}, NARROW).cost

    def parameters(self, starts: Sequence[Given], tries: int) -> list[Given]:
        """The best parameters found, the best first."""
        known: dict[tuple[tuple[str, str], ...], float] = {}

        def price(given: Given) -> float:
            key = tuple(sorted(given.items()))
            if key not in known:
                known[key] = self.estimate(given)
            return known[key]

        rng = random.Random(f"{self.method} {self.op} {self.limbs} {self.seed}")
        change = functools.partial(self.way.changed, self.limbs)
        for _ in anneal(min(starts, key=price), change, price, Cooling(tries, HOT, COLD), rng):
            pass
        return [dict(key) for key in sorted(known, key=lambda key: (known[key], key))[:FINALISTS]]

    def row(self, given: Given, tries: int) -> answers.Row:
        """An answer: the parameters, the hints found for them if they help, and the cycles of a call."""
        plan, (_, task) = self.plan(given), self.task(given)
        found = {stay: task.registers[register] for stay, register in hints(task, tries, self.seed).items()}
        plain, hinted = (measure.cycles(self.compiled(plan, each), self.core) for each in ({}, found))
        if hinted < plain:
            return {**given, answers.HINTS: answers.spelled(found), answers.CYCLES: hinted}
        return {**given, answers.CYCLES: plain}

    def answer(self, plans: int, places: int) -> answers.Row:
        """The best answer found, or the one there is."""
        known = answers.rows(self.isa, self.method, self.op)
        near = (str((self.limbs + more) * self.isa.limb_bits) for more in (0, -1, 1))
        starts = [self.way.fitted(self.limbs, answers.given(known[bits])) for bits in near if bits in known]
        starts.append(self.way.fitted(self.limbs, methods.defaults(self.method, self.limbs)))
        rows = [self.row(given, places) for given in self.parameters(starts, plans)]
        if str(self.bits) in known:
            rows.append(self.priced(known[str(self.bits)]))
        return min(rows, key=lambda row: int(row[answers.CYCLES]))

    def compiled(self, plan: Plan, hints: Mapping[int, str]) -> Compiled:
        return compile_plan(plan, self.isa, lambda which: hints)

    def priced(self, row: answers.Row) -> answers.Row:
        """An answer with the cycles that it takes now."""
        given = answers.given(row)
        found = answers.hints(self.isa, self.method, self.op, self.bits, given)
        compiled = self.compiled(self.plan(given), found)
        return {**row, answers.CYCLES: measure.cycles(compiled, self.core)}


def hints(task: Task, tries: int, seed: int) -> Hints:
    """Hints that make the places cheap, none of them idle."""
    size, stays = len(task.registers), len(task.births)

    def price(found: Hints) -> float:
        return place(task, found).cost

    def change(found: Hints, rng: random.Random) -> Hints:
        new = dict(found)
        for _ in range(rng.choice((1, 1, 2))):
            stay = rng.randrange(stays)
            if stay in new and rng.random() < 0.5:
                del new[stay]
            else:
                new[stay] = rng.randrange(size)
        return new

    start: Hints = {}
    states = anneal(start, change, price, Cooling(tries, WARM, COOL), random.Random(seed))
    best, found = min(states, key=operator.itemgetter(0))
    for stay in sorted(found):
        fewer = {other: register for other, register in found.items() if other != stay}
        if price(fewer) <= best:
            found = fewer
    return found


@click.command()
@click.option("--isa", "name", required=True, help="Instruction set.")
@click.option("--method", required=True, help="A method whose parameters are searched by chance.")
@click.option("--least", default=16, show_default=True, help="Smallest size in bits.")
@click.option("--most", default=256, show_default=True, help="Largest size in bits.")
@click.option("--plans", default=2000, show_default=True, help="Plans tried for a size.")
@click.option("--places", default=10000, show_default=True, help="Hints tried for each of the best plans.")
@click.option("--seed", default=1, show_default=True, help="Another one finds other answers.")
def main(*, name: str, method: str, least: int, most: int, plans: int, places: int, seed: int) -> None:
    """Search, and write each answer that is better than the one there is."""
    which = isa(name)
    (op,) = methods.method(method).OPS
    for limbs in track(range(least // which.limb_bits, most // which.limb_bits + 1), description=f"{name}, {method}"):
        job = Job(which, op, limbs, method, seed)
        found = job.answer(plans, places)
        save(which, method, op, {job.bits: found})
        click.echo(f"{job.bits} bits: {found[answers.CYCLES]} cycles")


if __name__ == "__main__":
    main()
