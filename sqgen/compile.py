"""The way from a plan to bytes: lower, allocate, finish, frame, encode, with the check after each."""

from __future__ import annotations

from dataclasses import dataclass

from . import allocate, frame
from .code import Code, Op
from .encode import Instr, assemble
from .idioms import idioms
from .plan import Plan
from .table import Isa


@dataclass(frozen=True)
class Line:
    """One instruction of the kernel with what the listing says about it."""

    instr: Instr
    heading: str
    comment: str


@dataclass(frozen=True)
class Compiled:
    """A kernel's code at every stage.  `written` are the registers its body changes, in register order, `lines` its
    instructions in order, `image` their bytes."""

    plan: Plan
    isa: Isa
    code: Code
    registers: Code
    written: tuple[str, ...]
    lines: tuple[Line, ...]
    image: bytes


def compile_plan(plan: Plan, isa: Isa) -> Compiled:
    """Bytes for a plan, not yet proved.  Raises PressureError where the registers do not suffice."""
    rules = idioms(isa)
    code = rules.lower(plan, isa)
    (function,) = code.functions
    allocated = allocate.allocate(function, isa.abi.callee_saved, isa.pairs())
    allocate.verify(function, allocated)
    registers = rules.finish(Code((allocated,)), plan, isa)
    (body,) = registers.functions
    written = frame.written(body.ops, isa)
    before, after = rules.frame([register for register in written if register in isa.abi.callee_saved])
    lines = tuple(line(op, isa) for op in (*before, *body.ops, *after))
    return Compiled(plan, isa, code, registers, written, lines, assemble([line.instr for line in lines]))


def line(op: Op, isa: Isa) -> Line:
    """An operation on registers as a machine instruction."""
    operands = tuple(arg for arg in op.args if isinstance(arg, str | int))
    return Line(Instr(isa.insns[op.insn], operands), op.heading, op.comment)
