"""Products on the way: what a called function leaves in memory, as the digits of one product where it is one.

When a function returns, the limbs it was the first to read are taken for operands, and those it wrote for their
product, the highest of which it may leave in registers alone.  That is a guess from outside on which nothing hangs: it
is used only if the difference reduces to zero, just as at the end of the proof.  Then these limbs *are* the digits of
that product, and fresh atoms with that one relation take their place.  What comes after sees a product of numbers and
nothing of how it was formed, so that the forms of a caller do not grow with what its parts do.

No rule says what a function may do, for none is needed: the equation is between values, whoever computed them, wherever
they came from.  What is shown of a function once, for all its callers, is `lemmas`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence, Set
from math import gcd

from .forms import Atoms
from .held import Call, Place
from .linear import ONE, Form, combine
from .symbolic import State
from .tied import runs

SHORT = 6  # terms for each limb that a number may have to be taken for what it was computed from
CHAIN = 4  # terms touched for each pair of limbs to see that the last carry of a conditional negation is the sign


def called(state: State, below: int = 0) -> None:
    """Remember the call of a function, before its return address is pushed; or when `below` limbs are on the stack that
    it gives back."""
    atoms = state.atoms
    now = len(atoms.low), len(atoms.relation), atoms.unmultiplied
    state.calls.append(Call(state.depth + below, len(state.events), *now, dict(state.memory)))
    atoms.unmultiplied = 0
    resumed(state)


def resumed(state: State) -> None:
    """The walk goes on in this state: what the function that it is in was given stays whole."""
    call = state.calls[-1] if state.calls else None
    state.atoms.given, state.atoms.known = (call.atoms, call.relations) if call else (0, 0)


def returned(state: State) -> None:
    """A function has returned: look for a product in what it did since it was called."""
    while state.calls and state.calls[-1].depth <= state.depth:
        call = state.calls[-1]
        found = shown(state, call) if call.depth == state.depth else None
        state.calls.pop()
        state.atoms.unmultiplied = call.unmultiplied
        resumed(state)
        if found:
            replace(state, *found)


Shown = tuple[list[Place], list[Form], list[Form], list[Form]]  # places, limbs from there on, and their two factors
Guess = tuple[Sequence[list[Place]], list[Form], list[Place]]  # factors, limbs of their product, where the lowest are


def shown(state: State, call: Call) -> Shown | None:
    """What a function wrote, and what it read, if the former is the product of the latter, maybe with limbs that it has
    left in registers; the count behind a turn of a loop is no operand."""
    read, written = touched(state, call.events)
    read = [place for place in read if place != ("stack", call.depth - 1)]
    for factors, result, places in guesses(state, read, written, call.atoms, call.relations):
        left, right = (forms([call.memory.get(place) for place in factor]) for factor in factors)
        if left and right and is_product(state, result, left, right, call.atoms):
            return places, result, left, right
    return None


def guesses(state: State, read: Sequence[Place], written: list[Place], atoms: int, relations: int) -> Iterator[Guess]:
    """What a function that began when there were so many atoms and relations may have multiplied, the likeliest first.

    The highest limb of a product hardly is something from which other limbs were computed, or no digit of a sum.  Where
    such is written highest, it waited there, and the limbs above the others are looked for in registers.
    """
    lowest, *apart = runs(written)[:2] or [[]]
    stored = forms([state.memory[place] for place in lowest])
    if not stored or len({buffer for buffer, _ in written}) > 1:
        return
    later = itertools.islice(state.atoms.relation.values(), relations, None)
    used = {atom for relation in later for atom in relation.form}
    final = len(stored)
    while final and not last_of(state, stored[final - 1], used):
        final -= 1
    alone = () if apart else operands(runs(read), len(stored))
    if alone and final == len(stored):
        yield alone, stored, lowest
    highest = unstored(state, stored, atoms, used)
    least = 1 + max(final, written[-1][1] - written[0][1])
    for length in range(least, final + len(highest) + 1):
        if factors := operands(runs(read), length):
            yield factors, stored[:final] + highest[final - length :], lowest[:final]
    if alone and final < len(stored):
        yield alone, stored, lowest


def unstored(state: State, stored: Sequence[Form], atoms: int, used: Set[int]) -> list[Form]:
    """Limbs in registers that may be a product's highest: those that are no part of an address, and not stored.  In the
    order in which they came."""
    isa = state.contract.isa
    held = [state.slots[isa.slots[name]] for name in isa.registers]
    found = {latest(form): form for form in held if isinstance(form, dict) and last_of(state, form, used)}
    public = state.atoms.is_public
    return [form for atom, form in sorted(found.items()) if atom >= atoms and form not in stored and not public(form)]


def last_of(state: State, form: Form, used: Set[int]) -> bool:
    """Whether it is a digit of a sum from which nothing was computed."""
    atom = latest(form)
    return atom in state.atoms.relation and atom not in used


def latest(form: Form) -> int:
    """The latest atom in a form."""
    return max(form, default=ONE)


def replace(
    state: State, written: Sequence[Place], result: Sequence[Form], left: Sequence[Form], right: Sequence[Form]
) -> None:
    """Let the limbs of the result, in these places and in registers, be the digits of left * right, which they are."""
    digits = digits_of(state, left, right, len(result))
    known = {frozenset(limb.items()): digit for limb, digit in zip(result, digits, strict=True)}
    for slot, held in enumerate(state.slots):
        if isinstance(held, dict) and held.keys() - {ONE}:
            state.slots[slot] = known.get(frozenset(held.items()), held)
    state.memory.update(zip(written, digits, strict=False))


def digits_of(state: State, left: Sequence[Form], right: Sequence[Form], count: int) -> list[Form]:
    """So many limbs, new atoms, of the product of two numbers, which has no more."""
    product = times(state.atoms, grouped(state.atoms, value(state, left)), grouped(state.atoms, value(state, right)))
    return state.fresh(product, [state.contract.isa.limb_bits] * count, [1] * count)


# ---- which limbs ------------------------------------------------------------------------------------------------


def touched(state: State, since: int) -> tuple[list[Place], list[Place]]:
    """Places read before they were written since some event, and places written that are still in use, in order."""
    read: set[Place] = set()
    written: set[Place] = set()
    for event in state.events[since:]:
        place = (event.place, event.number)
        if event.kind == "write":
            written.add(place)
        elif event.kind == "read" and place not in written:
            read.add(place)
    return sorted(read), sorted(written & state.memory.keys())


def operands(found: Sequence[list[Place]], length: int) -> Sequence[list[Place]]:
    """The two factors of a product of `length` limbs: two runs, or one in two halves, or one that is squared."""
    count = sum(map(len, found))
    if len(found) == 2 and count == length:
        return found
    if len(found) == 1 and count == length and length % 2 == 0:
        return found[0][: length // 2], found[0][length // 2 :]
    if len(found) == 1 and 2 * count == length:
        return found[0], found[0]
    return ()


def forms(cells: Sequence[object]) -> list[Form]:
    """The cells, if there is a number in each."""
    found = [cell for cell in cells if isinstance(cell, dict)]
    return found if len(found) == len(cells) else []


# ---- whether it is their product --------------------------------------------------------------------------------


def is_product(state: State, result: Sequence[Form], left: Sequence[Form], right: Sequence[Form], given: int) -> bool:
    """Whether the limbs of `result` make up left * right; both are numbers below 2^(bits of the result).

    Only what was computed since there were `given` atoms is reduced.
    """
    rest = error(state, result, left, right)
    modulus = 1 << (state.contract.isa.limb_bits * len(result))
    while True:
        rest = state.atoms.reduce(rest, state.fixed, given=given)
        left_over = {atom: c for atom, c in rest.items() if c % modulus}
        if not left_over:
            return True
        if state.atoms.uncarried(left_over):
            return False
        if not (state.atoms.resolve(left_over) or state.atoms.cancel(left_over)):
            return False


def error(state: State, result: Sequence[Form], left: Sequence[Form], right: Sequence[Form]) -> Form:
    """What the limbs of `result` make up, less left * right."""
    product = times(state.atoms, number(state, left), number(state, right))
    return combine([(1, number(state, result)), (-1, product)])


def number(state: State, limbs: Sequence[Form]) -> Form:
    """The number that has these limbs, lowest first."""
    limb = state.contract.isa.limb_bits
    return combine([(1 << (limb * at), form) for at, form in enumerate(limbs)])


def times(atoms: Atoms, left: Form, right: Form) -> Form:
    return combine([(coefficient, atoms.times(left, atom)) for atom, coefficient in right.items()])


# ---- in few terms -----------------------------------------------------------------------------------------------


def value(state: State, limbs: Sequence[Form]) -> Form:
    """The number that has these limbs, by what the caller was given, if that is short and no carry is left in it.

    An absolute difference is (x - y)(1 - 2s), once it is known that its last borrow is the sign s.
    """
    whole = number(state, limbs)
    found = state.atoms.reduce(whole, state.fixed, given=state.atoms.given)
    if found != whole and state.atoms.settle(found, thorough=False, budget=CHAIN * len(limbs) ** 2):
        found = state.atoms.reduce(whole, state.fixed, given=state.atoms.given)
    carries = any(all(map(state.atoms.is_bit, state.atoms.factors.get(atom, (atom,)))) for atom in found)
    return whole if carries or len(found) > SHORT * len(limbs) else found


def grouped(atoms: Atoms, form: Form) -> Form:
    """The form with its terms joined by the bits that are factors in them: for each, one number, which gets a name.

    (x - y)(1 - 2s) becomes z - 2sz.  A product of such numbers has few terms, and their signs cancel in z alone.
    """
    groups: dict[int, Form] = {}
    for atom, coefficient in form.items():
        bits, rest = ONE, atom
        for factor in atoms.factors.get(atom, (atom,)):
            if atoms.is_bit(factor):
                bits, rest = atoms.product(bits, factor), atoms.cofactor(rest, factor)
        groups.setdefault(bits, {})[rest] = coefficient
    return combine([(1, atoms.times(scaled(atoms, group), bits)) for bits, group in groups.items()])


def scaled(atoms: Atoms, form: Form) -> Form:
    """The form as a multiple of one atom, which has a name; forms in proportion are multiples of the same."""
    common = gcd(*form.values())
    if next(iter(form.values())) < 0:
        common = -common
    return {atoms.named({atom: coefficient // common for atom, coefficient in form.items()}): common}
