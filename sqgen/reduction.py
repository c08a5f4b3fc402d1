"""Reduction: lowest digits are replaced, the latest first, until only operand limbs are left."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .forms import Atoms
    from .linear import Form


class Reduction:
    """A form in which lowest digits and products of them are being replaced.

    Of all digits that can be, inside products or not, the latest is replaced first, wherever it is: none is replaced
    twice.  The first `given` atoms stay; so do those in `kept`, and those in `whole`, which stay inside products too.
    Terms that have cancelled stay in `form` with coefficient zero.
    """

    def __init__(
        self,
        atoms: Atoms,
        form: Form,
        fixed: Mapping[int, int],
        given: int,
        *,
        kept: Collection[int] = (),
        whole: Collection[int] = (),
    ) -> None:
        self.atoms, self.fixed, self.given, self.kept, self.whole = atoms, fixed, given, kept, whole
        self.form = dict(form)
        self.waiting: dict[int, list[int]] = {}  # what can be replaced, by the digit to replace in it
        self.digits: list[tuple[int, int]] = []  # a heap, the latest one on top
        self.touched = 0  # terms changed so far
        for atom in form:
            self.queue(atom)

    def queue(self, atom: int) -> None:
        """Let the atom wait for the replacement of its latest digit, if it has one."""
        digit = self.atoms.pivot(atom, self.fixed, self.whole)
        if digit < self.given or digit < 0 or atom in self.kept:
            return
        if digit in self.waiting:
            self.waiting[digit].append(atom)
        else:
            self.waiting[digit] = [atom]
            heappush(self.digits, (-self.atoms.rank[digit], -digit))

    def step(self) -> None:
        """Replace the latest digit."""
        digit = -heappop(self.digits)[1]
        replacement = self.atoms.replacement(digit, self.fixed)
        for atom in self.waiting.pop(digit):
            coefficient = self.form.pop(atom)
            if coefficient:
                self.touched += len(replacement)
                self.add(coefficient, self.atoms.cofactor(atom, digit), replacement)

    def add(self, coefficient: int, factor: int, replacement: Form) -> None:
        """Add coefficient * factor * replacement.  This is where the time of a proof goes."""
        form, products = self.form, self.atoms.multiples(factor)
        for other, weight in replacement.items():
            atom = products.get(other)
            if atom is None:
                atom = products[other] = self.atoms.product(other, factor)
            before = form.get(atom)
            if before is None:
                form[atom] = coefficient * weight
                self.queue(atom)
            else:
                form[atom] = before + coefficient * weight
