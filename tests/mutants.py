"""Kernels with one instruction changed."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from conftest import avr, compiled, contract, core, formed
from handwritten import NAMES, Foreign, foreign

from sqgen import check, methods
from sqgen.contract import OPS
from sqgen.encode import EncodeError, Instr, assemble, disassemble
from sqgen.errors import Exit, UserError

METHODS = [(op, name) for op in OPS for name in methods.names(op) if formed(name, op)]
FORMS = [
    *METHODS,
    ("sqr", "sbd sums=memory"),
    ("sqr", "operand-caching"),  # the whole rhombus
]
PARTS = [  # kernels whose parts stand in place, are called, and are put together by loops
    "mul/karatsuba levels=1 parts=inline/32",
    "mul/karatsuba levels=1 parts=calls/32",
    "mul/karatsuba levels=2 parts=nested/96",
    "sqr/karatsuba levels=1 parts=inline/40",
    "sqr/karatsuba-squaring levels=1 parts=inline/40",
    "sqr/karatsuba-squaring levels=2 parts=calls/64",
    "sqr/karatsuba-squaring levels=1 parts=shared/40",
    "sqr/hybrid-karatsuba levels=1 parts=inline/64",
    "sqr/karatsuba-squaring levels=1 parts=calls recombine=looped/128",
]
OTHERS = {  # instructions that one may write for another
    "add": ("adc", "sub"),
    "adc": ("add", "sbc"),
    "sub": ("sbc", "add", "cp"),
    "sbc": ("sub", "adc", "cpc"),
    "lsr": ("ror", "asr"),
    "ror": ("lsr",),
    "eor": ("and", "or", "sub"),
    "and": ("or", "eor"),
    "mov": ("add", "eor"),
    "bst": ("bld",),
    "bld": ("bst",),
    "inc": ("dec",),
    "dec": ("inc",),
    "adiw": ("sbiw",),
    "sbiw": ("adiw",),
    "brne": ("breq",),
    "breq": ("brne",),
    "rcall": ("rjmp",),
    "rjmp": ("rcall",),
    "ld_xp": ("ld_x", "ld_zp", "ld_yp"),
    "ld_yp": ("ldd_y", "ld_zp"),
    "ld_zp": ("ldd_z", "ld_xp"),
    "ldd_y": ("ldd_z",),
    "ldd_z": ("ldd_y",),
    "st_xp": ("st_x", "st_zp"),
    "st_x": ("st_xp",),
    "st_zp": ("st_xp",),
    "std_y": ("std_z",),
    "std_z": ("std_y",),
    "push": ("pop",),
    "pop": ("push",),
    "cli": ("sei",),
    "out_spl": ("out_sph",),
    "out_sph": ("out_spl",),
}


@dataclass(frozen=True)
class Mutant:
    """`how` the kernel was changed: from instruction `at` (index) on, `old` is now `new`."""

    how: str
    at: int
    old: tuple[Instr, ...]
    new: tuple[Instr, ...]
    kernel: Foreign


@functools.cache
def subject(name: str) -> Foreign:
    """A kernel by name: one written by hand, or `op/method name=value .../bits` for one of sqgen's."""
    if name in NAMES:
        return foreign(name)
    op, form, bits = name.split("/")
    method, *given = form.split()
    parameters = dict(pair.split("=") for pair in given)
    return Foreign(contract(op, int(bits) // 8), compiled(op, int(bits) // 8, method, **parameters).image, 0)


def own(sizes: range) -> list[str]:
    """Names of sqgen's kernels of these sizes, in limbs."""
    return [f"{op}/{method}/{8 * limbs}" for limbs in sizes for op, method in FORMS]


def mutants(kernel: Foreign) -> Iterator[Mutant]:
    """Every change of one instruction that still is code; what follows stays where it is, unless nothing jumps."""
    isa = kernel.contract.isa
    places, instrs = zip(*disassemble(isa, kernel.image), strict=True)
    ends = (*places[1:], len(kernel.image))
    nop = Instr(isa.insns["nop"], ())
    jumps = any(instr.insn.control and instr.insn.control[0] != "return" for instr in instrs)
    for at, instr in enumerate(instrs):
        changes: list[tuple[str, tuple[Instr, ...], tuple[Instr, ...]]] = []
        changes += [(how, (instr,), (other,)) for how, other in alterations(instr)]
        changes.append(("dropped", (instr,), (nop,) if jumps else ()))
        if not jumps:
            changes.append(("doubled", (instr,), (instr, instr)))
        if at + 1 < len(instrs):
            changes.append(("swapped with the next", (instr, instrs[at + 1]), (instrs[at + 1], instr)))
        for how, old, new in changes:
            with contextlib.suppress(EncodeError):
                image = kernel.image[: places[at]] + assemble(new) + kernel.image[ends[at + len(old) - 1] :]
                if image != kernel.image:
                    yield Mutant(how, at, old, new, replace(kernel, image=image))


def alterations(instr: Instr) -> Iterator[tuple[str, Instr]]:
    """The instruction with another operation or with other operands."""
    insns = avr().insns
    for name in OTHERS.get(instr.insn.name, ()):
        operands = instr.operands
        other = insns[name]
        wanted = len(other.operands) - len(operands)
        if wanted >= 0:
            yield "another operation", Instr(other, (*operands, *([0] * wanted)))
    if len(instr.operands) == 2 and all(operand.cls for operand in instr.insn.operands):
        yield "operands swapped", Instr(instr.insn, instr.operands[::-1])
    for index, (operand, value) in enumerate(zip(instr.insn.operands, instr.operands, strict=True)):
        if operand.cls:
            names = operand.cls.registers
            place = names.index(str(value))
            others: list[tuple[str, str | int]] = [
                ("another register", names[(place + step) % len(names)]) for step in (1, -1, 7)
            ]
        else:
            number = instr.immediates[operand.name]
            others = [("one off", number + step * operand.scale) for step in (1, -1)]
        for how, new in others:
            yield how, Instr(instr.insn, (*instr.operands[:index], new, *instr.operands[index + 1 :]))


def is_right(kernel: Foreign) -> bool:
    """Whether simavr finds nothing wrong with a kernel on many operands, with and without interrupts."""
    try:
        check.run(kernel.image, kernel.contract, core(), kernel.entry)
    except UserError as error:
        if error.code != Exit.DISAGREES:
            raise
        return False
    return True
