"""Every size: our fastest kernels, each made, proved and run in the simulator, and a plot beside public code.

python tools/sweep.py                         draw the plot from the figures that are there
python tools/sweep.py --measure               all sizes anew, `docs/sweep.csv` and its like; takes minutes
python tools/sweep.py --measure --isa arm --least 256 --most 384
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
from figures import BRANCHING, DOCS, SURVEYS, Figures, known, measured, write
from rich.progress import track

from sqgen import workers
from sqgen.contract import OPS
from sqgen.public import Public, public
from sqgen.report import OPERATION
from sqgen.svg import COLOURS, fixed, template
from sqgen.tables import isa

PLOT = DOCS / "sweep.svg"
SIZES = SURVEYS["avr"].sizes


# ---- the plot ------------------------------------------------------------------------------------------------------


def products(op: str, bits: int) -> int:
    """Products of limbs in schoolbook multiplication."""
    n = bits // 8
    return n * n if op == "mul" else n * (n + 1) // 2


@dataclass(frozen=True)
class Dot:
    """Public code at its place on the page."""

    x: str
    y: str
    colour: int
    signs: bool
    text: str


class Page:
    """What the template asks for: texts, and numbers in page units as texts."""

    width, height, edge, font, colours = 960, 560, 28, 13, COLOURS
    left, top, across, down = 72, 84, 860, 360
    least, most = 3.0, 9.0  # cycles a product: what is above is small numbers

    def __init__(self, figures: Sequence[Figures]) -> None:
        self.figures = figures
        self.right, self.bottom = self.left + self.across, self.top + self.down

    def x(self, bits: int) -> str:
        return fixed(self.left + self.across * bits / SIZES[-1])

    def y(self, each: float) -> str:
        return fixed(self.bottom - self.down * (each - self.least) / (self.most - self.least))

    def lines(self) -> Iterator[tuple[int, str, str]]:
        """(colour, title, points) of our two lines, as far as they are on the page."""
        for colour, op in enumerate(OPS):
            rows = [row for row in self.figures if row.op == op]
            points = [(row.bits, row.body / products(op, row.bits)) for row in rows]
            shown = " ".join(f"{self.x(bits)},{self.y(each)}" for bits, each in points if each <= self.most)
            yield colour, f"sqgen, {OPERATION[op]}", shown

    def dots(self) -> Iterator[Dot]:
        """Public code that is on the page."""
        for colour, op in enumerate(OPS):
            for other in public(isa("avr"), op):
                each = other.cycles / products(op, other.bits)
                if each <= self.most:
                    yield Dot(self.x(other.bits), self.y(each), colour, bool(other.leaks), self.words(op, other))

    @staticmethod
    def words(op: str, other: Public) -> str:
        return f"{other.bits}-bit {OPERATION[op]}: {other.cycles} cycles, {other.who} ({other.note})"


def plot(figures: Sequence[Figures]) -> str:
    """The plot as a stand-alone SVG document."""
    return template("sweep.svg.j2").render(page=Page(figures))


@click.command()
@click.option("--measure", is_flag=True, help="Make, prove and run the kernels.")
@click.option("--isa", "names", multiple=True, default=list(SURVEYS), help="Instruction sets to measure.")
@click.option("--least", default=0, help="Smallest size to measure, in bits.")
@click.option("--most", default=1 << 16, help="Largest size to measure, in bits.")
def main(*, measure: bool, names: Sequence[str], least: int, most: int) -> None:
    """Measure all sizes, and draw them."""
    for survey in (each for each in (*SURVEYS.values(), BRANCHING) if measure and each.isa in names):
        jobs = [job for job in survey.jobs if least <= job.bits <= most]
        one = functools.partial(measured, branches=survey.branches)
        with workers.pool() as pool:
            found = list(track(pool.map(one, jobs), f"{survey.file.stem} ...", total=len(jobs)))
        write(survey, [*known(survey), *found])
    PLOT.write_text(plot(known(SURVEYS["avr"])), encoding="utf-8")


if __name__ == "__main__":
    main()
