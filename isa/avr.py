"""AVR: from a plan to code, and from registers to instructions.

`avr_leaf` has the idioms of plans without parts, `avr_runs` and `avr_squares` of sweeps; `avr_parts` has the functions
that call each other; Karatsuba's steps are in `avr_stream` and `avr_signed` where parts stand in place, in `avr_level`
where they are called; `avr_address` is how memory is reached, `avr_registers` what the registers are for.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Code, Op
from sqgen.plan import Plan, Recombine
from sqgen.table import Core, Isa

from . import avr_loops, avr_rows
from .avr_address import address
from .avr_parts import Module
from .avr_wipe import wipe
from .avr_writer import looped

__all__ = ["NEEDS", "address", "floor", "forms", "frame", "lower", "preferred", "room", "starts", "wipe"]

NEEDS = ("mul", "movw")
KBYTE = 1024
CALLED = 8  # limbs from which on calls of Karatsuba's parts are tried
FLASH = {  # KBytes by the parts' data sheets, an XMEGA's boot section with it
    "atmega8": 8,
    "atmega32u4": 32,
    "atmega328p": 32,
    "atmega128": 128,
    "atmega1284p": 128,
    "atmega2560": 256,
    "atxmega32a4u": 32 + 4,
    "atxmega128a4u": 128 + 8,
    "attiny1614": 16,
    "atmega4809": 48,
    "avr128da48": 128,
}


def lower(plan: Plan, isa: Isa, core: Core, reserve: Sequence[str] = ()) -> Code:
    """The plan as functions on virtual registers, the entry first."""
    if looped(plan):
        lowered = avr_loops.lower if plan.by_columns else avr_rows.lower
        return lowered(plan, isa, reserve)
    return Module(isa, reserve).code(plan)


def forms(plan: Plan, core: Core) -> bool:
    """Whether these idioms know all steps of a plan: all but parts in loops that are not called, or are columns, levels
    upon levels in place, and low parts that are too large."""
    looped = [part for part in plan.parts() if part.plan.loops]
    callable_ones = all(part.called and not part.plan.by_columns and forms(part.plan, core) for part in looped)
    return dict(plan.parameters).get("parts") != "whole" and callable_ones and ends(plan)


def ends(plan: Plan) -> bool:
    """Whether the middle of a level in place ends, at the latest, where the result does.  Where parts are called, of an
    even number of limbs only halves are known."""
    lower = [step.half for step in plan.steps if isinstance(step, Recombine)]
    called = any(part.called for part in plan.parts())
    return all(plan.limbs % 2 or 2 * half == plan.limbs if called else 3 * half <= 2 * plan.limbs for half in lower)


def preferred(op: str, limbs: int, core: Core) -> list[tuple[str, dict[str, str]]]:
    """Methods and parameters for cores on which the answers say nothing: they are good for all."""
    return []


def floor(op: str, limbs: int, core: Core) -> dict[str, int]:
    """Cycles that schoolbook multiplication takes at least, by the groups of `sqgen explain`.

    Each product costs MUL 2 and two additions, and one cycle more: the MOVW that parks it, so that a chain can pass
    over it, or the ADC that ends its chain.  A limb of the sum that is seeded by a move saves one.  A square's products
    off the diagonal are summed, doubled and joined with those on it, whose chain needs two additions each and a move
    or ADC; its highest carry is nothing.
    """
    n = limbs
    if op == "mul":
        return {"products": 2 * n * n, "their sums": 3 * n * n - 2 * n, "operands": 4 * n, "result": 4 * n}
    off, seeded = n * (n - 1) // 2, 2 * n - 2
    sums = 3 * off - seeded + 3 * n - 1
    return {"products": n * n + n, "their sums": sums, "doubling": 2 * n - 2, "operands": 2 * n, "result": 4 * n}


def room(core: Core) -> int | None:
    """Bytes of code that the part can hold."""
    return FLASH[core.name] * KBYTE if core.name in FLASH else None


def starts(method: str, op: str, limbs: int) -> list[dict[str, str]]:
    """Parameters to begin a search with, beside those that the method and the answers have."""
    in_place = method == "karatsuba" and limbs < CALLED
    return [{"levels": "1", "parts": "inline"}] if in_place else []


def frame(saved: Sequence[str], core: Core, *, alone: bool = False) -> tuple[list[Op], list[Op]]:
    """Operations that save registers on entry, and those that restore them and return."""
    before = [Op("push", (register,)) for register in saved]
    after = [Op("pop", (register,)) for register in reversed(saved)]
    return before, [*after, Op("ret", ())]
