"""Absolute differences in a proof: which limbs are theirs, and how many of them lie in each other.

Karatsuba's method multiplies |l - h| by |l' - h'|.  What is carried out where that product is put together with others
has a bound only as long as the limbs of the two are taken as they are, each somewhere from 0 up to its greatest value:
as (l - h)(1 - 2s) they are what the operands say, but that they are never negative is lost.  A level below, differences
of such limbs are to stay whole, or the other way round.  So a bound is looked for with all limbs left whole that lie in
at most so many differences, for each such number.

Which limbs these are is read off the equations that made them, and hangs on nothing else, not on what was computed
first.  It is a choice of what to look at, not a step of the proof: any atom may be left whole in a bound, since it is
in its range whatever it is equal to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .carries import Carries


def completed(atoms: Carries, borrow: int) -> dict[int, int]:
    """The limbs of an absolute difference, whose last borrow this is, with its depth: 1, or one more than the deepest
    of those that it was computed from."""
    limbs: list[int] = []
    last: int | None = borrow
    while last is not None:
        relation = atoms.relation[last]
        limbs.append(relation.digits[0])
        bits = (atom for atom in relation.form if atoms.is_bit(atom) and atom not in atoms.signs)
        last = next((bit for bit in bits if atoms.carried(bit)), None)
    return dict.fromkeys(limbs, 1 + depth(atoms, limbs))


def depth(atoms: Carries, computed: Sequence[int]) -> int:
    """How many absolute differences lie in each other in what some atoms were computed from."""
    waiting, seen, found = list(computed), set(computed), 0
    while waiting:
        atom = waiting.pop()
        if atom in atoms.depths:
            found = max(found, atoms.depths[atom])
            continue
        relation = atoms.relation.get(atom)
        others = atoms.factors.get(atom) or (relation.form if relation else ())
        waiting += [other for other in others if other not in seen]
        seen.update(others)
    return found
