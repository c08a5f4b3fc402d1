"""A request to a proved kernel: the way of the data, from one end to the other."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from . import answers, measure, methods
from .attempts import (
    FEW,
    TIMES,
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
from .contract import Verdict
from .digest import proof_digest, sha256
from .errors import Exit, UserError
from .garbage import uncollected
from .goals import ranked, value
from .idioms import idioms
from .plan import Plan
from .prove import longest, prove
from .residue import Residue, residue
from .spec import Spec
from .table import Isa, Timing
from .timing import Price, most_among, prices


@dataclass(frozen=True)
class Kernel:
    """A proved kernel.  `prices` holds the cycles by timing column, the requested core's own first; columns in which
    its paths differ, if it has several, are left out."""

    spec: Spec
    compiled: Compiled
    verdict: Verdict
    prices: tuple[tuple[Timing, Price], ...]
    clobbers: tuple[str, ...]

    @property
    def price(self) -> Price:
        return self.prices[0][1]

    @property
    def size(self) -> int:
        """Bytes of code."""
        return len(self.compiled.image)

    @property
    def improvable(self) -> bool:
        """Whether `--search` may better it: it was asked to be fast, and its size has not been searched."""
        spec, what = self.spec, self.spec.contract
        if spec.goal not in TIMES or spec.limited or spec.parameters:
            return False
        known = [name for name, _ in answers.known(what.isa, what.op, spec.bits, spec.core)]
        if spec.method == "auto":
            return not known
        return spec.method not in known and bool(methods.method(spec.method).PARAMETERS)

    @property
    def sha256(self) -> str:
        """Of the code."""
        return sha256(self.compiled.image)

    @property
    def variable(self) -> tuple[str, ...]:
        """Instructions in it whose cycles depend on operands, on the core that it is made for."""
        isa = self.spec.contract.isa
        used = (isa.insns[name] for name in compiled_insns(self.compiled))
        return tuple(insn.name for insn in used if not isa.constant_time(insn, self.spec.core))

    @functools.cached_property
    def interrupts_off(self) -> int:
        """Cycles for which it keeps interrupts off at most: from behind the instruction that turns them off to the end
        of the one that gives them back."""
        spec, verdict = self.spec, self.verdict
        isa, image = spec.contract.isa, self.compiled.image
        return max(most_among(isa, spec.core, image, path, verdict.masked) for path in (verdict.path, *verdict.others))

    @functools.cached_property
    def residue(self) -> Residue:
        """What may be left of the operands on return."""
        paths = (self.verdict.path, *self.verdict.others)
        return residue(self.compiled.image, self.spec.contract, self.spec.core, paths)

    @property
    def digest(self) -> str:
        """Of what was proved: the contract, the code, the table it was read by, and the verdict."""
        return proof_digest(
            self.spec.contract,
            self.spec.core,
            self.compiled.image,
            cases=self.verdict.cases,
            stack=self.verdict.stack,
            overlap=self.verdict.overlap,
            paths=self.verdict.ways,
            variable=self.variable,
        )


def make(spec: Spec) -> Kernel:
    """The best kernel for the request, proved.  Raises UserError: limits nobody meets, or a failed proof."""
    compiled = choose(spec)
    return described(spec, compiled, proved(spec, compiled))


def proved(spec: Spec, compiled: Compiled) -> Verdict:
    """What the proof says of code.  Raises UserError if it fails, or the code is longer than what is walked."""
    made, most = len(compiled.lines), longest(spec.contract)
    if made > most and not spec.allow_branches:  # else each instruction is executed
        raise UserError(
            f"method '{compiled.plan.method}' makes {made:,} instructions here, and a proof walks at most {most:,};"
            " take --method auto, or a smaller size",
            Exit.LIMITS,
        )
    verdict = prove(compiled.image, spec.contract, spec.core, branches=spec.allow_branches)
    if verdict.fault:
        raise UserError(
            f"the proof failed at {verdict.fault}; this is a fault of sqgen, please report it", Exit.UNPROVED
        )
    return verdict


def described(spec: Spec, compiled: Compiled, verdict: Verdict) -> Kernel:
    """Code and its proof with what they cost."""
    isa = spec.contract.isa
    used = [isa.insns[name] for name in compiled_insns(compiled)]
    by_timing = {
        core.timing: core
        for core in isa.cores.values()
        if all(insn.name not in core.lacks and isa.constant_time(insn, core) for insn in used)
    }
    by_timing = {spec.core.timing: spec.core, **{k: v for k, v in by_timing.items() if k != spec.core.timing}}
    cores = list(by_timing.values())
    costs = prices(isa, cores, compiled.image, verdict.path)
    others = [prices(isa, cores, compiled.image, path) for path in verdict.others]
    arms = [[prices(isa, cores, compiled.image, path) for path in paths] for paths in verdict.arms]
    equal = [
        all(other[column].cycles == cost.cycles for other in others)
        and all(one[column].call == paths[0][column].call for paths in arms for one in paths)
        for column, cost in enumerate(costs)
    ]
    clobbers = tuple(register for register in compiled.written if register not in isa.abi.callee_saved)
    columns = zip(by_timing, costs, equal, strict=True)
    by_column = tuple((isa.timings[timing], cost) for timing, cost, same in columns if same)
    return Kernel(spec, compiled, verdict, by_column, clobbers)


def compiled_insns(compiled: Compiled) -> list[str]:
    """Names of the instructions in a kernel, in order of first use."""
    return list(dict.fromkeys(line.instr.insn.name for line in compiled.lines))


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
    if spec.max_stack is not None or not found:
        return math.inf
    sizes = [len(each.image) for each in found]
    limits = [math.inf]
    if spec.max_bytes is not None:  # while none fits, only a smaller one is of interest
        limits.append(spec.max_bytes if min(sizes) <= spec.max_bytes else min(sizes))
    if spec.goal == "size":
        limits += [len(each.image) for each in found if fits(spec, each)]
    return min(limits)


def beaten(spec: Spec, row: answers.Row, found: list[Compiled], least: int) -> bool:
    """Whether one of these is better than the row's kernel can be, which takes the cycles that the row says and at
    least so many bytes; where limits are met, so much better than a row of a front that its size hardly matters."""
    if spec.limited and answers.BYTES in row:
        return any(rank(spec, each)[0] * WORTH < value(spec, row) for each in found if fits(spec, each))
    other_size = spec.goal == "balanced" and answers.BYTES in row  # of a front
    if spec.goal == "size" or spec.limited or other_size or answers.BODY not in row or not alike(spec):
        return False
    best = ranked(spec, int(row[answers.BODY]), int(row[answers.CALL]), least)[0]
    return any(rank(spec, each)[0] < best for each in found)


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
    """By how much the limits are missed."""
    parts = []
    full = spec.max_bytes == room_of(spec)
    limited = f"the flash of {spec.core.name} holds, which is" if full else "--max-bytes"
    size: Callable[[Compiled], int]
    for limit, option, size in (
        (spec.max_bytes, limited, lambda each: len(each.image)),
        (spec.max_stack, "--max-stack", lambda each: measure.stack(each, spec.core)),
    ):
        if limit is None:
            continue
        least = min(found, key=size)
        if size(least) > limit:
            parts.append(
                f"the smallest known takes {size(least)} bytes ({least.plan.method}),"
                f" {size(least) - limit} more than {option} {limit}"
            )
    advice = "; take another method, a smaller size or a larger part" if full else ""
    detail = " and ".join(parts) or "no one kernel meets both limits"
    return f"no kernel for {spec.bits}-bit {spec.contract.op} on {spec.core.name} meets the limits: {detail}{advice}"
