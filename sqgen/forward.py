"""The second proof: the claim of `prove` reached the other way round, to check the first one in the tests.

It walks the bytes once, first instruction to last, and keeps what every place holds *written out in full*.  With the
first proof it shares the table, the decoder and the contract, nothing else; it is slow, and meant to be read.

* A **limb** is a whole number that the walk has a name for.  It has a range, and most have a *form*: an exact sum of
  products of *atoms* with rational factors.  Atoms are the limbs without one: limbs of the operands, addresses of the
  buffers, low digits.  A high digit is never an atom: split S = v + 2^8 c, and v becomes one, c has the form
  (S - v)/2^8.  So the third byte of a column is (sum of products - low bytes)/2^16 by itself, and the ranges of
  products and low bytes say what it can be.
* A **value**, what a register holds, is a sum of limbs with whole factors: masks (255 c), bits kept side by side
  (c + 2 d), bytes that no carry left.  `Limbs.split` is the heart: it takes a value apart into digits.
* A mask made of bits, met by EOR, AND or OR, forks the walk, and so does a sum of bits that overflows: in each case a
  bit is known, so its form less that number is zero.  Such an equation is solved for one atom, its *pivot*.

At the end result - A*B, pivots replaced, must be zero, or a whole multiple of 2^(bits of the result): both lie below.
All cases must execute the same instructions and touch the same places, or a branch or an address hangs on a secret.
Taken for granted: buffers do not overlap; nobody else writes to them, or to the stack above the stack pointer, not even
while its two halves are being written.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from .contract import Contract
from .encode import DecodeError, decode
from .table import Core

Monomial = tuple[int, ...]  # the product of these limbs, ascending; () is the number one
Sum = Mapping[Monomial, Fraction | int]  # monomial -> factor, none of them zero
UNIT: Sum = {(): 1}
Place = tuple[str, int]  # a buffer and an offset in limbs; or a flag and its value
Trace = list[tuple[int, list[Place]]]  # for each instruction executed its offset in bytes and what it touches
MOST_CASES = 1 << 12


class Refused(Exception):
    """What keeps the kernel from being proved."""


class Impossible(Exception):
    """Ranges that contradict each other: the case at hand never occurs."""


class Fork(Exception):
    """The walk can only go on knowing this bit, a limb."""


@dataclass(frozen=True)
class ForwardVerdict:
    """The outcome: if not `proved`, `why` is one line; `cases` counts the walks that reached their end."""

    proved: bool
    why: str
    cases: int


@dataclass(frozen=True, eq=False)
class Value:
    """A sum of limbs with whole factors, and a range that it is known to lie in."""

    parts: Sum
    low: int
    high: int


def combine(*terms: tuple[Fraction | int, Sum]) -> Sum:
    """The sum of factor * sum."""
    total: dict[Monomial, Fraction | int] = {}
    for factor, form in terms:
        for monomial, coefficient in form.items():
            total[monomial] = total.get(monomial, 0) + factor * coefficient
    return {monomial: coefficient for monomial, coefficient in total.items() if coefficient}


def multiply(left: Sum, right: Sum) -> Sum:
    """The product of two sums."""
    return combine(*((c, {tuple(sorted(m + n)): d for n, d in right.items()}) for m, c in left.items()))


def substitute(form: Sum, known: Mapping[int, Sum]) -> Sum:
    """The sum with limbs replaced by what they equal; the same object if there is nothing to replace."""
    if known.keys().isdisjoint(itertools.chain.from_iterable(form)):
        return form
    terms = []
    for monomial, factor in form.items():
        product = known.get(monomial[0], {monomial[:1]: 1}) if monomial else UNIT
        for limb in monomial[1:]:
            product = multiply(product, known.get(limb, {(limb,): 1}))
        terms.append((factor, product))
    return combine(*terms)


class Limbs:
    """All that is known of the limbs in one case."""

    def __init__(self, address_bits: int) -> None:
        self.address_bits = address_bits
        self.ranges: list[tuple[int, int]] = []
        self.forms: dict[int, Sum] = {}  # over atoms; an atom has none
        self.apart: dict[int, Sum] = {}  # limb -> others that it was taken apart into, or the number that it is
        self.names: dict[frozenset[tuple[Monomial, Fraction | int]], int] = {}  # sums that were made a limb
        self.factors: dict[int, int] = {}  # limb -> an atom of the same value, to be multiplied
        self.pivots: dict[int, Sum] = {}  # atom -> what it equals, over atoms that are no pivots
        self.bases: dict[int, str] = {}  # atom -> the buffer that it is the address of

    def limb(self, low: int, high: int, form: Sum | None = None) -> int:
        """A new limb; an atom, if it has no form."""
        self.ranges.append((low, high))
        if form is not None:
            self.forms[len(self.ranges) - 1] = form
        return len(self.ranges) - 1

    def value(self, parts: Sum, low: int, high: int) -> Value:
        """The sum, known to lie in low..high, with what has been learnt of its limbs since it was made."""
        while parts is not (newer := substitute(parts, self.apart)):
            parts = newer
        least, most = self.interval(parts)
        low, high = max(low, ceil(least)), min(high, floor(most))
        if low > high:
            raise Impossible
        if low == high and parts.keys() - UNIT.keys():
            self.learn(combine((1, substitute(parts, self.forms)), (-low, UNIT)))
            return self.constant(low)
        return Value(parts, low, high)

    def constant(self, number: int) -> Value:
        return Value({(): number} if number else {}, number, number)

    def interval(self, form: Sum) -> tuple[Fraction | int, Fraction | int]:
        """Where a sum lies by the ranges of its limbs."""
        low: Fraction | int = 0
        high: Fraction | int = 0
        for monomial, factor in form.items():
            ends = [1]
            for limb in monomial:
                ends = [end * bound for end in ends for bound in self.ranges[limb]]
            low += factor * (min(ends) if factor > 0 else max(ends))
            high += factor * (max(ends) if factor > 0 else min(ends))
        return low, high

    def bounded(self, value: Value) -> Value:
        """The value with the best range there is: what was known, and its form with and without pivots."""
        form, low, high = substitute(value.parts, self.forms), value.low, value.high
        for view in (form, substitute(form, self.pivots)) if self.pivots else (form,):
            least, most = self.interval(view)
            low, high = max(low, ceil(least)), min(high, floor(most))
        return self.value(value.parts, low, high)

    def split(self, value: Value, bits: int) -> tuple[Value, Value]:
        """(digit, rest): value = digit + 2^bits * rest, the digit inside 0..2^bits - 1."""
        size = 1 << bits
        if value.low >> bits != value.high >> bits:
            value = self.bounded(value)
        low, high = value.low >> bits, value.high >> bits
        if low == high:  # no carry, or always the same one
            parts = combine((1, value.parts), (-low * size, UNIT))
            return self.value(parts, value.low - low * size, value.high - low * size), self.constant(low)
        digits = {monomial: int(factor) % size for monomial, factor in value.parts.items() if factor % size}
        least, most = self.interval(digits)
        if least >= 0 and most < size:  # what no factor of 2^bits goes with is the digit
            rest = combine((Fraction(1, size), value.parts), (Fraction(-1, size), digits))
            return self.value(digits, 0, size - 1), self.value(rest, low, high)
        if self.of_bits(value.parts):
            raise Fork(max(limb for monomial in value.parts for limb in monomial))
        if self.side_by_side(digits, bits):
            for monomial, factor in digits.items():
                for limb in monomial:
                    self.take_apart(limb, bits + 1 - factor.bit_length())
        else:
            value = Value({(self.name(value),): 1}, value.low, value.high)
        return self.split(self.value(value.parts, value.low, value.high), bits)

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
            digit = self.limb(0, most, combine((1, form), (-size, {(rest,): 1})))
        else:
            digit = self.limb(0, most)
            rest = self.limb(low, high, combine((Fraction(1, size), form), (Fraction(-1, size), {(digit,): 1})))
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
            self.names[key] = self.limb(value.low, value.high, substitute(value.parts, self.forms))
        return self.names[key]

    def factor(self, value: Value) -> int:
        """The value as an atom, to be multiplied."""
        limb = self.name(value)
        if limb not in self.forms:
            return limb
        if limb not in self.factors:
            self.factors[limb] = self.limb(*self.ranges[limb])
            self.pivots[self.factors[limb]] = substitute(self.forms[limb], self.pivots)
        return self.factors[limb]

    def assume(self, bit: int, number: int) -> None:
        """From here on the bit is this number.  Raises Impossible."""
        self.apart[bit] = self.constant(number).parts
        self.learn(combine((1, self.forms.get(bit, {(bit,): 1})), (-number, UNIT)))

    def learn(self, equation: Sum) -> None:
        """From here on this sum of atoms is zero; it is solved for its latest atom.  Raises Impossible."""
        equation = substitute(equation, self.pivots)
        low, high = self.interval(equation)
        multiplied = set(itertools.chain.from_iterable(monomial for monomial in equation if len(monomial) > 1))
        alone = {monomial[0] for monomial in equation if len(monomial) == 1} - multiplied
        if alone:
            pivot = max(alone)
            terms = {monomial: factor for monomial, factor in equation.items() if monomial != (pivot,)}
            self.pivots[pivot] = combine((Fraction(-1) / equation[pivot,], terms))
            self.pivots = {atom: substitute(form, self.pivots) for atom, form in self.pivots.items()}
        ends = [(self.interval(form), self.ranges[atom]) for atom, form in self.pivots.items()]
        if any(low > most or high < least for (low, high), (least, most) in [((low, high), (0, 0)), *ends]):
            raise Impossible


class Machine:
    """One case: the limbs, what every place holds, and where the walk is; the domain of `Meaning.run`."""

    def __init__(self, image: bytes, contract: Contract, core: Core, entry: int) -> None:
        self.image, self.contract, self.core, self.at = image, contract, core, entry
        isa = self.isa = contract.isa
        self.limb_bytes = isa.limb_bits // 8
        self.opaque = {isa.slots[name] for name in isa.opaque}
        self.limbs = Limbs(isa.limb_bits * isa.address_limbs)
        self.slots = [self.unknown(width) for width in isa.widths]
        self.memory: dict[Place, Value] = {}
        self.returns: dict[int, int] = {}  # where the stack ends after a call -> where its return address leads
        self.pushed: list[int] = []  # offsets in the stack that it writes
        self.touched: list[
            Place
        ] = []  # by the instruction at hand: what it reads or writes, where the stack ends, its flag
        self.trace: Trace = []
        self.assumed = False
        for (name, length), registers in zip(contract.buffers.items(), isa.abi.arguments, strict=False):
            self.point(registers, name)
            if name != "r":
                self.memory.update({(name, k): self.unknown(isa.limb_bits) for k in range(length)})
        self.stack_pointer = isa.wide.get(isa.stack_pointer, (isa.stack_pointer,))
        if isa.stack_pointer:
            self.point(self.stack_pointer, "stack")
        kept = (*isa.abi.callee_saved, *filter(None, [isa.interrupt_enable]))
        # of calls that have not returned, where a link register is: what it held, where the stack ended, the target
        self.links: list[tuple[Sum, int, int | None]] = []
        if isa.abi.link:
            self.links.append((self.slots[isa.slots[isa.abi.link]].parts, self.stack_end(), None))
        self.kept = {name: self.form(self.slots[isa.slots[name]]) for name in kept}

    def unknown(self, bits: int) -> Value:
        top = (1 << bits) - 1
        return self.limbs.value({(self.limbs.limb(0, top),): 1}, 0, top)

    def form(self, value: Value) -> Sum:
        return substitute(value.parts, self.limbs.forms)

    def point(self, registers: Sequence[str], buffer: str) -> None:
        """Let the registers hold the address of the buffer."""
        address = self.unknown(self.limbs.address_bits)
        ((base,),) = address.parts
        self.limbs.bases[base] = buffer
        self.set_wide(registers, address)

    def set_wide(self, registers: Sequence[str], value: Value) -> None:
        """Spread a value over registers, low limb first; what is above is lost."""
        for name in registers:
            self.slots[self.isa.slots[name]], value = self.limbs.split(value, self.isa.limb_bits)

    def wide(self, registers: Sequence[str]) -> Value:
        width = self.isa.limb_bits
        return self.linear([(1 << (width * k), self.read(self.isa.slots[name])) for k, name in enumerate(registers)])

    def cases(self, bit: int) -> Iterator[Machine]:
        """Two copies of the machine, one for each value of a bit, if it can have it."""
        for number in (0, 1):
            twin = copy.copy(self)
            twin.limbs, twin.assumed = copy.copy(self.limbs), True
            for owner in (twin, twin.limbs):
                for name, thing in vars(owner).items():
                    setattr(owner, name, copy.copy(thing) if isinstance(thing, dict | list) else thing)
            with contextlib.suppress(Impossible):
                twin.limbs.assume(bit, number)
                yield twin

    # ---- the domain ----

    def again(self, value: Value) -> Value:
        return self.limbs.value(value.parts, value.low, value.high)

    def read(self, slot: int) -> Value:
        return self.unknown(1) if slot in self.opaque else self.again(self.slots[slot])

    def write(self, slot: int, value: Value) -> None:
        self.slots[slot] = value

    def constant(self, value: int) -> Value:
        return self.limbs.constant(value)

    def linear(self, terms: Sequence[tuple[int, Value]]) -> Value:
        parts: list[tuple[int, Sum]] = []
        low = high = 0
        for _, group in itertools.groupby(terms, lambda term: term[1].parts):
            factors, (value, *_) = zip(*group, strict=True)
            factor = sum(factors)
            if abs(factor) > 1:
                value = self.limbs.whole(value, self.isa.limb_bits)
            ends = sorted((factor * value.low, factor * value.high))
            low, high = low + ends[0], high + ends[1]
            parts.append((factor, value.parts))
        return self.limbs.value(combine(*parts), low, high)

    def product(self, left: Value, right: Value) -> Value:
        for number, other in ((left, right), (right, left)):
            if number.low == number.high:
                return self.linear([(number.low, other)])
        low, high = left.low * right.low, left.high * right.high
        factors = tuple(sorted((self.limbs.factor(left), self.limbs.factor(right))))
        return self.limbs.value({(self.limbs.limb(low, high, {factors: 1}),): 1}, low, high)

    def digits(
        self, value: Value, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]
    ) -> Sequence[Value]:
        tops = [sign * ((1 << widths[k]) - 1) << sum(widths[:k]) for k, sign in enumerate(signs)]
        low, high = sum(top for top in tops if top < 0), sum(top for top in tops if top > 0)
        rest = self.limbs.value(value.parts, max(value.low, low), min(value.high, high))
        found = []
        for width, sign in zip(widths[:-1], signs[:-1], strict=True):
            assert sign == 1, "only the last digit may be negative"
            digit, rest = self.limbs.split(rest, width)
            found.append(digit)
        last = self.linear([(signs[-1], rest)])
        return [*found, self.limbs.value(last.parts, max(last.low, 0), min(last.high, (1 << widths[-1]) - 1))]

    def logic(self, op: str, left: Value, right: Value) -> Value:
        if left.parts == right.parts:
            return self.constant(0) if op == "^" else left
        for mask, other in ((right, left), (left, right)):
            if mask.low == mask.high:
                return self.masked(op, other, mask.low)
        for value in (left, right):
            bits = [limb for monomial in value.parts for limb in monomial]
            if all(self.limbs.ranges[limb] == (0, 1) for limb in bits):
                raise Fork(max(bits))
        return self.unknown(self.isa.limb_bits)

    def masked(self, op: str, value: Value, mask: int) -> Value:
        """Logic with a number: digit by digit, for each run of equal bits of the number."""
        terms, at = [], 0
        for bit, run in itertools.groupby(mask >> k & 1 for k in range(self.isa.limb_bits)):
            width = len(list(run))
            digit, value = self.limbs.split(value, width)
            ones = self.constant((1 << width) - 1)
            changed = {("&", 0): self.constant(0), ("|", 1): ones, ("^", 1): self.linear([(1, ones), (-1, digit)])}
            terms.append((1 << at, changed.get((op, bit), digit)))
            at += width
        return self.linear(terms)

    def zero(self, value: Value, also: Value | None) -> Value:
        if value.low > 0 or value.high < 0 or (also and also.high == 0):
            return self.constant(0)
        return self.constant(1) if value.low == value.high and (not also or also.low) else self.unknown(1)

    def place(self, address: Value) -> Place:
        """(buffer, offset) of an address, which counts bytes modulo the size of the address space."""
        modulus = 1 << self.limbs.address_bits
        form = {monomial: factor % modulus for monomial, factor in self.form(address).items() if factor % modulus}
        offset = form.pop((), 0)
        for base, buffer in self.limbs.bases.items():
            if form == {(base,): 1} and offset % self.limb_bytes == 0:
                limbs = ((int(offset) + modulus // 2) % modulus - modulus // 2) // self.limb_bytes
                self.touched.append((buffer, limbs))
                return buffer, limbs
        raise Refused("the address is not known beforehand to be in a buffer")

    def stack_end(self) -> int:
        """Where the stack ends: what lies at lower offsets may be overwritten at any time."""
        if not self.isa.stack_pointer:
            return 0
        buffer, offset = self.place(self.wide(self.stack_pointer))
        if buffer != "stack":
            raise Refused("the stack pointer has left the stack")
        return offset + self.isa.stack_free

    def load(self, address: Value) -> Value:
        place = buffer, offset = self.place(address)
        if place not in self.memory or (buffer == "stack" and offset < self.stack_end()):
            raise Refused(f"reads {buffer}[{offset}], where nothing is known to be")
        return self.again(self.memory[place])

    def store(self, address: Value, value: Value) -> None:
        place = buffer, offset = self.place(address)
        used = any(end <= offset < end + self.core.pc_limbs for end in self.returns)
        if buffer == "stack" and offset < self.isa.stack_free and not used:
            self.pushed.append(offset)
        elif buffer != "r" or not 0 <= offset < self.contract.buffers["r"]:
            raise Refused(f"writes {buffer}[{offset}]")
        self.memory[place] = value

    # ---- the walk ----

    def step(self) -> bool:
        """One instruction; False at the end."""
        if not 0 <= self.at < len(self.image):
            raise Refused("the walk leaves the code")
        instr = decode(self.isa, self.image, self.at)
        insn = instr.insn
        if insn.name in self.core.lacks or not self.isa.constant_time(insn, self.core):
            raise Refused(f"{self.core.name} has no {insn.name}, or its time depends on operands")
        self.pushed, self.touched = [], []
        instr.meaning(self.isa).run(self)
        for slot in (self.isa.slots[name] for name in insn.clobbers):
            self.slots[slot] = self.unknown(self.isa.widths[slot])
        self.forget()
        self.trace.append((self.at, self.touched))
        if len(self.trace) > 1000 + 100 * self.contract.limbs**2:  # a slow loop takes about 20 for each pair of limbs
            raise Refused("no end in sight")
        distance = next(iter(instr.immediates.values()), 0)
        following = self.flow(insn.control, self.at + insn.size, distance, instr.places(self.isa))
        self.at = following or 0
        return following is not None

    def forget(self) -> None:
        """Nothing below the stack pointer is kept."""
        try:
            end = self.stack_end()
        except Refused:
            if self.pushed:
                raise
            return  # one half of the pointer is written; until the other is, the stack cannot be used
        if any(offset < end for offset in self.pushed):
            raise Refused("writes below the stack pointer")
        self.memory = {(name, k): limb for (name, k), limb in self.memory.items() if name != "stack" or k >= end}
        self.returns = {offset: at for offset, at in self.returns.items() if offset >= end}

    def move_stack(self, limbs: int) -> None:
        moved = self.linear([(1, self.wide(self.stack_pointer)), (limbs * self.limb_bytes, self.constant(1))])
        self.set_wide(self.stack_pointer, moved)

    def flow(
        self, control: tuple[str, ...], following: int, distance: int, places: Mapping[str, tuple[int, ...]]
    ) -> int | None:
        """Where the walk goes on after a jump, branch, call or return; None at the end."""
        match control:
            case ():
                return following
            case ("jump",):
                return following + distance
            case ("branch", flag, wanted):
                value = self.read(self.isa.slots[flag])
                if value.low != value.high:
                    raise Refused(f"branches on {flag}, which is not known beforehand")
                self.touched.append((flag, value.low))
                return following + distance if value.low == int(wanted) else following
            case ("call",):
                self.enter(following)
                return following + distance
            case ("return", *register):
                return self.leave_by(self.slots[places[register[0]][0]]) if register else self.leave()
        raise Refused(f"does not know `{' '.join(control)}`")

    def enter(self, following: int) -> None:
        """A function is called: its return address goes to the link register or to the stack."""
        if self.isa.abi.link:
            link = self.unknown(self.isa.limb_bits)
            self.slots[self.isa.slots[self.isa.abi.link]] = link
            self.links.append((link.parts, self.stack_end(), following))
        else:
            self.move_stack(-self.core.pc_limbs)
            self.returns[self.stack_end()] = following

    def leave(self) -> int | None:
        """Where the return address on the stack leads, None where it is the caller's."""
        end = self.stack_end()
        if end not in self.returns:
            self.finish(end)
            return None
        self.move_stack(self.core.pc_limbs)
        return self.returns.pop(end)

    def leave_by(self, link: Value) -> int | None:
        """Where a return address out of a register leads: to the latest call, None where it is the caller's."""
        wanted, end, target = self.links.pop()
        if substitute(combine((1, self.form(link)), (-1, substitute(wanted, self.limbs.forms))), self.limbs.pivots):
            raise Refused("returns to another address than that of its call")
        if end != self.stack_end():
            raise Refused("returns with the stack pointer not where it was at the call")
        if target is None:
            self.finish(end)
        return target

    def finish(self, stack_end: int) -> None:
        """What the contract asks for at the return.  Raises Refused."""
        if stack_end != self.isa.stack_free:
            raise Refused("returns with the stack pointer moved")
        for name in (*self.kept, *self.isa.abi.zero_on_return):
            now = combine((1, self.form(self.slots[self.isa.slots[name]])), (-1, self.kept.get(name, {})))
            if substitute(now, self.limbs.pivots):
                raise Refused(f"returns with a wrong {name}")
        for place in (("r", k) for k in range(self.contract.buffers["r"])):
            if place not in self.memory:
                raise Refused(f"does not write r[{place[1]}]")
        result, *operands = (self.number(name, length) for name, length in self.contract.buffers.items())
        error = substitute(combine((1, result), (-1, multiply(operands[0], operands[-1]))), self.limbs.pivots)
        for limb in sorted(self.limbs.forms, reverse=True) if error else ():
            form = substitute(self.limbs.forms[limb], self.limbs.pivots)
            latest = max((monomial for monomial in form if len(monomial) == 1), default=())
            if not latest or latest not in error:
                continue
            times = Fraction(error[latest]) / form[latest]
            without = combine((1, error), (-times, form))
            if times % self.contract.modulus == 0:  # a carry that was dropped
                error = without
            elif without.keys() <= UNIT.keys() and self.limbs.ranges[limb] == (0, 1):  # all hangs on one bit
                raise Fork(limb)
        error = {monomial: factor for monomial, factor in error.items() if factor % self.contract.modulus}
        if error:
            raise Refused(f"the result is not the product: {len(error)} terms are left over")

    def number(self, buffer: str, length: int) -> Sum:
        """What the limbs of a buffer are as one number."""
        width = self.isa.limb_bits
        return combine(*((1 << (width * k), self.form(self.memory[buffer, k])) for k in range(length)))


def prove_forward(image: bytes, contract: Contract, core: Core, entry: int = 0) -> ForwardVerdict:
    """Whether the code at `entry` (in bytes) keeps the contract, for all operands, on that core."""
    waiting, proved = [Machine(image, contract, core, entry)], 0
    trace: Trace = []
    while waiting:
        machine = waiting.pop()
        try:
            while machine.step():
                pass
        except Fork as fork:
            waiting += machine.cases(*fork.args)
            if len(waiting) + proved > MOST_CASES:
                return ForwardVerdict(False, "too many cases", proved)
        except Impossible:
            if not machine.assumed:
                return ForwardVerdict(False, f"0x{machine.at:04x}: ranges contradict each other", proved)
        except (Refused, DecodeError) as error:
            return ForwardVerdict(False, f"0x{machine.at:04x}: {error}", proved)
        else:
            proved, trace = proved + 1, trace or machine.trace
            if machine.trace != trace:  # a branch or an address hangs on a bit that the walk forked on
                return ForwardVerdict(False, "what is executed or touched depends on the operands", proved)
    return ForwardVerdict(proved > 0, "" if proved else "no case ever occurs", proved)
