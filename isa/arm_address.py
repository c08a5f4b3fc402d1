"""After allocation: how memory is reached, constants are made, and loads are brought together.

Sources: research/arm.md, technique 7: a store takes one cycle, a load two, but one right behind another load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqgen.code import SPILLED, Memory, Op
from sqgen.table import Isa

from .arm_balance import CONSTANT

POINTERS = {"r": "r0", "a": "r1", "b": "r2"}
LIMB = 4  # bytes
STEP = 508  # bytes that the stack pointer is moved by at most at a time


def address(ops: Sequence[Op], isa: Isa) -> list[Op]:
    """`load` and `store` become instructions; limbs that were spilled lie at the stack pointer."""
    low = set(isa.classes["low"].registers)
    kept = [op for op in ops if op.insn in ("load", "store") or op.insn in isa.insns]
    done = [instruction(op, low) for op in together(kept)]
    places = [arg.offset for op in ops for arg in op.args if isinstance(arg, Memory) and arg.base == SPILLED]
    if places:
        size = LIMB * (1 + max(places))
        steps = [min(STEP, size - at) for at in range(0, size, STEP)]
        done = [*(Op("sub_sp", (step,)) for step in steps), *done, *(Op("add_sp", (step,)) for step in steps)]
    return done


def instruction(op: Op, low: set[str]) -> Op:
    """The instruction, a short one where there is one."""
    if op.insn == "mov_i":
        register, value = op.args
        return replace(op, insn="movs_i" if register in low else "mov_i", args=(register, value))
    if op.insn not in ("load", "store"):
        return op
    register, where = op.args
    assert isinstance(register, str) and isinstance(where, Memory)
    if where.base == CONSTANT:
        return replace(op, insn="movs_i" if register in low else "mov_i", args=(register, where.offset))
    name = "ldr" if op.insn == "load" else "str"
    offset = LIMB * where.offset
    if where.base == SPILLED:
        near = register in low and offset <= 255 * LIMB
        return replace(op, insn=f"{name}_sp" if near else f"{name}_spw", args=(register, offset))
    pointer = POINTERS[where.base]
    short = {register, pointer} <= low and offset <= 31 * LIMB
    return replace(op, insn=name if short else f"{name}_w", args=(register, pointer, offset))


def together(ops: Sequence[Op]) -> list[Op]:
    """Each load right behind an earlier one, where nothing in between minds."""
    done: list[Op] = []
    for op in ops:
        at = len(done)
        if is_load(op):
            while at and not is_load(done[at - 1]) and not clash(op, done[at - 1]):
                at -= 1
            if not (at and is_load(done[at - 1])):
                at = len(done)
        moved = at < len(done)  # it leaves the part of the listing that it may have opened
        done.insert(at, replace(op, heading="") if moved else op)
    return done


def is_load(op: Op) -> bool:
    """Whether it reads memory."""
    return op.insn == "load" and isinstance(op.args[1], Memory) and op.args[1].base != CONSTANT


def clash(load: Op, before: Op) -> bool:
    """Whether a load must not be done before that operation."""
    register, where = load.args
    assert isinstance(where, Memory)
    if not {register, POINTERS.get(where.base)}.isdisjoint(before.args):
        return True
    return before.insn == "store" and where.base in ("r", SPILLED) and before.args[1] == where
