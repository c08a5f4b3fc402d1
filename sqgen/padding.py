"""Longer operands where code is to be short: which are worth a try, and what else is then.

Where limbs can be halved again and again one function forms each half, and loops do as many in each turn.  An odd
number wants a function for each of two sizes, at each level: code for 127 limbs is ten times as long as for 128, and
loops of four want code beside them.  What the method `padded` takes beside its product hangs on the number of limbs
alone, so it is known from the front of larger sizes what it costs at most, and nothing need be tried.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import answers, methods
from .goals import small, value
from .idioms import idioms
from .spec import Spec

NAME = "padded"  # the method
PARTS = "parts"  # a parameter of methods that halve
FEW = 2  # that are tried
BYTES, CYCLES, EACH = 190, 100, 7  # that copying takes at most: bytes, and cycles of a call and for each limb
FRAME = 2  # addresses on the stack beside the limbs of the longer operands, and of their product
NESTED = 8  # calls in each other, at most
GROWTH = 1.5  # exponent of the limbs in the cycles of what grows least


def padded(spec: Spec) -> list[answers.Row]:
    """The best rows of the fronts of larger sizes that meet the limits, for longer operands, with what they cost; none
    where that is not known: if code clears what it leaves, or registers are not its own."""
    what = spec.contract
    if what.wiped or spec.reserve or not formed(spec):
        return []
    fronts = answers.fronts(what.isa, what.op, spec.core)
    found = [
        longer(spec, row, bits // what.isa.limb_bits)
        for bits, rows in fronts.items()
        for row in rows
        if spec.bits < bits <= 2 * spec.bits and particular(str(row[answers.METHOD]), bits // what.isa.limb_bits)
    ]
    return sorted((row for row in found if small(spec, row)), key=lambda row: value(spec, row))[:FEW]


def formed(spec: Spec) -> bool:
    """Whether the instruction set's idioms know how to copy operands."""
    smallest = methods.plan(spec.contract.op, 1, NAME, {"limbs": "2"})
    return idioms(spec.contract.isa).forms(smallest, spec.core)


def particular(name: str, limbs: int) -> bool:
    """Whether it matters to a method what the number of limbs is a multiple of: if it has parts, or loops of some."""
    return PARTS in methods.defaults(name, limbs) or methods.in_turns(name)


def longer(spec: Spec, row: answers.Row, limbs: int) -> answers.Row:
    """The row of `padded` for a product of so many limbs by a row of theirs."""
    what = spec.contract
    isa, operands = what.isa, len(what.buffers) - 1
    body, call, size, stack = answers.costs(row)
    cycles = CYCLES + EACH * (operands + 2) * what.limbs
    size += BYTES + operands * (limbs - what.limbs) * isa.code_unit  # an instruction for each zero
    stack += (FRAME * len(isa.abi.arguments[0]) + (operands + 2) * limbs) * (isa.limb_bits // 8)
    if isa.abi.link:  # which a function keeps in a register, so that limbs wait on the stack instead
        stack += len(isa.abi.callee_saved) * (isa.limb_bits // 8)
    stack += NESTED * (spec.core.pc_limbs - isa.core(isa.default_core).pc_limbs)
    costs = (body + cycles, call + cycles, size, stack)
    given = {key: text for key, text in answers.given(row).items() if key != methods.REGISTERS.name}
    if PARTS in methods.defaults(str(row[answers.METHOD]), limbs):
        given = {PARTS: "calls", **given}  # something, or else what is known to be the best is taken
    inner = ",".join([str(row[answers.METHOD]), *(f"{key}={text}" for key, text in given.items())])
    parameters: answers.Row = {answers.GOAL: row[answers.GOAL], "limbs": str(limbs), "inner": inner}
    return parameters | dict(zip(answers.COSTS, costs, strict=True))


def worthwhile(spec: Spec, rows: Sequence[answers.Row], padded: Sequence[answers.Row]) -> Sequence[answers.Row]:
    """Those of the rows, with what they cost at least, that may be better than what is `padded`."""
    return [row for row in rows if not padded or value(spec, row) < value(spec, padded[0])]


def at_least(spec: Spec, row: answers.Row, bits: int) -> answers.Row:
    """A row of another size with the cycles that it costs here at least: they grow with the power 1.5 of the limbs, or
    more, but not more than with their square."""
    scale = (spec.bits / bits) ** (GROWTH if spec.bits > bits else 2)
    return row | {what: int(scale * int(row[what])) for what in (answers.BODY, answers.CALL)}
