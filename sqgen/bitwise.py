"""AND, OR and EOR in the proof: exact for equal operands, constants and masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .linear import ONE, ZERO, Form, combine

if TYPE_CHECKING:
    from .symbolic import State


def logic(state: State, op: str, first: Form, second: Form) -> Form:
    """`first` op `second`: "&", "|" or "^"; an unknown limb where that is not exact."""
    if first == second:
        return ZERO if op == "^" else first
    if not second or second.keys() == {ONE}:
        first, second = second, first
    if not first or first.keys() == {ONE}:
        return with_constant(state, op, first.get(ONE, 0), second)
    if mask(state, first) is None:
        first, second = second, first
    bit, other = mask(state, first), mask(state, second)
    if bit is None:
        return {state.atoms.new(0, state.limb_top()): 1}
    if other is not None:
        (both,) = masked(state, op, other, bit, 1)
        return {both: state.limb_top()}
    return masked(state, op, second, bit, state.contract.isa.limb_bits)


def masked(state: State, op: str, form: Form, bit: Form, width: int) -> Form:
    """`form`, of `width` bits, combined with a mask of that width, all of whose bits are `bit`."""
    both = state.atoms.times(bit, state.factor(form))
    if op == "&":
        return state.name(both, width)
    top = (1 << width) - 1
    return state.name(combine([(1, form), (top, bit), ({"|": -1, "^": -2}[op], both)]), width)


def with_constant(state: State, op: str, constant: int, form: Form) -> Form:
    """x & c by runs of equal bits of c; the others from x + c = (x | c) + (x & c), x ^ c = (x | c) - (x & c)."""
    both: list[tuple[int, Form]] = []
    rest, position, width = form, 0, state.contract.isa.limb_bits
    while position < width:
        bit = constant >> position & 1
        run = 1
        while position + run < width and constant >> (position + run) & 1 == bit:
            run += 1
        if position + run < width:
            part, rest = state.digits(rest, (run, width - position - run), (1, 1), (0, 0))
        else:
            part, rest = rest, ZERO
        if bit:
            both.append((1 << position, part))
        position += run
    union = {"&": (0, 1), "|": (1, -1), "^": (1, -2)}[op]
    return combine([(union[0], form), (union[0] * constant, {ONE: 1}), *((union[1] * c, f) for c, f in both)])


def mask(state: State, form: Form) -> Form | None:
    """s, for a form 2^w-1 times s where s is a bit or the complement of one; None for another form."""
    bits = [atom for atom in form if atom != ONE]
    if len(bits) != 1 or not state.atoms.is_bit(bits[0]):
        return None
    zero, one = form.get(ONE, 0), form.get(ONE, 0) + form[bits[0]]
    if {zero, one} != {0, state.limb_top()}:
        return None
    state.atoms.signs.add(bits[0])
    return {bits[0]: 1} if one else {ONE: 1, bits[0]: -1}
