"""The end of a case of the second proof: whether result - A*B is zero for all operands.

Over atoms without pivots it is zero but for carries: one that was dropped above the result counts a multiple of
2^(bits of the result), which is zero since both lie below; one that was dropped elsewhere must be shown to be none.
Alone, or less the bit whose mask it was added with: the carry out of a sum with a number below zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from .forward_sums import PRODUCTS, UNIT, Fork, Limbs, Monomial, Sum


def left_over(limbs: Limbs, error: Sum, modulus: int) -> Sum:
    """What is left of an error that is not known to be a multiple of the modulus.  Raises Fork where all hangs on one
    bit, TooMuch."""
    carries: dict[Fraction | int, dict[Monomial, Fraction | int]] = {}  # by how often the error has them
    for parts in _candidates(limbs):
        form = limbs.sums.substitute(limbs.sums.substitute(parts, limbs.forms), limbs.pivots)
        latest = max((monomial for monomial in form if len(monomial) == 1), default=())
        if not latest or latest not in error:
            continue
        times = Fraction(error[latest]) / form[latest]
        without = limbs.sums.combine((1, error), (-times, form))
        shorter, of_bits = len(without) < len(error), limbs.of_bits(parts)
        if times % modulus == 0:
            error = without if shorter or len(parts) == 1 else error
        elif limbs.masks == PRODUCTS and of_bits and shorter:
            error = without
            same = carries.get(abs(times), {})
            carries[abs(times)] = dict(limbs.sums.combine((1, same), (1 if times > 0 else -1, parts)))
        elif limbs.masks != PRODUCTS and of_bits and without.keys() <= UNIT.keys():
            raise Fork(max(limb for monomial in parts for limb in monomial))
    left = {monomial: factor for monomial, factor in error.items() if factor % modulus}
    return left or next((some for some in carries.values() if not limbs.vanishes(some)), {})


def _candidates(limbs: Limbs) -> Iterator[Sum]:
    """The carries out of sums with a mask, each less the bit of that; then all limbs; the latest first."""
    for limb, less in reversed(limbs.lifted.items()):
        for rest in (monomial for monomial, factor in limbs.apart.get(limb, {}).items() if factor != 1):
            yield limbs.sums.combine((1, {rest: 1}), (1, less))
    for limb in sorted(limbs.forms, reverse=True):
        yield {(limb,): 1}
