"""The atoms of a proof: what its linear forms are made of, and what can be said of the range of these.

An atom is an unknown integer with a range: an operand limb, a pointer, a product of atoms, a number with a name, or a
digit of an equation.  Digits come with their *relation*: digits, each times its weight, sum to a form over earlier
atoms.  Two directions of use make everything else:

* `reduce` replaces the lowest digit of each relation by the rest of it, latest relation first.  In a sum in which low
  digit and carry occur in the right proportion the carry cancels, and the form comes down to operand limbs.
* `within` replaces the highest digit (a carry, the high half of a product) by its definition, a fraction, and so bounds
  a limb by what several limbs together can hold.  Where a case has fixed the highest digit, the relation says something
  of the lowest one, which is replaced instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence

from . import differences
from .linear import ONE, ZERO, Form, Relation, combine
from .ranges import Bounds
from .reduction import Reduction

BUDGET = 100_000  # terms touched at most to show one carry impossible while walking
SMALL = 4_000  # terms touched at most before other ways are tried; more in large functions
IN_VAIN = 400  # times as many at most in all searches that found nothing
KEPT = 1 << 21  # atoms, factors of products and terms of relations at most: 400 MB; the largest kernel takes a third
FEW = 3  # carries of one weight, which is soon seen whether they cancel
MANY = 100  # times as many at most to reduce what carries came from


class TooMuch(Exception):
    """There are more terms than a proof can hold."""


class Atoms:
    """All atoms of one proof, numbered in the order they were made."""

    def __init__(self, most: int = SMALL) -> None:
        self.most = max(most, SMALL)
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
        self.settled: set[tuple[int, str, int]] = set()  # carries that `settle` has looked at, and how
        self.signs: set[int] = set()  # bits that masks were made of
        self.here = 0  # address of the instruction that is being executed
        self.given = 0  # atoms that there were when its function was called; bounds do not take them apart
        self.known = 0  # relations that there were then
        self.unmultiplied = 0  # atoms that there were when it first multiplied, 0 if it has not
        self.dropped: set[int] = set()  # carries that the code takes for nothing
        self.depths: dict[int, int] = {}  # of limbs of absolute differences: how many of them lie in each other
        self.kept = 0  # terms of all relations, and factors of all products
        self.in_vain = 0  # terms touched in looking for bounds and not finding them
        self.before = 0  # atoms that there were when a limb of a buffer was first read, 0 if none was
        self.foreign: set[int] = set()  # what a device holds that others may have used, who found nothing in it

    @property
    def small(self) -> int:
        """Terms touched at most in a first look for a bound: they grow with what the function has computed."""
        return max(SMALL, min(self.most, len(self.relation) - self.known))

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
        found = self.multiples(left).get(right)
        if found is None:
            found = self._product_of(sorted((*self._factors(left), *self._factors(right))))
            self.multiples(left)[right] = self.multiples(right)[left] = found
        return found

    def multiples(self, atom: int) -> dict[int, int]:
        """What the atom has been multiplied with -> the product."""
        if atom not in self._multiples:
            self._multiples[atom] = {}
        return self._multiples[atom]

    def _factors(self, atom: int) -> tuple[int, ...]:
        return () if atom == ONE else self.factors.get(atom, (atom,))

    def _product_of(self, atoms: Sequence[int]) -> int:
        """The product of atoms, given in order, none of which is a product itself."""
        factors: list[int] = []
        for factor in atoms:
            if not (factors and factors[-1] == factor and self.is_bit(factor)):  # a bit is its own square
                factors.append(factor)
        key = tuple(factors)
        if len(key) < 2:
            return key[0] if key else ONE
        if key not in self._products:
            self._products[key] = self._new_product(key)
        return self._products[key]

    def _new_product(self, factors: tuple[int, ...]) -> int:
        low = high = 1
        for factor in factors:
            least, greatest = self.low[factor], self.high[factor]
            if low < 0 or least < 0:
                corners = low * least, low * greatest, high * least, high * greatest
                low, high = min(corners), max(corners)
            else:
                low, high = low * least, high * greatest
        self.kept += len(factors)
        self.hold()
        atom = self.new(low, high, all(self.public[factor] for factor in factors))
        self._pivots[atom] = max((self._pivots[factor] for factor in factors), key=self.order)
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
        if not fixed and self._pivots[atom] not in whole:
            return self._pivots[atom]
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

    # ---- bounds -------------------------------------------------------------------------------------------------

    def within(self, form: Form, low: int, high: int, fixed: Mapping[int, int], budget: int) -> bool:
        """Whether low <= form <= high can be shown by replacing digits by their definitions."""
        return self._shown(form, fixed, budget, lambda least, greatest: low <= least and greatest <= high)

    def impossible(self, form: Form, low: int, high: int, fixed: Mapping[int, int], budget: int) -> bool:
        """Whether the form can be shown to lie outside low..high."""
        return self._shown(form, fixed, budget, lambda least, greatest: greatest < low or least > high)

    def bounded(self, form: Form, low: int, high: int, fixed: Mapping[int, int], budget: int = 0) -> bool:
        """Whether low <= form <= high can be shown for a sum of carries, by what they were carried out of.

        Each carry is replaced by (sum - digits below it) / 2^k; what was summed is reduced to operand limbs, so that
        it shows, for instance, that lo^2 + hi^2 - |lo - hi|^2 is not negative.
        """
        limit = 8 * self.small
        while limit <= (budget or MANY * self.small):
            search = Bounds(self, form, fixed, self.unmultiplied)
            if search.reduced_until(lambda least, greatest: low <= least and greatest <= high, limit):
                return True
            rest = {atom: c for atom, c in search.form.items() if atom not in search.below}
            if not self.settle(rest, thorough=search.touched <= limit):
                limit *= 8
        return False

    def nothing(self, form: Form, budget: int) -> bool:
        """Whether a sum of carries is zero, as `bounded` shows it, with the operands of some level left whole: limbs of
        absolute differences (`differences`).
        """
        others: set[int] = set()  # carries met on the way that are dropped as well
        for level in range(max(self.depths.values(), default=0), -1, -1):
            search = Bounds(self, form, {}, whole={limb for limb, depth in self.depths.items() if depth <= level})
            if search.reduced_until(lambda low, high: low >= 0 and high <= 0, budget):
                return True
            others |= search.carries & self.dropped - form.keys()
        return self.settled_by_levels(sorted(others)) and self.nothing(form, budget)

    def resolve(self, form: Form) -> bool:
        """Find something in the form that is always the same, and make that a relation: what is soonest seen first."""
        return self.cancel(form, most=FEW) or self.settle(form)

    def settle(self, form: Form, *, thorough: bool = True, sought: bool = False) -> bool:
        """Find carries in the form that are always zero, or always what a sign is, and make that their relation.

        Code drops such carries: the last one of a square, and the last borrow of a conditional negation.  `sought`: a
        bound of what they were carried out of has been looked for in vain.
        """
        factors = {factor for atom in form for factor in self.factors.get(atom, (atom,))}
        carries = [atom for atom in sorted(factors) if self.is_bit(atom) and self.carried(atom)]
        dropped = [carry for carry in carries if carry in self.dropped] if thorough else []
        if self.depths and self.settled_by_levels(dropped):
            return True
        for ways, budget in ((self.within, self.small), (self.bounded, 8 * self.small))[: 2 if thorough else 1]:
            found = False
            for carry in carries:
                key = (carry, ways.__name__, self.given)
                if key not in self.settled:
                    self.settled.add(key)
                    zero = not (sought and ways == self.within) and not self.extended(carry)
                    zero = zero and ways({carry: 1}, 0, 0, {}, budget)
                    value = ZERO if zero else self._sign_equal_to(carry, thorough=ways == self.bounded)
                    if value is not None:
                        if value and sought:
                            self.depths.update(differences.completed(self, carry))
                        self.define((carry,), (1,), value)
                        found = True
            if found:
                return True
        return self.settled_by_levels(dropped)

    def settled_by_levels(self, carries: Sequence[int]) -> bool:
        """The same of these carries, each as `nothing` shows it; whether of any."""
        return bool([carry for carry in carries if self.settled_by_level(carry)])

    def settled_by_level(self, carry: int) -> bool:
        """The same of one of them."""
        key = (carry, "nothing", self.given)
        if key in self.settled:
            return False
        self.settled.add(key)
        extended = self.extended(carry)
        found = self.nothing({carry: 1, extended: -1} if extended else {carry: 1}, 8 * self.small)
        if found:
            self.define((carry,), (1,), {extended: 1} if extended else ZERO)
        return found

    def cancel(self, form: Form, most: float = math.inf) -> bool:
        """Find carries of one weight in the form, up to `most` of them, whose sum is always the same, and make that a
        relation: those into a column above the numbers that a product is, where only all together say that nothing is
        there; or two, if one sum was formed twice, or a carry found by comparing.
        """
        found = False
        for group in self.carries(form).values():
            if len(group) > most:
                continue
            if len(group) > 1 and (self.bounded(group, 0, 0, {}) or self.nothing(group, 8 * self.small)):
                found = self.related(group, 0)
                continue
            for one, other in itertools.combinations(sorted(group), 2):
                pair, total = {one: group[one], other: group[other]}, int(group[one] == group[other]) * group[one]
                if self.bounded(pair, total, total, {}, 8 * self.small):
                    found = self.related(pair, total)
                    break
        return found

    def carries(self, form: Form) -> dict[int, Form]:
        """The carries in a form by their weight, each with its sign."""
        groups: dict[int, Form] = {}
        for atom, coefficient in form.items():
            if self.is_bit(atom) and self.carried(atom):
                groups.setdefault(abs(coefficient), {})[atom] = 1 if coefficient > 0 else -1
        return groups

    def related(self, group: Form, total: int) -> bool:
        """Let the latest of some carries be known by the others, the sum of all being `total`."""
        latest = max(group)
        rest = {atom: c for atom, c in group.items() if atom != latest}
        self.define((latest,), (1,), combine([(group[latest] * total, {ONE: 1}), (-group[latest], rest)]))
        return True

    def carried(self, atom: int) -> bool:
        """Whether it is the highest digit of an equation."""
        relation = self.relation.get(atom)
        return relation is not None and len(relation.digits) > 1 and relation.digits[-1] == atom

    def _sign_equal_to(self, carry: int, *, thorough: bool) -> Form | None:
        """The latest sign before the carry, or that of a sign-extended number that was added, if the carry is always
        what that is."""
        extended = self.extended(carry)
        if extended and thorough and self.bounded({carry: 1, extended: -1}, 0, 0, {}, 8 * self.small):
            return {extended: 1}
        sign = extended or self.subtracted(carry) or max((sign for sign in self.signs if sign < carry), default=None)
        if sign and all(self.within({carry: 1}, value, value, {sign: value}, self.small) for value in (0, 1)):
            return {sign: 1}
        return None

    def extended(self, carry: int) -> int | None:
        """The sign of a sign-extended number whose highest limb was added where the carry comes from."""
        terms = self.relation[carry].form.items()
        return next((bit for bit, c in terms if self.is_bit(bit) and c > 1 and not c & (c + 1)), None)

    def subtracted(self, carry: int) -> int | None:
        """The sign that a mask was made of which was subtracted where the carry, a borrow, comes from."""
        terms = self.relation[carry].form.items()
        return next((bit for bit, c in terms if bit in self.signs and c < -1 and not -c & (1 - c)), None)

    def borrows(self, carry: int) -> list[int]:
        """The borrows of differences that were added where the carry comes from."""
        found = [self.relation.get(atom) for atom in self.relation[carry].form]
        return [each.digits[-1] for each in found if each and each.weights[-1] < 0 and self.is_bit(each.digits[-1])]

    def _shown(self, form: Form, fixed: Mapping[int, int], budget: int, wanted: Callable[[int, int], bool]) -> bool:
        """Whether bounds as wanted are found with `budget` terms touched, and while not too many were in vain."""
        search = Bounds(self, form, fixed)
        low, high = search.least(), search.greatest()
        for least, greatest in search.narrower(min(budget, IN_VAIN * self.most - self.in_vain)):
            low, high = max(low, least), min(high, greatest)
            if wanted(low, high):
                return True
        self.in_vain += search.touched
        return False
