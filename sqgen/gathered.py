"""The range of a form in which products of an atom are taken together with the atom itself.

Taken apart, x y is at most what both are at most, and -x at most nothing; together they are x (y - 1).  That shows what
a product with a number below zero cannot reach, where this number is held as its digits and its sign: x y - s x, the
sign s being one.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from .linear import ONE, Form

if TYPE_CHECKING:
    from .forms import Atoms


def gathered(atoms: Atoms, form: Form) -> tuple[int, int] | None:
    """Least and greatest value of the form, whatever the sign in its products is; None if there are more signs."""
    signs = {factor for atom in form for factor in atoms.factors.get(atom, ()) if factor in atoms.signs}
    if len(signs) > 1:
        return None
    ends = [together(atoms, known(atoms, form, signs, value)) for value in ((0, 1) if signs else (0,))]
    return min(low for low, _ in ends), max(high for _, high in ends)


def known(atoms: Atoms, form: Form, signs: Collection[int], value: int) -> Form:
    """The form where the sign has this value; what a sign is multiplied with, if it is a name, is what it names."""
    total: dict[int, int] = {}
    waiting = list(form.items())
    while waiting:
        atom, coefficient = waiting.pop()
        factors = atoms.factors.get(atom, (atom,))
        others = [factor for factor in factors if factor not in signs]
        if len(others) < len(factors) and len(others) < 2:
            atom, coefficient = (others or [ONE])[0], coefficient * value
            relation = atoms.relation.get(atom)
            if relation and relation.digits == (atom,):
                waiting += [(other, coefficient * c) for other, c in relation.form.items()]
                continue
        total[atom] = total.get(atom, 0) + coefficient
    return {atom: c for atom, c in total.items() if c}


def together(atoms: Atoms, form: Form) -> tuple[int, int]:
    """Least and greatest value; a product of two atoms that both stand alone, too, is shared between them."""
    rest, low, high = dict(form), 0, 0
    sums: dict[int, dict[int, int]] = {}
    for atom, coefficient in form.items():
        factors = atoms.factors.get(atom, ())
        mine = [each for each in dict.fromkeys(factors) if len(factors) == 2 and form.get(each, 0) * coefficient < 0]
        for turn, each in enumerate(mine):
            share = (coefficient + turn) // len(mine)  # halves, one of them rounded down, the other one up
            sums.setdefault(each, {ONE: form[each]})[factors[factors[0] == each]] = share
            rest.pop(atom, None)
    for each, others in sums.items():
        del rest[each]
        ends = [end * bound for end in atoms.range(others) for bound in (atoms.low[each], atoms.high[each])]
        low, high = low + min(ends), high + max(ends)
    least, most = atoms.range(rest)
    return low + least, high + most
