"""Linear forms with integer coefficients over atoms: the values of the proof, and what can be said of their range.

An atom is an unknown integer with a range: an operand limb, a pointer, a product of atoms, or a digit of an
equation.  Digits come with their *relation*: digits, each times its weight, sum to a form over earlier atoms.  Two
directions of use make everything else:

* `reduce` replaces the lowest digit of each relation by the rest of it, latest relation first.  In a sum in which low
  digit and carry occur in the right proportion the carry cancels, and the form comes down to operand limbs.
* `within` replaces the highest digit (a carry, the high half of a product) by its definition, a fraction, and so bounds
  a limb by what several limbs together can hold.  Where a case has fixed the highest digit, the relation says something
  of the lowest one, which is replaced instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

Form = dict[int, int]  # atom -> coefficient; never changed once made
ONE = 0  # the atom that is always 1
BUDGET = 100_000  # terms touched at most to show one carry impossible while walking
SMALL = 4_000  # terms touched at most before other ways are tried; more for large operands
MANY = 100  # times as many at most to reduce what carries came from
ZERO: Form = {}


@dataclass(frozen=True)
class Relation:
    """sum(weight * digit) = form, the lowest digit (of weight 1) first."""

    digits: tuple[int, ...]
    weights: tuple[int, ...]
    form: Form


class Atoms:
    """All atoms of one proof, numbered in the order they were made."""

    def __init__(self, small: int = SMALL) -> None:
        self.small = max(small, SMALL)
        self.low: list[int] = [1]
        self.high: list[int] = [1]
        self.public: list[bool] = [True]
        self.origin: list[int] = [0]
        self.relation: dict[int, Relation] = {}
        self.factors: dict[int, tuple[int, ...]] = {}  # of a product, in order; none of them is a product itself
        self._products: dict[tuple[int, ...], int] = {}
        self.parts: dict[int, Form] = {}  # of an atom that was taken apart later, as the bit that BST copies
        self.settled: set[tuple[int, str]] = set()  # carries that `settle` has looked at, and how
        self.signs: set[int] = set()  # bits that masks were made of
        self.here = 0  # address of the instruction that is being executed
        self.in_vain = 0  # terms touched in looking for bounds and not finding them

    def new(self, low: int, high: int, public: bool = False) -> int:
        """A new unknown in low..high."""
        self.low.append(low)
        self.high.append(high)
        self.public.append(public)
        self.origin.append(self.here)
        return len(self.low) - 1

    def product(self, left: int, right: int) -> int:
        """The atom that stands for left * right."""
        pair = (left, right) if left <= right else (right, left)
        if pair in self._products:
            return self._products[pair]
        factors: list[int] = []
        for factor in sorted((*self.factors.get(left, (left,)), *self.factors.get(right, (right,)))):
            if not (factors and factors[-1] == factor and self.is_bit(factor)):  # a bit is its own square
                factors.append(factor)
        key = tuple(factors)
        if len(key) == 1:
            return key[0]
        if key not in self._products:
            low = high = 1
            for factor in key:
                corners = [x * y for x in (low, high) for y in (self.low[factor], self.high[factor])]
                low, high = min(corners), max(corners)
            atom = self.new(low, high, all(self.public[factor] for factor in key))
            self._products[key] = atom
            self.factors[atom] = key
        self._products[pair] = self._products[key]
        return self._products[key]

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

    def reduce(self, form: Form, fixed: Mapping[int, int], modulus: int = 0) -> Form:
        """The form with lowest digits and products of digits replaced; coefficients modulo `modulus` where given.

        Of all replaceable digits, inside products or not, the latest is replaced first: nothing is replaced twice.
        """
        rest = dict(form)
        done: Form = {}
        heap: list[tuple[int, int]] = []
        for atom in form:
            self.queue(atom, fixed, heap)
        while heap:
            pivot, atom = heappop(heap)
            coefficient = rest.pop(atom, 0)
            if not coefficient:
                continue
            if pivot == 1:
                done[atom] = done.get(atom, 0) + coefficient
                continue
            for other, factor in self.replaced(atom, -pivot, fixed).items():
                if other in rest:
                    rest[other] += coefficient * factor
                else:
                    rest[other] = coefficient * factor
                    self.queue(other, fixed, heap)
        if modulus:
            done = {atom: coefficient % modulus for atom, coefficient in done.items()}
        return {atom: coefficient for atom, coefficient in done.items() if coefficient}

    def queue(self, atom: int, fixed: Mapping[int, int], heap: list[tuple[int, int]]) -> None:
        """Push (minus the latest factor that can be replaced, atom), or (1, atom) for one that stays as it is."""
        heappush(heap, (-self.pivot(atom, fixed), atom))

    def pivot(self, atom: int, fixed: Mapping[int, int]) -> int:
        """The latest factor of the atom, or itself, that can be replaced; -1 if there is none."""
        for factor in reversed(self.factors.get(atom, (atom,))):
            relation = self.relation.get(factor)
            if factor in fixed or (relation is not None and relation.digits[0] == factor):
                return factor
        return -1

    def replaced(self, atom: int, pivot: int, fixed: Mapping[int, int]) -> Form:
        """The atom with its factor `pivot` replaced."""
        replacement = self._replacement(pivot, fixed)
        factors = self.factors.get(atom)
        if factors is None:
            return replacement
        at = factors.index(pivot)
        others = factors[:at] + factors[at + 1 :]
        for other in others:
            replacement = self.times(replacement, other)
        return replacement

    def once(self, form: Form) -> Form:
        """The form with its own lowest digits replaced, but not what they are replaced by."""
        return combine([(c, self.reduced(atom, {}) or {atom: 1}) for atom, c in form.items()])

    def reduced(self, atom: int, fixed: Mapping[int, int]) -> Form | None:
        """What `atom` is replaced by, None if it stays."""
        pivot = self.pivot(atom, fixed)
        return None if pivot < 0 else self.replaced(atom, pivot, fixed)

    def _replacement(self, atom: int, fixed: Mapping[int, int]) -> Form:
        """What a pivot is replaced by: its value in this case, or its relation without it."""
        if atom in fixed:
            return {ONE: fixed[atom]} if fixed[atom] else ZERO
        relation = self.relation[atom]
        form = dict(relation.form)
        for digit, weight in zip(relation.digits[1:], relation.weights[1:], strict=True):
            form[digit] = form.get(digit, 0) - weight
        return form

    def times(self, form: Form, factor: int) -> Form:
        """The form times an atom."""
        total: Form = {}
        for atom, coefficient in form.items():
            product = factor if atom == ONE else self.product(atom, factor)
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
            search = _Bounds(self, form, fixed)
            if search.reduced_until(lambda least, greatest: low <= least and greatest <= high, limit):
                return True
            rest = {atom: c for atom, c in search.form.items() if atom not in search.below}
            if not self.settle(rest, thorough=search.touched <= limit):
                limit *= 8
        return False

    def settle(self, form: Form, *, thorough: bool = True) -> bool:
        """Find carries in the form that are always zero, or always what a sign is, and make that their relation.

        Code drops such carries: the last one of a square, and the last borrow of a conditional negation.
        """
        factors = {factor for atom in form for factor in self.factors.get(atom, (atom,))}
        carries = [atom for atom in sorted(factors) if self.is_bit(atom) and self.carried(atom)]
        for ways, budget in ((self.within, self.small), (self.bounded, 8 * self.small))[: 2 if thorough else 1]:
            found = False
            for carry in carries:
                if (carry, ways.__name__) not in self.settled:
                    self.settled.add((carry, ways.__name__))
                    value = self._settled_value(carry, ways, budget)
                    if value is not None:
                        self.relation[carry] = Relation((carry,), (1,), value)
                        found = True
            if found:
                return True
        return False

    def carried(self, atom: int) -> bool:
        """Whether it is the highest digit of an equation."""
        relation = self.relation.get(atom)
        return relation is not None and len(relation.digits) > 1 and relation.digits[-1] == atom

    def _settled_value(self, carry: int, ways: Callable[..., bool], budget: int) -> Form | None:
        """What a carry always is: zero, the latest sign before it, or that of a sign-extended number that was added."""
        extended = self.extended(carry)
        if extended:
            found = ways == self.bounded and self.bounded({carry: 1, extended: -1}, 0, 0, {}, budget)
            return {extended: 1} if found else None
        if ways({carry: 1}, 0, 0, {}, budget):
            return ZERO
        sign = max((sign for sign in self.signs if sign < carry), default=None)
        if sign and all(self.within({carry: 1}, value, value, {sign: value}, self.small) for value in (0, 1)):
            return {sign: 1}
        return None

    def extended(self, carry: int) -> int | None:
        """The sign of a sign-extended number whose highest limb was added where the carry comes from."""
        terms = self.relation[carry].form.items()
        return next((bit for bit, c in terms if self.is_bit(bit) and c > 1 and not c & (c + 1)), None)

    def borrows(self, carry: int) -> list[int]:
        """The borrows of differences that were added where the carry comes from."""
        found = [self.relation.get(atom) for atom in self.relation[carry].form]
        return [each.digits[-1] for each in found if each and each.weights[-1] < 0 and self.is_bit(each.digits[-1])]

    def _shown(self, form: Form, fixed: Mapping[int, int], budget: int, wanted: Callable[[int, int], bool]) -> bool:
        """Whether bounds as wanted are found with `budget` terms touched, and while not too many were in vain."""
        search = _Bounds(self, form, fixed)
        low, high = search.least(), search.greatest()
        while not wanted(low, high):
            if search.touched > min(budget, MANY * self.small - self.in_vain) or not search.expand():
                self.in_vain += search.touched
                return False
            low, high = max(low, search.least()), min(high, search.greatest())
        return True


class _Bounds:
    """A form divided by 2^shift, with its range kept up to date while digits are replaced by their definitions."""

    def __init__(self, atoms: Atoms, form: Form, fixed: Mapping[int, int]) -> None:
        self.atoms, self.fixed = atoms, fixed
        self.form: dict[int, int] = {}
        self.shift = 0
        self.low = self.high = 0
        self.heap: list[tuple[bool, int]] = []  # highest digits before all others, later atoms before earlier ones
        self.seen: set[int] = set()
        self.below: set[int] = set()  # digits below those that `expand_carries` replaced
        self.touched = 0  # terms changed so far
        self.expanded = False  # whether carries were expanded once more
        for atom, coefficient in form.items():
            self.add(atom, coefficient)

    def least(self) -> int:
        return -(-self.low >> self.shift)

    def greatest(self) -> int:
        return self.high >> self.shift

    def add(self, atom: int, coefficient: int) -> None:
        """Add coefficient * atom / 2^shift; an atom that this case has fixed is a number."""
        if atom in self.fixed:
            atom, coefficient = ONE, coefficient * self.fixed[atom]
        elif atom in self.atoms.parts:
            for part, weight in self.atoms.parts[atom].items():
                self.add(part, coefficient * weight)
            return
        before = self.form.get(atom, 0)
        after = before + coefficient
        least, greatest = self.atoms.low[atom], self.atoms.high[atom]
        self.low += (after * least if after > 0 else after * greatest) - (
            before * least if before > 0 else before * greatest
        )
        self.high += (after * greatest if after > 0 else after * least) - (
            before * greatest if before > 0 else before * least
        )
        if after:
            self.form[atom] = after
            if atom not in self.seen:
                self.seen.add(atom)
                relation = self.atoms.relation.get(atom)
                heappush(self.heap, (relation is None or relation.digits[-1] != atom, -atom))
        else:
            self.form.pop(atom, None)

    def expand(self) -> bool:
        """Replace one atom that has a definition; False if there is none."""
        while self.heap:
            atom = -heappop(self.heap)[1]
            self.seen.discard(atom)
            coefficient = self.form.get(atom)
            found = None if coefficient is None else self.definition(atom)
            if coefficient is not None and found is not None:
                self.replace(atom, coefficient, *found)
                return True
        return False

    def reduced_until(self, wanted: Callable[[int, int], bool], budget: int) -> bool:
        """Replace all highest digits, then lowest ones, latest first, until the range is as wanted, or `budget` terms
        are touched.

        The digits below the highest ones stay: together they are what is left when those have been carried out.
        """
        least, greatest = self.least(), self.greatest()
        self.expand_carries()
        waiting: list[tuple[int, int]] = []
        for atom in self.form:
            if atom not in self.below:
                self.atoms.queue(atom, self.fixed, waiting)
        while waiting and waiting[0][0] != 1:
            pivot, atom = heappop(waiting)
            coefficient = self.form.get(atom)
            if coefficient is not None:
                replacement = self.atoms.replaced(atom, -pivot, self.fixed)
                self.touched += len(replacement)
                if self.touched > budget:
                    return False
                self.swap(atom, coefficient, replacement, waiting)
            if not waiting or waiting[0][0] != pivot:
                least, greatest = max(least, self.least()), min(greatest, self.greatest())
                if wanted(least, greatest):
                    return True
                if not self.expanded and wanted(least + 1, greatest):
                    self.expanded = True
                    self.expand_again(waiting)
        return False

    def expand_again(self, waiting: list[tuple[int, int]]) -> None:
        """Replace the carries that came up on the way, as `expand_carries` does those that there were.

        They are what limbs below the form's own ones passed on.  Their sum is not negative, but borrows are among them,
        and a bound is missed by these alone.
        """
        again = [atom for atom in self.form if atom not in self.below and self.atoms.carried(atom)]
        for atom in sorted(again, reverse=True):
            coefficient = self.form.get(atom)
            found = None if coefficient is None else self.definition(atom)
            if coefficient is not None and found is not None:
                self.below.update(self.atoms.relation[atom].digits[:-1])
                self.replace(atom, coefficient, *found)
        self.expand_carries()
        waiting.clear()
        for atom in self.form:
            if atom not in self.below:
                self.atoms.queue(atom, self.fixed, waiting)

    def swap(self, atom: int, coefficient: int, replacement: Form, waiting: list[tuple[int, int]]) -> None:
        """Put coefficient * replacement in the place of coefficient * atom, and queue what is new.  As `add`, without
        its detours: this is where the time goes."""
        form, lows, highs = self.form, self.atoms.low, self.atoms.high
        low = high = 0
        for other, factor in ((atom, -1), *replacement.items()):
            before = form.get(other, 0)
            if not before and other not in self.below:
                self.atoms.queue(other, self.fixed, waiting)
            after = before + coefficient * factor
            if after:
                form[other] = after
            else:
                form.pop(other, None)
            least, greatest = lows[other], highs[other]
            high += (after * greatest if after > 0 else after * least) - (
                before * greatest if before > 0 else before * least
            )
            low += (after * least if after > 0 else after * greatest) - (
                before * least if before > 0 else before * greatest
            )
        self.low += low
        self.high += high

    def expand_carries(self) -> None:
        """Replace highest digits until there are none; the digits below them are kept apart."""
        while self.heap and not self.heap[0][0]:
            atom = -heappop(self.heap)[1]
            self.seen.discard(atom)
            coefficient = self.form.get(atom)
            found = None if coefficient is None else self.definition(atom)
            if coefficient is not None and found is not None:
                self.below.update(self.atoms.relation[atom].digits[:-1])
                self.replace(atom, coefficient, *found)

    def definition(self, atom: int) -> tuple[Form, int] | None:
        """(form, weight): weight * atom = form, for a highest digit, for a lowest one whose highest is fixed, and for a
        product with any lowest one: carries inside products are left alone, so that they can cancel."""
        if atom in self.atoms.factors:
            product = self.atoms.reduced(atom, self.fixed)
            return None if product is None else (product, 1)
        relation = self.atoms.relation.get(atom)
        if relation is None or (atom != relation.digits[-1] and relation.digits[-1] not in self.fixed):
            return None
        if len(relation.form) == 1 and self.atoms.parts.keys() >= relation.form.keys():
            return None  # it would bring the whole back, of which this is a part
        weights = dict(zip(relation.digits, relation.weights, strict=True))
        weight = weights.pop(atom)
        return combine([(1, relation.form), (-1, weights)]), weight

    def replace(self, atom: int, coefficient: int, form: Form, weight: int) -> None:
        """Replace `atom` by form / weight."""
        places = abs(weight).bit_length() - 1
        common = min(places, (coefficient & -coefficient).bit_length() - 1)
        grow = places - common
        self.touched += len(form)
        self.add(atom, -coefficient)
        if grow:
            self.touched += len(self.form)
            self.shift += grow
            self.low <<= grow
            self.high <<= grow
            for other in self.form:
                self.form[other] <<= grow
        factor = (coefficient << grow >> places) * (1 if weight > 0 else -1)
        for other, value in form.items():
            self.add(other, factor * value)


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
