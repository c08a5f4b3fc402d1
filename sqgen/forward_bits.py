"""AND, OR and EOR in the second proof: exact for equal operands, for numbers and for masks.

A mask is all ones or zero, by a bit.  AND with it is a product with the bit, OR follows from that; or, as for EOR, each
value of the bit is a case of its own.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from .forward_sums import PRODUCTS, Fork, Value

if TYPE_CHECKING:
    from .forward import Machine


def logic(machine: Machine, op: str, left: Value, right: Value) -> Value:
    """`left` op `right`: "&", "|" or "^"; an unknown limb where nothing is known.  Raises Fork at a bit of a mask."""
    if left.parts == right.parts:
        return machine.constant(0) if op == "^" else left
    for mask, other in ((right, left), (left, right)):
        if mask.low == mask.high:
            return masked(machine, op, other, mask.low)
    if machine.limbs.masks == PRODUCTS and op != "^":
        for mask, other in ((right, left), (left, right)):
            if bit := bit_of(machine, mask):
                return multiplied(machine, op, other, mask, bit)
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


def bit_of(machine: Machine, mask: Value) -> Value | None:
    """The bit that a mask is made of: x, or 1 - x, for a bit x.  From here on x is an atom if it is a sum of limbs, so
    that sums with its products and with itself are seen to belong together."""
    limbs, ones = machine.limbs, (1 << machine.isa.limb_bits) - 1
    bits = [limb for monomial in mask.parts for limb in monomial]
    if len(bits) != 1 or not limbs.of_bits(mask.parts) or {abs(factor) for factor in mask.parts.values()} != {ones}:
        return None
    if max(map(len, limbs.forms.get(bits[0], ())), default=2) == 1:
        limbs.apart[bits[0]] = {(limbs.factor(limbs.value({(bits[0],): 1}, 0, 1)),): 1}
    found = limbs.value({monomial: int(factor) // ones for monomial, factor in mask.parts.items()}, 0, 1)
    return None if found.low == found.high else found


def multiplied(machine: Machine, op: str, other: Value, mask: Value, bit: Value) -> Value:
    """`other` AND or OR the mask of the bit.  That of two masks is the mask of a bit of its own."""
    limbs, ones = machine.limbs, (1 << machine.isa.limb_bits) - 1
    mine = bit_of(machine, other)
    value, top = (mine, bit) if mine else (machine.again(other), machine.again(mask))
    found = machine.linear([(int(factor), _times(machine, value, limb)) for limb, factor in bit.parts.items()])
    if op == "|":
        found = machine.linear([(1, value), (1, top), (-1, found)])
    found = limbs.value(found.parts, 0, 1 if mine else ones)
    if not mine:
        return found
    both = limbs.value({(limbs.name(found),): 1}, 0, 1) if found.low < found.high else found
    return machine.linear([(ones, both)])


def _times(machine: Machine, value: Value, monomial: tuple[int, ...]) -> Value:
    """The value, or that times a bit; each bit of a value of bits apart, lest their sum is made a limb."""
    if not monomial:
        return value
    bit = machine.limbs.value({monomial: 1}, 0, 1)
    if not machine.limbs.of_bits(value.parts):
        return machine.product(value, bit)
    parts = [(int(factor), machine.limbs.value({each: 1}, 0, 1)) for each, factor in value.parts.items()]
    return machine.linear([(factor, machine.product(each, bit)) for factor, each in parts])
