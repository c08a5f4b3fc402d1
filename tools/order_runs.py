"""Better orders of runs for squares on AVR: what `sqgen search` does run by run, some thousand times a second.

python tools/order_runs.py --method streamed-karatsuba --least 160 --most 160 --steps 1000000

`tools/runs` prices squares on numbers, as the compiler would make them but for a cycle or two.  It begins at the
answers that are there, in rounds with a seed each; what the rounds find is compiled here, and kept where it is better.
The same options find the same.  Needs ziglang (`pip install sqgen[assembler]`), which compiles it.
"""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from sqgen import answers, record, search
from sqgen.plan import Double, Plan, Product, Run
from sqgen.run_order import written

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "tools" / "runs"
ANNEAL = ROOT / "build" / "runs" / "anneal"
PREFIXES = ("", "high-", "middle-")  # of the parameters of a streamed square's parts


@dataclass(frozen=True)
class Options:
    """Of a round: changes that are tried, cycles that may be lost in one, at first and at last, and cycles that a load
    costs beside its own that keeps r == a from being allowed."""

    steps: int
    heat: tuple[float, float] = (0.8, 0.2)
    late: int = 2


def compiled() -> Path:
    """The program, made anew if a source is younger."""
    if not ANNEAL.exists() or ANNEAL.stat().st_mtime < max(each.stat().st_mtime for each in SOURCES.iterdir()):
        ANNEAL.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "ziglang", "c++", "-std=c++20", "-O3", "-march=native", "-o", str(ANNEAL)]
        subprocess.run([*command, str(SOURCES / "anneal.cpp")], check=True)
    return ANNEAL


def squares(plan: Plan) -> list[Plan]:
    """The squares of a plan whose runs are ordered: its parts, or itself."""
    return [part.plan for part in plan.parts()] or [plan]


def line(plan: Plan) -> str:
    """A square as the program reads it."""
    stages = [step.last for step in plan.steps if isinstance(step, Double)]
    runs = [step.cells for step in plan.steps if isinstance(step, Run)]
    numbers = [plan.limbs, len(stages), *stages, len(runs)]
    for cells in runs:
        numbers += [len(cells), *(index for cell in cells for index in (cell.i, cell.j))]
    return " ".join(map(str, numbers))


def read(text: str) -> tuple[str, str]:
    """(stages, runs) of such a line, as parameters have them."""
    numbers = map(int, text.split())
    next(numbers)
    stages = [next(numbers) for _ in range(next(numbers))]
    runs = [
        Run(tuple(Product(next(numbers), next(numbers)) for _ in range(next(numbers)))) for _ in range(next(numbers))
    ]
    return ",".join(map(str, stages)), written(runs)


def parameters(lines: Sequence[str]) -> search.Given:
    """Those of the method for one square or three."""
    found: search.Given = {}
    for prefix, text in zip(PREFIXES, lines, strict=False):
        found[f"{prefix}stages"], found[f"{prefix}runs"] = read(text)
    return found


def anneal(program: Path, plan: Plan, seed: int, options: Options) -> search.Given:
    """What a round finds."""
    command = [str(program), str(seed), str(options.steps), *map(str, options.heat), str(options.late)]
    text = "\n".join(map(line, squares(plan)))
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return parameters(done.stdout.splitlines())


def rounds(job: search.Job, seeds: range, options: Options) -> Iterator[answers.Row]:
    """What all rounds find from the best answer that there is, priced by the compiler."""
    before = job.before()
    plan = job.plan(answers.given(before) if before else job.starts()[0])
    program = compiled()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for given in pool.map(lambda seed: anneal(program, plan, seed, options), seeds):
            yield job.priced(given)


@click.command()
@click.option("--method", required=True, type=click.Choice(["sweeps", "streamed-karatsuba"]))
@click.option("--least", required=True, type=int, help="Smallest size in bits.")
@click.option("--most", required=True, type=int, help="Largest size in bits.")
@click.option("--seed", default=1, show_default=True, help="Of the first round; the next ones have those after it.")
@click.option("--rounds", "count", default=2, show_default=True, help="At each size.")
@click.option("--late", default=2, show_default=True, help="Cycles that r == a is worth, for each limb loaded late.")
@click.option("--steps", default=1_000_000, show_default=True, help="Changes tried in a round.")
@click.option(
    "--heat", nargs=2, type=float, default=(0.8, 0.2), show_default=True, help="Cycles, at first and at last."
)
def main(method: str, *, heat: tuple[float, float], **options: int) -> None:
    """Look for better orders, and keep them."""
    seeds = range(options["seed"], options["seed"] + options["count"])
    each = Options(options["steps"], heat, options["late"])
    for bits in range(options["least"], options["most"] + 1, 8):
        job = search.Job("avr", "sqr", bits // 8, method)
        before = answers.rows(job.isa, method, "sqr", bits, job.core)
        rows = [*before, *rounds(job, seeds, each)]
        best = search.kept(job.isa, "sqr", job.limbs, method, rows)
        record.save(job.isa, method, "sqr", {bits: best}, job.core)
        click.echo(f"{bits} bits: {[int(row[answers.BODY]) for row in best]}")


if __name__ == "__main__":
    main()
