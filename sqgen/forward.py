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

import contextlib
import copy
import itertools
from collections.abc import Iterable, Iterator, Sequence
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

    def side_by_side(self, parts: Parts) -> bool:
        """Whether the limbs share no bit of the sum."""
        below = 0
        for factor, limb in sorted((factor, limb) for limb, factor in parts.items()):
            if factor.bit_count() != 1 or factor <= below or self.ranges[limb][0] < 0:
                return False
            below += factor * self.ranges[limb][1]
        return True

    def constant(self, number: int) -> Value:
        return self.value([(0, number)], number, number)

    def span(self, parts: Parts) -> tuple[int, int]:
        """Where a sum lies by the ranges of its limbs."""
        ends = [
            sorted((factor * self.ranges[limb][0], factor * self.ranges[limb][1])) for limb, factor in parts.items()
        ]
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
            sign = -1 if high < size else 1  # a borrow is counted positive
            size *= sign
            part = Fraction(1, size)
            ends = sorted((sign * (low >> bits), sign * (high >> bits)))
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

    def __init__(self, image: bytes, contract: Contract, core: Core, entry: int) -> None:
        self.image, self.contract, self.core, self.at = image, contract, core, entry
        isa = self.isa = contract.isa
        self.opaque = {isa.slots[name] for name in isa.opaque}
        self.limbs = Limbs(isa.limb_bits * isa.address_limbs)
        self.slots = [self.unknown(width) for width in isa.widths]
        self.memory: dict[tuple[str, int], Value] = {}  # (buffer, offset) -> limb
        self.returns: dict[int, int] = {}  # stack pointer after a call -> where its return address leads
        self.pushed: list[int] = []  # offsets in the stack that the instruction at hand writes
        self.buffers: dict[int, str] = {}
        self.assumed = False
        for (name, length), registers in zip(contract.buffers.items(), isa.abi.arguments, strict=False):
            self.point(registers, name)
            if name != "r":
                self.memory.update({(name, k): self.unknown(isa.limb_bits) for k in range(length)})
        self.stack_pointer = isa.wide.get(isa.stack_pointer, (isa.stack_pointer,))
        self.stack_free = int(isa.stack_free)  # how far above the stack pointer the last limb pushed lies
        self.point(self.stack_pointer, "stack")
        self.kept = {name: self.limbs.form(self.slots[isa.slots[name]]) for name in isa.abi.callee_saved}

    def unknown(self, bits: int) -> Value:
        return self.limbs.value([(self.limbs.limb(0, (1 << bits) - 1), 1)], 0, (1 << bits) - 1)

    def point(self, registers: Sequence[str], buffer: str) -> None:
        """Let the registers hold the address of the buffer."""
        address = self.unknown(self.limbs.address_bits)
        (base,) = address.parts
        self.buffers[base] = buffer
        self.limbs.bases.add(base)
        self.set_wide(registers, address)

    def set_wide(self, registers: Sequence[str], value: Value) -> None:
        """Spread a value over registers, low limb first; what is above is lost."""
        for name in registers:
            self.slots[self.isa.slots[name]], value = self.limbs.split(value, self.isa.limb_bits)

    def wide(self, registers: Sequence[str]) -> Value:
        width = self.isa.limb_bits
        return self.linear([(1 << (width * k), self.read(self.isa.slots[name])) for k, name in enumerate(registers)])

    def clone(self) -> Machine:
        """A copy that can go its own way."""
        twin = copy.copy(self)
        twin.limbs = copy.copy(self.limbs)
        for owner in (twin, twin.limbs):
            for name, thing in vars(owner).items():
                if isinstance(thing, dict | list | set):
                    setattr(owner, name, copy.copy(thing))
        return twin

    def cases(self, bit: int) -> Iterator[Machine]:
        """The machine twice, once for every value of a bit."""
        for number in (0, 1):
            case = self.clone()
            case.assumed = True
            with contextlib.suppress(Impossible):
                case.limbs.assume(bit, number)
                yield case

    # ---- the domain ----

    def read(self, slot: int) -> Value:
        if slot in self.opaque:
            return self.unknown(1)
        value = self.slots[slot]
        return self.limbs.value(value.parts.items(), value.low, value.high)

    def write(self, slot: int, value: Value) -> None:
        self.slots[slot] = value

    def constant(self, value: int) -> Value:
        return self.limbs.constant(value)

    def linear(self, terms: Sequence[tuple[int, Value]]) -> Value:
        """The sum; a value that is shifted, with limbs that overlap, is one limb first, so that BST sees the same bits."""
        total: list[tuple[int, int]] = []
        low = high = 0
        for _, group in itertools.groupby(terms, lambda term: sorted(term[1].parts.items())):
            same = list(group)
            factor, value = sum(term[0] for term in same), same[0][1]
            if abs(factor) > 1 and len(value.parts.keys() - {0}) > 1 and not self.limbs.side_by_side(value.parts):
                value = self.limbs.value([(self.limbs.name(value), 1)], value.low, value.high)
            ends = sorted((factor * value.low, factor * value.high))
            low, high = low + ends[0], high + ends[1]
            total += [(limb, factor * inner) for limb, inner in value.parts.items()]
        return self.limbs.value(total, low, high)

    def product(self, left: Value, right: Value) -> Value:
        for number, other in ((left, right), (right, left)):
            if number.low == number.high:
                return self.linear([(number.low, other)])
        low, high = left.low * right.low, left.high * right.high
        factors = tuple(sorted((self.limbs.factor(left), self.limbs.factor(right))))
        return self.limbs.value([(self.limbs.limb(low, high, {factors: ONE}), 1)], low, high)

    def digits(
        self, value: Value, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]
    ) -> Sequence[Value]:
        places = [sum(widths[:k]) for k in range(len(widths))]
        ends = [sign * ((1 << width) - 1 << at) for width, sign, at in zip(widths, signs, places, strict=True)]
        low, high = sum(end for end in ends if end < 0), sum(end for end in ends if end > 0)
        rest = self.limbs.value(value.parts.items(), max(value.low, low), min(value.high, high))
        found = []
        for width in widths[:-1]:
            digit, rest = self.limbs.split(rest, width)
            found.append(digit)
        if any(sign < 0 for sign in signs[:-1]):
            raise Refused("a negative digit below the last one")
        last = self.linear([(signs[-1], rest)])
        top = (1 << widths[-1]) - 1
        return [*found, self.limbs.value(last.parts.items(), max(last.low, 0), min(last.high, top))]

    def logic(self, op: str, left: Value, right: Value) -> Value:
        if left.parts == right.parts:
            return self.constant(0) if op == "^" else left
        for mask, other in ((right, left), (left, right)):
            if mask.low == mask.high:
                return self.masked(op, other, mask.low)
        for value in (left, right):
            if all(self.limbs.ranges[limb] == (0, 1) for limb in value.parts if limb):
                raise Fork(max(value.parts))
        return self.unknown(self.isa.limb_bits)

    def masked(self, op: str, value: Value, mask: int) -> Value:
        """Logic with a number, for each run of equal bits of it."""
        terms, at = [], 0
        for bit, run in itertools.groupby(mask >> k & 1 for k in range(self.isa.limb_bits)):
            width = len(list(run))
            ones = self.constant((1 << width) - 1)
            digit, value = self.limbs.split(value, width)
            if bit and op == "^":
                digit = self.linear([(1, ones), (-1, digit)])
            elif bit != (op == "&"):
                digit = ones if bit else self.constant(0)
            terms.append((1 << at, digit))
            at += width
        return self.linear(terms)

    def zero(self, value: Value, also: Value | None) -> Value:
        if value.low > 0 or value.high < 0 or (also and also.high == 0):
            return self.constant(0)
        if value.low == value.high == 0 and (also is None or also.low == 1):
            return self.constant(1)
        return self.unknown(1)

    def place(self, address: Value) -> tuple[str, int]:
        """(buffer, offset) of an address, modulo the size of the address space.  Raises Refused."""
        modulus = 1 << self.limbs.address_bits
        rest = {monomial: c % modulus for monomial, c in self.limbs.form(address).items() if c % modulus}
        offset = rest.pop((), Fraction(0))
        ((monomial, factor),) = rest.items() if len(rest) == 1 else [((), ONE)]
        if len(monomial) != 1 or monomial[0] not in self.buffers or factor != 1 or offset.denominator != 1:
            raise Refused("the address is no place in a buffer that is known beforehand")
        number = int(offset)
        return self.buffers[monomial[0]], number - modulus if number >= modulus // 2 else number

    def stack_end(self) -> int:
        """Offset of the last limb pushed.  Raises Refused."""
        buffer, offset = self.place(self.wide(self.stack_pointer))
        if buffer != "stack":
            raise Refused("the stack pointer has left the stack")
        return offset + self.stack_free

    def load(self, address: Value) -> Value:
        place = self.place(address)
        if place not in self.memory or (place[0] == "stack" and place[1] < self.stack_end()):
            raise Refused(f"reads {place[0]}[{place[1]}], where nothing is known to be")
        value = self.memory[place]
        return self.limbs.value(value.parts.items(), value.low, value.high)

    def store(self, address: Value, value: Value) -> None:
        buffer, offset = place = self.place(address)
        if buffer == "stack" and offset < self.stack_free:
            if any(end <= offset < end + self.core.pc_limbs for end in self.returns):
                raise Refused("writes over a return address")
            self.pushed.append(offset)
        elif buffer != "r" or not 0 <= offset < self.contract.buffers["r"]:
            raise Refused(f"writes {buffer}[{offset}]")
        self.memory[place] = value

    # ---- the walk ----

    def step(self) -> bool:
        """One instruction; False at the end."""
        instr, isa = self.instruction(), self.isa
        insn = instr.insn
        if insn.name in self.core.lacks or not insn.constant_time:
            raise Refused(f"{self.core.name} lacks it, or its time is no constant there")
        stack = [self.slots[isa.slots[name]] for name in self.stack_pointer]
        execute(insn.statements, instr.places(isa), instr.immediates, isa.widths, self)
        for name in insn.clobbers:
            self.slots[isa.slots[name]] = self.unknown(isa.widths[isa.slots[name]])
        if self.pushed or any(
            self.slots[isa.slots[n]] is not old for n, old in zip(self.stack_pointer, stack, strict=True)
        ):
            self.check_stack()
        self.at += insn.size
        return self.flow(insn.control, next(iter(instr.immediates.values()), 0))

    def instruction(self) -> Instr:
        if not 0 <= self.at < len(self.image):
            raise Refused("the walk leaves the code")
        return decode(self.isa, self.image, self.at)

    def check_stack(self) -> None:
        """After an instruction that wrote to the stack or moved its pointer: nothing below it is kept."""
        try:
            end = self.stack_end()
        except Refused:
            if self.pushed:
                raise
            return  # one half of the pointer is written; until the other is, no access to the stack is allowed
        if any(offset < end for offset in self.pushed):
            raise Refused("writes below the stack pointer")
        self.pushed = []
        self.memory = {(name, k): value for (name, k), value in self.memory.items() if name != "stack" or k >= end}
        self.returns = {offset: at for offset, at in self.returns.items() if offset >= end}

    def move_stack(self, limbs: int) -> None:
        self.set_wide(self.stack_pointer, self.linear([(1, self.wide(self.stack_pointer)), (limbs, self.constant(1))]))

    def flow(self, control: tuple[str, ...], target: int) -> bool:
        """Follow a jump, branch, call or return, the program counter being behind it; False at the end."""
        match control:
            case ():
                pass
            case ("jump",):
                self.at += target
            case ("branch", flag, wanted):
                value = self.read(self.isa.slots[flag])
                if value.low != value.high:
                    raise Refused(f"branches on {flag}, which is not known beforehand")
                self.at += target if value.low == int(wanted) else 0
            case ("call",):
                self.move_stack(-self.core.pc_limbs)
                self.returns[self.stack_end()] = self.at
                self.at += target
            case ("return",):
                end = self.stack_end()
                if end not in self.returns:
                    self.finish(end)
                    return False
                self.at = self.returns.pop(end)
                self.move_stack(self.core.pc_limbs)
            case _:
                raise Refused(f"does not know `{' '.join(control)}`")
        return True

    def finish(self, stack_end: int) -> None:
        """What the contract asks for at the return.  Raises Refused."""
        if stack_end != self.stack_free:
            raise Refused("returns with the stack pointer moved")
        for name in (*self.isa.abi.callee_saved, *self.isa.abi.zero_on_return):
            now = self.limbs.form(self.slots[self.isa.slots[name]])
            if self.limbs.reduced(combine([(1, now), (-1, self.kept.get(name, {}))])):
                raise Refused(f"returns with a wrong {name}")
        missing = [k for k in range(self.contract.buffers["r"]) if ("r", k) not in self.memory]
        if missing:
            raise Refused(f"does not write r[{missing[0]}]")
        result, *operands = (self.number(name, length) for name, length in self.contract.buffers.items())
        error = self.limbs.reduced(combine([(1, result), (-1, multiply(operands[0], operands[-1]))]))
        # Carries that were dropped: whole numbers, each with a low digit as its latest atom.
        for high in reversed(self.limbs.highs) if error else ():
            form = self.limbs.reduced(self.limbs.forms[high])
            latest = max((monomial for monomial in form if len(monomial) == 1), default=())
            times = error.get(latest, Fraction(0)) / form.get(latest, ONE)
            if latest and times and times % self.contract.modulus == 0:
                error = combine([(1, error), (-times, form)])
        if error:
            raise Refused(f"the result is not the product: {len(error)} terms are left over")

    def number(self, buffer: str, length: int) -> Form:
        """What the limbs of a buffer are as one number."""
        width = self.isa.limb_bits
        return combine((1 << (width * k), self.limbs.form(self.memory[buffer, k])) for k in range(length))


def prove_forward(image: bytes, contract: Contract, core: Core, entry: int = 0) -> ForwardVerdict:
    """Whether the code at `entry` (in bytes) keeps the contract, for all operands, on that core."""
    waiting, proved = [Machine(image, contract, core, entry)], 0
    while waiting:
        machine = waiting.pop()
        start = machine.at
        try:
            for _ in range(MOST_INSTRUCTIONS):
                start = machine.at
                if not machine.step():
                    proved += 1
                    break
            else:
                raise Refused("no end")
        except Fork as fork:
            waiting += machine.cases(fork.bit)
            if len(waiting) + proved > MOST_CASES:
                return ForwardVerdict(False, "too many cases", proved)
        except Impossible:
            if not machine.assumed:
                return ForwardVerdict(False, f"0x{start:04x}: ranges contradict each other", proved)
        except (Refused, DecodeError) as error:
            return ForwardVerdict(False, f"0x{start:04x} {error}", proved)
    return ForwardVerdict(proved > 0, "" if proved else "no case ever occurs", proved)
