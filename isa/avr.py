"""AVR: from a plan to code, and from registers to instructions.

`avr_leaf` has the idioms of plans without parts, `avr_parts` functions that call each other, `avr_karatsuba`
Karatsuba's own steps, `avr_address` how memory is reached, `avr_registers` what the registers are for.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Code, Function, Op, check_flags
from sqgen.plan import Plan
from sqgen.table import Isa

from .avr_address import address
from .avr_parts import Module

NEEDS = ("mul", "movw")
PARTS = True
RUNS = True


def lower(plan: Plan, isa: Isa) -> Code:
    """The plan as functions on virtual registers, the entry first."""
    return Module(isa).code(plan)


def finish(code: Code, isa: Isa) -> Code:
    """After allocation: addresses for `load` and `store`, frames, and MOVW where two limbs move together."""
    functions = []
    for function in code.functions:
        ops = tuple(address(function.ops, isa))
        check_flags(ops, isa)
        functions.append(Function(function.name, ops, function.pool))
    return Code(tuple(functions))


def frame(saved: Sequence[str]) -> tuple[list[Op], list[Op]]:
    """Operations that save registers on entry, and those that restore them and return."""
    before = [Op("push", (register,)) for register in saved]
    after = [Op("pop", (register,)) for register in reversed(saved)]
    return before, [*after, Op("ret", ())]
