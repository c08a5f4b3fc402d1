"""Whether an error vanishes in a case of the proof: what is left over when it is reduced may be carries that cannot be.

That is shown here, of the result of a whole kernel (`ending`) and of what a function leaves (`lemmas`).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from .carries import FEW, Carries, Hopeless
from .linear import ONE, Form, combine

MOST_FIXED = 24  # digits of one case that have a value, before the proof gives up
DEEP = 1_000_000  # terms touched at most to show one carry constant at the end
PATIENCE = 15  # times the terms of a first look are touched to show an arm right before runs are asked: they cost more
LONG = 25  # the same in the middle of a look, whether there are branches or not: more than right code takes


class Agreement:
    """Looks at errors, which must vanish but for a multiple of the `modulus`.

    `branches`: an arm is right by what is known in its case alone.  `refuted` says whether the code is known to be
    wrong: then what would be looked for is not there, and to find that out takes long.  The first `given` atoms are
    not taken apart.
    """

    def __init__(
        self, atoms: Carries, modulus: int, *, branches: bool, refuted: Callable[[], bool], given: int = 0
    ) -> None:
        self.atoms, self.modulus, self.branches, self.refuted, self.given = atoms, modulus, branches, refuted, given
        self.begun = atoms.looked
        self.patience = PATIENCE if branches else 0

    def left(self, error: Form, fixed: Mapping[int, int]) -> Form:
        """What is left of an error where these atoms have values, nothing if it vanishes.

        What is left over is zero if this case cannot occur, once its signs are known, or if a carry in it cannot.  A
        term without any of these hardly ever vanishes.
        """
        with self.watched():
            return self.looked_at(error, fixed)
        return self.reduced(error, fixed)[1]

    def simpler(self, form: Form) -> Form:
        """A form in which carries of one weight, few of them, may cancel."""
        with self.watched():
            if self.atoms.cancel(form, FEW):
                return self.atoms.reduce(form, {}, given=self.given)
        return form

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Looking ends where the code is known to be wrong, and what comes after the block goes on."""
        self.atoms.given_up = functools.partial(self.wrong, LONG)
        try:
            yield
        except Hopeless:
            pass
        finally:
            self.atoms.given_up = lambda: False

    def wrong(self, patience: int) -> bool:
        """Whether the code is known to be wrong: runs are asked when so many times the terms of a first look have been
        touched."""
        return self.atoms.looked - self.begun >= patience * self.atoms.most and self.refuted()

    def looked_at(self, error: Form, fixed: Mapping[int, int]) -> Form:
        """The same while the code is not known to be wrong.  Raises Hopeless."""
        while True:
            error, left = self.reduced(error, fixed)
            if not left or self.infeasible(fixed):
                return {}
            if not fixed and self.atoms.uncarried(left) and self.refuted():
                return left
            if not self.atoms.resolve(left):
                break
        if self.wrong(self.patience):
            return left
        return self.in_arm(left, fixed) if self.branches else self.closely(left, fixed)

    def reduced(self, error: Form, fixed: Mapping[int, int]) -> tuple[Form, Form]:
        """The error as far as it is taken apart, and that but for multiples of the modulus."""
        error = self.atoms.reduce(error, fixed, given=self.given)
        return error, {atom: c for atom, c in error.items() if c % self.modulus}

    def closely(self, left: Form, fixed: Mapping[int, int]) -> Form:
        """The same of what `settle` leaves: its signs are looked at one after the other, then the digits in it."""
        if self.atoms.cancel(left):
            return self.looked_at(left, fixed)
        digits = self.digits(left, fixed)
        signs = sorted(digits & self.atoms.signs)
        if signs and len(fixed) < MOST_FIXED:
            return self.in_both(left, fixed, signs[:1])
        found = self.constants(digits, fixed)
        return self.looked_at(left, {**fixed, **found}) if found else left

    def in_arm(self, left: Form, fixed: Mapping[int, int]) -> Form:
        """The same with branches: an arm is right by what is known in its case alone, and that is looked at first."""
        digits = self.digits(left, fixed)
        signs = sorted(digits & self.atoms.signs)[:1] if len(fixed) < MOST_FIXED else ()
        if bits := signs or self.extended(digits, fixed):
            return self.in_both(left, fixed, bits)
        rest = self.cancelled(left, fixed)
        found = self.constants(digits, fixed) if rest is left else {}
        if found or rest is not left or self.atoms.cancel(left):
            return self.looked_at(rest, {**fixed, **found})
        return left

    def digits(self, left: Form, fixed: Mapping[int, int]) -> set[int]:
        """What may be looked at in it."""
        return {factor for atom in left for factor in self.atoms.factors.get(atom, (atom,))} - fixed.keys()

    def in_both(self, error: Form, fixed: Mapping[int, int], bits: Sequence[int]) -> Form:
        """The same in two cases, these bits being all 0 or all 1."""
        for value in (0, 1):
            if left := self.looked_at(error, {**fixed, **dict.fromkeys(bits, value)}):
                return left
        return {}

    def extended(self, digits: Collection[int], fixed: Mapping[int, int]) -> tuple[int, ...]:
        """A carry among the digits that is in this case the sign of what was added, and that sign; () if there is none.
        Without branches `settle` has found those that are."""
        for carry in self.made(digits):
            for sign in (self.atoms.extended(carry), *self.atoms.borrows(carry)):
                if sign and sign not in fixed and self.nothing({carry: 1, sign: -1}, fixed):
                    return carry, sign
        return ()

    def cancelled(self, left: Form, fixed: Mapping[int, int]) -> Form:
        """What is left without carries of one weight that are in this case as many as are borrowed.  Without branches
        `cancel` has found these."""
        for weight, group in self.atoms.carries(left).items():
            if len(group) > 1 and self.nothing(group, fixed):
                return combine([(1, left), (-weight, group)])
        return left

    def made(self, digits: Collection[int]) -> list[int]:
        """Those of the digits that were computed."""
        return sorted(self.atoms.relation.keys() & digits)

    def constants(self, digits: Collection[int], fixed: Mapping[int, int]) -> dict[int, int]:
        """Those of the digits that have only one value: carries that the code dropped since they cannot occur."""
        digits = self.made(digits)
        for value in (0, 1):
            found = {d: value for d in digits if self.always(d, value, fixed)}
            if found:
                return found
        if self.branches:
            return {d: 0 for d in digits if self.nothing({d: 1}, fixed)}
        return {}

    def always(self, digit: int, value: int, fixed: Mapping[int, int]) -> bool:
        """Whether a digit has only this value, if it is worth a look."""
        return not self.wrong(self.patience) and self.atoms.within({digit: 1}, value, value, fixed, DEEP)

    def nothing(self, form: Form, fixed: Mapping[int, int]) -> bool:
        """Whether a sum of carries is zero, if it is worth a look."""
        return not self.wrong(self.patience) and self.atoms.bounded(form, 0, 0, fixed)

    def infeasible(self, fixed: Mapping[int, int]) -> bool:
        """Whether this case cannot occur: a fixed digit contradicts the range of the digits beside it."""
        for atom, value in fixed.items():
            relation = self.atoms.relation.get(atom)
            if relation is None:
                continue
            weights = dict(zip(relation.digits, relation.weights, strict=True))
            form = combine([(1, relation.form), (-weights.pop(atom) * value, {ONE: 1})])
            if self.atoms.impossible(form, *self.atoms.range(weights), fixed, DEEP):
                return True
        return False
