"""What nothing else beats at a size: small code and little stack, not only speed.  Run by `make answers`.

All methods are made with the parameters that the search found and with those that make them small; the rows stay of
which no other is as good in cycles, bytes and stack.  They go to `schedules/answers/<isa>-front.toml`, or to that of a
core that has answers of its own, for some sizes; a request for another size tries what is there for the nearest one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import click
from rich.progress import track

from . import answers, choosing, measure, methods, workers
from .attempts import TIMES, fastest
from .compile import compile_plan
from .contract import OPS
from .errors import UserError
from .idioms import idioms
from .options import time_option
from .record import save_fronts
from .spec import Spec, spec
from .tables import isa

UNROLLED = 256  # bits up to which all methods are made in all ways
TWICE = 2  # times as many bits, up to which those without a small form are that are on the front there
LONGEST = 1024  # bits up to which the others are made at all: code as long as the flash of many parts
WORSE = 1.01  # times the cycles of another row that is no larger: not worth a row


@dataclass(frozen=True)
class Job:
    """The front of an operation at a size, on a core; with `any_time` also of instructions whose cycles depend on
    operands; `unrolled`: bits up to which methods without a small form are made in all ways."""

    isa_name: str
    op: str
    bits: int
    core_name: str | None = None
    any_time: bool = False
    unrolled: int = UNROLLED

    @property
    def spec(self) -> Spec:
        return spec(self.isa_name, self.bits, op=self.op, core=self.core_name, allow_variable_time=self.any_time)


def candidates(asked: Spec, unrolled: int) -> Iterator[answers.Row]:
    """All that may be on the front, each once, with its `method`: what is taken where only time counts is always."""
    seen = set()
    for name, goal, row in tried(asked, unrolled):
        key = name, goal, *sorted(answers.given(row).items())
        if key not in seen:
            seen.add(key)
            yield {answers.METHOD: name, answers.GOAL: goal, **row}


def tried(asked: Spec, unrolled: int) -> Iterator[tuple[str, str, answers.Row]]:
    """(method, goal, parameters) of them."""
    what = asked.contract
    for goal in TIMES:
        yield from ((name, goal, row) for name, row in fastest(replace(asked, goal=goal)))
    long = kept(asked, unrolled)
    for name in methods.names(what.op):
        small: list[answers.Row] = [{**given} for given in methods.compact(name, what.limbs)]
        whole = bool(small) or asked.bits <= unrolled or name in long
        ways = methods.points(name, what.limbs) + methods.between(name, what.limbs) if whole else []
        likely: list[answers.Row] = [{**given} for given in ways]
        known = [{}, *likely, *answers.rows(what.isa, name, what.op, asked.bits, asked.core)]
        if whole or asked.bits <= LONGEST:
            yield from ((name, "speed", row) for row in known)
        if whole:
            yield from ((name, "call", row) for row in (*known, *small))


def kept(asked: Spec, unrolled: int) -> list[str]:
    """The methods of which all is made at a size above `unrolled` bits even if all that they make is long: by the front
    of the largest size up to that, what is good in something there may still be, and least stack is always."""
    if asked.bits > LONGEST and asked.bits > TWICE * unrolled:
        return []
    fronts = answers.fronts(asked.contract.isa, asked.contract.op, asked.core)
    rows = fronts.get(max((bits for bits in fronts if bits <= unrolled), default=0), [])
    if asked.bits > TWICE * unrolled:
        rows = sorted(rows, key=lambda row: row[answers.STACK])[:1]
    return [str(row[answers.METHOD]) for row in rows]


def priced(asked: Spec, row: answers.Row) -> answers.Row | None:
    """The row with its costs, None if it cannot be compiled, or is more than a part with the core can hold."""
    which, room = asked.contract.isa, choosing.room_of(asked)
    try:
        plan = choosing.plan(asked, str(row[answers.METHOD]), answers.given(row))
        if not idioms(which).forms(plan, asked.core):  # to say which are formed would take longer
            return None
        compiled = compile_plan(plan, which, str(row[answers.GOAL]), asked.core)
    except UserError:
        return None
    if room is not None and len(compiled.image) > room:
        return None
    price = measure.price(compiled, asked.core)
    costs = (price.body, price.call, len(compiled.image), measure.stack(compiled, asked.core))
    return {**row, **dict(zip(answers.COSTS, costs, strict=True))}


def front(rows: Sequence[answers.Row]) -> list[answers.Row]:
    """The rows that no other makes idle, and the fastest call, the shortest body first."""
    found: list[answers.Row] = []
    fastest = min(rows, key=lambda row: (row[answers.CALL], answers.costs(row)), default=None)
    for row in sorted(rows, key=answers.costs):
        if row is fastest or not any(idle(row, other) for other in found):
            found.append(row)
    return found


def idle(row: answers.Row, other: answers.Row) -> bool:
    """Whether another row is no larger and about as fast."""
    body, call, size, stack = answers.costs(row)
    its_body, its_call, its_size, its_stack = answers.costs(other)
    return its_size <= size and its_stack <= stack and its_body <= WORSE * body and its_call <= WORSE * call


def job(what: Job) -> list[answers.Row]:
    """The front of a size."""
    asked = what.spec
    rows = [priced(asked, row) for row in candidates(asked, what.unrolled)]
    return front([row for row in rows if row])


@click.command()
@click.option("--isa", "name", required=True, help="Instruction set.")
@click.option("--core", "core_name", help="Core that has answers of its own.  [default: the default one]")
@time_option
@click.option("--step", default=32, show_default=True, help="Bits from size to size.")
@click.option("--least", default=32, show_default=True, help="Smallest size in bits.")
@click.option("--most", default=1024, show_default=True, help="Largest size in bits.")
@click.option("--unrolled", default=UNROLLED, show_default=True, help="Bits up to which all are made in all ways.")
def main(name: str, core_name: str | None, *, allow_variable_time: bool, unrolled: int, **sizes: int) -> None:
    """Make all candidates, and write the file."""
    which = isa(name)
    lengths = range(sizes["most"], sizes["least"] - 1, -sizes["step"])
    jobs = [Job(name, op, bits, core_name, allow_variable_time, unrolled) for op in OPS for bits in lengths]
    found: dict[str, dict[int, list[answers.Row]]] = {op: {} for op in OPS}
    with workers.pool() as pool:
        made = track(pool.map(job, jobs), total=len(jobs), description=name)
        for each, rows in zip(jobs, made, strict=True):
            found[each.op][each.bits] = rows
    core = jobs[0].spec.core
    save_fronts(which, found, core)
    click.echo(f"wrote {answers.front_path(which, core)}")


if __name__ == "__main__":
    main()
