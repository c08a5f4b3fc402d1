"""`--search SECONDS`: a better answer for one request, looked for now."""

from __future__ import annotations

import math
import operator
from dataclasses import replace

from . import answers, attempts, choosing, hints, methods, tune
from .attempts import TIMES
from .errors import UserError
from .methods import REGISTERS
from .progress import Bar
from .search import Job, search, seconds
from .spec import Spec

SEED = 1


def searched(asked: Spec, limit: float) -> Spec:
    """The request with the method and parameters that are the fastest found in `limit` seconds, or as it is.

    Raises UserError where there is nothing to search.
    """
    if not 0 < limit < math.inf:
        raise UserError(f"--search is a number of seconds above 0, not {limit:g}")
    if asked.goal not in TIMES or asked.limited:
        raise UserError(f"--search is for --goal {' or '.join(TIMES)}, without limits")
    if asked.parameters:
        raise UserError("--search finds parameters itself; leave out -p")
    best, least = asked, choosing.rank(asked, choosing.choose(asked))
    names = contenders(asked)
    with Bar(f"{asked.bits} bits: {least[0]} cycles", limit) as bar:
        for number, name in enumerate(names):
            look = by_chance if methods.searched(name) else in_order
            found = look(asked, name, limit * (number + 1) / len(names), bar)
            cost = choosing.rank(found, choosing.choose(found)) if found else least
            if found and cost < least:
                best, least = found, cost
                bar.update(bar.elapsed, f"{asked.bits} bits: {least[0]} cycles")
    return best


def contenders(asked: Spec) -> list[str]:
    """The methods that may be the best: the one asked for, or all whose answers are not far off."""
    if asked.method != "auto":
        return [asked.method]
    what = asked.contract
    known = list(answers.known(what.isa, what.op, asked.bits, asked.core))
    near = {name for name, _ in attempts.not_far_off(known, TIMES[asked.goal])}
    return [name for name in methods.names(what.op) if name in near or not known]


def by_chance(asked: Spec, name: str, until: float, bar: Bar) -> Spec | None:
    """The best found by annealing."""
    what = asked.contract
    job = Job(what.isa.name, what.op, what.limbs, name, asked.goal, asked.core.name, asked.core.any_time)
    best = None
    for row in search(job, seconds(until - bar.elapsed), SEED):
        best = row
        bar.update(bar.elapsed)
    return answered(asked, name, best) if best else None


def in_order(asked: Spec, name: str, until: float, bar: Bar) -> Spec | None:
    """The best of the method's points, or one parameter after the other, and then of ways to look for registers; once
    the time is up nothing is tried."""
    what = asked.contract

    def price(given: tune.Given) -> int:
        if bar.elapsed > until:
            return tune.NEVER
        bar.update(bar.elapsed)
        try:
            found = choosing.choose(answered(asked, name, dict(given)))
        except UserError:
            return tune.NEVER
        return choosing.rank(asked, found)[0]

    best = tune.tuned(what.limbs, name, tune.EMPTY, price)
    if REGISTERS in methods.method(name).PARAMETERS:
        wider = ({**best[1], REGISTERS.name: way} for way in hints.ways())
        best = min([best, *((price(given), given) for given in wider)], key=operator.itemgetter(0))
    cycles, given = best
    return answered(asked, name, dict(given)) if cycles < tune.NEVER else None


def answered(asked: Spec, name: str, row: answers.Row) -> Spec:
    """The request that an answer is for."""
    given = tuple(sorted(answers.given(row).items()))
    return replace(asked, method=name, parameters=given)
