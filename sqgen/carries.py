"""What proofs know of carries: bounds on them, and those that are always nothing, a sign, or what others are.

`within` replaces the highest digit of a relation (a carry, the high half of a product) by its definition, a fraction,
and so bounds a limb by what several limbs together can hold.  Where a case has fixed the highest digit, the relation
says something of the lowest one, which is replaced instead.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from . import differences
from .forms import Atoms
from .linear import ONE, ZERO, Form, combine
from .ranges import Bounds

BUDGET = 100_000  # terms touched at most to show one carry impossible while walking
SMALL = 4_000  # terms touched at most before other ways are tried; more in large functions
IN_VAIN = 100  # times as many at most in all searches that found nothing: kernels of ours take 8
FEW = 3  # carries of one weight, which is soon seen whether they cancel
MANY = 100  # times as many at most to reduce what carries came from


class Hopeless(Exception):
    """The code is known to be wrong, so what is looked for need not be there."""


class Carries(Atoms):
    """The atoms of one proof, and what was found out about those of them that are carries."""

    def __init__(self, most: int = SMALL) -> None:
        super().__init__()
        self.most = max(most, SMALL)
        self.settled: set[tuple[int, str, int, int]] = set()  # looked at: carry, how, function, budget
        self.dropped: set[int] = set()  # carries that the code takes for nothing
        self.depths: dict[int, int] = {}  # of limbs of absolute differences: how many of them lie in each other
        self.in_vain = 0  # terms touched in looking for bounds and not finding them
        self.looked = 0  # terms touched in looking for bounds
        self.given_up: Callable[[], bool] = lambda: False  # whether to look further is of no use, as far as is known
        self.learnt = 0  # how many carries were found to be something else
        # groups that do not cancel, by what is known
        self.vain: set[tuple[int, int, frozenset[tuple[int, int]]]] = set()

    @property
    def small(self) -> int:
        """Terms touched at most in a first look for a bound: they grow with what the function has computed."""
        return max(SMALL, min(self.most, len(self.relation) - self.known))

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
            found = search.reduced_until(lambda least, greatest: low <= least and greatest <= high, limit)
            self.touched(search)
            if found:
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
            found = search.reduced_until(lambda low, high: low >= 0 and high <= 0, budget)
            self.touched(search)
            if found:
                return True
            others |= search.carries & self.dropped - form.keys()
        return self.settled_by_levels(sorted(others)) and self.nothing(form, budget)

    def touched(self, search: Bounds) -> None:
        """Count what a search took.  Raises Hopeless."""
        self.looked += search.touched
        if self.given_up():
            raise Hopeless

    def uncarried(self, form: Form) -> bool:
        """Whether there is a term without a carry or a sign in it: what is found out about these leaves it there."""
        return any(atom != ONE and not any(map(self.is_bit, self._factors(atom))) for atom in form)

    def resolve(self, form: Form) -> bool:
        """Find something in the form that is always the same, and make that a relation: what is soonest seen first."""
        return self.cancel(form, most=FEW) or self.settle(form)

    def settle(self, form: Form, *, thorough: bool = True, sought: bool = False, budget: int = 0) -> bool:
        """Find carries in the form that are always zero, or always what a sign is, and make that their relation.

        Code drops such carries: the last one of a square, and the last borrow of a conditional negation.  `sought`: a
        bound of what they were carried out of has been looked for in vain.  `budget`: terms touched at most in a first
        look, if more than usual.
        """
        factors = {factor for atom in form for factor in self.factors.get(atom, (atom,))}
        carries = [atom for atom in sorted(factors) if self.is_bit(atom) and self.carried(atom)]
        dropped = [carry for carry in carries if carry in self.dropped] if thorough else []
        if self.depths and self.settled_by_levels(dropped):
            return True
        first = max(self.small, budget)
        for ways, most in ((self.within, first), (self.bounded, 8 * self.small))[: 2 if thorough else 1]:
            found = False
            for carry in carries:
                key = (carry, ways.__name__, self.given, budget)
                if key not in self.settled:
                    self.settled.add(key)
                    zero = not (sought and ways == self.within) and not self.extended(carry)
                    zero = zero and ways({carry: 1}, 0, 0, {}, most)
                    value = ZERO if zero else self._sign_equal_to(carry, first, thorough=ways == self.bounded)
                    if value is not None:
                        if value and sought:
                            self.depths.update(differences.completed(self, carry))
                        self.learn(carry, value)
                        found = True
            if found:
                return True
        return self.settled_by_levels(dropped)

    def settled_by_levels(self, carries: Sequence[int]) -> bool:
        """The same of these carries, each as `nothing` shows it; whether of any."""
        return bool([carry for carry in carries if self.settled_by_level(carry)])

    def settled_by_level(self, carry: int) -> bool:
        """The same of one of them."""
        key = (carry, "nothing", self.given, 0)
        if key in self.settled:
            return False
        self.settled.add(key)
        extended = self.extended(carry)
        found = self.nothing({carry: 1, extended: -1} if extended else {carry: 1}, 8 * self.small)
        if found:
            self.learn(carry, {extended: 1} if extended else ZERO)
        return found

    def cancel(self, form: Form, most: float = math.inf) -> bool:
        """Find carries of one weight in the form, up to `most` of them, whose sum is always the same, and make that a
        relation: those into a column above the numbers that a product is, where only all together say that nothing is
        there; or two, if one sum was formed twice, or a carry found by comparing.
        """
        found = False
        for group in sorted(self.carries(form).values(), key=max):  # what later ones came from is known by then
            key = (self.given, self.learnt, frozenset(group.items()))
            if len(group) > most or key in self.vain:
                continue
            if len(group) > 1 and (self.bounded(group, 0, 0, {}) or self.nothing(group, 8 * self.small)):
                found = self.related(group, 0)
                continue
            for one, other in itertools.combinations(sorted(group), 2):
                pair, total = {one: group[one], other: group[other]}, int(group[one] == group[other]) * group[one]
                if self.bounded(pair, total, total, {}, 8 * self.small):
                    found = self.related(pair, total)
                    break
            else:
                self.vain.add(key)
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
        self.learn(latest, combine([(group[latest] * total, {ONE: 1}), (-group[latest], rest)]))
        return True

    def learn(self, carry: int, form: Form) -> None:
        """A carry is always what the form is."""
        self.learnt += 1
        self.define((carry,), (1,), form)

    def _sign_equal_to(self, carry: int, budget: int, *, thorough: bool) -> Form | None:
        """The sign of a sign-extended number that was added, or that of which a mask was subtracted, if the carry is
        always what that is; `budget`: terms touched at most in a first look."""
        extended = self.extended(carry)
        if extended and thorough and self.bounded({carry: 1, extended: -1}, 0, 0, {}, 8 * self.small):
            return {extended: 1}
        sign = extended or self.subtracted(carry)
        if sign and all(self.within({carry: 1}, value, value, {sign: value}, budget) for value in (0, 1)):
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
            if found := wanted(low, high):
                break
        self.touched(search)
        self.in_vain += 0 if found else search.touched
        return found
