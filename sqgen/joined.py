"""Arms that join: where both ways of a branch meet again, one state may stand for all cases.

What the arms have written is, in many a product, the same number: the same polynomial in what was known before the
branch.  Whether it is, is shown in each case by what is known there, just as at the end of the proof.  Then fresh limbs
with that one relation take the place of what each case has left, and of the registers that differ nothing is known any
more.  So the cases of a part do not multiply with those of the next one.

A guess is only that the arms leave one number in each row of places that they wrote, perhaps with its upper limbs in
registers, and that no other register that they changed is needed: if the proof fails later, it is begun again and joins
nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TypeVar

from . import tied
from .agreement import Agreement
from .held import Cell, Place, Value, Ways
from .lemmas import groups, rounds
from .linear import Form, combine, substitute
from .products import forms, number
from .symbolic import State
from .tied import Spot

Held = TypeVar("Held", Value, Cell)


def united(before: State, cases: Sequence[State], made: int, refuted: Callable[[], bool]) -> State | None:
    """One state for all cases of a branch in the state `before`, at the place where they meet; None if they do not
    leave the same.  So many atoms were `made` before; `refuted` says whether the code is known to be wrong."""
    first = cases[0]
    if not all(alike(before, first, case) for case in cases):
        return None
    state = replace(
        first,
        slots=list(first.slots),
        memory=dict(first.memory),
        fixed=dict(before.fixed),
        told=[*before.told, (len(before.path), ways(before, cases))],
    )
    known = [{atom: value for atom, value in case.fixed.items() if atom not in before.fixed} for case in cases]
    state.left = below(before, cases, known)
    apart: list[Place] = []
    for place in first.memory:
        shared = common(before.memory.get(place), [case.memory[place] for case in cases], known)
        if shared is None:
            apart.append(place)
        else:
            state.memory[place] = shared
    if not apart:
        return None
    unknown = registers(before, state, cases, known)
    joined = 0
    for spots, inside in tied.numbers(
        apart, unknown, 1 << first.contract.isa.limb_bits, lambda spot: written(first, spot)
    ):
        tries = [spots, inside] if len(inside) < len(spots) else [spots]
        if any(merged(state, cases, each, made, refuted) for each in tries):
            joined += len(inside)
        else:
            state.memory.update(
                {place: {state.atoms.new(0, state.limb_top()): 1} for place in apart if place in inside}
            )
    return state if joined else None


def ways(before: State, cases: Sequence[State]) -> Ways:
    """The paths of all cases since the state `before`."""
    since, known = len(before.path), len(before.told)
    told = [[(at - since, what) for at, what in case.told[known:]] for case in cases]
    own = [tuple(case.path[since:]) for case in cases]
    paths = (rounds(path, its) for path, its in zip(own, told, strict=True))
    each_once = {path: prod(what.ways for _, what in its) for path, its in zip(own, told, strict=True)}
    return Ways(tuple(dict.fromkeys(path for some in paths for path in some)), sum(each_once.values()))


def alike(before: State, first: State, case: State) -> bool:
    """Whether a case has done to the stack, and to memory, what the first one did, and called nothing that is not
    over."""
    return (
        case.bus is None
        and not (case.conditions or case.halfway)
        and (case.depth, case.lowest, case.links, case.pushed) == (first.depth, first.lowest, first.links, first.pushed)
        and case.memory.keys() == first.memory.keys()
        and (case.given or {}).keys() == (before.given or {}).keys()
        and len(case.calls) == len(before.calls)
        and all(call is its for call, its in zip(case.calls, before.calls, strict=True))
        and accessed(before, case) == accessed(before, first)
    )


def accessed(before: State, case: State) -> list[tuple[str, str, int]]:
    """What a case has read and written since the state `before`, in order."""
    events = case.events[len(before.events) :]
    return [(kind, place, offset) for _, kind, place, offset in events if kind != "branch"]


def common(value: Held | None, cells: Sequence[Held], known: Sequence[Mapping[int, int]]) -> Held | None:
    """What is held in all cases, if it is the same; None if not.  `value`: what was there before, and still is if each
    case has put no more into it than what is `known` there."""
    first = cells[0]
    if all(cell is first or cell == first for cell in cells):
        return first
    if isinstance(value, dict) and all(put_in(value, bits) == cell for bits, cell in zip(known, cells, strict=True)):
        return value
    return None


def below(before: State, cases: Sequence[State], known: Sequence[Mapping[int, int]]) -> dict[int, Cell | None]:
    """What they leave below the stack pointer: what is common to all; of what is not, nothing is known."""
    every = dict.fromkeys(itertools.chain.from_iterable(case.left for case in cases))
    left: dict[int, Cell | None] = dict.fromkeys(every)
    for offset in every:
        cells = [cell for case in cases if (cell := case.left.get(offset)) is not None]
        if len(cells) == len(cases):
            left[offset] = common(before.left.get(offset), cells, known)
    return left


def put_in(form: Form, values: Mapping[int, int]) -> Form:
    """The form with the values of some atoms put in."""
    for atom, value in values.items():
        form = substitute(form, atom, value)
    return form


def registers(
    before: State, state: State, cases: Sequence[State], known: Sequence[Mapping[int, int]]
) -> dict[int, None]:
    """Registers hold what is common to all cases, an address if it is the same, and else something unknown: those that
    do."""
    isa = state.contract.isa
    unknown: dict[int, None] = {}
    for slot, value in enumerate(before.slots):
        shared = common(value, [case.slots[slot] for case in cases], known)
        if shared is None and isa.widths[slot] == isa.limb_bits:
            shared = {state.atoms.new(0, state.limb_top()): 1}
            unknown[slot] = None
        state.slots[slot] = shared
    for group in (*groups(isa), isa.stack_registers):
        where = {case.resolve(case.joined(group)) for case in cases}
        if len(where) == 1 and None not in where:
            for slot in (isa.slots[name] for name in group):
                state.slots[slot] = cases[0].slots[slot]
                unknown.pop(slot, None)
    return unknown


def written(case: State, spot: Spot) -> Form:
    """The limb there in what there was before the function first multiplied, and in carries."""
    return case.atoms.reduce(held(case, spot), case.fixed, given=case.atoms.unmultiplied)


def held(case: State, spot: Spot) -> Form:
    """The limb there."""
    return case.form(case.slots[spot]) if isinstance(spot, int) else forms([case.memory[spot]])[0]


def merged(state: State, cases: Sequence[State], spots: Sequence[Spot], made: int, refuted: Callable[[], bool]) -> bool:
    """Let these hold the limbs of one number, lowest first, if it is the same in all cases: of atoms that there were
    before these, for those of one case say nothing in the others.  What was there before the first multiplication is
    not taken apart, so that a part of a part is a product of few limbs.  Where the number seems to be more than they
    hold, that may be for carries in it that cancel."""
    atoms = state.atoms
    given, size = atoms.unmultiplied, 1 << (state.contract.isa.limb_bits * len(spots))
    numbers = [number(case, [held(case, spot) for spot in spots]) for case in cases]
    first = atoms.reduce(numbers[0], cases[0].fixed, given=given)
    whole = {
        atom: c
        for atom, c in first.items()
        if c % size and all(each < made for each in atoms.factors.get(atom, (atom,)))
    }
    agreement = Agreement(atoms, size, branches=True, refuted=refuted, given=given)
    if not fits(state, whole, size):
        whole = agreement.simpler(whole)
        if not fits(state, whole, size):
            return False
    for case, its in zip(cases, numbers, strict=True):
        error = atoms.reduce(combine([(1, its), (-1, whole)]), case.fixed, given=given)
        if atoms.uncarried(error) or agreement.left(error, case.fixed):
            return False
    limbs = remainder(state, whole, len(spots))
    for spot, limb in zip(spots, limbs, strict=True):
        if isinstance(spot, int):
            state.slots[spot] = limb
        else:
            state.memory[spot] = limb
    return True


def fits(state: State, whole: Form, size: int) -> bool:
    """Whether limbs below a size hold a number but for one carry or borrow."""
    low, high = state.atoms.range(whole)
    return low >= -size and high < (size if low < 0 else 2 * size)


def remainder(state: State, whole: Form, count: int) -> list[Form]:
    """So many limbs, new atoms, of a number modulo what they hold, and a carry or borrow, which is dropped."""
    limb = state.contract.isa.limb_bits
    low, _ = state.atoms.range(whole)
    *limbs, carry = state.fresh(whole, [limb] * count + [1], [1] * count + [-1 if low < 0 else 1])
    state.atoms.dropped.update(carry)
    return limbs
