"""The end of a case of the second proof: whether result - A*B is zero for all operands.

Digits and names written out, it is zero but for carries.  One that went beyond the result counts a multiple of
2^(bits of the result), which is zero since both lie below.  What was dropped elsewhere must be shown to be none, or to
make up for something else, as does the carry out of a sum with a negative number for the sign of that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from heapq import heappop, heappush
from types import MappingProxyType

from .forward_numbers import MOST_TERMS, Form, Monomial, Numbers, TooMuch, balanced

MOST_CASES = 3  # bits of which both values are looked at
PAIR = 2  # atoms of a product that a multiplication made
NOTHING: Mapping[int, Form] = MappingProxyType({})
Definition = Callable[[int], "tuple[Form, int] | None"]  # what an atom equals: a form over a number


class Written:
    """A form in which one atom after the other, the last one first, is replaced by what it equals."""

    def __init__(self, numbers: Numbers, form: Form, levels: Sequence[int] = ()) -> None:
        self.numbers, self.levels = numbers, levels
        self.terms: dict[Monomial, int] = {}
        self.of: defaultdict[int, set[Monomial]] = defaultdict(set)  # atom -> monomials that it is in
        self.waiting: list[tuple[int, int]] = []  # atoms that may be in it, the last one first
        for monomial, factor in form.items():
            self.add(monomial, factor)

    def add(self, monomial: Monomial, factor: int) -> None:
        before = self.terms.get(monomial, 0)
        if after := before + factor:
            self.terms[monomial] = after
        else:
            self.terms.pop(monomial, None)
        if bool(before) == bool(after):
            return
        for atom in monomial:
            found = self.of[atom]
            if before:
                found.discard(monomial)
                continue
            if not found:
                heappush(self.waiting, self.turn(atom))
            found.add(monomial)

    def turn(self, atom: int) -> tuple[int, int]:
        """When it is looked at: carries first; then after those of higher levels, and after later ones."""
        cut = self.numbers.cuts.get(atom)
        carry = cut is not None and cut.rest == atom and not self.numbers.stays(atom)
        return (-self.levels[atom] if self.levels and not carry else -len(self.levels), -atom)

    def replace(self, atom: int, form: Form, divisor: int) -> bool:
        """Put in form / divisor for an atom; False where that does not go with whole factors."""
        while found := self.of[atom]:
            monomial = next(iter(found))
            factor = self.terms[monomial]
            self.numbers.budget.spend(len(form))
            if len(self.terms) > MOST_TERMS:
                raise TooMuch
            if factor % divisor:
                return False
            rest = list(monomial)
            rest.remove(atom)
            self.add(monomial, -factor)
            for other, count in form.items():
                self.add(self.numbers.times(tuple(rest), other), factor // divisor * count)
        return True

    def steps(self, definition: Definition) -> Iterator[None]:
        """Write it out as far as it goes, an atom a step."""
        self.waiting = sorted(self.turn(atom) for atom, monomials in self.of.items() if monomials)
        while self.waiting:
            atom = -heappop(self.waiting)[1]
            if self.of[atom] and (found := definition(atom)):
                if not self.replace(atom, *found):
                    return
                yield


class Bounded(Written):
    """The same, with bounds: those of a form are `scale` times as large."""

    def __init__(self, numbers: Numbers, form: Form, scale: int) -> None:
        self.low = self.high = 0
        super().__init__(numbers, {monomial: factor * scale for monomial, factor in form.items()}, levels_of(numbers))
        self.scale = scale
        self.least, self.most = self.low, self.high  # of all ways that it was written so far
        self.bit, self.nearest = 0, 1 << scale.bit_length() + MOST_TERMS.bit_length()

    def add(self, monomial: Monomial, factor: int) -> None:
        before = self.terms.get(monomial, 0)
        after = before + factor
        least, most = self.numbers.bounds(monomial)
        self.low += after * (least if after > 0 else most) - before * (least if before > 0 else most)
        self.high += after * (most if after > 0 else least) - before * (most if before > 0 else least)
        super().add(monomial, factor)

    def is_zero(self, low: int, high: int) -> bool:
        """Whether it is nothing: less than one and more than minus one, also by these bounds.  Where bounds contradict
        each other, it is anything, for that never occurs."""
        self.least, self.most = max(self.least, low), min(self.most, high)
        return self.least > self.most or -self.scale < self.least <= self.most < self.scale

    def shows_zero(self, view: Definition, *, cases: bool) -> bool:
        """Whether it is seen to be nothing on the way to be written like that; if `cases` are to be looked at
        otherwise, the `bit` is one of which."""
        for _ in self.steps(view):
            if self.is_zero(self.low, self.high):
                return True
            if cases and max(-self.low, self.high) < self.nearest and (bit := self.commonest()):
                self.nearest, self.bit = max(-self.low, self.high), bit
        return self.is_zero(*self.gathered())

    def commonest(self) -> int:
        """The bit that most others are multiplied by; 0 for none."""
        choosers = self.numbers.choosers
        return max((atom for atom in choosers if self.of.get(atom)), key=lambda atom: len(self.of[atom]), default=0)

    def gathered(self) -> tuple[int, int]:
        """Bounds, an atom that stands alone and its products of the other sign taken together: x - x y is x (1 - y),
        and not as little as x y can be.  Of a product of two such atoms each takes half."""
        low, high = 2 * self.low, 2 * self.high
        alone = {monomial[0]: factor > 0 for monomial, factor in self.terms.items() if len(monomial) == 1}
        for atom, up in alone.items():
            others: dict[Monomial, int] = {}
            for monomial in self.of[atom]:
                factor = self.terms[monomial]
                if len(monomial) == PAIR and (factor > 0) != up:
                    other = monomial[monomial[0] == atom]
                    others[other,] = factor if alone.get(other, not up) == up and other != atom else 2 * factor
            if others:
                others[()] = 2 * self.terms[atom,]
                apart = {tuple(sorted((atom, *monomial))): factor for monomial, factor in others.items()}
                ends = [end * bound for end in self.numbers.interval(others) for bound in self.numbers.ranges[atom]]
                less, more = self.numbers.interval(apart)
                low, high = low + min(ends) - less, high + max(ends) - more
        return -(-low // 2), high // 2


def levels_of(numbers: Numbers) -> Sequence[int]:
    """How many differences of differences each atom is made of: where there are several levels of Karatsuba's method,
    the inner ones are written as products of the outer ones' numbers first, in whatever order they came."""
    for atom in range(len(numbers.levels), len(numbers.ranges)):
        cut = numbers.cuts.get(atom)
        form = cut.form if cut else numbers.names.get(atom, {})
        level = max((numbers.levels[other] for monomial in form for other in monomial), default=0)
        numbers.levels.append(level + (cut is not None and cut.rest in numbers.choosers))
    return numbers.levels


def written_out(numbers: Numbers, form: Form) -> Form:
    """A form without digits and names, but for those that are given."""

    def exact(atom: int) -> tuple[Form, int] | None:
        if atom < numbers.given:
            return None
        cut = numbers.cuts.get(atom)
        if (equal := numbers.equal(atom)) is not None:
            return equal, 1
        return (cut.without_rest(), 1) if cut and cut.digit == atom else None

    written = Written(numbers, form)
    for _ in written.steps(exact):
        pass
    return written.terms


def left_over(numbers: Numbers, error: Form, modulus: int) -> Form:
    """What is left of an error that is not shown to be a multiple of the modulus."""
    while error := balanced(written_out(numbers, error), modulus):
        atoms = {atom for monomial in error for atom in monomial}
        carries = sorted(atom for atom in atoms if atom in numbers.cuts and numbers.cuts[atom].rest == atom)
        ways = (_none, _signs, _sums)
        if not any(
            _learnt(numbers, [*guess(numbers, error, carries)], modulus, bits)
            for bits in range(MOST_CASES + 1)
            for guess in ways
        ):
            break
    return {} if error and _never(numbers, modulus) else error


def _never(numbers: Numbers, modulus: int) -> bool:
    """Whether this case never occurs: one of the bits that are assumed is shown to be the other number."""
    for bit, number in reversed(numbers.decided.items()):
        known = numbers.known.pop(bit)
        numbers.choosers.discard(bit)
        wrong = vanishes(numbers, {(bit,): 1, (): number - 1}, modulus, 0)
        numbers.known[bit] = known
        numbers.choosers.add(bit)
        if wrong:
            return True
    return False


def _learnt(numbers: Numbers, guesses: Sequence[tuple[int, Form]], modulus: int, bits: int) -> bool:
    """Whether some guesses are shown to be right, with both values of so many bits looked at."""
    before = len(numbers.known)
    for carry, guess in guesses:
        earlier = all(atom < carry for monomial in guess for atom in monomial)  # or one could be said to be the other
        equation = numbers.combine((1, {(carry,): 1}), (-1, guess))
        if carry not in numbers.known and earlier and vanishes(numbers, equation, modulus, bits):
            numbers.known[carry] = guess
    return len(numbers.known) > before


def _none(_: Numbers, __: Form, carries: Sequence[int]) -> Iterator[tuple[int, Form]]:
    """Nothing was carried."""
    return ((carry, {}) for carry in carries)


def _signs(numbers: Numbers, _: Form, carries: Sequence[int]) -> Iterator[tuple[int, Form]]:
    """A carry is the sign of a number whose mask was added; or, or just not, a bit that chose what was added, or what
    was carried when the digit came to be that it was cut from; where there are comparisons, it may be there."""
    for carry in carries:
        cut = numbers.cuts[carry]
        bits = {m: factor for m, factor in cut.form.items() if all(map(numbers.is_bit, m))}
        masks = {m: factor for m, factor in bits.items() if 2 * abs(factor) > abs(cut.size)}
        if masks:
            yield carry, {m: round(Fraction(factor, cut.size)) for m, factor in masks.items()}
        chosen = {atom for m in cut.form if len(m) > 1 for atom in m if atom in numbers.choosers}
        below = {numbers.cuts[m[0]].rest for m in cut.form if cut.form.keys() == {m} and m[0] in numbers.cuts}
        if numbers.decided:
            yield carry, {(): 1}
        for bit in sorted(chosen | below):
            yield carry, {(bit,): 1}
            yield carry, {(): 1, (bit,): -1}


def _sums(numbers: Numbers, error: Form, carries: Sequence[int]) -> Iterator[tuple[int, Form]]:
    """A carry makes up for all bits that count as much, and for twice the product of two of them: for what differs."""
    for carry in carries:
        count = error.get((carry,), 0)
        same = {m: -factor // count for m, factor in error.items() if abs(factor) == abs(count)}
        alone = {atom for m in same if len(m) == 1 for atom in m}
        same |= {m: -factor // count for m, factor in error.items() if abs(factor) == 2 * abs(count) and alone >= {*m}}
        others = {m: times for m, times in same.items() if all(numbers.is_bit(atom) and atom < carry for atom in m)}
        if others:
            yield carry, others


def vanishes(numbers: Numbers, form: Form, modulus: int, bits: int, assumed: Mapping[int, Form] = NOTHING) -> bool:
    """Whether a form is zero, by the bounds of one of the ways to write it; with both values of so many bits looked at,
    beside those that are assumed: of a bit that the form names, or of the commonest where the bounds were nearest.

    What a cut left above is what was cut less the digit, over the size; so of all that was added up to a carry there
    are products and digits left in the end.  Then names, digits that were multiplied, and of a bit that something was
    multiplied by the digit below it, are what they were cut from: products of differences become those of operands.
    """

    known = {**numbers.known, **assumed}

    def carries(atom: int) -> tuple[Form, int] | None:
        cut = numbers.cuts.get(atom)
        if atom in known:
            return known[atom], 1
        if atom < numbers.given or numbers.stays(atom):
            return None
        if atom in numbers.names:
            return numbers.names[atom], 1
        if cut and cut.rest in numbers.known:
            return cut.without_rest(), 1
        return (cut.without_digit(), cut.size) if cut and atom == cut.rest else None

    def compared(atom: int) -> tuple[Form, int] | None:
        cut = numbers.cuts.get(atom)
        if atom in numbers.solved:
            return numbers.solved[atom], 1
        return None if cut and cut.rest in numbers.decided and atom == cut.digit else carries(atom)

    def all_of_it(atom: int) -> tuple[Form, int] | None:
        cut = numbers.cuts.get(atom)
        if atom < numbers.given:
            return carries(atom)
        if atom in numbers.names and atom not in known:
            return numbers.names[atom], 1
        if cut and atom == cut.digit and (numbers.stays(cut.rest) or cut.rest in known):
            return cut.without_rest(), 1
        return carries(atom)

    scale = modulus**2 << 512
    if numbers.solved and Bounded(numbers, form, scale).shows_zero(compared, cases=False):
        return True
    written = Bounded(numbers, form, scale)
    if any(written.shows_zero(view, cases=bits > 0) for view in (carries, all_of_it)):
        return True
    said = {atom for monomial in form for atom in monomial}
    likely = {written.bit, max((atom for atom in said - known.keys() - {max(said)} if numbers.is_bit(atom)), default=0)}
    both = [numbers.constant(number).form for number in (0, 1)]
    return bits > 0 and any(
        all(vanishes(numbers, form, modulus, bits - 1, {**assumed, bit: number}) for number in both)
        for bit in sorted(likely - {0})
    )
