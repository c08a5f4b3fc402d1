"""What the second proof (`forward`) knows of numbers: sums of products of limbs, their ranges, and what is solved.

* A **limb** is a whole number that the walk has a name for.  It has a range, and most have a *form*: an exact sum of
  products of *atoms* with rational factors.  Atoms are the limbs without one: limbs of the operands, addresses of the
  buffers, low digits.  A high digit is never an atom: split S = v + 2^8 c, and v becomes one, c has the form
  (S - v)/2^8.  So the third byte of a column is (sum of products - low bytes)/2^16 by itself, and the ranges of
  products and low bytes say what it can be.
* A **value**, what a register holds, is a sum of limbs with whole factors: masks (255 c), bits kept side by side
  (c + 2 d), bytes that no carry left.  `Limbs.split` is the heart: it takes a value apart into digits.
* An equation between atoms is solved for one of them, its *pivot*.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm

Monomial = tuple[int, ...]  # the product of these limbs, ascending; () is the number one
Sum = Mapping[Monomial, Fraction | int]  # monomial -> factor, none of them zero
UNIT: Sum = {(): 1}
# How a mask, a limb that is all ones or zero by a bit, is met: by products with the bit; by a case for each value of
# the bit where it meets a limb by AND, OR or EOR; by such cases also where it is added to something.
PRODUCTS, CASES, ADDED = "products", "cases", "added"
PAIR = 2  # factors of a product; limbs of a difference
MOST_BITS = 3  # of which each value is looked at to bound a sum
MOST_TERMS = 1 << 16  # of a sum; the product of two operands of 256 limbs has as many
MOST_FACTORS = 4  # of a term: results have two, and what is dropped on the way to them no more than their square
MOST_WORK = 1 << 25  # terms that are added up in all cases of a walk: 14 times what 256 bits take in limbs of 8 bits
MOST_KEPT = 1 << 20  # terms of all forms: some 300 MB


class Impossible(Exception):
    """Ranges that contradict each other: the case at hand never occurs."""


class TooMuch(Exception):
    """More terms than a proof is worth: no kernel needs as many."""


class Fork(Exception):
    """The walk can only go on knowing this bit, a limb."""


@dataclass(frozen=True, eq=False)
class Value:
    """A sum of limbs with whole factors, and a range that it is known to lie in."""

    parts: Sum
    low: int
    high: int


class Sums:
    """Adds and multiplies sums for one proof, and stops where that is more than a proof is worth: `left` are terms that
    may still be added up, `kept` those that may still be kept."""

    def __init__(self, left: int = MOST_WORK, kept: int = MOST_KEPT) -> None:
        self.left, self.kept = left, kept

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return min(self.left, self.kept) < 0

    def spend(self, terms: int) -> None:
        """Something else takes as much as to add up so many terms.  Raises TooMuch."""
        self.left -= terms
        if self.left < 0:
            raise TooMuch

    def combine(self, *terms: tuple[Fraction | int, Sum]) -> Sum:
        """The sum of factor * sum.  Raises TooMuch."""
        total: dict[Monomial, Fraction | int] = {}
        for factor, form in terms:
            self.left -= len(form)
            for monomial, coefficient in form.items():
                term = coefficient if factor == 1 else factor * coefficient
                total[monomial] = total[monomial] + term if monomial in total else term
        found = {monomial: coefficient for monomial, coefficient in total.items() if coefficient}
        if len(found) > MOST_TERMS or self.spent:
            raise TooMuch
        return found

    def multiply(self, left: Sum, right: Sum) -> Sum:
        """The product of two sums.  Raises TooMuch."""
        if max(map(len, left), default=0) + max(map(len, right), default=0) > MOST_FACTORS:
            raise TooMuch
        return self.combine(*((c, {tuple(sorted(m + n)): d for n, d in right.items()}) for m, c in left.items()))

    def substitute(self, form: Sum, known: Mapping[int, Sum]) -> Sum:
        """The sum with limbs replaced by what they equal; the same object if there is nothing to replace.  Raises
        TooMuch."""
        if known.keys().isdisjoint(itertools.chain.from_iterable(form)):
            return form
        kept = {monomial: factor for monomial, factor in form.items() if known.keys().isdisjoint(monomial)}
        terms: list[tuple[Fraction | int, Sum]] = [(1, kept)]
        for monomial, factor in form.items():
            if monomial in kept:
                continue
            product = known.get(monomial[0], {monomial[:1]: 1})
            for limb in monomial[1:]:
                product = self.multiply(product, known.get(limb, {(limb,): 1}))
            terms.append((factor, product))
        return self.combine(*terms)


class Limbs:
    """All that is known of the limbs in one case."""

    def __init__(self, sums: Sums, address_bits: int, *, masks: str = PRODUCTS) -> None:
        self.sums, self.address_bits = sums, address_bits
        self.ranges: list[tuple[int, int]] = []
        self.forms: dict[int, Sum] = {}  # over atoms; an atom has none
        self.apart: dict[int, Sum] = {}  # limb -> others that it was taken apart into, or the number that it is
        self.names: dict[frozenset[tuple[Monomial, Fraction | int]], int] = {}  # sums that were made a limb
        self.factors: dict[int, int] = {}  # limb -> an atom of the same value, to be multiplied
        self.defined: dict[int, Sum] = {}  # such an atom -> the form of its limb
        self.unmultiplied: dict[int, Sum] = {}  # those that are no factor of anything: the same, without others of them
        self.lifted: dict[int, Sum] = {}  # limb that is a sum with a mask -> minus the bit of that
        self.pivots: dict[int, Sum] = {}  # atom -> what it equals, over atoms that are no pivots
        self.longest = 1 << 20  # bits of a factor at most
        self.bases: dict[int, str] = {}  # atom -> the buffer that it is the address of
        self.masks = masks

    def limb(self, low: int, high: int, form: Sum | None = None) -> int:
        """A new limb; an atom, if it has no form."""
        self.ranges.append((low, high))
        if form is not None:
            self.forms[len(self.ranges) - 1] = form
            self.sums.kept -= len(form)
            bits = [max(factor.numerator.bit_length(), factor.denominator.bit_length()) for factor in form.values()]
            if max(bits, default=0) > self.longest:
                raise TooMuch
            self.sums.spend(sum(max(0, each - self.longest // 4) for each in bits))  # long ones take long
        return len(self.ranges) - 1

    def value(self, parts: Sum, low: int, high: int) -> Value:
        """The sum, known to lie in low..high, with what has been learnt of its limbs since it was made."""
        while parts is not (newer := self.sums.substitute(parts, self.apart)):
            parts = newer
        least, most = self.interval(parts)
        low, high = max(low, ceil(least)), min(high, floor(most))
        if low > high:
            raise Impossible
        if low == high and parts.keys() - UNIT.keys():
            self.learn(self.sums.combine((1, self.sums.substitute(parts, self.forms)), (-low, UNIT)))
            return self.constant(low)
        return Value(parts, low, high)

    def constant(self, number: int) -> Value:
        return Value({(): number} if number else {}, number, number)

    def interval(self, form: Sum) -> tuple[Fraction | int, Fraction | int]:
        """Where a sum lies by the ranges of its limbs.  Whole numbers are added up, which is faster than fractions."""
        scale = lcm(*(factor.denominator for factor in form.values()))
        low = high = 0
        for monomial, factor in form.items():
            number = factor.numerator * (scale // factor.denominator)
            ends = [number]
            for limb in monomial:
                ends = [end * bound for end in ends for bound in self.ranges[limb]]
            low += min(ends)
            high += max(ends)
        return Fraction(low, scale), Fraction(high, scale)

    def bounded(self, value: Value, bits: int) -> Value:
        """The value with a range that says what lies above so many bits, or else with the best one there is: what was
        known, its form, that with limbs written out that no product has, and that without pivots."""
        low, high = value.low, value.high
        view: Sum = {}
        form = self.sums.substitute(value.parts, self.forms)
        for known in ({}, self.unmultiplied, self.pivots):
            if view is (view := self.sums.substitute(form, known)):
                continue
            least, most = self.reach(view)
            low, high = max(low, ceil(least)), min(high, floor(most))
            if low >> bits == high >> bits:
                break
        return self.value(value.parts, low, high)

    def vanishes(self, parts: Sum) -> bool:
        """Whether a sum of limbs with whole factors is zero: where it is less than one and more than minus one.

        It is looked at over all atoms, and with one after the other written out, the latest first: on the way there
        is no other limb left in it than factors of a product and digits of the same product.
        """
        low, high, view = -1, 1, self.sums.substitute(parts, self.forms)
        for atom in (None, *sorted(self.defined, reverse=True)):
            newer = self.sums.substitute(view, {atom: self.defined[atom]}) if atom else view
            if newer is not view or not atom:
                least, most = self.reach(newer)
                low, high = max(low, ceil(least)), min(high, floor(most))
            if low == high == 0:
                return True
            view = newer
        return False

    def reach(self, form: Sum) -> tuple[Fraction | int, Fraction | int]:
        """Where a sum lies.  It is linear in a bit that is a factor, and so between what it is for its two values."""
        factors = {limb for monomial in form if len(monomial) > 1 for limb in monomial if self.ranges[limb] == (0, 1)}
        cases = [form]
        for bit in sorted(factors)[:MOST_BITS]:
            cases = [self.sums.substitute(each, {bit: number}) for each in cases for number in ({}, UNIT)]
        ends = [self.ends(each) for each in cases]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def ends(self, form: Sum) -> tuple[Fraction | int, Fraction | int]:
        """Where a sum lies, by the ranges of its limbs and by what is `gathered`."""
        low, high = self.interval(form)
        if found := self.gathered(form):
            low, high = max(low, found[0]), min(high, found[1])
        return low, high

    def gathered(self, form: Sum) -> tuple[Fraction | int, Fraction | int] | None:
        """The same, an atom that stands alone and its products with a factor of the other sign taken together: x y - x
        is x (y - 1), and is not as much as x y can be.  What is a product of two such atoms is shared.  None if there
        are no such atoms."""
        rest, low, high = dict(form), Fraction(0), Fraction(0)
        above = {monomial[0]: factor.numerator > 0 for monomial, factor in form.items() if len(monomial) == 1}
        sums: dict[int, dict[Monomial, Fraction | int]] = {}
        for monomial, factor in form.items():
            if len(monomial) != PAIR:
                continue
            up = factor.numerator > 0
            mine = [atom for atom in dict.fromkeys(monomial) if above.get(atom, up) != up]
            for atom in mine:
                other = monomial[monomial[0] == atom]  # the second one, if the first is the atom
                sums.setdefault(atom, {(): form[atom,]})[other,] = Fraction(factor) / len(mine)
                rest.pop(monomial, None)
        if not sums:
            return None
        for atom, others in sums.items():
            del rest[atom,]
            ends = [end * bound for end in self.interval(others) for bound in self.ranges[atom]]
            low, high = low + min(ends), high + max(ends)
        least, most = self.interval(rest)
        return low + least, high + most

    def split(self, value: Value, bits: int) -> tuple[Value, Value]:
        """(digit, rest): value = digit + 2^bits * rest, the digit inside 0..2^bits - 1."""
        size = 1 << bits
        if value.low >> bits != value.high >> bits:
            value = self.bounded(value, bits)
            if self.masks == PRODUCTS and value.low >> bits == value.high >> bits:
                return self.shown(value, bits)
        low, high = value.low >> bits, value.high >> bits
        if low == high:  # no carry, or always the same one
            parts = self.sums.combine((1, value.parts), (-low * size, UNIT))
            return self.value(parts, value.low - low * size, value.high - low * size), self.constant(low)
        if self.masks == PRODUCTS and (found := self.signed(value, bits)):
            return found
        for digits in self.low_digits(value.parts, size):
            least, most = self.interval(digits)
            if least >= 0 and most < size:  # what no factor of 2^bits goes with is the digit
                rest = self.sums.combine((Fraction(1, size), value.parts), (Fraction(-1, size), digits))
                return self.value(digits, 0, size - 1), self.value(rest, low, high)
        added = [m[0] for m, c in value.parts.items() if m and abs(c) == size - 1 and self.ranges[m[0]] == (0, 1)]
        if self.masks == ADDED and added:
            raise Fork(added[0])
        # A number of carries less a borrow: only whether it is below zero matters, so no bit of it needs a case.
        counted = self.masks == PRODUCTS and len(value.parts) > PAIR and -size < value.low < 0 <= value.high < size
        if self.of_bits(value.parts) and not counted:
            raise Fork(max(limb for monomial in value.parts for limb in monomial))
        digits = next(self.low_digits(value.parts, size))
        if self.side_by_side(digits, bits):
            for monomial, factor in digits.items():
                for limb in monomial:
                    self.take_apart(limb, bits + 1 - int(factor).bit_length())
        else:
            value = Value({(self.name(value),): 1}, value.low, value.high)
        return self.split(self.value(value.parts, value.low, value.high), bits)

    def shown(self, value: Value, bits: int) -> tuple[Value, Value]:
        """`split` where bounds have shown the rest.  The digit becomes an atom: what is made of it stays short, and can
        be written out again."""
        low = value.low >> bits
        parts = self.sums.combine((1, value.parts), (-low << bits, UNIT))
        digit = self.value(parts, value.low - (low << bits), value.high - (low << bits))
        if digit.low < digit.high and (limb := self.name(digit)) in self.forms:
            form = self.sums.substitute(self.forms[limb], self.unmultiplied)
            atom = self.factor(digit)
            self.unmultiplied[atom] = form
            digit = self.value({(atom,): 1}, digit.low, digit.high)
        return digit, self.constant(low)

    def signed(self, value: Value, bits: int) -> tuple[Value, Value] | None:
        """`split` where the rest is a bit whose mask the value has: the last limb of a sum with a number that is less
        than zero where the bit is set.  None if no bit is shown to be it."""
        size = 1 << bits
        for monomial, factor in value.parts.items():
            if abs(factor) == size - 1 and monomial and self.of_bits({monomial: 1}):
                times = int(factor) // (size - 1)
                digit = self.sums.combine((1, value.parts), (-times * size, {monomial: 1}))
                least = self.bounded(self.value(digit, value.low - size, value.high + size), bits)
                if least.low >= 0 and least.high < size:
                    return least, self.value({monomial: times}, -1, 1)
                self.lifted[self.name(value)] = {monomial: -times}
        return None

    @staticmethod
    def low_digits(parts: Sum, size: int) -> Iterator[Sum]:
        """Sums that are the same modulo `size`: all factors positive, and with the signs that they have."""
        yield {monomial: int(factor) % size for monomial, factor in parts.items() if factor % size}
        yield {m: int(c) % size - (size if c < 0 else 0) for m, c in parts.items() if c % size}

    def of_bits(self, parts: Sum) -> bool:
        """Whether all limbs of a sum are bits."""
        return all(self.ranges[limb] == (0, 1) for monomial in parts for limb in monomial)

    def side_by_side(self, parts: Sum, bits: int) -> bool:
        """Whether the limbs, cut to what lies in a digit of `bits` bits, share none of these."""
        below = 0
        for factor, monomial in sorted((int(factor), monomial) for monomial, factor in parts.items()):
            if factor <= below or factor.bit_count() != 1:
                return False
            top = (1 << bits) // factor - 1
            low, high = self.ranges[monomial[0]] if monomial else (1, 1)
            below += factor * (high if low >= 0 and high < top else top)
        return True

    def take_apart(self, limb: int, bits: int) -> None:
        """Make the limb a sum of its digit of that many bits and the rest, unless it has no more bits than that."""
        (low, high), form, size = self.ranges[limb], self.forms.get(limb, {(limb,): 1}), 1 << bits
        if low >= 0 and high < size:
            return
        # x^2 modulo 2^bits is 1 modulo 8 for odd x, and 0 or 4 modulo 16 otherwise.
        square = bits > 3 and any(form == {(atom, atom): 1} for atom in itertools.chain.from_iterable(form))
        most = size - 7 if square else size - 1
        comes_round = any(form.get((base,)) == Fraction(size, 1 << self.address_bits) for base in self.bases)
        low, high = low >> bits, high >> bits
        if high <= 0:  # a borrow, counted positive
            low, high, size = -high, -low, -size
        if comes_round:  # last limb of an address: limbs must add up to base + number, modulo 2^address_bits
            rest = self.limb(low, high)
            digit = self.limb(0, most, self.sums.combine((1, form), (-size, {(rest,): 1})))
        else:
            digit = self.limb(0, most)
            rest = self.limb(
                low, high, self.sums.combine((Fraction(1, size), form), (Fraction(-1, size), {(digit,): 1}))
            )
        self.apart[limb] = {(digit,): 1, (rest,): size}

    def whole(self, value: Value, bits: int) -> Value:
        """The value, as one limb if its limbs share bits and are more than bits: so that all who shift it see the same
        bits."""
        several = len(value.parts.keys() - UNIT.keys()) > 1 and not self.of_bits(value.parts)
        shared = several and not self.side_by_side(value.parts, bits)
        return self.value({(self.name(value),): 1}, value.low, value.high) if shared else value

    def name(self, value: Value) -> int:
        """The sum as one limb, the same one whenever the same sum comes up."""
        (monomial, factor), *more = value.parts.items()
        if factor == 1 and monomial and not more:
            return monomial[0]
        key = frozenset(value.parts.items())
        if key not in self.names:
            self.names[key] = self.limb(value.low, value.high, self.sums.substitute(value.parts, self.forms))
        return self.names[key]

    def factor(self, value: Value) -> int:
        """The value as an atom, to be multiplied."""
        limb = self.name(value)
        if limb not in self.forms:
            return limb
        if limb not in self.factors:
            self.factors[limb] = self.limb(*self.ranges[limb])
            self.defined[self.factors[limb]] = self.forms[limb]
            self.pivots[self.factors[limb]] = self.sums.substitute(self.forms[limb], self.pivots)
        return self.factors[limb]

    def assume(self, bit: int, number: int) -> None:
        """From here on the bit is this number.  Raises Impossible."""
        self.apart[bit] = self.constant(number).parts
        self.learn(self.sums.combine((1, self.forms.get(bit, {(bit,): 1})), (-number, UNIT)))

    def learn(self, equation: Sum) -> None:
        """From here on this sum of atoms is zero; it is solved for its latest atom.  Raises Impossible."""
        equation = self.sums.substitute(equation, self.pivots)
        low, high = self.interval(equation)
        multiplied = set(itertools.chain.from_iterable(monomial for monomial in equation if len(monomial) > 1))
        alone = {monomial[0] for monomial in equation if len(monomial) == 1} - multiplied
        if alone:
            pivot = max(alone)
            terms = {monomial: factor for monomial, factor in equation.items() if monomial != (pivot,)}
            self.pivots[pivot] = self.sums.combine((Fraction(-1) / equation[pivot,], terms))
            self.pivots = {atom: self.sums.substitute(form, self.pivots) for atom, form in self.pivots.items()}
        ends = [(self.interval(form), self.ranges[atom]) for atom, form in self.pivots.items()]
        if any(low > most or high < least for (low, high), (least, most) in [((low, high), (0, 0)), *ends]):
            raise Impossible
