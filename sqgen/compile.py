"""The way from a plan to bytes: lower, allocate, finish, frame, encode, with the check after each."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from . import allocate, frame, methods, replay, wiping
from .code import Code, Function, Op, check_flags
from .encode import EncodeError, assemble
from .errors import Exit, UserError
from .idioms import Idioms, idioms
from .layout import Line, layout
from .looking import looking
from .plan import Plan, Run
from .residence import PressureError
from .table import Core, Isa


@dataclass(frozen=True)
class Compiled:
    """A kernel's code at every stage.  `written` are the registers its body changes, in register order, `lines` its
    instructions in order, `image` their bytes; `alone`: as the contract has it."""

    plan: Plan
    isa: Isa
    code: Code
    registers: Code
    written: tuple[str, ...]
    lines: tuple[Line, ...]
    image: bytes
    alone: bool = False

    @property
    def straight(self) -> bool:
        """Whether every instruction runs once."""
        return not any(line.target for line in self.lines)


def compile_plan(
    plan: Plan,
    isa: Isa,
    goal: str = "speed",
    core: Core | None = None,
    reserve: Sequence[str] = (),
    *,
    alone: bool = False,
    wiped: bool = False,
    most: float = math.inf,
) -> Compiled:
    """Bytes for a plan on a core, or the default one, not yet proved.  For the goal `speed` saved registers are free;
    those to `reserve` are left alone.  `alone`, `wiped`: as the contract has it.  Of what is seen to take more than
    `most` bytes no registers are chosen, which is most of the work.

    Raises PressureError where the registers do not suffice, UserError for parts that the instruction set's idioms
    cannot form, or that lie too far apart, and for what takes too many bytes.
    """
    rules, core = idioms(isa), core or isa.core(isa.default_core)
    if not rules.forms(plan, core):
        raise unformed(rules, plan, isa, core)
    code = without(rules.lower(plan, isa, core, reserve), reserve)
    if most < math.inf and (least := least_length(code, isa)) > most:
        raise UserError(f"method '{plan.method}' takes {least} bytes and more", Exit.LIMITS)
    try:
        allocated = allocate.allocate_all(
            code.functions,
            frame.prices(isa, goal, core),
            isa.pairs(),
            grouped=isa.chained(core),
            far=looking(plan),
        )
    except PressureError as error:
        raise PressureError(f"{error}; choose {remedy(plan)} or a smaller size", Exit.LIMITS) from None
    for function, done in zip(code.functions, allocated, strict=True):
        replay.verify(function, done)
    registers = finish(rules, allocated, isa)
    written = frame.written([op for function in registers.functions for op in function.ops], isa)
    if taken := [register for register in written if register in reserve]:
        raise UserError(f"method '{plan.method}' cannot leave {', '.join(taken)} alone; take another one", Exit.LIMITS)
    compiled = framed(Compiled(plan, isa, code, registers, written, (), b"", alone), core, ())
    return framed(compiled, core, wiping.ops(compiled, core)) if wiped else compiled


def least_length(code: Code, isa: Isa) -> int:
    """Bytes that the code takes at least: two moves may become one, and where an instruction takes a list of registers,
    so may loads and stores."""
    listed = any(operand.kind == "list" for insn in isa.insns.values() for operand in insn.operands)
    kept = {name for name, insn in isa.insns.items() if insn.kind != "move"} | (set() if listed else {"load", "store"})
    return isa.code_unit * sum(op.insn in kept for function in code.functions for op in function.ops)


def framed(compiled: Compiled, core: Core, last: Sequence[Op]) -> Compiled:
    """The same with lines and bytes: what the ABI wants saved is saved before the body, and restored behind its `last`
    operations, which need no register saved.

    Raises UserError where jumps do not reach.
    """
    isa, plan = compiled.isa, compiled.plan
    saved = [register for register in compiled.written if register in isa.abi.saved]
    before, after = idioms(isa).frame(saved, core, alone=compiled.alone)
    entry, *others = compiled.registers.functions
    lines = layout([replace(entry, ops=(*before, *entry.ops, *last, *after)), *others], isa)
    try:
        image = assemble([line.instr for line in lines])
    except EncodeError as error:
        advice = "choose more levels" if "levels" in dict(plan.parameters) else "take another method or a smaller size"
        raise UserError(f"method '{plan.method}' reaches too far: {error}; {advice}", Exit.LIMITS) from None
    changed = {*compiled.written, *frame.written(last, isa)}
    return replace(compiled, written=tuple(name for name in isa.registers if name in changed), lines=lines, image=image)


def finish(rules: Idioms, functions: Sequence[Function], isa: Isa) -> Code:
    """After allocation: `load`, `store` and marks become instructions, which leave every flag that is live."""
    done = []
    for function in functions:
        ops = tuple(rules.address(function.ops, isa))
        check_flags(ops, isa)
        done.append(replace(function, ops=ops))
    return Code(tuple(done))


def without(code: Code, reserve: Sequence[str]) -> Code:
    """The code with registers that the allocator may not use."""
    offers = ("release", "spill", "lend", "lend_itself")
    functions = []
    for function in code.functions if reserve else ():
        ops = [
            replace(op, args=tuple(arg for arg in op.args if arg not in reserve)) if op.insn in offers else op
            for op in function.ops
        ]
        pool = tuple(register for register in function.pool if register not in reserve)
        functions.append(replace(function, ops=tuple(ops), pool=pool))
    return Code(tuple(functions)) if reserve else code


def remedy(plan: Plan) -> str:
    """What needs fewer registers: calls instead of products in place, or another method, or else narrower blocks."""
    plans = [plan]
    for each in plans:
        plans += [part.plan for part in each.parts()]
    in_place = [each for each in plans if any(not part.called for part in each.parts())]
    can_call = any(p.name == "parts" for each in in_place for p in methods.method(each.method).PARAMETERS)
    return "parts=calls" if can_call else "another method" if in_place else "narrower blocks"


def unformed(rules: Idioms, plan: Plan, isa: Isa, core: Core) -> UserError:
    """What is said of a plan with other steps: with which parameters its method has none, or else which methods."""
    reasons = {
        "has branches": plan.branches,
        "is made of parts": any(plan.parts()),
        "is made of loops": plan.loops,
        "adds products in runs": any(isinstance(step, Run) for step in plan.steps),
        "takes steps": True,
    }
    what = next(reason for reason, holds in reasons.items() if holds)
    advice = own_advice(rules, plan, core) or other_advice(rules, plan, core)
    return UserError(f"method '{plan.method}' {what} that sqgen cannot form on {isa.name}; {advice}")


def own_advice(rules: Idioms, plan: Plan, core: Core) -> str:
    """With which parameters the plan's method is formed, "" for none that the idioms know."""
    good = [given for name, given in rules.preferred(plan.op, plan.limbs, core) if name == plan.method]
    known = [*good, *rules.starts(plan.method, plan.op, plan.limbs), *methods.points(plan.method, plan.limbs)]
    found = next((point for point in known if _formed(rules, plan, plan.method, [point], core)), {})
    return f"choose {' '.join(f'-p {name}={value}' for name, value in found.items())}" if found else ""


def other_advice(rules: Idioms, plan: Plan, core: Core) -> str:
    """Which other methods are formed at the plan's size."""
    names = [name for name in methods.names(plan.op) if name != plan.method]
    tried = {name: [{}, *methods.points(name, plan.limbs)] for name in names}
    able = [name for name, points in tried.items() if _formed(rules, plan, name, points, core)]
    return f"take {', '.join(able)}" if able else "take --method auto"


def _formed(rules: Idioms, plan: Plan, name: str, points: Iterable[Mapping[str, str]], core: Core) -> bool:
    """Whether the method of that name, with some of its parameters, is formed at a plan's size."""
    for point in points:
        with contextlib.suppress(UserError):  # what the method refuses at this size
            if rules.forms(methods.plan(plan.op, plan.limbs, name, point), core):
                return True
    return False
