"""How registers are best looked for, found by trying, for answers whose method takes that as a parameter (`looking`).

Run by `make answers`, after the parameters themselves are found.  Of the ways that give the fewest cycles the one that
takes the least time is kept, also where looking everywhere gives no more: a normal run then takes half as long.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

import click
from rich.progress import track

from . import answers, methods, tables, tune, workers
from .attempts import BRANCHING, SIGNS
from .contract import OPS
from .methods import REGISTERS
from .record import save

LONG = 15  # limbs from which on it is worth a parameter: below that, looking everywhere finds all there is
WEIGHTS = ("2", "1.2", "3", "1.5")
WIDTHS = (2, 3, 4, 6, 7, 8, 10, 12, 14, 16, 20)
ARMS = range(25, 33)  # limbs of code in one piece that is to be made in a second with its arms as well
LONGEST = 64  # limbs above which a product is to be made in two seconds
NARROW = 4  # width for which there is time in both
Job = tuple[str, str, str, int]  # instruction set, method, operation, limbs


def ways(widest: int = WIDTHS[-1]) -> Iterator[str]:
    """All that are tried with beams so wide at most, the fastest first."""
    return (f"{weight},{width}" for width in WIDTHS if width <= widest for weight in WEIGHTS)


def better(job: Job, row: answers.Row) -> answers.Row:
    """The row with the best way; and which way to branch on signs is the best, if any is possible, with the best way
    there, if that is another one."""
    name, method, op, limbs = job
    bare = {key: value for key, value in answers.given(row).items() if key != REGISTERS.name}
    _, free = best(job, bare)
    made = tune.row(tables.isa(name), op, limbs, method, free)
    if SIGNS in methods.defaults(method, limbs):
        cycles, branched = min((best(job, {**bare, SIGNS: form}) for form in BRANCHING), key=operator.itemgetter(0))
        if cycles < tune.NEVER:
            made[answers.BRANCHING] = branched[SIGNS]
            way = branched.get(REGISTERS.name, "")
            if way != free.get(REGISTERS.name, ""):
                made[answers.BRANCHED] = way
    return made


def best(job: Job, bare: tune.Given) -> tune.Found:
    """The fewest cycles of the body, and the parameters with the way that gives them; without one where looking
    everywhere gives fewer, for then no one way is good for all functions, and there is time for that."""
    name, method, op, limbs = job
    quick = (limbs > LONGEST and op == "mul") or (SIGNS in bare and limbs in ARMS)
    by_way = [{**bare, REGISTERS.name: way} for way in ways(NARROW if quick else WIDTHS[-1])]
    tried = by_way if quick else [*by_way, bare]
    found = [(tune.body(tables.isa(name), op, limbs, method, given), given) for given in tried]
    return min(found, key=operator.itemgetter(0))


def found(job: Job) -> list[answers.Row]:
    """All rows of a size."""
    name, method, op, limbs = job
    which = tables.isa(name)
    return [better(job, row) for row in answers.rows(which, method, op, limbs * which.limb_bits)]


@click.command()
@click.option("--isa", "name", required=True, help="Instruction set.")
@click.option("--least", default=0, help="Smallest size in bits.")
@click.option("--most", default=1024, show_default=True, help="Largest size in bits.")
def main(name: str, least: int, most: int) -> None:
    """Try all ways, and write the answers' file."""
    which = tables.isa(name)
    jobs = [
        (name, method, op, bits // which.limb_bits)
        for op in OPS
        for method in methods.names(op)
        if REGISTERS in methods.method(method).PARAMETERS
        for bits in answers.table(which, method, op)
        if max(least, LONG * which.limb_bits) <= bits <= most
    ]
    with workers.pool() as pool:
        for job, rows in zip(jobs, track(pool.map(found, jobs), total=len(jobs), description=name), strict=True):
            _, method, op, limbs = job
            save(which, method, op, {limbs * which.limb_bits: rows})
    click.echo(f"wrote {answers.path(which)}")


if __name__ == "__main__":
    main()
