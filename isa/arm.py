"""Cortex-M: from a plan to code, and from registers to instructions.

`arm_balance` adds products by UMAAL, on cores that have it; `arm_sums` is where sums wait, `arm_address` how memory is
reached; `arm_loops` is code in loops.  `arm_chains` and those beside it are for cores without UMAAL, `arm_small` for
those without long multiplication.  `arm_padded` copies operands for a product of longer ones.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from sqgen import answers, methods
from sqgen.code import Builder, Code, Function, Memory, Op
from sqgen.plan import Block, Difference, Load, Part, Plan, Recombine
from sqgen.table import Core, Isa

from . import arm_loops, arm_search, arm_small
from .arm_address import SINGLE, SINGLES, address
from .arm_balance import Balance
from .arm_calls import Calls, is_surrounded
from .arm_halves import Halves, Limb, Way, Whole
from .arm_inline import Inline
from .arm_stays import settled
from .arm_sums import FRAME, POINTERS, InResult, OnStack
from .arm_wipe import wipe

__all__ = ["NEEDS", "address", "floor", "forms", "frame", "lower", "preferred", "room", "starts", "wipe"]

NEEDS = ()
LONG = "umaal"  # what cores have on which word balance is possible
LEVEL = (Block, Difference, Part, Recombine)  # what a level of calls is made of
SURROUNDED = "bordered"
BORDERS, BLOCKS = (1, 2), ("1", "3")  # limbs of a border, and columns of its blocks, that are good there
PRODUCTS = "mul"  # what they have at least on which chains of halves are
UNROLLED, BEARABLE = 64, 96  # limbs of an operand, at most, of code in one piece that is, or may be, the fastest
SMALL, LARGE = range(1, 7), range(7, 17)  # limbs of what Karatsuba's method leaves to another one; where that is fast

# r9 belongs to the platform; it is not touched.  Registers that need not be saved come first.
POOL = ("r2", "r3", "r12", "r4", "r5", "r6", "r7", "r8", "r10", "r11", "lr")


def lower(plan: Plan, isa: Isa, core: Core, reserve: Sequence[str] = ()) -> Code:
    """The plan as one function on virtual registers; on cores without long multiplication as several, where its parts
    are called."""
    if PRODUCTS in core.lacks:
        return arm_small.lower(plan, isa, reserve)
    if LONG in core.lacks:
        return chained(plan, isa, core)
    if plan.loops:
        return arm_loops.lower(plan, isa)
    if any(plan.parts()):
        return Calls(isa, functools.partial(balanced, isa, core), POOL).code(plan)
    made = balanced(isa, core, plan, "")
    return Code((made if reserve or tall(plan) else settled(made, {base: POINTERS[base] for base in plan.operands}),))


def balanced(isa: Isa, core: Core, plan: Plan, name: str) -> Function:
    """One function that calls none, by word balance.  The entry has no name, and its return address is saved with its
    registers; others save theirs, for a register is worth more than that takes."""
    build = Builder(isa)
    if name:
        build.raw([Op("str_push", ("lr", 4))])
    limbs = {base: [build.limb(f"{base}{i}", Memory(base, i)) for i in range(plan.limbs)] for base in plan.operands}
    pointers = [POINTERS[base] for base in plan.operands]
    sums = OnStack(build, plan.operands) if tall(plan) else InResult(build)
    for base in plan.operands:
        if not (tall(plan) and base == "a" and len(plan.operands) > 1):
            build.mark("lend_itself", base, POINTERS[base])
    if "vmov_in" not in core.lacks:
        build.mark("nearby", SINGLE, SINGLES, *plan.operands, FRAME)
    build.mark("spill_early")
    Balance(plan, build, limbs["a"], limbs[plan.operands[-1]], sums).all()
    if name:
        build.raw([Op("ldr_pop", ("lr", 4)), Op("bx", ("lr",))])
    return Function(name, tuple(build.ops), tuple(r for r in POOL if r not in pointers))


def tall(plan: Plan) -> bool:
    """Whether so many rows walk at a time, their sums coming back, that a register less for pointers is a gain.

    A row has a limb of the operand and one of the sum in registers; beside these are the limb that walks by, the sum's
    limb that came back, and two pointers.
    """
    rows = (max(Counter(cell.j for cell in cells).values()) for _, cells in plan.blocks())
    return any(isinstance(step, Load) for step in plan.steps) and 2 * max(rows) + 4 > len(POOL) + 2


def chained(plan: Plan, isa: Isa, core: Core) -> Code:
    """The same where there is no UMAAL: by chains of additions, and functions where parts are called."""
    way = Whole if "umull" not in core.lacks and isa.allowed(isa.insns["umull"], core) else Halves
    if any(part.called for part in plan.parts()):
        return Calls(isa, functools.partial(leaf, isa, way), POOL, functools.partial(surrounded, isa, core)).code(plan)
    return Code((leaf(isa, way, plan, ""),))


def surrounded(isa: Isa, core: Core, plan: Plan) -> Plan:
    """A part; as one of fewer limbs with rows around it, where the search has found that to be the fastest."""
    known = functools.partial(answers.of_part, isa, core=core)
    if answers.fastest(isa, plan.op, plan.limbs * isa.limb_bits, core=core) != SURROUNDED:
        return plan
    return methods.plan(plan.op, plan.limbs, SURROUNDED, known(SURROUNDED, plan.op, plan.limbs), known)


def leaf(isa: Isa, way: Callable[[Builder], Way], plan: Plan, name: str) -> Function:
    """One function that calls none; the entry has no name and saves the return address with its registers."""
    build = Builder(isa)
    limbs = {base: [Limb.at(build, base, i) for i in range(plan.limbs)] for base in plan.operands}
    pointers = [POINTERS[base] for base in plan.operands]
    for base in plan.operands:
        build.mark("lend_itself", base, POINTERS[base])
    build.mark("spill_early")
    Inline(build, way(build)).outermost(plan, limbs)
    kept = ("lr",) if name else ()
    if name:
        build.raw([Op("bx", kept)])
    return Function(name, tuple(build.ops), tuple(r for r in POOL if r not in (*pointers, *kept)))


def forms(plan: Plan, core: Core) -> bool:
    """Whether these idioms know all steps of a plan on a core; none branches."""
    if plan.copies:
        return all(not part.plan.loops and forms(part.plan, core) for part in plan.parts())
    return not plan.branches and made_here(plan, core)


def made_here(plan: Plan, core: Core) -> bool:
    """The same of a plan on its operands, as they are."""
    if PRODUCTS in core.lacks:
        return arm_small.forms(plan)
    if dict(plan.parameters).get("parts") == "whole":
        return False
    if plan.loops and plan.by_columns and plan.limbs > 1:  # a single limb is a row as well
        return False
    if plan.op == "sqr" and any(plan.parts()) and len(plan.operands) > 1:
        return False  # parts of a product, where there is one operand
    if LONG in core.lacks:
        return not plan.loops and (
            alone(plan) or (is_surrounded(plan) and all(alone(part.plan) for part in plan.parts()))
        )
    return calls(plan)


def calls(plan: Plan) -> bool:
    """Whether a plan is a level of calls, if it has parts: with nothing beside them, and summed up without loops."""
    if not any(plan.parts()):
        return True
    looped = any(isinstance(step, Recombine) and step.turn for step in plan.steps)
    return alone(plan) and not looped and all(part.called and balances(part.plan) for part in plan.parts())


def alone(plan: Plan) -> bool:
    """Whether nothing stands beside parts that are called."""
    called = [part.plan for part in plan.parts() if part.called]
    return not called or (all(isinstance(step, LEVEL) for step in plan.steps) and all(map(alone, called)))


def balances(plan: Plan) -> bool:
    """Whether word balance can form a part: all that is not made of loops, or of parts that are not called."""
    return not plan.loops and calls(plan)


def preferred(op: str, limbs: int, core: Core) -> list[tuple[str, dict[str, str]]]:
    """Methods and parameters where the answers say nothing: on other cores than the default one, and for sizes whose
    code in one piece would fill tens of kilobytes."""
    if PRODUCTS in core.lacks:
        return arm_small.preferred(op, limbs)
    return large(op, limbs) if LONG not in core.lacks and limbs > UNROLLED else []


def large(op: str, limbs: int) -> list[tuple[str, dict[str, str]]]:
    """Karatsuba's method by calls; where blocks of rows may still be faster, these as well.

    Two levels want halves of as many limbs, at both: the proof of others fails.
    """
    given = {"leaf": "row-blocks", "parts": "calls", "recombine": "unrolled"}
    if op == "mul":
        return [("karatsuba", {"levels": "2" if limbs % 4 == 0 else "1", **given})]
    rows = [("row-blocks", {"rows": "5", "ahead": "1", "early": "3"})] if limbs <= BEARABLE else []
    return [*rows, ("karatsuba-squaring", {"levels": "1", **given})]


def floor(op: str, limbs: int, core: Core) -> dict[str, int]:
    """Cycles that schoolbook multiplication takes at least on a core with UMAAL, by the groups of `sqgen explain`.

    A product costs one cycle, its additions nothing; operands are loaded in one go; a square's columns off the diagonal
    are doubled by a multiplication each.
    """
    n = limbs
    if op == "mul":
        return {"products": n * n, "operands": 2 * n + 1, "result": 2 * n}
    return {"products": n * (n + 1) // 2, "doubling": 2 * n - 2, "operands": n + 1, "result": 2 * n}


def room(core: Core) -> int | None:
    """Bytes of code that any part can hold: more than sqgen makes."""
    return None


def starts(method: str, op: str, limbs: int) -> list[dict[str, str]]:
    """Parameters to begin a search with, beside those that the method and the answers have."""
    if method in ("karatsuba", "karatsuba-squaring"):
        return list(levels(op, limbs))
    if method == SURROUNDED:
        return [{"border": str(border), "block": block} for border in BORDERS if border < limbs for block in BLOCKS]
    return list(arm_search.starts(op, limbs)) if method == arm_search.METHOD else []


def levels(op: str, limbs: int) -> Iterator[dict[str, str]]:
    """Karatsuba's method with levels down to a few limbs, as many of them in place as can be; or to more limbs, of the
    method that is the best for these."""
    for count in range(1, (limbs - 1).bit_length() + 1):
        left = -(-limbs >> count)
        place = "nested" if op == "sqr" and count > 1 else "inline"
        if left in LARGE:
            fast = "sweeps" if op == "sqr" else "product-scanning"
            yield {"levels": str(count), "parts": "calls", "leaf": fast}
            yield {"levels": str(count), "parts": place, "leaf": fast}
        elif left in SMALL and op == "mul":
            yield {"levels": str(count), "parts": "inline"}
            yield {"levels": str(count), "parts": "calls", "leaf": "product-scanning"}
            yield {"levels": str(count), "parts": "nested"}
        elif left in SMALL:
            yield from ({"levels": str(count), "parts": place, "leaf": leaf} for leaf in ("product-scanning", "sweeps"))


def frame(saved: Sequence[str], core: Core, *, alone: bool = False) -> tuple[list[Op], list[Op]]:
    """Operations that save registers on entry, and those that restore them and return.

    Single stores take a cycle each, where PUSH takes one more; POP takes the return address along.
    """
    if "thumb2" in core.without:
        return arm_small.frame(saved)
    if not saved:
        return [], [Op("bx", ("lr",))]
    first, *others = saved
    before = [Op("str_push", (first, 4 * len(saved)))]
    for place, register in enumerate(others, 1):
        insn = "str_sp" if register <= "r7" and register.startswith("r") and len(register) == 2 else "str_spw"
        before.append(Op(insn, (register, 4 * place)))
    kept = tuple(register for register in saved if register != "lr")
    low = all(register in ("r4", "r5", "r6", "r7") for register in kept)
    if not kept:
        return before, [Op("ldr_pop", ("lr", 4)), Op("bx", ("lr",))]
    if "lr" in saved:
        return before, [Op("pop_pc" if low else "pop_pcw", (kept,))]
    if low:
        return before, [Op("pop", (kept,)), Op("bx", ("lr",))]
    restore = Op("ldr_pop", (*kept, 4)) if len(kept) == 1 else Op("pop_w", (kept,))
    return before, [restore, Op("bx", ("lr",))]
