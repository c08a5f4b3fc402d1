"""The second proof: the claim of `prove` reached the other way round, to check the first one in the tests.

It walks the bytes once, first instruction to last, and keeps what every place holds *written out in full*.  With the
first proof it shares the table, the decoder and the contract, nothing else; it is slow, and meant to be read.

* A **limb** is a whole number that the walk has a name for.  It has a range and a *form*: an exact sum, with rational
  factors, of products of *atoms*.  Atoms are the limbs of which nothing but the range is known: limbs of the
  operands, addresses of the buffers, low digits.  A high digit is never one: split S = v + 2^8 c, and v becomes an
  atom, c gets the form (S - v)/2^8.  So the third byte of a column is (sum of products - low bytes)/2^16 by itself,
  and the ranges of products and low bytes say which carries it can send.
* A **value**, what a register holds, is a sum of limbs with whole factors: masks (255 c), bits kept side by side
  (c + 2 d), bytes that no carry left.  `Limbs.split` is the heart: it takes a value apart into digits.
* EOR, AND and OR with a mask made of bits fork the walk: in each case a bit is known, so its form less that number is
  zero.  Such an equation is solved for one atom, its *pivot*; so are the names given to factors of products.

At the end result - A*B, pivots replaced, must be zero, or a whole multiple of 2^(bits of the result): both lie below.
Taken for granted: buffers do not overlap, and nobody else writes to them or to the stack above the stack pointer.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from .contract import Contract
from .encode import DecodeError, Instr, decode
from .meaning import execute
from .table import Core

Monomial = tuple[int, ...]  # the product of these atoms, ascending; () is the number one
Form = dict[Monomial, Fraction]  # never changed once made
Parts = dict[int, int]  # limb -> factor; limb 0 is the number one
ONE = Fraction(1)
MOST_INSTRUCTIONS, MOST_CASES = 1_000_000, 1 << 12  # executed on one path; walked in all


class Refused(Exception):
    """What keeps the kernel from being proved."""


class Impossible(Exception):
    """Ranges that contradict each other: the case at hand never occurs."""


class Fork(Exception):
    """The walk can only go on knowing this bit, a limb."""

    def __init__(self, bit: int) -> None:
        super().__init__(bit)
        self.bit = bit


@dataclass(frozen=True)
class ForwardVerdict:
    """The outcome: if not `proved`, `why` is one line; `cases` counts the walks that reached their end."""

    proved: bool
    why: str
    cases: int


@dataclass(frozen=True, eq=False)
class Value:
    """A sum of limbs, and a range that it is known to lie in."""

    parts: Parts
    low: int
    high: int


def combine(terms: Iterable[tuple[Fraction | int, Form]]) -> Form:
    """The sum of factor * form."""
    total: Form = {}
    for factor, form in terms:
        for monomial, coefficient in form.items():
            total[monomial] = total.get(monomial, 0) + factor * coefficient
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def multiply(left: Form, right: Form) -> Form:
    """The product of two forms."""
    return combine((c, {tuple(sorted(m + n)): d for n, d in right.items()}) for m, c in left.items())


class Limbs:
    """All that is known of the limbs in one case."""

    def __init__(self, address_bits: int) -> None:
        self.address_bits = address_bits
        self.forms: list[Form] = [{(): ONE}]
        self.ranges: list[tuple[int, int]] = [(1, 1)]
        self.apart: dict[int, Parts] = {}  # limbs taken apart since, or known in this case: use these instead
        self.names: dict[tuple[tuple[int, int], ...], int] = {}  # sums that were made limbs
        self.factors: dict[int, int] = {}  # limbs that were given an atom, to be multiplied
        self.pivots: dict[int, Form] = {}  # atom -> what it equals, free of pivots
        self.bases: set[int] = set()  # atoms that are addresses
        self.highs: list[int] = []  # high digits

    def limb(self, low: int, high: int, form: Form | None = None) -> int:
        """A new limb; an atom, if it has no form."""
        self.forms.append({(len(self.forms),): ONE} if form is None else form)
        self.ranges.append((low, high))
        return len(self.forms) - 1

    def value(self, terms: Iterable[tuple[int, int]], low: int, high: int) -> Value:
        """The sum of (limb, factor), known to lie in low..high."""
        parts: Parts = {}
        todo = list(terms)
        while todo:
            limb, factor = todo.pop()
            if limb in self.apart:
                todo += [(part, factor * inner) for part, inner in self.apart[limb].items()]
            else:
                parts[limb] = parts.get(limb, 0) + factor
        parts = {limb: factor for limb, factor in parts.items() if factor}
        least, most = self.span(parts)
        if max(low, least) > min(high, most):
            raise Impossible
        return Value(parts, max(low, least), min(high, most))

    def constant(self, number: int) -> Value:
        return self.value([(0, number)], number, number)

    def span(self, parts: Parts) -> tuple[int, int]:
        """Where a sum lies by the ranges of its limbs."""
        ends = [sorted((factor * self.ranges[limb][0], factor * self.ranges[limb][1])) for limb, factor in parts.items()]
        return sum(end[0] for end in ends), sum(end[1] for end in ends)

    def form(self, value: Value) -> Form:
        return combine((factor, self.forms[limb]) for limb, factor in value.parts.items())

    def reduced(self, form: Form) -> Form:
        """The form with every pivot replaced by what it equals."""
        if self.pivots.keys().isdisjoint(itertools.chain.from_iterable(form)):
            return form
        return combine((coefficient, self.without_pivots(monomial)) for monomial, coefficient in form.items())

    def without_pivots(self, monomial: Monomial) -> Form:
        product: Form = {(): ONE}
        for atom in monomial:
            product = multiply(product, self.pivots.get(atom, {(atom,): ONE}))
        return product

    def interval(self, form: Form) -> tuple[Fraction, Fraction]:
        """Where a form lies by the ranges of its atoms."""
        low = high = Fraction(0)
        for monomial, coefficient in form.items():
            ends = [1]
            for atom in monomial:
                ends = [end * bound for end in ends for bound in self.ranges[atom]]
            low += coefficient * (min(ends) if coefficient > 0 else max(ends))
            high += coefficient * (max(ends) if coefficient > 0 else min(ends))
        return low, high

    def bounded(self, value: Value) -> Value:
        """The value with the best range there is: what was known, and its form with and without pivots."""
        form, low, high = self.form(value), value.low, value.high
        for view in (form, self.reduced(form)) if self.pivots else (form,):
            least, most = self.interval(view)
            low, high = max(low, ceil(least)), min(high, floor(most))
        return self.value(value.parts.items(), low, high)

    def split(self, value: Value, bits: int) -> tuple[Value, Value]:
        """(digit, rest): value = digit + 2^bits * rest, the digit inside 0..2^bits - 1."""
        size = 1 << bits
        if value.low >> bits != value.high >> bits:
            value = self.bounded(value)
        if value.low >> bits == value.high >> bits:  # no carry, or always the same one
            rest = value.low >> bits
            terms = [*value.parts.items(), (0, -rest * size)]
            return self.value(terms, value.low - rest * size, value.high - rest * size), self.constant(rest)
        digits = {limb: divmod(factor, size) for limb, factor in value.parts.items()}
        bits_only = [limb for limb in value.parts if self.ranges[limb] == (0, 1)]
        others = value.parts.keys() - {0, *bits_only}
        if len(bits_only) == 1 and not others:  # linear in its one bit
            (bit,) = bits_only
            clear = divmod(value.parts.get(0, 0), size)
            raised = divmod(value.parts.get(0, 0) + value.parts[bit], size)
            digits = {0: clear, bit: (raised[0] - clear[0], raised[1] - clear[1])}
        low_parts = {limb: low for limb, (_, low) in digits.items()}
        least, most = self.span(low_parts)
        if least >= 0 and most < size:  # every factor has a digit of its own
            terms = [(limb, high) for limb, (high, _) in digits.items()]
            return self.value(low_parts.items(), 0, size - 1), self.value(terms, value.low >> bits, value.high >> bits)
        narrow = {limb: bits - factor.bit_length() + 1 for limb, factor in low_parts.items() if limb and factor}
        if self.fit(low_parts, narrow, size):  # so they have once the limbs are taken apart at the digit's end
            for limb, width in narrow.items():
                self.take_apart(limb, width)
        elif bits_only and not others:
            raise Fork(max(bits_only))
        else:
            value = Value({self.name(value): 1}, value.low, value.high)
        return self.split(self.value(value.parts.items(), value.low, value.high), bits)

    def fit(self, parts: Parts, narrow: dict[int, int], size: int) -> bool:
        """Whether the sum stays below `size` with its limbs cut to these many bits; factors must be powers of two."""
        total = parts.get(0, 0)
        for limb, width in narrow.items():
            (low, high), top = self.ranges[limb], (1 << width) - 1
            total += parts[limb] * (high if low >= 0 and high <= top else top)
        return all(parts[limb].bit_count() == 1 for limb in narrow) and total < size

    def take_apart(self, limb: int, bits: int) -> None:
        """Make the limb a sum of two, if it has more bits than that."""
        (low, high), form, size = self.ranges[limb], self.forms[limb], 1 << bits
        if low >= 0 and high < size:
            return
        top = Fraction(size, 1 << self.address_bits)
        if any(form.get((base,)) == top for base in self.bases):
            # An address comes round at its last limb: the carry is the atom, so that the address stays a base,
            # a number, and a multiple of 2^address_bits.
            rest = self.limb(low >> bits, high >> bits)
            digit = self.limb(0, size - 1, combine([(1, form), (-size, self.forms[rest])]))
        else:
            square = bits > 2 and any(len(m) == 2 and m[0] == m[1] and form == {m: 1} for m in form)
            digit = self.limb(0, size - 7 if square else size - 1)  # squares are 0, 1 or 4 modulo 8
            if high < size:  # a borrow, counted positive
                size = -size
            part = Fraction(1, size)
            ends = sorted((low // size, high // size))
            rest = self.limb(*ends, combine([(part, form), (-part, self.forms[digit])]))
        self.apart[limb] = {digit: 1, rest: size}
        self.highs.append(rest)

    def name(self, value: Value) -> int:
        """The sum as one limb, the same one whenever the same sum comes up."""
        if len(value.parts) == 1 and next(iter(value.parts.values())) == 1:
            return next(iter(value.parts))
        key = tuple(sorted(value.parts.items()))
        if key not in self.names:
            self.names[key] = self.limb(value.low, value.high, self.form(value))
        return self.names[key]

    def factor(self, value: Value) -> int:
        """The value as an atom, to be multiplied."""
        limb = self.name(value)
        if self.forms[limb] == {(limb,): ONE}:
            return limb
        if limb not in self.factors:
            self.factors[limb] = self.limb(*self.ranges[limb])
            self.pivots[self.factors[limb]] = self.reduced(self.forms[limb])
        return self.factors[limb]

    def assume(self, limb: int, number: int) -> None:
        """From here on the limb is this number.  Raises Impossible."""
        self.apart[limb] = {0: number}
        equation = self.reduced(combine([(1, self.forms[limb]), (-number, self.forms[0])]))
        low, high = self.interval(equation)
        if not low <= 0 <= high:
            raise Impossible
        multiplied = set(itertools.chain.from_iterable(monomial for monomial in equation if len(monomial) > 1))
        alone = {monomial[0] for monomial in equation if len(monomial) == 1} - multiplied
        if alone:
            pivot = max(alone)
            rest = {m: -c / equation[pivot,] for m, c in equation.items() if m != (pivot,)}
            self.pivots[pivot] = rest
            self.pivots = {atom: self.reduced(form) for atom, form in self.pivots.items()}


class Machine:
    """One case: the limbs, what every place holds, and where the walk is; the domain of `meaning.execute`."""

    def __init__(self, contract: Contract, core: Core, entry: int) -> None:
        self.contract, self.core, self.isa, self.at = contract, core, contract.isa, entry
        isa = self.isa
        self.free = int(isa.stack_free)  # limbs between the stack pointer and the last limb pushed
        self.limbs = Limbs(isa.limb_bits * isa.address_limbs)
        self.slots = [self.unknown(width) for width in isa.widths]
        self.memory: dict[tuple[str, int], Value] = {}  # (buffer, offset) -> limb
        self.returns: dict[int, int] = {}  # offset in the stack of a return address -> where it leads
        self.written: list[int] = []  # offsets in the stack that the instruction at hand writes
        self.buffers: dict[int, str] = {}
        for (name, length), registers in zip(contract.buffers.items(), isa.abi.arguments, strict=False):
            self.point(registers, name)
            if name != "r":
                self.memory.update({(name, k): self.unknown(isa.limb_bits) for k in range(length)})
        self.stack_pointer = isa.wide.get(isa.stack_pointer, (isa.stack_pointer,))
        self.point(self.stack_pointer, "stack")
        self.kept = {name: self.limbs.form(self.slots[isa.slots[name]]) for name in isa.abi.callee_saved}
        self.operands = {name: self.number(name, length) for name, length in contract.buffers.items() if name != "r"}

    def unknown(self, bits: int) -> Value:
        return self.limbs.value([(self.limbs.limb(0, (1 << bits) - 1), 1)], 0, (1 << bits) - 1)

    def point(self, registers: Sequence[str], buffer: str) -> None:
        """Let the registers hold the address of the buffer."""
        address = self.unknown(self.limbs.address_bits)
        (base,) = address.parts
        self.buffers[base] = buffer
        self.limbs.bases.add(base)
        width = self.isa.limb_bits
        for name, digit in zip(registers, self.digits(address, [width] * len(registers), [1] * len(registers), [])):
            self.slots[self.isa.slots[name]] = digit

    def number(self, buffer: str, length: int) -> Form:
        """What the limbs of a buffer are as one number."""
        scale = self.isa.limb_bits
        return combine((1 << (scale * k), self.limbs.form(self.memory[buffer, k])) for k in range(length))

    def clone(self) -> Machine:
        """A copy that can go its own way."""
        twin = copy.copy(self)
        twin.limbs = copy.copy(self.limbs)
        for owner in (twin, twin.limbs):
            for name, thing in vars(owner).items():
                if isinstance(thing, dict | list | set):
                    setattr(owner, name, copy.copy(thing))
        return twin

    # ---- the domain ----

    def read(self, slot: int) -> Value:
        value = self.slots[slot]
        return self.limbs.value(value.parts.items(), value.low, value.high)

    def write(self, slot: int, value: Value) -> None:
        self.slots[slot] = value

    def constant(self, value: int) -> Value:
        return self.limbs.constant(value)

    def linear(self, terms: Sequence[tuple[int, Value]]) -> Value:
        total: list[tuple[int, int]] = []
        low = high = 0
        for factor, value in self.merged(terms):
            ends = sorted((factor * value.low, factor * value.high))
            low, high = low + ends[0], high + ends[1]
            total += [(limb, factor * inner) for limb, inner in value.parts.items()]
        return self.limbs.value(total, low, high)

    def merged(self, terms: Sequence[tuple[int, Value]]) -> Iterator[tuple[int, Value]]:
        """The terms, each value once.  A sum of limbs that is shifted is made one limb: BST must see the same bits."""
        for key, group in itertools.groupby(terms, lambda term: sorted(term[1].parts.items())):
            same = list(group)
            factor, value = sum(factor for factor, _ in same), same[0][1]
            if factor not in (0, 1, -1) and len(value.parts.keys() - {0}) > 1 and not self.limbs.side_by_side(value.parts):
                value = self.limbs.value([(self.limbs.name(value), 1)], value.low, value.high)
            yield factor, value

    def product(self, left: Value, right: Value) -> Value:
        for number, other in ((left, right), (right, left)):
            if number.low == number.high:
                return self.linear([(number.low, other)])
        low, high = sorted((left.low * right.low, left.high * right.high))
        factors = tuple(sorted((self.limbs.factor(left), self.limbs.factor(right))))
        return self.limbs.value([(self.limbs.limb(low, high, {factors: ONE}), 1)], low, high)

    def digits(
        self, value: Value, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]
    ) -> Sequence[Value]:
        least = most = at = 0
        for width, sign in zip(widths, signs, strict=True):
            least, most = min(least, least + (sign << at)), 0
        return []
