"""The state of a processor in the proof: registers, flags and memory hold linear forms."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from .bitwise import logic
from .bus import Bus
from .carries import BUDGET, Carries
from .contract import Contract
from .held import Call, Cell, Event, Place, Refused, Return, Split, Value, Ways, ZeroTest
from .linear import ONE, ZERO, Form, combine, substitute
from .meaning import LOCAL, LOST

if TYPE_CHECKING:
    from .lemmas import Lemma

ANY = 1 << 64  # beyond every value that a pointer's overflow can have


@dataclass
class State:
    """One case of the proof, at one instruction.

    Memory is kept by (buffer, offset in limbs); the stack is the buffer "stack", offset 0 the first limb that the
    function may push to.  `fixed` are the atoms this case has given a value.
    """

    contract: Contract
    atoms: Carries
    slots: list[Value]
    memory: dict[Place, Cell]
    bases: Mapping[int, str]
    opaque: frozenset[int]  # flags that no value is known of
    watched: frozenset[int]  # the stack pointer and the interrupt flag
    unread: Callable[[State, int], bool]  # whether a flag's new value is written again before anything reads it
    fixed: dict[int, int] = field(default_factory=dict)
    path: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    depth: int = 0  # stack pointer, in limbs from its value at entry
    lowest: int = 0
    calls: list[Call] = field(default_factory=list)  # that have not returned
    # where in the path one is, and of which function, or of the arms that were joined there
    told: list[tuple[int, Lemma | Ways]] = field(default_factory=list)
    links: tuple[tuple[int, int, int], ...] = ()  # of these, where there is a link register: its atom, depth, target
    left: dict[int, Cell | None] = field(default_factory=dict)  # on the stack below its pointer; None: unknown
    conditions: tuple[tuple[str, int], ...] = ()  # of the next instructions: a flag, and the value it must have
    quiet: bool = False  # the instruction that is being executed leaves all flags as they are
    halfway: bool = False  # the stack pointer is half written
    bus: Bus | None = None
    given: dict[Place, Form] | None = None  # limbs that a function found, where it is walked knowing nothing of them
    pushed: list[int] = field(default_factory=list)  # offsets in the stack written since its pointer was last known
    stack_touched: bool = False  # the stack or what is watched, by the instruction that is being executed

    @property
    def size(self) -> int:
        """How much a copy would hold, in instructions, events and cells."""
        return len(self.path) + len(self.events) + len(self.memory) + len(self.slots)

    def fork(self, atom: int, value: int) -> State:
        """A copy in which `atom` has `value`."""
        return State(
            self.contract,
            self.atoms,
            [substitute(slot, atom, value) if isinstance(slot, dict) else slot for slot in self.slots],
            {key: substitute(c, atom, value) if isinstance(c, dict) else c for key, c in self.memory.items()},
            self.bases,
            self.opaque,
            self.watched,
            self.unread,
            {**self.fixed, atom: value},
            list(self.path),
            list(self.events),
            self.depth,
            self.lowest,
            list(self.calls),
            list(self.told),
            self.links,
            {key: substitute(c, atom, value) if isinstance(c, dict) else c for key, c in self.left.items()},
            self.conditions,
            halfway=self.halfway,
            pushed=list(self.pushed),
            bus=copy.copy(self.bus),
            given=None if self.given is None else dict(self.given),
        )

    # ---- the domain of `Meaning.run` ------------------------------------------------------------------------

    def read(self, slot: int) -> Form | ZeroTest:
        """What the slot holds; an unknown bit, each time another one, of a flag that holds nothing known."""
        value = self.slots[slot]
        return {self.atoms.new(0, 1): 1} if value is None or slot in self.opaque else value

    def write(self, slot: int, value: Value) -> None:
        self.slots[slot] = value
        if slot in self.watched:
            self.stack_touched = True

    def constant(self, value: int) -> Form:
        return {ONE: value} if value else ZERO

    def linear(self, terms: Sequence[tuple[int, Value]]) -> Form:
        return combine([(coefficient, self.form(value)) for coefficient, value in terms])

    def form(self, value: Value) -> Form:
        """A value as a form; an unknown bit where a flag holds something that is not one."""
        return value if isinstance(value, dict) else {self.atoms.new(0, 1): 1}

    def product(self, left: Value, right: Value) -> Form:
        first, second = self.form(left), self.form(right)
        for one, other in ((first, second), (second, first)):
            if not one or one.keys() == {ONE}:
                return combine([(one.get(ONE, 0), other)])
        factors = self.factor(first), self.factor(second)
        self.atoms.unmultiplied = self.atoms.unmultiplied or len(self.atoms.low)
        return {self.atoms.product(*factors): 1}

    def factor(self, form: Form) -> int:
        """An atom equal to the form, named if need be."""
        if len(form) == 1:
            ((atom, coefficient),) = form.items()
            if coefficient == 1:
                return atom
        (atom,) = self.name(form, self.contract.isa.limb_bits)
        return atom

    def limb_top(self) -> int:
        return (1 << self.contract.isa.limb_bits) - 1

    def digits(self, value: Form, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]) -> Sequence[Form]:
        """Split into digits, lowest first, by what is provable; fresh atoms with a relation for the rest."""
        found: list[Form] = []
        rest = value
        total = sum(widths) - widths[-1]
        pointer = bool(rest) and self.atoms.is_public(rest) and self.ignored(slots[-1])
        if pointer:  # short forms for pointers; the digit above is then any integer
            rest = self.atoms.reduce(rest, self.fixed, 1 << total)
        for index, width in enumerate(widths[:-1]):
            digit = self.low_digit(rest, width, slots[-1] if index == len(widths) - 2 else LOCAL)
            if digit is None:
                if index < len(widths) - 2 and self.ends_here(rest, 1 << sum(widths[index:-1]), slots[-1]):
                    return [*found, *self.fresh(rest, widths[index:-1], signs[index:-1]), ZERO]
                found += self.fresh(rest, widths[index:], signs[index:], pointer)
                lost = widths[-1] == 1 and not pointer and self.ignored(slots[-1])
                self.atoms.dropped.update(found[-1] if lost and len(rest) > 1 else ())
                if self.atoms.signs and lost and not self.sign_extended(rest, 1 << width):
                    self.atoms.settle(found[-1], thorough=bool(self.calls), sought=True)
                return found
            found.append(digit[0])
            rest = digit[1]
        top = rest if signs[-1] > 0 else combine([(-1, rest)])
        return [*found, self.named(top, widths[-1])]

    def named(self, form: Form, width: int) -> Form:
        """The form, or an atom equal to it where its atoms' ranges say less than that it has `width` bits."""
        low, high = self.atoms.range(form)
        limit = (1 << width) - 1
        if (low >= 0 and high <= limit) or width == 0:
            return form
        return self.name(form, width)

    def name(self, form: Form, width: int) -> Form:
        """A new atom of `width` bits that is equal to the form."""
        low, high = self.atoms.range(form)
        atom = self.atoms.new(max(low, 0), min(high, (1 << width) - 1), self.atoms.is_public(form))
        self.atoms.define((atom,), (1,), form)
        return {atom: 1}

    def low_digit(self, form: Form, width: int, above: int) -> tuple[Form, Form] | None:
        """(form mod 2^width, form >> width), if both are forms; the second one goes to the slot `above`."""
        size = 1 << width
        low, high = self.atoms.range(form)
        if low >= 0 and high < size:
            return form, ZERO
        candidates = [form]
        if width < self.contract.isa.limb_bits:  # a single bit: what the limb was made of may show it
            candidates.append(self.atoms.once(form))
        for candidate in candidates:
            lower = {atom: c % size for atom, c in candidate.items() if c % size}
            if lower == form:
                continue
            low, high = self.atoms.range(lower)
            if low >= 0 and high < size:
                return lower, self.shifted(candidate, lower, width)
        bits = [atom for atom in form if atom != ONE]
        if all(map(self.atoms.is_bit, bits)):
            return self.of_bits(form, bits, width, above)
        return (self.name(form, width), ZERO) if self.ends_here(form, size, above) else None

    def of_bits(self, form: Form, bits: Sequence[int], width: int, above: int) -> tuple[Form, Form] | None:
        """The same for a sum of bits; of too many of them each value is a case of its own, if the carry is dropped."""
        size = 1 << width
        if len(bits) > 1 and not self.ignored(above):
            return None  # the code looks at both digits, and their relation says enough
        bounded = len(bits) > 1 and self.atoms.bounded(form, 0, size - 1, self.fixed)
        if bounded or self.ends_here(form, size, above):
            return self.name(form, width), ZERO
        if len(bits) > 1:
            raise Split(bits[0])
        return self.one_bit(form, bits[0], size)

    def ends_here(self, form: Form, size: int, above: int) -> bool:
        """Whether the code drops what goes to the slot `above`, and it can be shown that this is nothing."""
        if not self.ignored(above) or self.atoms.is_public(form) or self.sign_extended(form, size):
            return False
        return self.atoms.within(form, 0, size - 1, self.fixed, self.atoms.small if self.atoms.signs else BUDGET)

    def sign_extended(self, form: Form, size: int) -> bool:
        """Whether a mask is added: the carry then has the sign's value, and is no carry that cannot be."""
        return any(coefficient == size - 1 and self.atoms.is_bit(atom) for atom, coefficient in form.items())

    def ignored(self, slot: int) -> bool:
        """Whether the code drops what it puts into `slot`."""
        if slot == LOST or slot < 0:
            return slot == LOST
        return self.contract.isa.widths[slot] == 1 and (self.quiet or self.unread(self, slot))

    def choose(self, condition: Form, before: Sequence[Value]) -> None:
        """Let each register hold what it held before, unless the condition, a bit or the complement of one, is one."""
        bits = [atom for atom in condition if atom != ONE]
        straight = condition != {ONE: 1, **dict.fromkeys(bits, -1)} or len(bits) > 1 or not self.atoms.is_bit(bits[0])
        bit = self.factor(condition) if straight else bits[0]
        for slot, (now, then) in enumerate(zip(self.slots, before, strict=True)):
            if now is not then:
                old, new = self.form(then), self.form(now)
                base, other = (old, new) if straight else (new, old)
                change = self.atoms.times(combine([(1, other), (-1, base)]), bit)
                self.slots[slot] = self.named(combine([(1, base), (1, change)]), self.contract.isa.widths[slot])

    def shifted(self, form: Form, lower: Form, width: int) -> Form:
        return {atom: c >> width for atom, c in combine([(1, form), (-1, lower)]).items()}

    def one_bit(self, form: Form, bit: int, size: int) -> tuple[Form, Form]:
        """A form in one bit takes two values; each digit of it is linear in the bit."""
        zero = form.get(ONE, 0)
        one = zero + form[bit]

        def line(at_zero: int, at_one: int) -> Form:
            return {atom: c for atom, c in ((ONE, at_zero), (bit, at_one - at_zero)) if c}

        return line(zero % size, one % size), line(zero // size, one // size)

    def fresh(self, form: Form, widths: Sequence[int], signs: Sequence[int], open_top: bool = False) -> list[Form]:
        """New atoms for the digits of a form; `open_top`: the highest one may be any integer."""
        public = self.atoms.is_public(form)
        high = self.atoms.range(form)[1]
        if len(widths) > 1 and signs[-1] > 0 and high >> sum(widths[:-1]) <= 0 and not open_top:
            return [*self.fresh(form, widths[:-1], signs[:-1]), ZERO]  # a highest digit that is always zero
        atoms: list[int] = []
        weights: list[int] = []
        below = 0
        for width, sign in zip(widths, signs, strict=True):
            limit = (1 << width) - 1
            if len(atoms) == len(widths) - 1 and sign > 0:
                limit = min(limit, max(high, 0) >> below)
            atoms.append(self.atoms.new(0, limit, public))
            weights.append(sign << below)
            below += width
        if open_top:
            self.atoms.low[atoms[-1]], self.atoms.high[atoms[-1]] = -ANY, ANY
        if widths[0] >= 4 and self.square_of(form):  # an odd square is 1 mod 8, an even one 4 times a square
            self.atoms.high[atoms[0]] = (1 << widths[0]) - 7
        self.atoms.define(atoms, weights, form)
        if len(form) == 1:
            self.refine(form, dict(zip(atoms, weights, strict=True)))
        return [{atom: 1} for atom in atoms]

    def refine(self, form: Form, digits: Form) -> None:
        """An atom was taken apart (BST): let every register that holds it know its digits.

        So too a product, if a register can hold it: bounds, though, know it best as a product.
        """
        ((whole, coefficient),) = form.items()
        product = whole in self.atoms.factors
        if coefficient != 1 or (product and self.atoms.high[whole] > self.limb_top()):
            return

        def refined(value: Value | Cell) -> Value | Cell:
            if not isinstance(value, dict) or whole not in value:
                return value
            rest = {atom: c for atom, c in value.items() if atom != whole}
            return combine([(1, rest), (value[whole], digits)])

        if not product:
            self.atoms.parts[whole] = digits
        self.slots = [cast(Value, refined(slot)) for slot in self.slots]
        self.memory = {key: cast(Cell, refined(cell)) for key, cell in self.memory.items()}

    def square_of(self, form: Form) -> bool:
        """Whether the form is the square of one atom."""
        if len(form) != 1:
            return False
        ((atom, coefficient),) = form.items()
        factors = self.atoms.factors.get(atom, ())
        return coefficient == 1 and len(factors) == 2 and factors[0] == factors[1]

    def logic(self, op: str, left: Value, right: Value) -> Form:
        return logic(self, op, self.form(left), self.form(right))

    def zero(self, value: Value, also: Value) -> ZeroTest:
        """Whether value is zero, and the flag `also`, where given, one."""
        if also is None:
            return ZeroTest((self.form(value),))
        before = also.forms if isinstance(also, ZeroTest) else (combine([(1, {ONE: 1}), (-1, also)]),)
        return ZeroTest((*before, self.form(value)))

    def load(self, address: Form) -> Value:
        if self.bus and address.keys() <= {ONE}:
            return cast(Value, self.bus.load(address.get(ONE, 0), self))
        return self.fetch(*self.locate(address))

    def fetch(self, buffer: str, offset: int) -> Value:
        """Read a limb that there is in a buffer.  Raises Refused."""
        if buffer == "stack":
            if offset <= self.depth - self.below():
                raise Refused("reads below the stack pointer, where an interrupt may have written")
            if offset > -self.below():
                raise Refused("reads the caller's stack")
        self.events.append(Event(self.atoms.here, "read", buffer, offset))
        cell = self.cell((buffer, offset))
        if isinstance(cell, Return):
            raise Refused("reads a return address as data")
        return {self.atoms.new(0, self.limb_top()): 1} if cell is None else cell

    def cell(self, place: Place) -> Cell | None:
        """What is in memory, None where nothing was written; where all is unknown, an unknown limb."""
        if place[0] != "stack":
            self.atoms.before = self.atoms.before or len(self.atoms.low)
        if self.given is not None and place not in self.memory and place[0] != "stack":
            self.memory[place] = self.given[place] = {self.atoms.new(0, self.limb_top()): 1}
        return self.memory.get(place)

    def store(self, address: Form, value: Value) -> None:
        if self.bus and address.keys() <= {ONE}:
            self.bus.store(address.get(ONE, 0), self.form(value), self)
            return
        buffer, offset = self.locate(address)
        if buffer == "stack":
            if offset > -self.below():
                raise Refused("writes to the caller's stack")
            if isinstance(self.memory.get((buffer, offset)), Return):
                raise Refused("overwrites a return address")
            self.stack_touched = True
            self.pushed.append(offset)
        elif buffer != "r" and self.given is None:
            raise Refused(f"writes to operand {buffer}")
        self.events.append(Event(self.atoms.here, "write", buffer, offset))
        self.memory[buffer, offset] = self.form(value)

    # ---- addresses and the stack --------------------------------------------------------------------------------

    def locate(self, address: Form) -> tuple[str, int]:
        """(buffer, offset in limbs) of an address.  Raises Refused."""
        found = self.resolve(address)
        if found is None:
            if not self.atoms.is_public(address):
                raise Refused("the address depends on a secret")
            raise Refused("the address is not a buffer's start plus a constant")
        buffer, distance = found
        size = self.contract.isa.limb_bits // 8
        offset = distance // size
        if distance % size or self.outside(buffer, offset):
            raise Refused(f"{buffer}[{offset}] is outside the buffer of {self.contract.buffers.get(buffer)} limbs")
        return buffer, offset

    def outside(self, buffer: str, offset: int) -> bool:
        """Whether a buffer of the contract has no limb there."""
        length = self.contract.buffers.get(buffer)
        return length is not None and not 0 <= offset < length

    def resolve(self, address: Form) -> tuple[str, int] | None:
        """(buffer, distance in bytes) if the address is that sum for every placing of the buffers."""
        bits = self.contract.isa.address_limbs * self.contract.isa.limb_bits
        form = self.atoms.reduce(address, self.fixed, 1 << bits)
        bases = [atom for atom in form if atom != ONE]
        if len(bases) != 1 or bases[0] not in self.bases or form[bases[0]] != 1:
            return None
        distance = form.get(ONE, 0)
        return self.bases[bases[0]], distance - (1 << bits) if distance >> (bits - 1) else distance

    def joined(self, registers: Sequence[str]) -> Form:
        """The number that some registers hold together, low limb first."""
        isa = self.contract.isa
        return self.linear(
            [(1 << (at * isa.limb_bits), self.slots[isa.slots[name]]) for at, name in enumerate(registers)]
        )

    def point(self, registers: Sequence[str], address: Form) -> None:
        """Let some registers hold an address, but for what runs over."""
        count, isa = len(registers), self.contract.isa
        limbs = self.digits(address, [isa.limb_bits] * count + [1], [1] * (count + 1), [0] * count + [LOST])
        for name, limb in zip(registers, limbs, strict=False):
            self.slots[isa.slots[name]] = limb

    def below(self) -> int:
        """1 if the stack pointer points at the last limb pushed, 0 if at the first free one."""
        return 0 if self.contract.isa.stack_free else 1

    def stack_pointer(self) -> int | None:
        """Its distance in limbs from its value at entry; None while it is half written, or between two limbs."""
        isa, size = self.contract.isa, self.contract.isa.limb_bits // 8
        found = self.resolve(self.joined(isa.stack_registers))
        return None if found is None or found[0] != "stack" or found[1] % size else found[1] // size

    def move_stack(self, depth: int) -> None:
        """The stack pointer has a new place: what lies below it is lost to interrupts."""
        if depth > self.depth:
            end = depth - self.below() + 1
            gone: Iterable[int] = range(self.depth - self.below() + 1, end)
            if depth - self.depth > len(self.memory):
                gone = [offset for buffer, offset in self.memory if buffer == "stack"]
            for offset in (*gone, *self.pushed):
                if offset < end:
                    limb = self.memory.pop(("stack", offset), None)
                    if limb is not None:
                        self.left[offset] = limb
        self.depth = depth
        self.lowest = min(self.lowest, depth)
