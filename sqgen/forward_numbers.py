"""What the second proof (`forward`) knows of numbers: sums of products of atoms, and how each number was cut in two.

* An **atom** is a whole number that the walk has a name for, with a range: a limb of an operand, the address of a
  buffer, a low digit, what lies above it.
* A **form** is a sum of products of atoms with whole factors; a **value**, what a register holds, a form and a range.
* A **cut** is all that is ever said of two atoms: form = digit + size * rest.  `Numbers.split` makes it, the same one
  whenever the same form comes up, and none where the form shows both.

A bit times itself is that bit.  Nothing is concluded while walking but from ranges; `forward_end` does that.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

Monomial = tuple[int, ...]  # the product of these atoms, ascending; () is the number one
Form = Mapping[Monomial, int]  # monomial -> factor, none of them zero
MOST_WORK = 3 << 25  # terms that are added up for one proof: a product of 128 limbs that branches takes three quarters
MOST_TERMS = 1 << 20  # of a form: some 300 MB
ATOM = 256  # terms added up that take as much as an atom: some 170 MB in all
MOST_FACTORS = 12  # of a monomial
MOST_BITS = 6  # in values that are looked at bit by bit
BIT = (0, 1)  # the range of one


class TooMuch(Exception):
    """More terms than a proof is worth: no kernel needs as many."""


class Impossible(Exception):
    """Ranges that contradict each other: the case at hand never occurs."""


class Fork(Exception):
    """The walk can only go on knowing this bit, an atom."""


class Value(NamedTuple):
    """A form, and a range that it is known to lie in."""

    form: Form
    low: int
    high: int


class Cut(NamedTuple):
    """form = digit + size * rest; the size is less than zero where the rest counts what was borrowed."""

    digit: int
    rest: int
    form: Form
    size: int

    def without_rest(self) -> Form:
        """What the digit is."""
        return {**self.form, (self.rest,): -self.size}

    def without_digit(self) -> Form:
        """What the rest is, times the size."""
        return {**self.form, (self.digit,): -1}


class Budget:
    """What a proof may still cost, in terms that are added up."""

    def __init__(self, left: int = MOST_WORK) -> None:
        self.left = left

    def spend(self, terms: int) -> None:
        """Raises TooMuch."""
        self.left -= terms
        if self.left < 0:
            raise TooMuch


class Numbers:
    """All that is known in one case."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.ranges: list[tuple[int, int]] = []
        self.cuts: dict[int, Cut] = {}  # by its digit, and by its rest
        self.names: dict[int, Form] = {}  # atom -> the form that it is another name of
        self.known: dict[int, Form] = {}  # atom -> the number that it is, found out or assumed
        self.factors: set[int] = set()  # atoms that were multiplied by each other
        self.given = 0  # atoms that are not written out: those that the operands of a function are made of
        self.choosers: set[int] = set()  # bits that a limb was multiplied by, or another one, or that branches hang on
        self.decided: dict[int, int] = {}  # bits that are assumed
        self.solved: dict[int, Form] = {}  # atom -> what it equals where a comparison is known
        self.levels: list[int] = []  # of atoms, once all are there
        self.named: dict[frozenset[tuple[Monomial, int]], int] = {}
        self.made: dict[tuple[frozenset[tuple[Monomial, int]], int], Cut] = {}  # by form and width
        self.widths: dict[frozenset[tuple[Monomial, int]], int] = {}  # at which a form was cut first

    # ---- forms ----

    def atom(self, low: int, high: int) -> int:
        self.budget.spend(ATOM)
        self.ranges.append((low, high))
        return len(self.ranges) - 1

    def equal(self, atom: int) -> Form | None:
        """What is known that an atom equals, or what it is a name of."""
        return self.known.get(atom, self.names.get(atom))

    def is_bit(self, atom: int) -> bool:
        return self.ranges[atom] == BIT

    def stays(self, atom: int) -> bool:
        """Whether something was multiplied by it."""
        return atom in self.factors or atom in self.choosers

    def times(self, left: Monomial, right: Monomial) -> Monomial:
        """The product of two monomials.  A bit that others are multiplied by is its own square; of a carry that is
        not written so, lest it should no longer cancel when what was carried is put in."""
        if not left or not right:
            return left or right
        found = tuple(sorted(left + right))
        if any(a == b and a in self.choosers for a, b in itertools.pairwise(found)):
            found = tuple(a for a, b in itertools.zip_longest(found, found[1:]) if a != b or a not in self.choosers)
        if len(found) > MOST_FACTORS:
            raise TooMuch
        return found

    def combine(self, *terms: tuple[int, Form]) -> Form:
        """The sum of factor * form."""
        total: dict[Monomial, int] = {}
        for factor, form in terms:
            self.budget.spend(len(form))
            for monomial, count in form.items():
                total[monomial] = total.get(monomial, 0) + factor * count
            if len(total) > MOST_TERMS:
                raise TooMuch
        return {monomial: factor for monomial, factor in total.items() if factor}

    def multiply(self, left: Form, right: Form) -> Form:
        return self.combine(*((c, {self.times(m, n): d}) for m, c in left.items() for n, d in right.items()))

    def bounds(self, monomial: Monomial) -> tuple[int, int]:
        """Where a product of atoms lies, by their ranges."""
        low = high = 1
        for atom in monomial:
            least, most = self.ranges[atom]
            ends = (low * least, low * most, high * least, high * most)
            low, high = min(ends), max(ends)
        return low, high

    def interval(self, form: Form) -> tuple[int, int]:
        low = high = 0
        for monomial, factor in form.items():
            least, most = self.bounds(monomial)
            low += factor * (least if factor > 0 else most)
            high += factor * (most if factor > 0 else least)
        return low, high

    # ---- values ----

    def value(self, form: Form, low: int, high: int) -> Value:
        """The form, known to lie in low..high.  Raises Impossible."""
        if self.known and any(atom in self.known for monomial in form for atom in monomial):
            one: Form = {(): 1}
            terms = []
            for monomial, factor in form.items():
                product = one
                for atom in monomial:
                    product = self.multiply(product, self.known.get(atom, {(atom,): 1}))
                terms.append((factor, product))
            form = self.combine(*terms)
        least, most = self.interval(form)
        low, high = max(low, least), min(high, most)
        if low > high:
            raise Impossible
        return self.constant(low) if low == high else Value(form, low, high)

    def constant(self, number: int) -> Value:
        return Value({(): number} if number else {}, number, number)

    def unknown(self, bits: int) -> Value:
        top = (1 << bits) - 1
        return Value({(self.atom(0, top),): 1}, 0, top)

    def linear(self, terms: Sequence[tuple[int, Value]]) -> Value:
        """The sum of factor * value; the two parts of a cut that meet again are what was cut."""
        low = high = 0
        for _, group in itertools.groupby(terms, lambda term: term[1].form):
            factors, (value, *_) = zip(*group, strict=True)
            ends = sorted((sum(factors) * value.low, sum(factors) * value.high))
            low, high = low + ends[0], high + ends[1]
        return self.value(self.joined(self.combine(*((c, value.form) for c, value in terms))), low, high)

    def joined(self, form: Form) -> Form:
        """Two digits that were cut off one after the other, and what is above them, put together again."""
        for monomial, factor in form.items():
            cut = self.cuts.get(monomial[0]) if len(monomial) == 1 else None
            if not cut or cut.digit != monomial[0]:
                continue
            whole = cut.without_digit()  # less what is above, it is nothing
            above = self.first_cut(cut.rest)
            if above and form.get((above.digit,), 0) == factor * cut.size:
                whole = {**whole, (above.digit,): -cut.size, (above.rest,): -cut.size * above.size}
            elif form.get((cut.rest,), 0) == factor * cut.size:
                whole = {**whole, (cut.rest,): -cut.size}
            else:
                continue
            return self.joined(self.combine((1, form), (factor, whole)))
        return form

    def first_cut(self, atom: int) -> Cut | None:
        """How an atom was cut itself."""
        key = frozenset({((atom,), 1)})
        return self.made[key, self.widths[key]] if key in self.widths else None

    def factor(self, value: Value) -> int:
        """The value as an atom, to be multiplied; the same one whenever the same form comes up."""
        (monomial, factor), *more = value.form.items()
        if factor == 1 and len(monomial) == 1 and not more:
            return monomial[0]
        key = frozenset(value.form.items())
        if key not in self.named:
            self.named[key] = self.atom(value.low, value.high)
            self.names[self.named[key]] = value.form
        return self.named[key]

    def tight(self, value: Value) -> Value:
        """The value; a bit by another name where its form does not show that it is one."""
        if value.high > 1 or value.low == value.high or self.interval(value.form) == BIT:
            return value
        return value._replace(form={(self.factor(value),): 1})

    def product(self, left: Value, right: Value) -> Value:
        for number, other in ((left, right), (right, left)):
            if number.low == number.high:
                return self.linear([(number.low, other)])
        ends = [a * b for a in (left.low, left.high) for b in (right.low, right.high)]
        factors = self.factor(left), self.factor(right)
        self.factors.update(factors)
        monomial = self.times(factors[:1], factors[1:])
        return self.value({monomial: 1}, min(ends), max(ends))

    # ---- bits ----

    def bits_of(self, *values: Value) -> list[int]:
        """The bits that values are made of; none if there is something else, or too many."""
        bits = {atom for value in values for monomial in value.form for atom in monomial}
        return sorted(bits) if len(bits) <= MOST_BITS and all(map(self.is_bit, bits)) else []

    def tabulated(self, bits: Sequence[int], function: Callable[[Mapping[int, int]], int]) -> Form:
        """A function of bits as a sum of their products."""
        form: dict[Monomial, int] = {}
        for case in cases(bits):
            chosen = tuple(bit for bit in bits if case[bit])
            form[chosen] = function(case) - at(form, case)
        found = {monomial: factor for monomial, factor in form.items() if factor}
        self.choosers.update(atom for monomial in found if len(monomial) > 1 for atom in monomial)
        return found

    # ---- cuts ----

    def split(self, value: Value, bits: int) -> tuple[Value, Value]:
        """(digit, rest): value = digit + 2^bits * rest, the digit inside 0..2^bits - 1."""
        size, (form, low, high) = 1 << bits, value
        rest = low >> bits
        if rest == high >> bits:  # no carry, or always the same one
            digit = self.combine((1, form), (-rest * size, {(): 1}))
            return self.value(digit, low - rest * size, high - rest * size), self.constant(rest)
        for whole, below in self.shown(value, size):
            least, most = self.interval(below)
            if least >= 0 and most < size:
                above = self.over(whole, below, size)
                return self.value(below, 0, size - 1), self.value(above, low >> bits, high >> bits)
        below = min((_below(form, size), balanced(form, size)), key=lambda some: sum(map(abs, some.values())))
        least, most = self.interval(below)
        if below != form and (most >> bits) - (least >> bits) <= (high >> bits) - (low >> bits):
            found, above_it = self.split(self.value(below, least, most), bits)
            over = self.combine((1, above_it.form), (1, self.over(form, below, size)))
            return found, self.value(over, low >> bits, high >> bits)
        two = min((c & -c).bit_length() - 1 for c in form.values())
        if two:
            half = {m: c >> two for m, c in form.items()}
            found, above_it = self.split(self.value(half, low >> two, high >> two), bits - two)
            return self.linear([(1 << two, found)]), above_it
        return self.cut(value, bits)

    def shown(self, value: Value, size: int) -> Iterator[tuple[Form, Form]]:
        """Ways to write a value, and what is the same modulo `size`: what may be its digit as it stands."""
        form = value.form
        ((monomial, factor), *more) = form.items()
        atom = monomial[0] if len(monomial) == 1 and factor == 1 and not more else -1
        wholes = [form]
        if (cut := self.cuts.get(atom)) and cut.digit == atom and cut.size % size == 0:
            wholes.append(cut.without_rest())
        for whole in wholes:
            yield whole, {m: c % size for m, c in whole.items() if c % size}
            yield whole, _below(whole, size)
        bits = self.bits_of(value)
        if len(bits) == 1 or (bits and self.choosers.issuperset(bits)):
            yield form, self.tabulated(bits, lambda case: at(form, case) % size)

    def over(self, form: Form, below: Form, size: int) -> Form:
        """(form - below) / size."""
        return {m: c // size for m, c in self.combine((1, form), (-1, below)).items()}

    def cut(self, value: Value, bits: int) -> tuple[Value, Value]:
        """`split` by a cut, beside those at other widths that there are of the same form."""
        form, low, high = value
        key = frozenset(form.items())
        first = self.widths.setdefault(key, bits)
        if first != bits:
            below, above = self.cut(value, first)
            if first < bits:
                more, above = self.split(above, bits - first)
                return self.linear([(1, below), (1 << first, more)]), above
            below, more = self.split(below, bits)
            return below, self.linear([(1, more), (1 << first - bits, above)])
        if (key, bits) not in self.made:
            self.made[key, bits] = self.new_cut(value, bits)
        found = self.made[key, bits]
        sign = 1 if found.size > 0 else -1
        digit = self.value({(found.digit,): 1}, 0, (1 << bits) - 1)
        return digit, self.value({(found.rest,): sign}, low >> bits, high >> bits)

    def new_cut(self, value: Value, bits: int) -> Cut:
        form, low, high = value
        # x^2 modulo 2^bits is 1 modulo 8 for odd x, and 0 or 4 modulo 16 otherwise.
        (monomial, _), *more = form.items()
        square = bits > 3 and not more and len(monomial) == 2 and monomial[0] == monomial[1]
        digit = self.atom(0, (1 << bits) - (7 if square else 1))
        low, high = low >> bits, high >> bits
        rest = self.atom(-high, -low) if high <= 0 else self.atom(low, high)
        found = Cut(digit, rest, form, -(1 << bits) if high <= 0 else 1 << bits)
        self.cuts[digit] = self.cuts[rest] = found
        return found

    # ---- cases ----

    def undecided(self, value: Value) -> int:
        """The bit that must be known first to know a value of bits."""
        bit = max(atom for monomial in value.form for atom in monomial)
        while bits := self.bits_of(Value(self.names.get(bit, {}), 0, 1)):
            bit = max(atom for atom in bits if atom not in self.known)
        return bit

    def assume(self, bit: int, number: int) -> None:
        """From here on the bit is this number; so others are known that it decides, and one that it was cut from.
        Raises Impossible."""
        self.known[bit] = self.constant(number).form
        self.choosers.add(bit)
        self.decided[bit] = number
        for name, form in self.names.items():
            found = self.value(form, *self.ranges[name])
            if name not in self.known and found.low == found.high:
                self.known[name] = found.form
        cut = self.cuts.get(bit)
        if cut and cut.rest == bit:
            latest = max(atom for monomial in cut.form for atom in monomial)
            whole = self.combine((1, {(cut.digit,): 1, (): cut.size * number}), (-1, cut.form))
            if abs(cut.form.get((latest,), 0)) == 1 and sum(latest in monomial for monomial in cut.form) == 1:
                self.solved[latest] = self.combine((cut.form[latest,], whole), (1, {(latest,): 1}))


def at(form: Form, case: Mapping[int, int]) -> int:
    """A form of bits, with their values."""
    return sum(factor for monomial, factor in form.items() if all(case[atom] for atom in monomial))


def cases(bits: Sequence[int]) -> Iterator[dict[int, int]]:
    """All values of bits, those with fewer ones before those that have more beside them."""
    return (dict(zip(bits, case, strict=True)) for case in itertools.product((0, 1), repeat=len(bits)))


def _below(form: Form, size: int) -> Form:
    """What is the same modulo `size`, with the signs that it has."""
    return {m: c % size if c > 0 else -(-c % size) for m, c in form.items() if c % size}


def balanced(form: Form, size: int) -> Form:
    """The same with factors as small as can be."""
    half = size // 2
    return {m: (c + half) % size - half for m, c in form.items() if c % size}
