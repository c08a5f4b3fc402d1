"""The atoms of a proof: what its linear forms are made of, and what can be said of the range of these.

An atom is an unknown integer with a range: an operand limb, a pointer, a product of atoms, a number with a name, or a
digit of an equation.  Digits come with their *relation*: digits, each times its weight, sum to a form over earlier
atoms.  Two directions of use make everything else: `reduce` replaces the lowest digit of each relation by the rest of
it, latest relation first, so that in a sum in which low digit and carry occur in the right proportion the carry cancels
and the form comes down to operand limbs; and bounds replace the highest one (`carries`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .linear import ONE, ZERO, Form, Relation, combine
from .reduction import Reduction

KEPT = 1 << 21  # atoms, factors of products and terms of relations at most: 400 MB; the largest kernel takes a third


class TooMuch(Exception):
    """There are more terms than a proof can hold."""


class Atoms:
    """All atoms of one proof, numbered in the order they were made."""

    def __init__(self) -> None:
        self.low: list[int] = [1]
        self.high: list[int] = [1]
        self.public: list[bool] = [True]
        self.origin: list[int] = [0]
        self.relation: dict[int, Relation] = {}
        self.factors: dict[int, tuple[int, ...]] = {}  # of a product, in order; none of them is a product itself
        self._products: dict[tuple[int, ...], int] = {}  # by their factors
        self._multiples: dict[int, dict[int, int]] = {}
        self._pivots: list[int] = [-1]  # latest factor with a lowest digit's relation, -1 for none
        self._names: dict[tuple[int, frozenset[tuple[int, int]]], int] = {}  # of forms, by function (`given`)
        self.rank: list[int] = [0]  # the atom itself; of a name the latest atom in it: signs go before numbers
        self._rests: dict[int, Form] = {}  # what lowest digits are equal to
        self.parts: dict[int, Form] = {}  # of an atom that was taken apart later, as the bit that BST copies
        self.signs: set[int] = set()  # bits that masks were made of
        self.here = 0  # address of the instruction that is being executed
        self.given = 0  # atoms that there were when its function was called; bounds do not take them apart
        self.known = 0  # relations that there were then
        self.unmultiplied = 0  # atoms that there were when it first multiplied, 0 if it has not
        self.kept = 0  # terms of all relations, and factors of all products
        self.before = 0  # atoms that there were when a limb of a buffer was first read, 0 if none was
        self.foreign: set[int] = set()  # what a device holds that others may have used, who found nothing in it

    def hold(self) -> None:
        """Raises TooMuch where there is more than can be held."""
        if self.kept + len(self.low) > KEPT:
            raise TooMuch

    def new(self, low: int, high: int, public: bool = False) -> int:
        """A new unknown in low..high."""
        self.low.append(low)
        self.high.append(high)
        self.public.append(public)
        self.origin.append(self.here)
        self.rank.append(len(self.rank))
        self._pivots.append(-1)
        return len(self.low) - 1

    def define(self, digits: Sequence[int], weights: Sequence[int], form: Form) -> None:
        """Digits, the lowest first, each times its weight, sum to the form: the lowest has weight 1."""
        lowest = digits[0]
        self.kept += len(form)
        self.relation[digits[-1]] = self.relation[lowest] = Relation(tuple(digits), tuple(weights), form)
        rest = dict(form)
        for digit, weight in zip(digits[1:], weights[1:], strict=True):
            rest[digit] = rest.get(digit, 0) - weight
        self._rests[lowest] = rest
        self._pivots[lowest] = lowest
        for product in reversed(self.factors):  # those made before it was known
            if product < lowest:
                break
            if lowest in self.factors[product]:
                self._pivots[product] = max(lowest, self._pivots[product], key=self.order)

    def named(self, form: Form) -> int:
        """The atom that stands for the form, in the function that is being executed.

        It is replaced as late as what it stands for, so that all signs and digits are gone by then.
        """
        if len(form) == 1:
            ((atom, coefficient),) = form.items()
            if coefficient == 1:
                return atom
        key = (self.given, frozenset(form.items()))
        if key not in self._names:
            self._names[key] = atom = self.new(*self.range(form), self.is_public(form))
            self.rank[atom] = max(self.given, *(self.rank[other] for other in form))
            self.define((atom,), (1,), form)
        return self._names[key]

    def product(self, left: int, right: int) -> int:
        """The atom that stands for left * right."""
        if left in self.factors or right in self.factors or left == right or ONE in (left, right):
            return self._product_of(sorted((*self._factors(left), *self._factors(right))))
        return self._product((left, right) if left < right else (right, left))

    def multiples(self, atom: int) -> dict[int, int]:
        """What the atom was multiplied with in reductions -> the product."""
        if atom not in self._multiples:
            self._multiples[atom] = {}
        return self._multiples[atom]

    def _factors(self, atom: int) -> tuple[int, ...]:
        return () if atom == ONE else self.factors.get(atom, (atom,))

    def _product_of(self, atoms: Sequence[int]) -> int:
        """The product of atoms, given in order, none of which is a product itself."""
        key = tuple(atoms)
        if len(set(key)) < len(key):  # a bit is its own square
            key = tuple(f for at, f in enumerate(key) if not (at and f == key[at - 1] and self.is_bit(f)))
        if len(key) < 2:
            return key[0] if key else ONE
        return self._product(key)

    def _product(self, factors: tuple[int, ...]) -> int:
        """The product of factors that are given as they are kept."""
        found = self._products.get(factors)
        if found is None:
            found = self._products[factors] = self._new_product(factors)
        return found

    def _new_product(self, factors: tuple[int, ...]) -> int:
        low = high = 1
        public, pivot = True, -1
        for factor in factors:
            public = public and self.public[factor]
            its = self._pivots[factor]
            if its >= 0 and self.order(its) > self.order(pivot):
                pivot = its
            least, greatest = self.low[factor], self.high[factor]
            if low < 0 or least < 0:
                corners = low * least, low * greatest, high * least, high * greatest
                low, high = min(corners), max(corners)
            else:
                low, high = low * least, high * greatest
        self.kept += len(factors)
        self.hold()
        atom = self.new(low, high, public)
        self._pivots[atom] = pivot
        self.factors[atom] = factors
        return atom

    def is_bit(self, atom: int) -> bool:
        return self.low[atom] == 0 and self.high[atom] == 1

    def range(self, form: Form) -> tuple[int, int]:
        """Least and greatest value by the ranges of the form's own atoms."""
        low = high = 0
        for atom, coefficient in form.items():
            if coefficient > 0:
                low += coefficient * self.low[atom]
                high += coefficient * self.high[atom]
            else:
                low += coefficient * self.high[atom]
                high += coefficient * self.low[atom]
        return low, high

    def is_public(self, form: Form) -> bool:
        return all(self.public[atom] for atom in form)

    # ---- down to operand limbs ----------------------------------------------------------------------------------

    def reduce(self, form: Form, fixed: Mapping[int, int], modulus: int = 0, given: int = 0) -> Form:
        """The form with lowest digits and products of digits replaced; coefficients modulo `modulus` where given.

        The first `given` atoms stay as they are.
        """
        reduction = Reduction(self, form, fixed, given)
        while reduction.digits:
            reduction.step()
        if modulus:
            return {atom: c % modulus for atom, c in reduction.form.items() if c % modulus}
        return {atom: c for atom, c in reduction.form.items() if c}

    def pivot(self, atom: int, fixed: Mapping[int, int], whole: Collection[int] = ()) -> int:
        """The latest factor of the atom, or itself, that can be replaced and is not to stay `whole`; -1 if there is
        none."""
        latest = self._pivots[atom]
        if latest not in whole and (not fixed or fixed.keys().isdisjoint(self._factors(atom))):
            return latest
        found = (f for f in self._factors(atom) if (f in fixed or self._pivots[f] == f) and f not in whole)
        return max(found, key=self.order, default=-1)

    def order(self, atom: int) -> tuple[int, int]:
        """The greater, the earlier it is replaced; no atom that it is replaced by comes before it."""
        return (self.rank[atom], atom) if atom >= 0 else (-1, -1)

    def cofactor(self, atom: int, pivot: int) -> int:
        """The atom without one factor `pivot`."""
        if atom == pivot:
            return ONE
        factors = self.factors[atom]
        at = factors.index(pivot)
        return self._product_of(factors[:at] + factors[at + 1 :])

    def once(self, form: Form) -> Form:
        """The form with its own lowest digits replaced, but not what they are replaced by."""
        return combine([(c, self.reduced(atom, {}) or {atom: 1}) for atom, c in form.items()])

    def reduced(self, atom: int, fixed: Mapping[int, int]) -> Form | None:
        """What `atom` is replaced by, None if it stays."""
        pivot = self.pivot(atom, fixed)
        if pivot < 0:
            return None
        replacement, cofactor = self.replacement(pivot, fixed), self.cofactor(atom, pivot)
        return replacement if cofactor == ONE else self.times(replacement, cofactor)

    def replacement(self, atom: int, fixed: Mapping[int, int]) -> Form:
        """What a pivot is replaced by: its value in this case, or its relation without it."""
        if atom in fixed:
            return {ONE: fixed[atom]} if fixed[atom] else ZERO
        return self._rests[atom]

    def times(self, form: Form, factor: int) -> Form:
        """The form times an atom."""
        total: Form = {}
        for atom, coefficient in form.items():
            product = self.product(atom, factor)
            total[product] = total.get(product, 0) + coefficient
        return total

    def carried(self, atom: int) -> bool:
        """Whether it is the highest digit of an equation."""
        relation = self.relation.get(atom)
        return relation is not None and len(relation.digits) > 1 and relation.digits[-1] == atom
