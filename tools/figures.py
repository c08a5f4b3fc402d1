"""What the fastest kernels of many sizes cost: `docs/sweep.csv` and its like, a file for each instruction set."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from sqgen import check
from sqgen.contract import OPS
from sqgen.kernel import make
from sqgen.spec import spec
from sqgen.tables import isa

DOCS = Path(__file__).resolve().parent.parent / "docs"
RUNS = 40  # operands tried in the simulator


@dataclass(frozen=True)
class Survey:
    """The cores and sizes (bits) of an instruction set that are measured, and the file of what they cost; `branches` on
    secrets are allowed, in arms that take equally long."""

    isa: str
    cores: tuple[str, ...]
    sizes: Sequence[int]
    file: Path
    ops: Sequence[str] = OPS
    branches: bool = False

    @property
    def jobs(self) -> list[Job]:
        """All kernels, in the order of the file."""
        return [Job(self.isa, core, op, bits) for core in self.cores for op in self.ops for bits in self.sizes]


@dataclass(frozen=True)
class Job:
    """A kernel to be made."""

    isa: str
    core: str
    op: str
    bits: int

    @property
    def command(self) -> str:
        """What makes it."""
        core = f" --core {self.core}" if self.core != isa(self.isa).default_core else ""
        op = f" --op {self.op}" if self.op != OPS[0] else ""
        return f"sqgen --isa {self.isa}{core}{op} --bits {self.bits}"


@dataclass(frozen=True)
class Figures:
    """What the fastest kernel of a size costs: cycles of body and call, bytes of code and of stack."""

    core: str
    op: str
    bits: int
    method: str
    body: int
    call: int
    bytes: int
    stack: int


EVERY = (*range(32, 513, 32), *range(576, 1025, 64), 2048)
SURVEYS = {
    survey.isa: survey
    for survey in (
        Survey("avr", ("atmega128",), range(16, 1025, 8), DOCS / "sweep.csv"),
        Survey("arm", ("cortex-m4", "cortex-m3", "cortex-m0"), EVERY, DOCS / "sweep-arm.csv"),
        Survey("msp430", ("msp430", "msp430x", "msp430x-mpy32"), range(16, 1025, 16), DOCS / "sweep-msp430.csv"),
    )
}
MUL_SIZES = (48, 64, 80, 96, 128, 160, 192, 224, 256, 384, 512, 768, 1024)  # that results are shown for
BRANCHING = Survey("avr", ("atmega128",), MUL_SIZES, DOCS / "sweep-branches.csv", ("mul",), branches=True)


def measured(job: Job, *, branches: bool = False) -> Figures:
    """Make, prove and run one kernel, which may have `branches` on secrets.  Raises ClickException where the simulator
    disagrees; one that counts no cycles says nothing of them."""
    made = make(spec(job.isa, job.bits, op=job.op, core=job.core, allow_branches=branches))
    asked, price, stack = made.spec, made.price, made.verdict.stack
    seen = check.run(made.compiled.image, asked.contract, asked.core, 0, RUNS, branches=branches)
    counted = (seen.call, seen.body) if seen.call else price.cycles
    if (*counted, seen.stack) != (*price.cycles, stack):
        raise click.ClickException(f"the simulator counts otherwise: {job.command}")
    return Figures(job.core, job.op, job.bits, made.compiled.plan.method, price.body, price.call, made.size, stack)


def known(survey: Survey) -> list[Figures]:
    """The figures that are there."""
    if not survey.file.is_file():
        return []
    rows = csv.DictReader(survey.file.read_text(encoding="utf-8").splitlines())
    numbers = ("body", "call", "bytes", "stack")
    return [
        Figures(row["core"], row["op"], int(row["bits"]), row["method"], *(int(row[name]) for name in numbers))
        for row in rows
    ]


def write(survey: Survey, figures: Sequence[Figures]) -> None:
    """All figures as CSV, in the order of the survey."""
    found = {(row.core, row.op, row.bits): row for row in figures}
    keys = [(job.core, job.op, job.bits) for job in survey.jobs]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(Figures.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(found[key]) for key in keys if key in found)
    survey.file.write_text(buffer.getvalue(), encoding="utf-8")
