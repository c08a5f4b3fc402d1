"""Search by simulated annealing for methods with many parameters.

The method says what a random `change` of them is.  A plan is priced by its code without registers' names, and by what a
quick placing loses; the best few are compiled.

Work goes in *rounds*, each with a seed of its own, and as many at once as there are processors.  The rounds of a batch
begin with the same answers, those of the next one also with what the batch has found; so what is found hangs on the
seed, the number of rounds and the answers that are there, not on the machine.
"""

from __future__ import annotations

import functools
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from . import answers, frame, measure, methods, workers
from .anneal import Cooling, anneal
from .attempts import TIMES
from .code import Function, Virtual
from .compile import Compiled, compile_plan
from .errors import UserError
from .idioms import idioms
from .placing import Task, best_place
from .plan import Plan
from .residence import residence
from .table import Core, Isa
from .tables import isa

Given = dict[str, str]  # parameters by name
Mixing = Callable[[int, Given, Given, random.Random], Given]  # of limbs and two answers

HOT, COLD = 3.0, 0.4  # for parameters: of the order of what one change of a block costs
NARROW = 4  # states followed to price the places of a plan: 3 cycles more than what is found in the end, and faster
MIXED, FAR = 0.1, 4  # share of the changes that take something of another answer; limbs to its size at most
FINALISTS = 4  # plans of a round that are compiled
BATCH = 4  # rounds from the same start, on however many processors


@dataclass(frozen=True)
class Budget:
    """How many plans a round may try; `deadline` as in `Cooling`."""

    plans: int
    deadline: float = math.inf


@dataclass(frozen=True)
class Job:
    """The search for one method at one size: for the fewest cycles of a goal, `speed` or `call`, on one core; with
    `any_time` also by instructions whose cycles depend on operands."""

    isa_name: str
    op: str
    limbs: int
    method: str
    goal: str = "speed"
    core_name: str | None = None
    any_time: bool = False

    @property
    def isa(self) -> Isa:
        return isa(self.isa_name)

    @property
    def bits(self) -> int:
        return self.limbs * self.isa.limb_bits

    @property
    def core(self) -> Core:
        core = self.isa.core(self.core_name or self.isa.default_core)
        return self.isa.at_any_time(core) if self.any_time else core

    @property
    def home(self) -> str | None:
        """The core that the answers' file is for, None for the default one."""
        return self.core.answers or None

    @property
    def way(self) -> methods.Searched:
        """The method; UserError for one whose parameters are not searched by chance."""
        found = methods.searched(self.method)
        if found is None:
            raise UserError(
                f"the parameters of {self.method} are not searched by chance; `make answers` tries them all"
            )
        return found

    def plan(self, given: Given) -> Plan:
        return methods.plan(self.op, self.limbs, self.method, given)

    def estimate(self, given: Given, limit: float = math.inf) -> float:
        """Cycles of a kernel, about, infinite if it needs too many registers; it may say so too if they are more than
        the limit, as soon as what is certain of them is.

        Exact where an instruction's cycles depend on its neighbours: no sum over instructions is near enough there.
        """
        which, core = self.isa, self.core
        try:
            if which.chained(core):
                cost = measure.price(compile_plan(self.plan(given), which, self.goal, core=core), core)
                return float(cost.call if self.goal == "call" else cost.body + cost.call / 100)
            (function,) = idioms(which).lower(self.plan(given), which, core).functions
            if least(function, which, core) > limit:
                return math.inf
            cycles, task = self.task(function)
        except UserError:
            return math.inf
        return cycles + best_place(replace(task, width=NARROW)).cost if cycles <= limit else math.inf

    def task(self, function: Function) -> tuple[int, Task]:
        """(cycles without what places cost, what is to be placed).  Raises UserError."""
        which, core = self.isa, self.core
        found = residence(function)
        task = Task.of(found, frame.prices(which, self.goal, core), which.pairs())
        load, store = (access(which, core, kind) for kind in ("load", "store"))
        traffic = load * sum(map(len, found.loads)) + store * sum(map(len, found.stores))
        return told(function, which, core) + traffic - sum(mate >= 0 for mate in task.mates), task

    def parameters(self, starts: Sequence[Given], budget: Budget, seed: object) -> list[Given]:
        """The best parameters found, the best first."""
        known: dict[tuple[tuple[str, str], ...], float] = {}

        def price(given: Given, limit: float) -> float:
            key = tuple(sorted(given.items()))
            if key not in known:
                if (found := self.estimate(given, limit)) == math.inf:
                    return found
                known[key] = found
            return known[key]

        def change(given: Given, rng: random.Random) -> Given:
            if mixed and rng.random() < MIXED:
                return mixed(self.limbs, given, rng.choice(others), rng)
            return self.way.changed(self.limbs, given, rng)

        mixed: Mixing | None = getattr(self.way, "mixed", None)
        others = self.starts(FAR) if mixed else []
        rng = random.Random(f"{self.method} {self.op} {self.limbs} {seed}")
        hot, cold = getattr(self.way, "HEAT", (HOT, COLD))
        cooling = Cooling(budget.plans, hot, cold, budget.deadline)
        first = min(starts, key=lambda given: price(given, math.inf))
        for _ in anneal(first, change, price, cooling, rng):
            pass
        return [dict(key) for key in sorted(known, key=lambda key: (known[key], key))[:FINALISTS]]

    def priced(self, row: Mapping[str, str | int]) -> answers.Row:
        """An answer with the cycles that it takes now, on the core that its file is for."""
        jobs = {name: replace(self, core_name=self.home, goal=goal) for goal, name in TIMES.items()}
        return {**row, **{name: job.cost(row)[0] for name, job in jobs.items()}}

    def cost(self, row: Mapping[str, str | int]) -> tuple[int, int]:
        """What the goal wants small, on the core that is asked for, and then the other."""
        same = self.isa.core(self.home or self.isa.default_core).lacks == self.core.lacks  # and so the same code
        job = replace(self, core_name=self.home) if same else self
        compiled = _compiled(job, tuple(sorted(answers.given(row).items())))
        price = measure.price(compiled, self.core)
        return (price.call, price.body) if self.goal == "call" else (price.body, price.call)

    def starts(self, far: int = 1) -> list[Given]:
        """Parameters to begin with: the answers for this size and those up to `far` limbs beside it, and the method's
        own."""
        sizes = [self.limbs + more for more in sorted(range(-far, far + 1), key=abs) if self.limbs + more > 0]
        known = [
            methods.defaults(self.method, limbs) | answer  # an answer leaves out what stands at its default
            for limbs in sizes
            for goal in TIMES.values()
            if (answer := self.known(limbs, goal))
        ]
        own = [methods.defaults(self.method, self.limbs), *filter(None, methods.points(self.method, self.limbs)[:1])]
        own += idioms(self.isa).starts(self.method, self.op, self.limbs)
        found = [self.way.fitted(self.limbs, given) for given in [*known, *own]]
        return [given for number, given in enumerate(found) if given not in found[:number]]

    def known(self, limbs: int, goal: str) -> Given:
        """The parameters of the best answer for a size by a goal, none if there is none."""
        bits = limbs * self.isa.limb_bits
        return answers.parameters(self.isa, self.method, self.op, bits, goal, core=self.core)

    def before(self) -> answers.Row | None:
        """The best of the answers that are there."""
        rows = answers.rows(self.isa, self.method, self.op, self.bits, self.core)
        return min(map(self.priced, rows), key=self.cost, default=None)

    def round(self, starts: Sequence[Given], budget: Budget, seed: object) -> answers.Row | None:
        """The best answer that one round finds, None if no plan fits the registers."""
        rows = [self.priced(given) for given in self.parameters(starts, budget, seed)]
        return min(rows, key=self.cost, default=None)


@functools.lru_cache(maxsize=4 * FINALISTS)
def _compiled(job: Job, given: tuple[tuple[str, str], ...]) -> Compiled:
    """A row is priced several times, for each goal, for each kind of core, and to be compared: all of the same code."""
    return compile_plan(job.plan(dict(given)), job.isa, job.goal, job.core)


def least(function: Function, which: Isa, core: Core) -> int:
    """Cycles of a function, at least: what has a home is loaded once, and all pairs are moved as such."""
    variables = [arg for op in function.ops for arg in op.args if isinstance(arg, Virtual)]
    homes = {each.id for each in variables if each.home is not None}
    pairs = {each.id for each in variables if each.mate is not None}
    return told(function, which, core) + access(which, core, "load") * len(homes) - len(pairs)


def told(function: Function, which: Isa, core: Core) -> int:
    """Cycles of its own instructions, not of those that wait for the registers."""
    prices = {name: which.cycles(insn, core) for name, insn in which.insns.items()}
    prices |= {kind: access(which, core, kind) for kind in ("load", "store")}
    return sum(prices.get(op.insn, 0) for op in function.ops)


def access(which: Isa, core: Core, kind: str) -> int:
    """Cycles of an access to memory of a kind, `load` or `store`, with a displacement, as most are."""
    insns = [insn for insn in which.on(core) if insn.kind == kind and len(insn.operands) > 1]
    return max(which.cycles(insn, core) for insn in insns)


def search(job: Job, budgets: Iterator[Budget], seed: int) -> Iterator[answers.Row]:
    """The best answer known after each batch of rounds, of which each has a budget; none while no plan fits."""
    best, starts = job.before(), job.starts()
    with workers.pool(BATCH) as pool:
        for number, budget in enumerate(budgets):
            seeds = [f"{seed} {number} {each}" for each in range(BATCH)]
            found = pool.map(job.round, [starts] * BATCH, [budget] * BATCH, seeds)
            best = min(filter(None, [best, *found]), key=job.cost, default=None)
            if best:
                starts = [answers.given(best)]
                yield best


def rounds(batches: int, plans: int) -> Iterator[Budget]:
    """So many batches of equal rounds."""
    yield from [Budget(plans)] * batches


def seconds(limit: float) -> Iterator[Budget]:
    """Batches, each twice as long as the one before, until the time is up."""
    deadline = time.monotonic() + limit
    plans = 50
    while time.monotonic() < deadline:
        yield Budget(plans, deadline)
        plans *= 2


def kept(
    which: Isa,
    op: str,
    limbs: int,
    method: str,
    rows: Sequence[answers.Row],
    *,
    home: str | None = None,
    any_time: bool = False,
) -> list[answers.Row]:
    """The rows that are the best for some goal on some kind of core, each once, the shortest body first.

    `home`: the core that the answers are for, if not the default one; `any_time`: as for a job.
    """
    found: list[answers.Row] = []
    home = home or which.default_core
    alike = [each for each in which.cores.values() if each.answers == which.core(home).answers]
    able = [core for core in alike if {*core.lacks} <= {*which.core(home).lacks}]
    kinds = {(core.timing, core.lacks): core.name for core in reversed(able)}
    for core in dict.fromkeys([home, *kinds.values()]):
        for goal in TIMES:
            row = min(rows, key=Job(which.name, op, limbs, method, goal, core, any_time).cost)
            found += [row] if row not in found else []
    return sorted(found, key=lambda row: (int(row[answers.BODY]), int(row[answers.CALL])))
