"""Which code is made for a request: what could be asked for is compiled, and the best by goal and limits is taken."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from . import answers, measure, methods
from .attempts import (
    FEW,
    WORTH,
    alike,
    alike_but_signs,
    in_order,
    points,
    requests,
    with_branches,
    without_limits,
)
from .compile import Compiled, compile_plan
from .errors import Exit, UserError
from .garbage import uncollected
from .goals import ranked
from .idioms import idioms
from .plan import Plan
from .spec import Spec
from .table import Isa


def choose(spec: Spec, compiled: Callable[[Spec], Sequence[Compiled]] | None = None) -> Compiled:
    """Compile what could be asked for, which `compiled` may know already, and pick by goal and limits; the part's flash
    is one, too."""
    compiled = compiled or candidates
    found, room = compiled(spec), room_of(spec)
    chosen = picked(spec, found)
    if room is None or len(chosen.image) <= room:
        return chosen
    limited = replace(spec, max_bytes=room)
    whole = not spec.limited and requests(limited) == requests(spec)
    return picked(limited, found if whole else compiled(limited))


def picked(spec: Spec, found: Sequence[Compiled]) -> Compiled:
    """Of what was compiled, what the goal wants and the limits allow.  Raises UserError if that is nothing."""
    fitting = [each for each in found if fits(spec, each)]
    if not fitting:
        raise UserError(missed(spec, found), Exit.LIMITS)
    if spec.goal == "size":
        least = min(len(each.image) for each in fitting)
        fitting = [each for each in fitting if len(each.image) == least]
    if len(fitting) == 1:  # ranking code with loops means running it
        return fitting[0]
    return min(fitting, key=lambda each: (rank(spec, each), each.plan.method, each.plan.branches))


@uncollected()
def candidates(spec: Spec) -> list[Compiled]:
    """Kernels that come into question; where registers are to be left alone, and none of those that should be good can
    do that, those of all methods.  Raises UserError if none compiles."""
    if free := without_limits(spec):
        found, _ = tried(spec, with_branches(spec, requests(free)), spec.max_bytes or math.inf)
        if any(fits(spec, each) for each in found):
            return found
    found, failures = tried(spec, with_branches(spec, requests(spec)))
    if not found and spec.reserve and spec.method == "auto":
        found, _ = tried(spec, [(name, points(spec, name)[0]) for name in methods.names(spec.contract.op)])
        which = ", ".join(spec.reserve)
        failures = [UserError(f"no method leaves {which} alone; reserve fewer registers, or others", Exit.LIMITS)]
    if not found:
        raise failures[0]
    return found


def tried(
    spec: Spec, rows: Iterable[tuple[str, answers.Row]], limit: float = math.inf
) -> tuple[list[Compiled], list[UserError]]:
    """What can be compiled of these (method, row), each once, in no more bytes than that, and why others cannot."""
    what, isa = spec.contract, spec.contract.isa
    failures: list[UserError] = []
    found: list[Compiled] = []
    fitting = 0
    few = spec.limited and in_order(spec)  # and it is not known whether they fit
    plans = planned(spec, rows, failures)
    for least, made, row in plans if few else sorted(plans, key=lambda each: (each[0], not each[1].branches)):
        if fitting >= FEW:
            break
        most = min(limit, worthwhile(spec, found))
        if least > most or beaten(spec, row, found, least):
            continue
        goal = str(row.get(answers.GOAL, spec.goal))
        try:
            found.append(
                compile_plan(made, isa, goal, spec.core, spec.reserve, alone=what.alone, wiped=what.wiped, most=most)
            )
            fitting += few and not made.copies and fits(spec, found[-1])  # which of loops takes a run to see
        except UserError as error:
            failures.append(error)
    return found, failures


def planned(
    spec: Spec, rows: Iterable[tuple[str, answers.Row]], failures: list[UserError]
) -> Iterator[tuple[int, Plan, answers.Row]]:
    """(bytes at least, plan, row) of these (method, row), each once, and none that the instruction set's idioms do not
    form if there are others; why there is none of some is added to the `failures`."""
    plans: list[tuple[Plan, answers.Row]] = []
    unformed: list[tuple[Plan, answers.Row]] = []
    each_once = {(name, row.get(answers.GOAL), *sorted(answers.given(row).items())): (name, row) for name, row in rows}
    for name, row in each_once.values():
        try:
            made = plan(spec, name, answers.given(row))
        except UserError as error:
            failures.append(error)
            continue
        twins = (other for other, its in plans if other.method == made.method and alike_but_signs(row, its))
        if all(made.steps != other.steps for other in twins):
            if idioms(spec.contract.isa).forms(made, spec.core):
                plans.append((made, row))
                yield least_bytes(made, spec.contract.isa), made, row
            else:
                unformed.append((made, row))
    yield from ((0, made, row) for made, row in (() if plans else unformed))  # and it is said why not


def least_bytes(which: Plan, isa: Isa) -> int:
    """Bytes that the plan's products take at least: a multiplication and two additions each, a function's once; nothing
    is known of loops."""
    called = {part.plan.key: part.plan for part in which.parts() if part.called or part.shared}
    in_place = [part.plan for part in which.parts() if not part.called and not part.shared]
    own = 0 if which.loops else sum(1 for _ in which.products()) * 3 * isa.code_unit
    return own + sum(least_bytes(part, isa) for part in (*called.values(), *in_place))


def worthwhile(spec: Spec, found: list[Compiled]) -> float:
    """Bytes above which another kernel cannot be what is wanted."""
    sizes = [len(each.image) for each in found]
    if not found or (spec.max_stack is not None and spec.max_bytes is None):
        return math.inf
    limits = [math.inf]
    if spec.max_bytes is not None:  # while none fits, only a smaller one is of interest
        limits.append(spec.max_bytes if min(sizes) <= spec.max_bytes else min(sizes))
    if spec.goal == "size":
        limits += [len(each.image) for each in found if fits(spec, each)]
    return min(limits)


def beaten(spec: Spec, row: answers.Row, found: list[Compiled], least: int) -> bool:
    """Whether one of these, which meets the limits, is better than the row's kernel can be, which takes the cycles that
    the row says and so many bytes at least; on a core that takes others, so much better that it hardly matters."""
    if spec.goal == "size" or answers.BODY not in row:
        return False
    best, worth = ranked(spec, int(row[answers.BODY]), int(row[answers.CALL]), least)[0], 1 if alike(spec) else WORTH
    return any(rank(spec, each)[0] * worth < best for each in found if fits(spec, each))


def plan(spec: Spec, method: str, parameters: dict[str, str]) -> Plan:
    """The method's plan; its parts get the parameters that are known to be good.

    Raises UserError for one that branches on secrets and may not.
    """
    isa = spec.contract.isa
    known = functools.partial(answers.of_part, isa, core=spec.core)
    found = methods.plan(spec.contract.op, spec.contract.limbs, method, parameters, known)
    if found.branches and not spec.allow_branches:
        raise UserError(
            "signs=branched and signs=everywhere branch on the sign of a difference; --allow-branches permits that"
        )
    return found


def rank(spec: Spec, compiled: Compiled) -> tuple[int, int]:
    """What the goal wants small, and then what decides between equals."""
    price = measure.price(compiled, spec.core)
    return ranked(spec, price.body, price.call, len(compiled.image))


def fits(spec: Spec, compiled: Compiled) -> bool:
    size_fits = spec.max_bytes is None or len(compiled.image) <= spec.max_bytes
    return size_fits and (spec.max_stack is None or measure.stack(compiled, spec.core) <= spec.max_stack)


def room_of(spec: Spec) -> int | None:
    """Bytes of code that any part with the core can hold, None where that is no limit."""
    return idioms(spec.contract.isa).room(spec.core)


def missed(spec: Spec, found: Sequence[Compiled]) -> str:
    """By how much the limits are missed; on the stack, by what meets the other one, if anything does."""
    parts = []
    full = spec.max_bytes == room_of(spec)
    limited = f"the flash of {spec.core.name} holds, which is" if full else "--max-bytes"
    short = [each for each in found if len(each.image) <= (spec.max_bytes or math.inf)] or found
    which = f"the smallest known{'' if spec.max_bytes is None or short is found else ' in so many bytes'}"
    size: Callable[[Compiled], int]
    for limit, option, known, its, size in (
        (spec.max_bytes, limited, "the smallest known", found, lambda each: len(each.image)),
        (spec.max_stack, "--max-stack", which, short, lambda each: measure.stack(each, spec.core)),
    ):
        if limit is None:
            continue
        least = min(its, key=size)
        if size(least) > limit:
            parts.append(
                f"{known} takes {size(least)} bytes ({least.plan.method}),"
                f" {size(least) - limit} more than {option} {limit}"
            )
    advice = "; take another method, a smaller size or a larger part" if full else ""
    detail = " and ".join(parts) or "no one kernel meets both limits"
    return f"no kernel for {spec.bits}-bit {spec.contract.op} on {spec.core.name} meets the limits: {detail}{advice}"
