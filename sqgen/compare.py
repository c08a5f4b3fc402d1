"""All methods for one job, compilers and public code beside each other: cycles, bytes, stack, and what nothing beats.

Each method is made with the parameters that the search found and with other words and a few other numbers; of these
points those stay that no other point of the method beats, and the one that a normal run would take.  The front is over
all rows that are proved.
"""

from __future__ import annotations

import contextlib
import itertools
import shlex
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import partial

from . import answers, kernel, methods
from .attempts import SIGNS, branching
from .compilers import Bench, Built, Measure
from .errors import UserError
from .methods import Parameter
from .public import Public, public
from .report import job
from .residence import PressureError
from .spec import Spec, spec

PUBLIC = "public"  # who made what others have published
VALUES = (1, 2, 4, 8)  # tried for a parameter that is a number, beside the best one known and its neighbours
MOST = 12  # points of one method
BRANCHES = "branches on signs, in arms of equal time"  # what is noted of a kernel that does


@dataclass(frozen=True)
class Row:
    """One kernel, one compiler's code, or public code.  `made_by`: sqgen, a compiler with its version, or PUBLIC;
    `method`: the method, the levels of optimisation, or whose code.  Cycles `body` and `call` as in `timing.Price`,
    bytes of code and of stack, None where not known.  `front`: proved, and no other proved row is as good in call,
    bytes and stack and better in one."""

    made_by: str
    method: str
    parameters: str
    body: int | None
    call: int | None
    bytes: int | None
    stack: int | None
    proved: bool
    front: bool = False
    note: str = ""

    @property
    def costs(self) -> tuple[int, int, int] | None:
        """What the front weighs, None where it is not proved."""
        if not self.proved or self.call is None or self.bytes is None or self.stack is None:
            return None
        return self.call, self.bytes, self.stack

    @property
    def public(self) -> bool:
        """Whether it is code of others."""
        return self.made_by == PUBLIC

    @property
    def name(self) -> str:
        """Who and how, in one line."""
        words = [self.method if self.made_by == "sqgen" else f"{self.made_by} {self.method}", self.parameters]
        return " ".join(filter(None, words))


@dataclass(frozen=True)
class Job:
    """A part of the comparison: its rows appear when it is run."""

    title: str
    run: Callable[[], None]


@dataclass
class Comparison:
    """What there is to compare for one request: run all `jobs`, then ask for `rows` and `notes`.

    `found`: rows by method; `base`: the one of them that a normal run makes; `tight`: why the registers do not suffice
    for a point of the method; `lost`: what else failed, and why.
    """

    request: Spec
    found: dict[str, list[Row]] = field(default_factory=dict)
    base: dict[str, Row] = field(default_factory=dict)
    tight: dict[str, str] = field(default_factory=dict)
    lost: dict[str, list[str]] = field(default_factory=dict)
    bench: Bench = field(init=False)

    def __post_init__(self) -> None:
        self.bench = Bench(self.request.contract, self.request.core)

    def jobs(self) -> list[Job]:
        """Everything to be made, one job for each kernel and each compiler's level."""
        found = []
        for name in [name for name in methods.names() if methods.does(name, self.request.contract.op)]:
            for point in points(self.request, name):
                found.append(Job(f"{name} {words(point.parameters)}", partial(self.make, point)))
        for compiler in self.request.contract.isa.compilers:
            for level in compiler.levels:
                found.append(Job(f"{compiler.name} {level}", partial(self.bench.add, compiler, level)))
        return found

    def make(self, point: Spec) -> None:
        """A proved kernel as a row, unless there is one with the same costs."""
        rows = self.found.setdefault(point.method, [])
        try:
            row = row_of(kernel.make(point))
        except PressureError as error:
            self.tight.setdefault(point.method, str(error))
            return
        except UserError as error:
            self.lost.setdefault(point.method, []).append(str(error))
            return
        self.base.setdefault(point.method, row)
        if row.costs not in [other.costs for other in rows]:
            rows.append(row)

    def rows(self) -> list[Row]:
        """sqgen's kernels from the fastest to the slowest, then what compilers made, the front marked."""
        ours = [
            row for name, rows in self.found.items() for row in rows if row == self.base[name] or undominated(row, rows)
        ]
        theirs = [compiled_row(built, measure) for built, measure in self.bench.right()]
        ordered = [*sorted(ours, key=order), *sorted(theirs, key=order), *map(public_row, self.public())]
        return [replace(row, front=undominated(row, ordered)) for row in ordered]

    def public(self) -> list[Public]:
        """What others have for this job, the fastest first."""
        what = self.request.contract
        known = public(what.isa, what.op, self.request.core)
        return [other for other in known if other.bits == self.request.bits]

    def standing(self) -> list[str]:
        """How the fastest kernel here stands beside the fastest of others."""
        others: dict[str, Public] = {}
        for other in self.public():
            others.setdefault(other.leaks, other)
        in_arms = [row for rows in self.found.values() for row in rows if row.note == BRANCHES]
        found = []
        for leaks, best in sorted(others.items()):
            alike = [*self.base.values(), *(in_arms if leaks else ())]
            own = (row.body if best.counts == "body" else row.call for row in alike)
            if ours := min(filter(None, own), default=None):
                what = f"that {leaks}" if leaks else "that leaks nothing"
                change = 100 * (ours - best.cycles) / best.cycles
                said = f"{best.who}, {best.cycles} by {best.counts} ({best.basis})"
                found.append(f"the fastest public code {what}: {said}; ours {change:+.1f} %")
        return found

    def notes(self) -> list[str]:
        """How others stand, and what there is no row for, and why."""
        lost = [f"{name}: {len(errors)} not made, the first: {errors[0]}" for name, errors in self.lost.items()]
        none = [f"{name}: {error}" for name, error in self.tight.items() if not self.found[name]]
        return self.standing() + none + lost + self.bench.remarks()

    @property
    def heading(self) -> str:
        """`256-bit squaring for atmega128`."""
        return job(self.request.contract, self.request.core)

    def records(self) -> list[dict[str, object]]:
        """The rows for programs."""
        return [asdict(row) for row in self.rows()]

    def facts(self) -> dict[str, object]:
        """Everything for programs."""
        what, core = self.request.contract, self.request.core
        asked = {"isa": what.isa.name, "core": core.name, "op": what.op, "bits": self.request.bits}
        return {**asked, "rows": self.records(), "notes": self.notes()}


def points(request: Spec, method: str) -> list[Spec]:
    """What a normal run would take, first, and the same with branches on signs, if the request allows these; then all
    combinations of words, with the best numbers known; then other numbers, one at a time, with each of these.  Points
    with the same plan are one, and there are at most `MOST`."""
    what, op = request.contract, request.contract.op
    row = answers.best(answers.rows(what.isa, method, op, request.bits))
    best = answers.given(row)
    taken = methods.method(method).PARAMETERS
    words = [[(word.name, choice) for choice in word.choices] for word in taken if word.choices]
    numbers = [
        (number.name, value)
        for number in taken
        if not (number.choices or number.text)
        for value in values(number, best.get(number.name, number.standard(what.limbs)), what.limbs)
    ]
    combined = [{**best, **dict(choice)} for choice in itertools.product(*words)]
    branches = request.allow_branches and SIGNS in methods.defaults(method, what.limbs)
    tried = [
        best,
        *(answers.given(form) for form in (branching(row) if branches else ())),
        *combined,
        *({**each, name: value} for name, value in numbers for each in combined),
    ]
    # A method for products that squares: one point shows what that is worth.  Parameters that chance found have no
    # neighbours worth a look, or it would have found them.
    if op not in methods.method(method).OPS or methods.searched(method):
        tried = [best]
    found: dict[object, Spec] = {}
    for parameters in tried:
        with contextlib.suppress(UserError):  # what the method refuses is no point
            plan = methods.plan(op, what.limbs, method, parameters)
            asked = spec(
                what.isa,
                request.bits,
                op=op,
                core=request.core.name,
                method=method,
                parameters=parameters,
                allow_branches=request.allow_branches,
            )
            if request.allow_branches or not plan.branches:  # else one path for all operands, like the others
                found.setdefault(plan.steps, asked)
        if len(found) == MOST:
            break
    return list(found.values())


def values(parameter: Parameter, known: str, limbs: int) -> list[str]:
    """A few values of a parameter that is a number, for operands of so many limbs: small ones, the neighbours of the
    best one known, the default."""
    near = [int(known) - 1, int(known) + 1] if known.isdigit() else []
    numbers = sorted({number for number in (*VALUES, *near) if 1 <= number <= 2 * limbs})
    return list(dict.fromkeys([*map(str, numbers), parameter.standard(limbs)]))


def row_of(made: kernel.Kernel) -> Row:
    """A proved kernel as a row."""
    plan = made.compiled.plan
    return Row(
        made_by="sqgen",
        method=plan.method,
        parameters=words(plan.parameters),
        body=made.price.body,
        call=made.price.call,
        bytes=made.size,
        stack=made.verdict.stack,
        proved=made.verdict.proved,
        note=BRANCHES if made.verdict.others else "",
    )


def compiled_row(built: Built, measure: Measure) -> Row:
    """A compiler's code as a row."""
    return Row(
        made_by=built.compiler,
        method=", ".join(f"-{level}" if level.startswith("O") else level for level in built.levels),
        parameters="",
        body=measure.price.body if measure.price else None,
        call=measure.price.call if measure.price else None,
        bytes=built.size,
        stack=measure.stack,
        proved=measure.proved,
        note=measure.remark,
    )


def public_row(other: Public) -> Row:
    """Public code as a row."""
    return Row(PUBLIC, other.who, "", other.body, other.call, other.bytes, None, proved=False, note=other.note)


def words(parameters: Iterable[tuple[str, str]]) -> str:
    return " ".join(shlex.quote(f"{name}={value}") for name, value in parameters)


def undominated(row: Row, rows: Iterable[Row]) -> bool:
    """Whether no row is as good in everything and better in something."""
    mine = row.costs
    others = [other.costs for other in rows if other.costs is not None]
    return mine is not None and not any(
        other != mine and all(theirs <= own for theirs, own in zip(other, mine, strict=True)) for other in others
    )


def order(row: Row) -> tuple[bool, int, int, str]:
    """Fastest first, what has no cycles last."""
    return row.call is None, row.call or 0, row.bytes or 0, row.name
