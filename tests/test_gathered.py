"""Ranges in which products are taken together with their factors, in both proofs: they hold, and say what is wanted."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from sqgen.forms import Atoms
from sqgen.forward_end import Bounded
from sqgen.forward_numbers import Budget, Form, Numbers
from sqgen.gathered import gathered

FACTORS = st.integers(-9, 9)
TOPS = st.lists(st.integers(0, 3), min_size=3, max_size=3)


def products(count: int) -> list[tuple[int, ...]]:
    """All products of up to two of some numbers, by their indices."""
    return [indices for size in range(3) for indices in itertools.combinations_with_replacement(range(count), size)]


def value(terms: dict[tuple[int, ...], int], numbers: tuple[int, ...]) -> int:
    total = 0
    for indices, factor in terms.items():
        total += factor * math.prod(numbers[index] for index in indices)
    return total


@given(TOPS, st.lists(FACTORS, min_size=15, max_size=15), st.booleans())
def test_no_number_lies_outside_the_range_of_the_first_proof(tops: list[int], factors: list[int], sign: bool) -> None:
    atoms = Atoms()
    made = [atoms.new(0, top) for top in tops] + [atoms.new(0, 1)]
    if sign:
        atoms.signs.add(made[3])
    terms = dict(zip(products(4), factors, strict=True))
    form: dict[int, int] = {}
    for indices, factor in terms.items():
        atom = 0
        for index in indices:
            atom = atoms.product(atom, made[index])
        form[atom] = form.get(atom, 0) + factor
    found = gathered(atoms, {atom: c for atom, c in form.items() if c})
    assert found
    for numbers in itertools.product(*(range(top + 1) for top in (*tops, 1))):
        assert found[0] <= value(terms, numbers) <= found[1]


@given(TOPS, st.lists(FACTORS, min_size=10, max_size=10))
def test_no_number_lies_outside_the_range_of_the_second_proof(tops: list[int], factors: list[int]) -> None:
    numbers_ = Numbers(Budget())
    made = [numbers_.atom(0, top) for top in tops]
    terms = dict(zip(products(3), factors, strict=True))
    form = {tuple(made[index] for index in indices): factor for indices, factor in terms.items() if factor}
    low, high = Bounded(numbers_, form, 1).gathered()
    for numbers in itertools.product(*(range(top + 1) for top in tops)):
        assert low <= value(terms, numbers) <= high


def test_a_limb_times_a_number_below_zero_is_not_above_zero() -> None:
    """The number in two limbs and a sign: x (y0 + 256 y1 - 65536 s) + 255 * 65536 s, as both proofs see it."""
    atoms = Atoms()
    x, y0, y1, s = (atoms.new(0, top) for top in (255, 255, 255, 1))
    atoms.signs.add(s)
    form = {atoms.product(x, y0): 1, atoms.product(x, y1): 256, atoms.product(x, s): -65536, s: 255 * 65536}
    assert atoms.range(form)[1] > 510 * 65535
    assert gathered(atoms, form) == (0, 255 * 65536)
    numbers = Numbers(Budget())
    one, low, high = (numbers.atom(0, 255) for _ in range(3))
    known: Form = {(one, low): 1, (one, high): 256, (one,): -65536}
    assert numbers.interval(known)[1] > 0 and Bounded(numbers, known, 1).gathered() == (-255 * 65536, 0)


def test_a_product_of_two_signs_is_left_to_others() -> None:
    atoms = Atoms()
    x, s, t = (atoms.new(0, top) for top in (255, 1, 1))
    atoms.signs |= {s, t}
    assert gathered(atoms, {atoms.product(x, s): 1, atoms.product(x, t): 1}) is None
