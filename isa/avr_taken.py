"""Which limbs of an operand a function on AVR wants to find in registers (`avr_passing`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqgen.code import Function, Op, Virtual
from sqgen.plan import Plan, Recombine
from sqgen.residence import residence

from .avr_address import SCRATCH
from .avr_passing import Taken
from .avr_writer import looped


def wanted(plan: Plan, registers: Sequence[str], first: Callable[[Plan], str]) -> Taken | None:
    """What a plan's function, which has these registers, takes there; None if that is nothing, or is seen later
    (`taking`).

    It forms a difference of halves at once, that of the operand `first` where it is two levels in one piece.  A level
    takes limbs of the upper half alone, two levels some of both.
    """
    last = next((step for step in plan.steps if isinstance(step, Recombine)), None)
    if looped(plan) or not last or last.turn:
        return None
    least = max(0, plan.limbs - len([each for each in registers if each not in SCRATCH]))
    if any(part.called for part in plan.parts()):
        return Taken("a", range(max(least, last.half), plan.limbs))
    nested = len(plan.operands) > 1 and any(any(part.plan.parts()) for part in plan.parts() if part.into.name == "m")
    return Taken(first(plan), range(least, plan.limbs)) if nested else None


def taking(function: Function) -> tuple[Function, Taken | None]:
    """A function in one piece that loads limbs of its operand when it needs them: it with the first ones in registers
    from the beginning, for which one is free until then."""
    found = residence(function)
    in_use = found.in_use()
    limbs: dict[int, Virtual] = {}
    for time, number, home in ((2 * at, *load) for at, loads in enumerate(found.loads) for load in loads):
        if home.base != "a" or home.offset in limbs or max(in_use[:time], default=0) == len(function.pool):
            break
        limbs[home.offset] = found.stays[number].virtual
        in_use[:time] = [count + 1 for count in in_use[:time]]
    if not limbs:
        return function, None
    arrived = tuple(limb for _, limb in sorted(limbs.items()))
    at = function.ops.index(Op("enter", ()))
    begin = Op("retake", SCRATCH), Op("accept", arrived, writes=arrived), function.ops[at], Op("release", SCRATCH)
    return replace(function, ops=(*function.ops[:at], *begin, *function.ops[at + 1 :])), Taken("a", sorted(limbs))
