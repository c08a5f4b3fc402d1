"""What nothing else beats at a size: small code and little stack, not only speed.  Run by `make answers`.

All methods are made with the parameters that the search found and with those that make them small; the rows stay of
which no other is as good in cycles, bytes and stack.  They go to `schedules/answers/<isa>-front.toml`, for some sizes;
a request for another size tries what is there for the nearest one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
from rich.progress import track

from . import answers, kernel, measure, methods, workers
from .compile import compile_plan
from .contract import OPS
from .errors import UserError
from .record import save_fronts
from .spec import spec
from .table import Isa
from .tables import isa

UNROLLED = 256  # bits above which methods without a small form are left out: code as long as the flash of many parts
WORSE = 1.01  # times the cycles of another row that is no larger: not worth a row
Job = tuple[str, str, int]  # instruction set, operation, bits


def candidates(which: Isa, op: str, bits: int) -> Iterator[answers.Row]:
    """All that may be on the front, each with its `method`."""
    for name in methods.names(op):
        small: list[answers.Row] = [{**given} for given in methods.compact(name, bits // which.limb_bits)]
        if bits > UNROLLED and not small:
            continue
        known: list[answers.Row] = [{}, *answers.rows(which, name, op, bits)]
        yield from ({answers.METHOD: name, answers.GOAL: "speed", **row} for row in known)
        yield from ({answers.METHOD: name, answers.GOAL: "call", **row} for row in (*known, *small))


def priced(which: Isa, op: str, bits: int, row: answers.Row) -> answers.Row | None:
    """The row with its costs, None if it cannot be compiled."""
    asked = spec(which, bits, op=op)
    try:
        plan = kernel.plan(asked, str(row[answers.METHOD]), answers.given(row))
        compiled = compile_plan(plan, which, str(row[answers.GOAL]))
    except UserError:
        return None
    price = measure.price(compiled, asked.core)
    costs = (price.body, price.call, len(compiled.image), measure.stack(compiled, asked.core))
    return {**row, **dict(zip(answers.COSTS, costs, strict=True))}


def front(rows: Sequence[answers.Row]) -> list[answers.Row]:
    """The rows that no other makes idle, the shortest body first."""
    found: list[answers.Row] = []
    for row in sorted(rows, key=answers.costs):
        if not any(idle(row, other) for other in found):
            found.append(row)
    return found


def idle(row: answers.Row, other: answers.Row) -> bool:
    """Whether another row is no larger and about as fast."""
    body, call, size, stack = answers.costs(row)
    its_body, its_call, its_size, its_stack = answers.costs(other)
    return its_size <= size and its_stack <= stack and its_body <= WORSE * body and its_call <= WORSE * call


def job(what: Job) -> list[answers.Row]:
    """The front of a size."""
    name, op, bits = what
    which = isa(name)
    rows = [priced(which, op, bits, row) for row in candidates(which, op, bits)]
    return front([row for row in rows if row])


@click.command()
@click.option("--isa", "name", required=True, help="Instruction set.")
@click.option("--step", default=32, show_default=True, help="Bits from size to size.")
@click.option("--least", default=32, show_default=True, help="Smallest size in bits.")
@click.option("--most", default=1024, show_default=True, help="Largest size in bits.")
def main(name: str, step: int, least: int, most: int) -> None:
    """Make all candidates, and write the file."""
    which = isa(name)
    jobs = [(name, op, bits) for op in OPS for bits in range(most, least - 1, -step)]
    found: dict[str, dict[int, list[answers.Row]]] = {op: {} for op in OPS}
    with workers.pool() as pool:
        made = track(pool.map(job, jobs), total=len(jobs), description=name)
        for (_, op, bits), rows in zip(jobs, made, strict=True):
            found[op][bits] = rows
    save_fronts(which, found)
    click.echo(f"wrote {answers.front_path(which)}")


if __name__ == "__main__":
    main()
