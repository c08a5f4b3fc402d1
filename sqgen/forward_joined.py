"""Arms that join, in the second proof: one machine for all cases of a branch, at the place where their arms meet.

What differs in memory must be, in each row of places, the same number in all cases, written in atoms that there were
before the branch: each case shows that of its own number, as at the end (`forward_end`).  The limbs are cut from that
number anew, as an addition would cut them.  A register that differs holds something unknown from there on, an address
but for the case that it is the same one.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import tied
from .forward import Machine
from .forward_end import left_over, written_out
from .forward_numbers import Form, Value
from .forward_trace import Region, accesses, paths, stack, ways
from .tied import Spot


def joined(before: Machine, cases: Sequence[Machine]) -> Machine | None:
    """One machine for all cases of the one `before` the branch; None if they do not leave the same."""
    first = cases[0]
    if not all(alike(before, first, case) for case in cases):
        return None
    machine, since = before.twin(), len(before.trace)
    machine.at, machine.end, machine.trace, machine.left = first.at, first.end, first.trace, first.left
    machine.written.update(*(case.written for case in cases))
    arms = [path for case in cases for path in paths(case.trace, case.regions, since)]
    region = Region(since, len(first.trace), arms, sum(ways(case.regions, since) for case in cases))
    machine.regions = [*before.regions, region]
    found = {place: common(before, [case.memory[place] for case in cases]) for place in first.memory}
    machine.memory = {place: value for place, value in found.items() if value}
    apart = found.keys() - machine.memory.keys()
    unknown = registers(machine, before, cases)
    given, joined_places = before.numbers.unmultiplied, 0
    for spots, inside in tied.numbers(
        apart, unknown, 1 << first.isa.limb_bits, lambda spot: written_out(first.numbers, held(first, spot), given)
    ):
        tries = [spots, inside] if len(inside) < len(spots) else [spots]
        if any(merged(machine, before, cases, each) for each in tries):
            joined_places += len(inside)
        else:
            limb_bits = machine.isa.limb_bits
            machine.memory.update({place: machine.unknown(limb_bits) for place in sorted(apart) if place in inside})
    return machine if joined_places else None


def alike(before: Machine, first: Machine, case: Machine) -> bool:
    """Whether a case has touched the same places as the first one, and is in the same function."""
    since = len(before.trace)
    traces = first.trace[since:], case.trace[since:]
    return (
        case.bus is None
        and not case.contract.wiped
        and (case.at, case.end, case.conditions) == (first.at, first.end, ())
        and (case.returns, case.links) == (before.returns, before.links)
        and case.memory.keys() == first.memory.keys()
        and len({stack(trace, 1) for trace in traces}) == 1
        and list(accesses(traces[0])) == list(accesses(traces[1]))
    )


def old(before: Machine, form: Form) -> Form:
    """The part of a form that is made of what there was before."""
    made = len(before.numbers.ranges)
    return {monomial: factor for monomial, factor in form.items() if all(atom < made for atom in monomial)}


def common(before: Machine, values: Sequence[Value]) -> Value | None:
    """What all cases have, if it is made of what there was before."""
    form = values[0].form
    if any(value.form != form for value in values) or old(before, form) != form:
        return None
    return Value(form, min(value.low for value in values), max(value.high for value in values))


def held(case: Machine, spot: Spot) -> Form:
    """The limb there."""
    return (case.slots[spot] if isinstance(spot, int) else case.memory[spot]).form


def merged(machine: Machine, before: Machine, cases: Sequence[Machine], spots: Sequence[Spot]) -> bool:
    """Let these hold the limbs of one number, lowest first, if it is the same in all cases.  What there was before the
    function's first multiplication is not written out: so there are few products in it, and their bounds are near."""
    width = machine.isa.limb_bits
    modulus = 1 << (width * len(spots))
    numbers = [
        case.numbers.combine(*((1 << (width * k), held(case, spot)) for k, spot in enumerate(spots))) for case in cases
    ]
    whole = old(before, written_out(cases[0].numbers, numbers[0], before.numbers.unmultiplied))
    for case, number in zip(cases, numbers, strict=True):
        error = written_out(case.numbers, case.numbers.combine((1, number), (-1, whole)))
        if hopeless(case, error, modulus) or left_over(case.numbers, error, modulus):
            return False
    rest = machine.numbers.value(whole, *machine.numbers.interval(whole))
    for spot in spots:
        limb, rest = machine.numbers.split(rest, width)
        if isinstance(spot, int):
            machine.slots[spot] = limb
        else:
            machine.memory[spot] = limb
    return True


def hopeless(case: Machine, error: Form, modulus: int) -> bool:
    """Whether a product of operands is left in an error, which nothing that is found out of carries takes away."""
    cuts = case.numbers.cuts
    return any(
        factor % modulus and monomial and not any(atom in cuts and cuts[atom].rest == atom for atom in monomial)
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
