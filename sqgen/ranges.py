"""The range of a form, found by replacing digits by what they are digits of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from .gathered import gathered
from .linear import ONE, Form, combine
from .reduction import Reduction

if TYPE_CHECKING:
    from .forms import Atoms


class Bounds:
    """A form divided by 2^shift, with its range kept up to date while digits are replaced by their definitions."""

    def __init__(
        self, atoms: Atoms, form: Form, fixed: Mapping[int, int], given: int = 0, *, whole: Collection[int] = ()
    ) -> None:
        self.atoms, self.fixed = atoms, fixed
        self.given = max(given, atoms.given)
        self.start, self.form = form, dict[int, int]()
        self.shift = 0
        self.low = self.high = 0
        self.heap: list[tuple[bool, int]] = []  # highest digits before all others, later atoms before earlier ones
        self.seen: set[int] = set()
        self.carries: set[int] = set()  # those that `expand_carries` replaced
        self.whole = whole  # atoms that stay, also inside products
        self.below: set[int] = set()  # digits below those that `expand_carries` replaced
        self.touched = 0  # terms changed so far
        for atom, coefficient in form.items():
            self.add(atom, coefficient)

    def least(self) -> int:
        return -(-self.low >> self.shift)

    def greatest(self) -> int:
        return self.high >> self.shift

    def together(self) -> tuple[int, int]:
        """Least and greatest value, products taken together with their factors."""
        low, high = gathered(self.atoms, self.form) or (self.low, self.high)
        return -(-low >> self.shift), high >> self.shift

    def narrower(self, budget: int) -> Iterator[tuple[int, int]]:
        """The least and the greatest value, again after each atom that is replaced, until `budget` terms are touched.

        Products are taken together with their factors when no highest digit is left, and before a limb is replaced that
        only has a name, such as the highest one of a row of products: what is left then is often this row alone.  As
        that costs as much as there are terms, many more of them are touched between one time and the next.
        """
        yield self.least(), self.greatest()
        at_end, looked = False, 0
        while True:
            if self.heap and self.heap[0][0] and not at_end:
                at_end = True
                beside = Bounds(self.atoms, self.start, self.fixed, whole=self.atoms.signs)
                beside.expand_carries()
                yield beside.together()
                self.touched += beside.touched
                continue
            if self.touched >= 2 * looked and self.name_next():
                looked = self.touched
                yield self.together()
            if self.touched > budget or not self.expand():
                return
            yield self.least(), self.greatest()

    def name_next(self) -> bool:
        """Whether the atom to be replaced next is but a name of a form."""
        relation = self.atoms.relation.get(-self.heap[0][1]) if self.heap else None
        return relation is not None and len(relation.digits) == 1

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
        while self.expand_carries():
            if wanted(max(least, self.least()), min(greatest, self.greatest())):
                return True
            reduction = Reduction(self.atoms, self.form, self.fixed, self.given, kept=self.below, whole=self.whole)
            looked = 0  # terms touched when the range was last looked at, which costs as many terms as there are
            while reduction.digits and self.touched + reduction.touched <= budget:
                reduction.step()
                if reduction.touched - looked >= len(reduction.form) or not reduction.digits:
                    looked = reduction.touched
                    self.low, self.high = self.atoms.range(reduction.form)
                    least, greatest = max(least, self.least()), min(greatest, self.greatest())
                    if wanted(least, greatest):
                        return True
            self.touched += reduction.touched
            self.form = {atom: c for atom, c in reduction.form.items() if c}
            if self.touched > budget:
                break
            self.again()
        return False

    def again(self) -> None:
        """Look at all atoms anew: replacing lowest digits has brought carries, out of what lies below the digits that
        are kept."""
        form, self.form, self.low, self.high = self.form, {}, 0, 0
        self.heap, self.seen = [], set()
        for atom, coefficient in form.items():
            self.add(atom, coefficient)

    def expand_carries(self) -> bool:
        """Replace highest digits until there are none, the digits below them kept apart.  Whether there were any."""
        found_any = False
        while self.heap and not self.heap[0][0]:
            atom = -heappop(self.heap)[1]
            self.seen.discard(atom)
            coefficient = self.form.get(atom)
            found = None if coefficient is None else self.definition(atom)
            if coefficient is not None and found is not None:
                found_any = True
                self.carries.add(atom)
                self.below.update(self.atoms.relation[atom].digits[:-1])
                self.replace(atom, coefficient, *found)
        return found_any

    def definition(self, atom: int) -> tuple[Form, int] | None:
        """(form, weight): weight * atom = form, for a highest digit, for a lowest one whose highest is fixed, and for a
        product with any lowest one: carries inside products are left alone, so that they can cancel."""
        if atom < self.given or atom in self.whole:
            return None
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
