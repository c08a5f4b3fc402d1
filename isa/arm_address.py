"""After allocation: how memory is reached, constants are made, and loads are brought together.

Sources: research/arm.md, technique 7: a store takes one cycle, a load two, but one right behind another load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqgen.code import SPILLED, Memory, Op
from sqgen.table import Isa

from .arm_balance import CONSTANT
from .arm_calls import LEVEL
from .arm_halves import Half
from .arm_stack import LIMB, moved
from .arm_sums import FRAME, POINTERS

FENCES = ("label", "bl", "push", "sub_sp", "add_sp")  # behind which other things lie in memory, or elsewhere
SINGLE = "single"  # the base of what waits in the floating point unit's registers
SINGLES = 16  # of these that need not be saved


def address(ops: Sequence[Op], isa: Isa) -> list[Op]:
    """`load` and `store` become instructions; limbs that were spilled lie at the stack pointer."""
    low = set(isa.classes["low"].registers)
    kept = headed(ops, [op.insn in ("load", "store", "label") or op.insn in isa.insns for op in ops])
    sizes = {base: places(ops, base) for base in (FRAME, SPILLED)}
    done = [instruction(op, low, sizes[FRAME]) for op in together(kept)]
    if size := sum(sizes.values()):
        begin, end = within(done, isa)
        done = [*done[:begin], *moved("sub_sp", size), *done[begin:end], *moved("add_sp", size), *done[end:]]
    return done


def within(ops: Sequence[Op], isa: Isa) -> tuple[int, int]:
    """Where a function has saved what it saves itself, and where it begins to restore that and to return."""
    insns = [isa.insns.get(op.insn) for op in ops]
    begin = next(index for index, insn in enumerate(insns) if not (insn and insn.frame == "save"))
    end = len(ops)
    while (insn := insns[end - 1]) and (insn.control or insn.frame == "restore"):
        end -= 1
    return begin, end


def places(ops: Sequence[Op], base: str) -> int:
    """Limbs of a buffer on the stack."""
    found = (arg.offset for op in ops for arg in op.args if isinstance(arg, Memory) and arg.base == base)
    return 1 + max(found, default=-1)


def instruction(op: Op, low: set[str], below: int) -> Op:
    """The instruction, a short one where there is one; `below`: limbs on the stack under those that were spilled."""
    if op.insn == "mov_i":
        register, value = op.args
        return replace(op, insn="movs_i" if register in low else "mov_i", args=(register, value))
    if op.insn not in ("load", "store"):
        return op
    register, where, *given = op.args
    assert isinstance(register, str) and isinstance(where, Memory)
    if where.base == SINGLE:
        pair = (f"s{where.offset}", register) if op.insn == "store" else (register, f"s{where.offset}")
        return replace(op, insn="vmov_in" if op.insn == "store" else "vmov_out", args=pair)
    if where.base == CONSTANT:
        return replace(op, insn="movs_i" if register in low else "mov_i", args=(register, where.offset))
    name, args = access(op.insn, register, where, low, (str(given[0]) if given else "", below))
    return replace(op, insn=name, args=args)


def access(
    insn: str, register: str, where: Memory, low: set[str], way: tuple[str, int]
) -> tuple[str, tuple[str, str, int] | tuple[str, int]]:
    """A load or store, and its operands; `way`: the pointer if it is not its buffer's own, and `below`."""
    name = "ldr" if insn == "load" else "str"
    offset = LIMB * where.offset
    given, below = way
    if where.base in (FRAME, SPILLED, LEVEL):
        offset += LIMB * below if where.base == SPILLED else 0
        near = register in low and offset <= 255 * LIMB
        return f"{name}_sp" if near else f"{name}_spw", (register, offset)
    pointer = given or POINTERS[where.base]
    if isinstance(where, Half):
        return ("ldrh_low", "ldrh_high")[where.part], (register, pointer, offset + LIMB // 2 * where.part)
    short = {register, pointer} <= low and offset <= 31 * LIMB
    return name if short else f"{name}_w", (register, pointer, offset)


def together(ops: Sequence[Op]) -> list[Op]:
    """Each load right behind an earlier one, where nothing in between minds."""
    done: list[Op] = []
    heading = ""  # that of a load that was moved
    for op in ops:
        at = len(done)
        if is_load(op):
            while at and not is_load(done[at - 1]) and not clash(op, done[at - 1]):
                at -= 1
            if not (at and is_load(done[at - 1])):
                at = len(done)
        opens = op.heading or heading
        moved = at < len(done)  # it leaves the part of the listing that it may open, which the next one does then
        done.insert(at, replace(op, heading="" if moved else opens))
        heading = opens if moved else ""
    return done


def headed(ops: Sequence[Op], kept: Sequence[bool]) -> list[Op]:
    """The operations that are kept; the headings of others open the next one."""
    done: list[Op] = []
    heading = ""
    for op, stays in zip(ops, kept, strict=True):
        heading = op.heading or heading
        if stays:
            done.append(replace(op, heading=heading))
            heading = ""
    return done


def is_load(op: Op) -> bool:
    """Whether it reads memory."""
    return op.insn == "load" and isinstance(op.args[1], Memory) and op.args[1].base not in (CONSTANT, SINGLE)


def clash(load: Op, before: Op) -> bool:
    """Whether a load must not be done before that operation."""
    register, where, *given = load.args
    assert isinstance(where, Memory)
    if before.insn in FENCES:
        return True
    if not {register, *given, POINTERS.get(where.base)}.isdisjoint(before.args):
        return True
    return before.insn == "store" and where.base in ("r", FRAME, SPILLED, LEVEL) and before.args[1] == where
