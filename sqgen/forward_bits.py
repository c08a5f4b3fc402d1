"""AND, OR and EOR in the second proof: exact for equal operands and for numbers; masks fork the walk."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from .forward_sums import Fork, Value

if TYPE_CHECKING:
    from .forward import Machine


def logic(machine: Machine, op: str, left: Value, right: Value) -> Value:
    """`left` op `right`: "&", "|" or "^"; an unknown limb where nothing is known.  Raises Fork at a bit of a mask."""
    if left.parts == right.parts:
        return machine.constant(0) if op == "^" else left
    for mask, other in ((right, left), (left, right)):
        if mask.low == mask.high:
            return masked(machine, op, other, mask.low)
    for value in (left, right):
        if machine.limbs.of_bits(value.parts):
            raise Fork(max(limb for monomial in value.parts for limb in monomial))
    return machine.unknown(machine.isa.limb_bits)


def masked(machine: Machine, op: str, value: Value, mask: int) -> Value:
    """Logic with a number: digit by digit, for each run of equal bits of the number."""
    terms, at = [], 0
    for bit, run in itertools.groupby(mask >> k & 1 for k in range(machine.isa.limb_bits)):
        width = len(list(run))
        digit, value = machine.limbs.split(value, width)
        ones = machine.constant((1 << width) - 1)
        changed = {("&", 0): machine.constant(0), ("|", 1): ones, ("^", 1): machine.linear([(1, ones), (-1, digit)])}
        terms.append((1 << at, changed.get((op, bit), digit)))
        at += width
    return machine.linear(terms)
