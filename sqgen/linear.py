"""Linear forms with integer coefficients over atoms: the values of the proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Form = dict[int, int]  # atom -> coefficient; never changed once made
ONE = 0  # the atom that is always 1
ZERO: Form = {}


@dataclass(frozen=True)
class Relation:
    """sum(weight * digit) = form, the lowest digit (of weight 1) first."""

    digits: tuple[int, ...]
    weights: tuple[int, ...]
    form: Form


def combine(terms: Sequence[tuple[int, Form]]) -> Form:
    """sum(coefficient * form)."""
    total: Form = {}
    for coefficient, form in terms:
        for atom, value in form.items():
            after = total.get(atom, 0) + coefficient * value
            if after:
                total[atom] = after
            else:
                total.pop(atom, None)
    return total


def substitute(form: Form, atom: int, value: int) -> Form:
    """The form with an atom's value put in."""
    if atom not in form:
        return form
    rest = {other: coefficient for other, coefficient in form.items() if other != atom}
    return combine([(1, rest), (form[atom] * value, {ONE: 1})])
