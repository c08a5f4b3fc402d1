"""Which kernels are tried for a request: what the search has found, or what is likely to be good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import answers, methods, padding
from .goals import limits, ranked, small, value
from .idioms import idioms
from .spec import Spec
from .table import Core

TIMES = {"speed": answers.BODY, "call": answers.CALL}  # goals that only time counts for, and which
FEW = 3  # rows of the front of another size that are tried; where limits are to be met, kernels that do
SIGNS, BRANCHING = "signs", ("branched", "everywhere")  # a parameter, and what it is where code branches on secrets
IN_ONE_PIECE = 8  # limbs up to which code without loops and calls may be the shortest
WORTH = 2  # times what the best of such a front is by the goal, what of another method is tried, too
HOPELESS = 8  # the same for what is not tried even if there is little else
NEAR = 1.1  # times the cycles of the best answer on another core, what may be better on the one that is asked for


def requests(spec: Spec) -> list[tuple[str, answers.Row]]:
    """(method, row) to try, of the method that is named or of all."""
    if spec.parameters:
        return [(spec.method, {**dict(spec.parameters)})]
    fast = fastest(spec)
    return fast if fast and spec.goal in TIMES and not spec.limited else smaller(spec, fast)


def fastest(spec: Spec) -> list[tuple[str, answers.Row]]:
    """What is likely to be the fastest.  Where the search has been, what it found is enough; else it is what the method
    that is named has itself, or those have that are the fastest at the nearest sizes."""
    if good := preferred(spec):
        return good
    if known := searched(spec):
        return near(spec, known) + in_other_forms(spec, known)
    names = neighbours(spec) if spec.method == "auto" else [spec.method]
    return [(name, row) for name in dict.fromkeys(names) for row in points(spec, name)]


def smaller(spec: Spec, fast: list[tuple[str, answers.Row]]) -> list[tuple[str, answers.Row]]:
    """What is to be tried where something else counts than time, or where limits are to be met: what the fronts say, or
    all methods, but for code that can only be longer than the `fast`."""
    names, auto, good = named(spec), spec.method == "auto", preferred(spec)
    if auto and not spec.limited:
        names = [name for name in names if methods.sought(name, spec.contract.limbs)]
    on_front = of_fronts(spec, names)
    if auto and on_front:
        return on_front
    if auto and fast and (spec.max_stack is None if good else beyond(spec)):
        return fast + [(name, {**given}) for name in names for given in methods.compact(name, spec.contract.limbs)]
    return good + on_front + [(name, row) for name in names for row in points(spec, name)]


def named(spec: Spec) -> list[str]:
    """The methods that come into question."""
    return methods.names(spec.contract.op) if spec.method == "auto" else [spec.method]


def preferred(spec: Spec) -> list[tuple[str, answers.Row]]:
    """What the instruction set's idioms say is good on the core; what is shorter than that is in loops."""
    what = spec.contract
    rows = idioms(what.isa).preferred(what.op, what.limbs, spec.core)
    return [(name, {**given}) for name, given in rows if name in named(spec)]


def searched(spec: Spec) -> list[tuple[str, answers.Row]]:
    """What the search has found for the size."""
    known = answers.known(spec.contract.isa, spec.contract.op, spec.bits, spec.core)
    return [(name, row) for name, row in known if name in named(spec)]


def beyond(spec: Spec) -> bool:
    """Whether operands are so long that what is shorter than the fastest is in loops or calls, and nobody asks for what
    is just a little shorter."""
    return not spec.limited and spec.contract.limbs > IN_ONE_PIECE


def in_order(spec: Spec) -> bool:
    """Whether what is to be tried comes in the order of what is known of it, the best first."""
    return bool(answers.fronts(spec.contract.isa, spec.contract.op, spec.core))


def without_limits(spec: Spec) -> Spec | None:
    """The request for what is the fastest of all, which may meet the limits; None if nothing else is asked for, or if
    it is known what is the fastest of what does."""
    if spec.goal not in TIMES or not spec.limited or spec.parameters:
        return None
    measured = spec.bits in answers.fronts(spec.contract.isa, spec.contract.op, spec.core)
    if spec.method == "auto" and measured and same(spec):
        return None
    return replace(spec, max_bytes=None, max_stack=None)


def of_fronts(spec: Spec, names: list[str]) -> list[tuple[str, answers.Row]]:
    """What is to be tried of the methods of these names by the front of the nearest size that has one, if any has, the
    best first; if it is another size, what was found for this one, too, and longer operands if time is not all."""
    fronts = answers.fronts(spec.contract.isa, spec.contract.op, spec.core)
    if not fronts:
        return []
    nearest = min(fronts, key=lambda bits: (abs(bits - spec.bits), bits))
    front = [row for row in fronts[nearest] if row[answers.METHOD] in names]
    if not front:  # of a method that is named
        return []
    rows = from_front(spec, front, nearest)
    if nearest == spec.bits:
        return [(str(row[answers.METHOD]), row) for row in rows]
    timed = spec.goal in TIMES
    longer = padding.padded(spec) if padding.NAME in names and (spec.limited or not timed) else []
    least = [padding.at_least(spec, row, nearest) for row in rows]
    own, known = moved(spec, padding.worthwhile(spec, least, longer)), searched(spec)
    padded = [(padding.NAME, row) for row in longer]
    if spec.limited and timed:
        its = [each for each in known if any(row[answers.METHOD] == each[0] for row in front)]
        return padded + sorted([*own, *its], key=lambda each: int(each[1][counted(spec)]))  # as is likely
    fastest = min(front, key=lambda row: answers.costs(row)[1])
    far = fastest not in rows if spec.limited else value(spec, fastest) > WORTH * value(spec, rows[0])
    return padded + ([] if far else near(spec, known)) + own


def with_branches(spec: Spec, found: list[tuple[str, answers.Row]]) -> list[tuple[str, answers.Row]]:
    """The same, and before each its forms with branches on signs where these are allowed, nothing else is said, and the
    method can; also those of what is nearly the best without.

    They save some hundredths of the cycles for a third more bytes: where both count, none is tried.
    """
    if not spec.allow_branches or spec.parameters or not (spec.goal in TIMES or spec.limited):
        return found
    what = spec.contract
    known = searched(spec) if spec.method == "auto" else []
    nearly = not_far_off(known, counted(spec))

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
        fastest = (answers.fastest(isa, op, bits, counted(spec), spec.core) for bits in sizes)
        found.append(next(filter(None, fastest), None))
    return [name for name in found if name]


def from_front(spec: Spec, rows: Sequence[answers.Row], bits: int) -> list[answers.Row]:
    """What is to be tried of the front of a size: what is the best there; if the size or the core is another one, or
    registers are to be left alone, a few that are nearly the best as well, or all that may meet limits, and what takes
    the least of what is limited."""
    exact = bits == spec.bits and same(spec)
    scale = 1 if exact else bits / spec.bits  # bytes grow a little faster than this, or their square where unrolled

    fitting = [row for row in rows if small(spec, row, scale)]
    ordered = sorted(fitting, key=lambda row: ranked(spec, *answers.costs(row)[:3]))
    if exact and ordered and not spec.reserve:
        return ordered[:1]
    if spec.limited:
        return ordered + [min(rows, key=lambda row: int(row[what])) for what, _ in limits(spec)]
    few = [row for row in ordered[:FEW] if value(spec, row) <= HOPELESS * value(spec, ordered[0])]
    return few + of_other_methods(spec, ordered)


def of_other_methods(spec: Spec, ordered: Sequence[answers.Row]) -> list[answers.Row]:
    """The best of each method that has none among the first few, if it is worth a try: another size may suit it."""
    best, names, found = value(spec, ordered[0]), {row[answers.METHOD] for row in ordered[:FEW]}, []
    for row in ordered[FEW:]:
        if row[answers.METHOD] not in names and value(spec, row) <= WORTH * best:
            names.add(row[answers.METHOD])
            found.append(row)
    return found


def moved(spec: Spec, rows: Sequence[answers.Row]) -> list[tuple[str, answers.Row]]:
    """(method, row) for rows of another size: parameters that were searched by chance are of no use at this one."""
    isa, op = spec.contract.isa, spec.contract.op

    def own(name: str, row: answers.Row) -> answers.Row:
        if not methods.searched(name):
            return row
        cycles = {what: row[what] for what in (answers.BODY, answers.CALL)}
        return cycles | answers.best(answers.rows(isa, name, op, spec.bits, spec.core))

    return [(name, own(name, row)) for row in rows for name in [str(row[answers.METHOD])]]


def points(spec: Spec, name: str) -> list[answers.Row]:
    """The parameters to try: the best known, and what makes the method small where that matters."""
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
    ordered = not_far_off(known, counted(spec))
    return ordered[:1] if same(spec) or (alike(spec) and counted(spec) == answers.BODY) else ordered


def in_other_forms(spec: Spec, known: list[tuple[str, answers.Row]]) -> list[tuple[str, answers.Row]]:
    """Where registers are to be left alone the best method with other parameters, which may need fewer."""
    if not spec.reserve:
        return []
    best = not_far_off(known, counted(spec))[0][0]
    return [(best, row) for row in points(spec, best)]


def counted(spec: Spec) -> str:
    """Which cycles the goal is about: those of a call, if it does not say."""
    return TIMES.get(spec.goal, answers.CALL)


def not_far_off(known: list[tuple[str, answers.Row]], what: str) -> list[tuple[str, answers.Row]]:
    """The (method, row) that take little more of what counts than the best, the best first."""
    ordered = sorted(known, key=lambda each: (each[1][what], each[0]))
    return [each for each in ordered if int(each[1][what]) <= NEAR * int(ordered[0][1][what])]


def alike(spec: Spec) -> bool:
    """Whether the core takes the cycles of the one for which the answers are, but for calls and returns, and has no
    more than that."""
    isa, core, its = spec.contract.isa, spec.core, its_core(spec)
    own = (insn for insn in isa.on(core) if insn.control[:1] not in (("call",), ("return",)))
    return all(isa.cycles(insn, core) == isa.cycles(insn, its) for insn in own) and not isa.notes(core)


def same(spec: Spec) -> bool:
    """Whether it takes all of its cycles, those of calls and returns as well."""
    return its_core(spec).timing == spec.core.timing and not spec.contract.isa.notes(spec.core)


def its_core(spec: Spec) -> Core:
    """The core that the answers are for."""
    isa = spec.contract.isa
    return isa.core(spec.core.answers or isa.default_core)
