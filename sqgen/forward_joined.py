"""Arms that join, in the second proof: one machine for all cases of a branch, at the place where their arms meet.

What differs in memory must be, in each row of places, the same number in all cases, written in atoms that there were
before the branch: each case shows that of its own number, as at the end (`forward_end`), for all that the function's
operands may be.  Where arms meet for the last time in a function that is called, the number is all that it leaves, in
memory and in registers, and written in its operands: their product.  The limbs are cut from that number anew, as an
addition would cut them.  A register that differs holds something unknown from there on, an address but for the case
that it is the same one.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence

from . import tied
from .forward import Machine
from .forward_end import left_over, written_out
from .forward_numbers import Form, Value
from .forward_trace import Region, accesses, paths, stack, ways
from .tied import Spot


def joined(before: Machine, cases: Sequence[Machine], *, last: bool) -> Machine | None:
    """One machine for all cases of the one `before` the branch; None if they do not leave the same.  `last`: nothing
    branches behind it in the function at hand, which is called."""
    first, since = cases[0], len(before.trace)
    if not all(alike(before, first, case) for case in cases):
        return None
    machine = before.twin()
    machine.at, machine.end, machine.trace = first.at, first.end, first.trace
    fallen = dict.fromkeys(itertools.chain.from_iterable(case.left for case in cases))
    machine.left = {offset: below(machine, before, cases, offset) for offset in fallen}
    machine.written.update(*(case.written for case in cases))
    arms = [paths(case.trace, case.regions, since) for case in cases]
    each_once = {own: ways(case.regions, since) for case, (own, *_) in zip(cases, arms, strict=True)}
    every = [*dict.fromkeys(itertools.chain.from_iterable(arms))]
    machine.regions = [*before.regions, Region(since, len(first.trace), every, sum(each_once.values()))]
    unknown = registers(machine, before, cases)
    for case in cases:
        case.numbers.given = before.entered[-1]
    try:
        return machine if same_numbers(machine, before, cases, unknown, last=last) else None
    finally:
        for case in cases:
            case.numbers.given = 0


def same_numbers(
    machine: Machine, before: Machine, cases: Sequence[Machine], unknown: Sequence[int], *, last: bool
) -> bool:
    """Let memory, and registers that are `unknown`, hold what they do in all cases; whether there are numbers that
    differ in their limbs alone."""
    first = cases[0]
    found = {place: common(before, [case.memory[place] for case in cases]) for place in first.memory}
    machine.memory = {place: value for place, value in found.items() if value}
    apart = found.keys() - machine.memory.keys()
    shown, size = False, 1 << machine.isa.limb_bits
    for spots, inside in tied.numbers(apart, unknown, size, functools.partial(written, first)):
        tries = [spots, inside] if len(inside) < len(spots) else [spots]
        if (last and is_product(machine, before, cases, inside, unknown)) or any(
            merged(machine, cases, each, len(before.numbers.ranges)) for each in tries
        ):
            shown = True
        else:
            limb_bits = machine.isa.limb_bits
            machine.memory.update({place: machine.unknown(limb_bits) for place in sorted(apart) if place in inside})
    return shown


def alike(before: Machine, first: Machine, case: Machine) -> bool:
    """Whether a case has touched the same places as the first one, and is in the same function."""
    since = len(before.trace)
    traces = first.trace[since:], case.trace[since:]
    return (
        case.bus is None
        and (case.at, case.end, case.conditions) == (first.at, first.end, ())
        and (case.returns, case.links) == (before.returns, before.links)
        and case.memory.keys() == first.memory.keys()
        and len({stack(trace, 1) for trace in traces}) == 1
        and list(accesses(traces[0])) == list(accesses(traces[1]))
    )


def common(before: Machine, values: Sequence[Value]) -> Value | None:
    """What all cases have, if it is made of what there was before."""
    form = values[0].form
    if any(value.form != form for value in values) or is_new(form, len(before.numbers.ranges)):
        return None
    return Value(form, min(value.low for value in values), max(value.high for value in values))


def below(machine: Machine, before: Machine, cases: Sequence[Machine], offset: int) -> Value:
    """What they leave at an offset below the stack pointer: something unknown, if it is not the same."""
    found = [case.left[offset] for case in cases if offset in case.left]
    shared = common(before, found) if len(found) == len(cases) else None
    return shared or machine.unknown(machine.isa.limb_bits)


def held(case: Machine, spot: Spot) -> Form:
    """The limb there."""
    return (case.slots[spot] if isinstance(spot, int) else case.memory[spot]).form


def written(case: Machine, *spots: Spot) -> Form:
    """The number whose limbs are there, lowest first, written out."""
    width = case.isa.limb_bits
    number = case.numbers.combine(*((1 << (width * k), held(case, spot)) for k, spot in enumerate(spots)))
    return written_out(case.numbers, number)


def merged(machine: Machine, cases: Sequence[Machine], spots: Sequence[Spot], made: int) -> bool:
    """Let these hold the limbs of one number, lowest first, if it is the same in all cases, in the atoms that there are
    up to `made`: as the case writes it that needs the fewest terms for that."""
    width = machine.isa.limb_bits
    modulus = 1 << (width * len(spots))
    numbers = [written(case, *spots) for case in cases]
    parts = [{m: factor for m, factor in number.items() if all(atom < made for atom in m)} for number in numbers]
    whole = min(parts, key=len)
    for case, number in zip(cases, numbers, strict=True):
        error = case.numbers.combine((1, number), (-1, whole))
        if hopeless(case, error, modulus) or left_over(case.numbers, error, modulus):
            return False
    rest = machine.numbers.value(whole, *machine.numbers.interval(whole))
    machine.numbers.factors.update(atom for monomial in whole if len(monomial) > 1 for atom in monomial)
    for spot in spots:
        limb, rest = machine.numbers.split(rest, width)
        if isinstance(spot, int):
            machine.slots[spot] = limb
        else:
            machine.memory[spot] = limb
    return True


def is_product(
    machine: Machine, before: Machine, cases: Sequence[Machine], inside: Sequence[Spot], slots: Sequence[int]
) -> bool:
    """Let the places that the function has filled, among them these, and registers above them, hold the limbs of one
    number, if that is made of its operands alone."""
    first, given = cases[0], before.entered[-1]
    (buffer, lowest), *_ = (spot for spot in inside if not isinstance(spot, int))
    below = itertools.count(lowest - 1, -1)
    filled = itertools.takewhile(
        lambda k: (buffer, k) in first.memory and is_new(held(first, (buffer, k)), given), below
    )
    spots: list[Spot] = [*((buffer, k) for k in sorted(filled)), *inside]
    return merged(machine, cases, [*spots, *above(first, spots[-1], slots)], given)


def is_new(form: Form, given: int) -> bool:
    """Whether a form is made of what came after the first `given` atoms, too."""
    return any(atom >= given for monomial in form for atom in monomial)


def above(first: Machine, top: Spot, slots: Sequence[int]) -> Iterator[int]:
    """Registers into which it carries from a place on: more than a third of what is carried counts once in the next
    one, as a guess."""
    size, waiting, form = 1 << first.isa.limb_bits, {slot: written(first, slot) for slot in slots}, written(first, top)
    while waiting:
        carried = {what: -factor // size for what, factor in form.items() if factor % size == 0}.items()
        best = max(waiting, key=lambda slot: len(carried & waiting[slot].items()))
        if 3 * len(carried & waiting[best].items()) <= len(carried):
            return
        yield best
        form = waiting.pop(best)


def hopeless(case: Machine, error: Form, modulus: int) -> bool:
    """Whether a product of operands is left in an error, which nothing that is found out of carries takes away."""
    cuts = case.numbers.cuts
    return any(
        factor % modulus
        and len(monomial) > 1
        and not any(atom in cuts and cuts[atom].rest == atom for atom in monomial)
        for monomial, factor in error.items()
    )


def registers(machine: Machine, before: Machine, cases: Sequence[Machine]) -> list[int]:
    """Registers and flags where arms meet; those registers that hold something unknown then."""
    isa, unknown = machine.isa, []
    for slot, width in enumerate(isa.widths):
        shared = common(before, [case.slots[slot] for case in cases])
        machine.slots[slot] = shared or machine.unknown(width)
        unknown += [slot] if not shared and width == isa.limb_bits else []
    for names in (*isa.wide.values(), isa.stack_registers):
        where = {case.based(case.wide(names).form) for case in cases} if len(names) == isa.address_limbs else {None}
        if len(where) == 1 and (place := where.pop()):
            machine.set_wide(names, address(machine, *place))
            unknown = [slot for slot in unknown if slot not in {isa.slots[name] for name in names}]
    return unknown


def address(machine: Machine, buffer: str, offset: int) -> Value:
    """That of a limb of a buffer."""
    base = next(atom for atom, name in machine.bases.items() if name == buffer)
    start = Value({(base,): 1}, *machine.numbers.ranges[base])
    return machine.linear([(1, start), (offset * machine.limb_bytes, machine.constant(1))])
