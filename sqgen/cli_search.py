"""The command `sqgen search`: look for faster kernels, and keep what is found for all later runs."""

from __future__ import annotations

import click

from .errors import UserError
from .options import cores, goals, isas, op_option, time_option
from .options import methods as _methods


@click.command(short_help="Search for faster kernels, and keep what is found.")
@click.option("--isa", required=True, metavar="NAME", shell_complete=isas, help="Instruction set.")
@click.option("--core", metavar="NAME", shell_complete=cores, help="Processor whose cycles count, see `sqgen cores`.")
@time_option
@op_option
@click.option("--method", required=True, metavar="NAME", shell_complete=_methods, help="See `sqgen methods`.")
@click.option("--least", default=16, show_default=True, metavar="N", help="Smallest size in bits.")
@click.option("--most", default=256, show_default=True, metavar="N", help="Largest size in bits.")
@click.option(
    "--goal", default="speed", show_default=True, metavar="speed|call", shell_complete=goals, help="What counts."
)
@click.option("--batches", type=click.IntRange(1), default=2, show_default=True, help="Batches of 4 rounds for a size.")
@click.option("--plans", type=click.IntRange(1), default=500, show_default=True, help="Plans tried in a round.")
@click.option("--seed", default=1, show_default=True, help="Another one finds other answers.")
def search(
    isa: str, core: str | None, op: str, method: str, goal: str, *, allow_variable_time: bool, **options: int
) -> None:
    """Search by chance, from a seed, for parameters of a method, and keep the answers.

    \b
        sqgen search --isa avr --method sweeps --least 128 --most 192

    Each size is kept when it is done: stopped, the search goes on where it is run again, with another --seed.  Answers
    go to the file of the instruction set's answers, and only where they are better than those that are there.
    """
    from . import answers, files, methods, record  # noqa: PLC0415  (imports are lazy to keep the start fast)
    from . import search as looking  # noqa: PLC0415
    from .attempts import TIMES  # noqa: PLC0415
    from .cli import _print  # noqa: PLC0415
    from .contract import contract  # noqa: PLC0415
    from .progress import Bar  # noqa: PLC0415
    from .tables import isa as isa_of  # noqa: PLC0415

    which = isa_of(isa)
    if goal not in TIMES:
        raise UserError(f"a search is for --goal {' or '.join(TIMES)}, not '{goal}'")
    least, most = (contract(which, op, options[name]).limbs for name in ("least", "most"))
    budgets = options["batches"], options["plans"]
    for limbs in range(least, most + 1):
        job = looking.Job(isa, op, limbs, method, goal, core, allow_variable_time)
        job.plan(job.way.fitted(limbs, methods.defaults(method, limbs)))  # refused before anything is tried
        files.require_writable(answers.path(which, job.core))
        found = None
        with Bar(f"{job.bits} bits", options["batches"]) as bar:
            for number, found in enumerate(looking.search(job, looking.rounds(*budgets), options["seed"])):
                bar.update(number + 1, f"{job.bits} bits: {job.cost(found)[0]} cycles")
        if found:
            rows = [*answers.rows(which, method, op, job.bits, job.core), found]
            best = looking.kept(which, op, limbs, method, rows, home=job.home, any_time=job.any_time)
            record.save(which, method, op, {job.bits: best}, job.core)
        _print(f"{job.bits} bits: " + (f"{job.cost(found)[0]} cycles\n" if found else "no plan fits the registers\n"))
