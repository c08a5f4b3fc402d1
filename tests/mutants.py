"""Kernels with one instruction changed."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from conftest import compiled, contract, core, formed
from handwritten import NAMES, Foreign, foreign

from sqgen import check, methods
from sqgen.contract import OPS
from sqgen.encode import Instr
from sqgen.errors import Exit, UserError
from sqgen.mutants import changes

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
    "mul/bordered border=2 block=6/80",
    "sqr/karatsuba-squaring levels=1 parts=calls recombine=looped/128",
]


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
    """Every change of one instruction."""
    for change in changes(kernel.contract.isa, kernel.image):
        mutant = replace(kernel, image=change.apply(kernel.image))
        yield Mutant(change.how, change.at, change.old, change.new, mutant)


def is_right(kernel: Foreign) -> bool:
    """Whether simavr finds nothing wrong with a kernel on many operands, with and without interrupts."""
    try:
        check.run(kernel.image, kernel.contract, core(), kernel.entry)
    except UserError as error:
        if error.code != Exit.DISAGREES:
            raise
        return False
    return True
