"""AND, OR and EOR in the second proof: exact for equal operands, numbers, bits and masks.

A mask is all ones or zero, by a bit.  AND with it is a product with the bit; OR and EOR follow from that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from .forward_numbers import Form, Numbers, Value, at, cases

if TYPE_CHECKING:
    from .forward import Machine

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "&": lambda left, right: left & right,
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
}


def logic(machine: Machine, op: str, left: Value, right: Value) -> Value:
    """`left` op `right`: "&", "|" or "^"; an unknown limb where nothing is known."""
    numbers, ones = machine.numbers, (1 << machine.isa.limb_bits) - 1
    if left.form == right.form:
        return machine.constant(0) if op == "^" else left
    for mask, other in ((right, left), (left, right)):
        if mask.low == mask.high:
            return masked(machine, op, other, mask.low)
    if bits := numbers.bits_of(left, right):
        found = numbers.tabulated(bits, lambda case: OPERATIONS[op](at(left.form, case), at(right.form, case)))
        value = numbers.value(found, 0, ones)
        bit = bit_of(numbers, value, ones)
        return numbers.linear([(ones, numbers.tight(Value(bit, 0, 1)))]) if bit else value
    for mask, other in ((right, left), (left, right)):
        if bit := bit_of(numbers, mask, ones):
            numbers.choosers.update(atom for monomial in bit for atom in monomial)
            both = numbers.multiply(bit, other.form)
            form = {
                "&": both,
                "|": numbers.combine((1, other.form), (ones, bit), (-1, both)),
                "^": numbers.combine((1, other.form), (ones, bit), (-2, both)),
            }
            return numbers.value(form[op], 0, ones)
    return machine.unknown(machine.isa.limb_bits)


def masked(machine: Machine, op: str, value: Value, mask: int) -> Value:
    """Logic with a number: digit by digit, for each run of equal bits of the number."""
    terms, at_bit = [], 0
    for bit, run in itertools.groupby(mask >> k & 1 for k in range(machine.isa.limb_bits)):
        width = len(list(run))
        digit, value = machine.numbers.split(value, width)
        ones = machine.constant((1 << width) - 1)
        changed = {("&", 0): machine.constant(0), ("|", 1): ones, ("^", 1): machine.linear([(1, ones), (-1, digit)])}
        terms.append((1 << at_bit, changed.get((op, bit), digit)))
        at_bit += width
    return machine.linear(terms)


def bit_of(numbers: Numbers, mask: Value, ones: int) -> Form | None:
    """The bit that a mask is made of; None if it is no mask."""
    bits = numbers.bits_of(mask)
    if not bits or any(at(mask.form, case) not in (0, ones) for case in cases(bits)):
        return None
    return {monomial: factor // ones for monomial, factor in mask.form.items()}
