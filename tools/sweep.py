"""Every size: `docs/sweep.csv`, our fastest kernels as simavr counts them, and `docs/sweep.svg`, beside public code.

python tools/sweep.py                         draw the plot from the figures that are there
python tools/sweep.py --measure               all sizes anew: each made, proved, run in simavr; takes minutes
python tools/sweep.py --measure --least 256 --most 384
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.progress import track

from sqgen import check
from sqgen.contract import OPS
from sqgen.kernel import make
from sqgen.public import Public, public
from sqgen.report import OPERATION
from sqgen.spec import spec
from sqgen.svg import COLOURS, fixed, template
from sqgen.tables import isa

DOCS = Path(__file__).resolve().parent.parent / "docs"
FIGURES, PLOT = DOCS / "sweep.csv", DOCS / "sweep.svg"
SIZES = range(16, 1025, 8)
RUNS = 40  # operands tried in the simulator


@dataclass(frozen=True)
class Figures:
    """What the fastest kernel of a size costs: cycles of body and call, bytes of code and of stack."""

    op: str
    bits: int
    method: str
    body: int
    call: int
    bytes: int
    stack: int

    @property
    def command(self) -> str:
        """What makes the kernel again."""
        return "sqgen --isa avr" + (f" --op {self.op}" if self.op != OPS[0] else "") + f" --bits {self.bits}"


def measured(job: tuple[str, int]) -> Figures:
    """Make, prove and run one kernel.  Raises UserError where the simulator disagrees."""
    op, bits = job
    made = make(spec("avr", bits, op=op))
    asked = made.spec
    seen = check.run(made.compiled.image, asked.contract, asked.core, 0, RUNS, branches=False)
    if (seen.call, seen.body, seen.stack) != (*made.price.cycles, made.verdict.stack):
        raise click.ClickException(f"simavr counts otherwise for {op} {bits}")
    return Figures(op, bits, made.compiled.plan.method, seen.body, seen.call, made.size, seen.stack)


def known() -> list[Figures]:
    """The figures that are there."""
    if not FIGURES.is_file():
        return []
    rows = csv.DictReader(FIGURES.read_text().splitlines())
    return [
        Figures(
            row["op"], int(row["bits"]), row["method"], *(int(row[name]) for name in ("body", "call", "bytes", "stack"))
        )
        for row in rows
    ]


def text(figures: Sequence[Figures]) -> str:
    """All figures as CSV."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(asdict(figures[0])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in figures)
    return buffer.getvalue()


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
                each = other.body / products(op, other.bits)
                if each <= self.most:
                    yield Dot(self.x(other.bits), self.y(each), colour, other.signs, self.words(op, other))

    @staticmethod
    def words(op: str, other: Public) -> str:
        return f"{other.bits}-bit {OPERATION[op]}: {other.body} cycles, {other.who} ({other.note})"


def plot(figures: Sequence[Figures]) -> str:
    """The plot as a stand-alone SVG document."""
    return template("sweep.svg.j2").render(page=Page(figures))


@click.command()
@click.option("--measure", is_flag=True, help="Make, prove and run the kernels.")
@click.option("--least", default=SIZES[0], show_default=True, help="Smallest size to measure, in bits.")
@click.option("--most", default=SIZES[-1], show_default=True, help="Largest size to measure, in bits.")
def main(*, measure: bool, least: int, most: int) -> None:
    """Measure all sizes, and draw them."""
    if measure:
        jobs = [(op, bits) for op in OPS for bits in SIZES if least <= bits <= most]
        found = {(row.op, row.bits): row for row in known()}
        with ProcessPoolExecutor() as pool:
            for row in track(pool.map(measured, jobs), total=len(jobs)):
                found[row.op, row.bits] = row
        FIGURES.write_text(text([found[op, bits] for op in OPS for bits in SIZES if (op, bits) in found]))
    PLOT.write_text(plot(known()))


if __name__ == "__main__":
    main()
