"""Cortex-M: from a plan to code, and from registers to instructions.

`arm_balance` adds products by UMAAL, on cores that have it; `arm_address` is how memory is reached.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Builder, Code, Function, Memory, Op
from sqgen.plan import Plan
from sqgen.table import Core, Isa

from . import arm_search
from .arm_address import POINTERS, address
from .arm_balance import Balance

__all__ = ["NEEDS", "PARTS", "RUNS", "address", "floor", "frame", "lower", "starts"]

NEEDS = ("umaal",)
PARTS = False
RUNS = True

# r9 belongs to the platform; it is not touched.  Registers that need not be saved come first.
POOL = ("r2", "r3", "r12", "r4", "r5", "r6", "r7", "r8", "r10", "r11", "lr")


def lower(plan: Plan, isa: Isa, core: Core) -> Code:
    """The plan as one function on virtual registers."""
    build = Builder(isa)
    limbs = {base: [build.limb(f"{base}{i}", Memory(base, i)) for i in range(plan.limbs)] for base in plan.operands}
    pointers = [POINTERS[base] for base in plan.operands]
    for base in plan.operands:
        build.mark("lend_itself", base, POINTERS[base])
    build.mark("spill_early")
    Balance(plan, build, limbs["a"], limbs[plan.operands[-1]]).all()
    return Code((Function("", tuple(build.ops), tuple(r for r in POOL if r not in pointers)),))


def floor(op: str, limbs: int) -> dict[str, int]:
    """Cycles that schoolbook multiplication takes at least on a core with UMAAL, by the groups of `sqgen explain`.

    A product costs one cycle, its additions nothing; operands are loaded in one go; a square's columns off the diagonal
    are doubled by a multiplication each.
    """
    n = limbs
    if op == "mul":
        return {"products": n * n, "operands": 2 * n + 1, "result": 2 * n}
    return {"products": n * (n + 1) // 2, "doubling": 2 * n - 2, "operands": n + 1, "result": 2 * n}


def starts(method: str, op: str, limbs: int) -> list[dict[str, str]]:
    """Parameters to begin a search with, beside those that the method and the answers have."""
    return list(arm_search.starts(op, limbs)) if method == arm_search.METHOD else []


def frame(saved: Sequence[str]) -> tuple[list[Op], list[Op]]:
    """Operations that save registers on entry, and those that restore them and return.

    Single stores take a cycle each, where PUSH takes one more; POP takes the return address along.
    """
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
