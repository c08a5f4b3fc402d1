"""What AVR's registers are for.

r1:r0 is where MUL leaves a product, X, Y and Z point at result and operands; all others are the allocator's.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqgen.plan import Difference, Load, Part, Plan
from sqgen.table import Isa

LOW, HIGH = "r0", "r1"  # the product
POINTERS = {"X": ("r26", "r27"), "Y": ("r28", "r29"), "Z": ("r30", "r31")}


def pointers(plan: Plan) -> dict[str, str]:
    """Which pointer register walks over which buffer."""
    # whether the result is read again, and needs displacements; loops have it so, however few limbs there are
    again = plan.loops or any(isinstance(step, Load | Part) for step in plan.steps)
    if plan.operands == ("a",):
        return {"r": "Z", "a": "Y"} if again else {"r": "X", "a": "Z"}
    if bordered(plan) or any(isinstance(step, Difference) for step in plan.steps):  # limbs of a are reached again
        return {"r": "Z", "a": "Y", "b": "X"}
    return {"r": "Z", "a": "X", "b": "Y"} if again else {"r": "X", "a": "Y", "b": "Z"}


def bordered(plan: Plan) -> bool:
    """Whether it adds products of its own, of limbs of two operands, to what its parts have formed."""
    return len(plan.operands) == 2 and any(plan.parts()) and any(plan.products())


def pointers_behind(plan: Plan) -> dict[str, str]:
    """The same once the parts of a plan are formed, and its own products are to be added: of two operands any limb is
    reached then, and the result is walked over once."""
    return {"r": "X", "a": "Y", "b": "Z"} if bordered(plan) else pointers(plan)


def pool(isa: Isa, walks: Mapping[str, str]) -> tuple[str, ...]:
    """Registers for the allocator: all but the product's and the pointers, those first that need not be saved."""
    used = {register for name in walks.values() for register in POINTERS[name]}
    free = [r for r in isa.registers if r not in used and r not in (LOW, HIGH)]
    return tuple(sorted(free, key=lambda register: (register in isa.abi.callee_saved, -isa.slots[register])))
