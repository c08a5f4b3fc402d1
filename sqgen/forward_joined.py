"""Arms that join, in the second proof: one machine for all cases of a branch, at the place where their arms meet.

What differs in memory must be, in each row of places, the same number in all cases, written in atoms that there were
before the branch: each case shows that of its own number, as at the end (`forward_end`).  The limbs are cut from that
number anew, as an addition would cut them.  A register that differs holds something unknown from there on, an address
but for the case that it is the same one.
"""

from __future__ import annotations

from collections.abc import Sequence

from .forward import Machine, Place
from .forward_end import left_over, written_out
from .forward_numbers import Form, Value
from .forward_trace import Region, accesses, paths, stack, ways

Spot = int | Place  # where a limb is: a slot, or a place in memory


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
    waiting = rows(sorted(found.keys() - machine.memory.keys()))
    unknown = registers(machine, before, cases)
    joined_places = 0
    while waiting:
        row = waiting.pop()
        spots = tied(before, first, row, unknown)
        inside = [spot for spot in spots if spot in row]
        if merged(machine, before, cases, spots) or merged(machine, before, cases, inside):
            joined_places += len(inside)
        else:
            machine.memory.update({place: machine.unknown(machine.isa.limb_bits) for place in inside})
        waiting += [row[len(inside) :]] if len(inside) < len(row) else []
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


def rows(places: Sequence[Place]) -> list[list[Place]]:
    """Sorted places, those that are neighbours together."""
    found: list[list[Place]] = []
    for buffer, offset in places:
        if found and found[-1][-1] == (buffer, offset - 1):
            found[-1].append((buffer, offset))
        else:
            found.append([(buffer, offset)])
    return found


def tied(before: Machine, case: Machine, row: Sequence[Place], slots: Sequence[int]) -> list[Spot]:
    """The spots of what may be one number, lowest first, which begins in a row of places: what is left above a limb,
    and counts so often there, counts once in the next one, most of it at least, lest that is something else that was
    carried into.  That is the next place, unless it is one of the slots."""
    size, given = 1 << case.isa.limb_bits, before.numbers.unmultiplied
    found: list[Spot] = [row[0]]
    places: list[Spot] = list(row[1:])
    registers: list[Spot] = list(slots)
    spots: list[Spot] = [*row, *slots]
    forms = {spot: written_out(case.numbers, held(case, spot), given) for spot in spots}
    while True:
        above = {m: -c // size for m, c in forms[found[-1]].items() if c % size == 0}.items()
        shared = {spot: len(above & forms[spot].items()) for spot in (*places[:1], *registers)}
        best = max(shared, key=lambda spot: shared[spot], default=row[0])
        if best in registers and 2 * shared[best] > len(above):
            places.clear()
            registers.remove(best)
            found.append(best)
        elif places:
            found.append(places.pop(0))
        else:
            return found


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
