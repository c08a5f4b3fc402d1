"""Which kernels are tried for a request: what the search has found, or what is likely to be good."""

from __future__ import annotations

from collections.abc import Sequence

from . import answers, methods, padding
from .goals import ranked, small, value
from .idioms import idioms
from .spec import Spec

TIMES = {"speed": answers.BODY, "call": answers.CALL}  # goals that only time counts for, and which
FEW = 3  # rows of the front of another size that are tried; where limits are to be met, kernels that do
SIGNS, BRANCHING = "signs", ("branched", "everywhere")  # a parameter, and what it is where code branches on secrets
WORTH = 2  # times what the best of such a front is by the goal, what of another method is tried, too
NEAR = 1.1  # times the cycles of the best answer on another core, what may be better on the one that is asked for


def requests(spec: Spec) -> list[tuple[str, answers.Row]]:
    """(method, row) to try.  Where the search has been, what it found is enough."""
    isa, op = spec.contract.isa, spec.contract.op
    if spec.method != "auto":
        return [(spec.method, row) for row in points(spec, spec.method)]
    names = methods.names(op)
    known = [(name, row) for name, row in answers.known(isa, op, spec.bits, spec.core) if name in names]
    if spec.goal in TIMES and not spec.limited:
        if rows := idioms(isa).preferred(op, spec.contract.limbs, spec.core):
            return [(name, {**given}) for name, given in rows]
        if known:
            return near(spec, known) + in_other_forms(spec, known)
        beside = dict.fromkeys(neighbours(spec))
        if beside:
            return [(name, row) for name in beside for row in points(spec, name)]
    if spec.max_bytes is None:
        names = [name for name in names if methods.sought(name, spec.contract.limbs)]
    return of_fronts(spec, names, known) or [(name, row) for name in names for row in points(spec, name)]


def of_fronts(spec: Spec, names: Sequence[str], known: list[tuple[str, answers.Row]]) -> list[tuple[str, answers.Row]]:
    """What is to be tried of the methods of these names by the front of the nearest size that has one, if any has, the
    best first; if it is another size, what is `known` of this one, too, and within limits longer operands."""
    fronts = answers.fronts(spec.contract.isa, spec.contract.op, spec.core)
    if not fronts:
        return []
    nearest = min(fronts, key=lambda bits: (abs(bits - spec.bits), bits))
    front = [row for row in fronts[nearest] if row[answers.METHOD] in names]
    rows = from_front(spec, front, nearest)
    if nearest == spec.bits:
        return [(str(row[answers.METHOD]), row) for row in rows]
    fastest = min(front, key=lambda row: answers.costs(row)[1])
    far = fastest not in rows if spec.limited else value(spec, fastest) > WORTH * value(spec, rows[0])
    longer = padding.padded(spec) if spec.limited else []
    own = padding.worthwhile(spec, rows, nearest, longer)
    return [
        *((padding.NAME, row) for row in longer),
        *([] if far else near(spec, known)),
        *((str(row[answers.METHOD]), moved(spec, str(row[answers.METHOD]), row)) for row in own),
    ]


def with_branches(spec: Spec, found: list[tuple[str, answers.Row]]) -> list[tuple[str, answers.Row]]:
    """The same, and before each its forms with branches on signs where these are allowed, nothing else is said, and the
    method can; also those of what is nearly the best without.

    They save some hundredths of the cycles for a third more bytes: where both count, none is tried.
    """
    if not spec.allow_branches or spec.parameters or not (spec.goal in TIMES or spec.limited):
        return found
    what = spec.contract
    known = list(answers.known(what.isa, what.op, spec.bits, spec.core)) if spec.method == "auto" else []
    nearly = not_far_off(known, TIMES.get(spec.goal, answers.CALL))

    def forms(name: str, row: answers.Row) -> list[answers.Row]:
        return branching(row) if SIGNS in methods.defaults(name, what.limbs) else []

    every = [(name, each) for name, row in found for each in (*forms(name, row), row)]
    return every + [(name, form) for name, row in nearly for form in forms(name, row)]


def branching(row: answers.Row) -> list[answers.Row]:
    """A row's forms for code that branches, the best if that is known: what they cost is not, and registers may be
    looked for in another way."""
    what_branches = (answers.BRANCHING, answers.BRANCHED)
    free = {key: value for key, value in row.items() if key not in (*answers.COSTS, *what_branches)}
    if answers.BRANCHED in row:
        free[methods.REGISTERS.name] = row[answers.BRANCHED]
    forms = (row[answers.BRANCHING],) if answers.BRANCHING in row else BRANCHING
    return [{**free, SIGNS: form} for form in forms]


def alike_but_signs(one: answers.Row, other: answers.Row) -> bool:
    """Whether these say the same but of signs: where no function is called, it may be that code is the same, too."""
    return {**one, SIGNS: ""} == {**other, SIGNS: ""}


def neighbours(spec: Spec) -> list[str]:
    """The methods that are the fastest at the nearest sizes, below and above, that the search has been run for."""
    isa, op = spec.contract.isa, spec.contract.op
    found = []
    for step in (-isa.limb_bits, isa.limb_bits):
        sizes = (spec.bits + step * distance for distance in range(1, spec.contract.limbs))
        fastest = (answers.fastest(isa, op, bits, TIMES[spec.goal], spec.core) for bits in sizes)
        found.append(next(filter(None, fastest), None))
    return [name for name in found if name]


def from_front(spec: Spec, rows: Sequence[answers.Row], bits: int) -> list[answers.Row]:
    """What is to be tried of the front of a size: what is the best there, and what is the smallest; if the size or the
    core is another one, or registers are to be left alone, a few that are nearly the best as well."""
    exact = bits == spec.bits and alike(spec)
    scale = 1 if exact else bits / spec.bits  # bytes grow a little faster than this, or their square where unrolled

    fitting = [row for row in rows if small(spec, row, scale)]
    ordered = sorted(fitting, key=lambda row: ranked(spec, *answers.costs(row)[:3]))
    least = [min(rows, key=lambda row: int(row[what])) for what in (answers.BYTES, answers.STACK)]
    if exact and ordered and not spec.reserve:
        return ordered[:1]
    if spec.limited or not ordered:
        return [*ordered, *least]
    return [*ordered[:FEW], *of_other_methods(spec, ordered)]


def of_other_methods(spec: Spec, ordered: Sequence[answers.Row]) -> list[answers.Row]:
    """The best of each method that has none among the first few, if it is worth a try: another size may suit it."""
    best, names, found = value(spec, ordered[0]), {row[answers.METHOD] for row in ordered[:FEW]}, []
    for row in ordered[FEW:]:
        if row[answers.METHOD] not in names and value(spec, row) <= WORTH * best:
            names.add(row[answers.METHOD])
            found.append(row)
    return found


def moved(spec: Spec, name: str, row: answers.Row) -> answers.Row:
    """A row of another size for this one: parameters that were searched by chance are of no use there."""
    if methods.searched(name):
        return answers.best(answers.rows(spec.contract.isa, name, spec.contract.op, spec.bits, spec.core))
    return row


def points(spec: Spec, name: str) -> list[answers.Row]:
    """The parameters to try: those given, else the best known, and what makes the method small where that matters."""
    if spec.parameters:
        return [{**dict(spec.parameters)}]
    known = [(name, row) for row in answers.rows(spec.contract.isa, name, spec.contract.op, spec.bits, spec.core)]
    likely: answers.Row = {**methods.points(name, spec.contract.limbs)[0]}
    found: list[answers.Row] = [row for _, row in near(spec, known)] or [likely]
    if spec.reserve:  # other forms may need fewer registers
        found += [{**given} for given in methods.points(name, spec.contract.limbs)]
    if spec.goal in TIMES and spec.max_bytes is None:
        return found
    small: list[answers.Row] = [{**given} for given in methods.compact(name, spec.contract.limbs)]
    return found + small


def near(spec: Spec, known: list[tuple[str, answers.Row]]) -> list[tuple[str, answers.Row]]:
    """The (method, row) that may be the best: one on the core that the search was for, on others those not far off, and
    all where interrupts are to be off for a column at a time, which not all have, or where registers are to be left
    alone, for there may be too few for the best."""
    if spec.core.brief or spec.reserve:
        return known
    ordered = not_far_off(known, TIMES.get(spec.goal, answers.CALL))
    return ordered[:1] if alike(spec) else ordered


def in_other_forms(spec: Spec, known: list[tuple[str, answers.Row]]) -> list[tuple[str, answers.Row]]:
    """Where registers are to be left alone the best method with other parameters, which may need fewer."""
    if not spec.reserve:
        return []
    best = not_far_off(known, TIMES[spec.goal])[0][0]
    return [(best, row) for row in points(spec, best)]


def not_far_off(known: list[tuple[str, answers.Row]], what: str) -> list[tuple[str, answers.Row]]:
    """The (method, row) that take little more of what counts than the best, the best first."""
    ordered = sorted(known, key=lambda each: (each[1][what], each[0]))
    return [each for each in ordered if int(each[1][what]) <= NEAR * int(ordered[0][1][what])]


def alike(spec: Spec) -> bool:
    """Whether the core takes the cycles of the one for which the answers are, but for calls and returns, and has no
    more than that."""
    isa = spec.contract.isa
    mine, its = spec.core.timing, isa.core(spec.core.answers or isa.default_core).timing
    return its in (mine, isa.timings[mine].like) and not isa.notes(spec.core)
