"""The `meaning` lines of an instruction table: parsed once, executed on any kind of value.

A meaning is a list of statements over *slots* (limb registers and flags), immediates and local names:

    d' + 2^8*C' = d + r + C      an integer equation; the new values are the digits of the right side
    d' = d ^ r                   bitwise, also & and |
    d' = [Y + q]   [SP] = r      one limb from or to memory
    ZF' = zero(d') & ZF          a flag that says whether a value is zero

A primed name is the value after the instruction, an unprimed one the value before it, `_` a digit that is lost,
`x:4` a local of that many bits.  The interpreter runs these lines on integers, the proof on linear forms: both go
through `Meaning`, with a `Domain` that says what addition, product, digits and memory mean there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

V = TypeVar("V")

# A linear expression over immediates, such as b + 1: (constant, ((name, factor), ...)).
Count = tuple[int, tuple[tuple[str, int], ...]]
CONSTANT: Count = (0, ())


@dataclass(frozen=True)
class Term:
    """factor * 2^exponent * names[0] * names[1]; no names for a constant."""

    factor: int
    exponent: Count
    names: tuple[str, ...]


@dataclass(frozen=True)
class Digit:
    """One unknown of an equation: sign * 2^exponent * name, of `width` bits (None: the name's own width)."""

    name: str
    sign: int
    exponent: Count
    width: Count | None


@dataclass(frozen=True)
class Equation:
    """sum of digits = sum of terms; the digits tile the bits from 0 up without gaps."""

    digits: tuple[Digit, ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Logic:
    """out = left op right, bit by bit; op is one of ^ & |."""

    out: str
    op: str
    left: str
    right: str


@dataclass(frozen=True)
class Load:
    """out = the limb at the address."""

    out: str
    address: tuple[Term, ...]


@dataclass(frozen=True)
class Store:
    """The limb at the address = value."""

    address: tuple[Term, ...]
    value: str


@dataclass(frozen=True)
class Zero:
    """out = 1 if `of` is zero (and the flag `also` was 1, where given)."""

    out: str
    of: str
    also: str | None


Statement = Equation | Logic | Load | Store | Zero

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_][A-Za-z0-9_]*'?|[-+*^()=:&|\[\]])")


class MeaningError(ValueError):
    """A meaning line of a table that cannot be read; a fault of the table, not of the user."""


class _Parser:
    """Recursive descent over one line."""

    def __init__(self, line: str) -> None:
        self.line = line
        self.tokens: list[str] = []
        position = 0
        text = line.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if not match:
                raise MeaningError(f"cannot read {text[position:]!r} in meaning {line!r}")
            self.tokens.append(match.group(1))
            position = match.end()
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.peek()
        if not token or (wanted and token != wanted):
            raise MeaningError(f"expected {wanted or 'more'} after {self.tokens[: self.at]} in meaning {self.line!r}")
        self.at += 1
        return token

    def count(self) -> Count:
        """A sum of numbers and names, without parentheses of its own."""
        constant, names, sign = 0, [], 1
        while True:
            token = self.take()
            if token.isdigit():
                constant += sign * int(token)
            else:
                names.append((token, sign))
            if self.peek() not in ("+", "-"):
                return constant, tuple(names)
            sign = 1 if self.take() == "+" else -1

    def exponent(self) -> Count:
        """A number, a name, or a sum in parentheses (as in `2^(b+1)` and `y:(7-b)`)."""
        if self.peek() == "(":
            self.take("(")
            count = self.count()
            self.take(")")
            return count
        token = self.take()
        return (int(token), ()) if token.isdigit() else (0, ((token, 1),))

    def term(self, sign: int) -> Term:
        factor, exponent, names = sign, CONSTANT, []
        while True:
            token = self.take()
            if token == "2" and self.peek() == "^":
                self.take("^")
                exponent = self.exponent()
            elif token.isdigit():
                factor *= int(token)
            else:
                names.append(token)
            if self.peek() != "*":
                return Term(factor, exponent, tuple(names))
            self.take("*")

    def sum(self) -> tuple[Term, ...]:
        terms = [self.term(1)]
        while self.peek() in ("+", "-"):
            terms.append(self.term(1 if self.take() == "+" else -1))
        return tuple(terms)

    def digits(self) -> tuple[Digit, ...]:
        digits, sign = [], 1
        while True:
            term = self.term(sign)
            if len(term.names) != 1 or abs(term.factor) & (abs(term.factor) - 1):
                raise MeaningError(f"an unknown is a name times a power of two, in meaning {self.line!r}")
            shift = abs(term.factor).bit_length() - 1
            width = None
            if self.peek() == ":":
                self.take(":")
                width = self.exponent()
            exponent = (term.exponent[0] + shift, term.exponent[1])
            digits.append(Digit(term.names[0], 1 if term.factor > 0 else -1, exponent, width))
            if self.peek() not in ("+", "-"):
                return tuple(digits)
            sign = 1 if self.take() == "+" else -1

    def address(self) -> tuple[Term, ...]:
        self.take("[")
        terms = self.sum()
        self.take("]")
        return terms

    def statement(self) -> Statement:
        if self.peek() == "[":
            address = self.address()
            self.take("=")
            return Store(address, self.take())
        digits = self.digits()
        self.take("=")
        out = digits[0].name
        if self.peek() == "[":
            return Load(out, self.address())
        if self.peek() == "zero":
            self.take("zero")
            self.take("(")
            of = self.take()
            self.take(")")
            also = self.take() if self.peek() == "&" and self.take("&") else None
            return Zero(out, of, also)
        terms = self.sum()
        if self.peek() in ("^", "&", "|"):
            return Logic(out, self.take(), terms[0].names[0], self.take())
        return Equation(digits, terms)


def parse(line: str) -> Statement:
    """Read one meaning line.  Raises MeaningError."""
    parser = _Parser(line)
    statement = parser.statement()
    if parser.peek():
        raise MeaningError(f"left over: {parser.tokens[parser.at :]} in meaning {line!r}")
    return statement


LOST, LOCAL = -1, -2  # where a digit goes that has no slot


class Domain(Protocol[V]):
    """What `Meaning.run` needs to know of a kind of value.

    `digits` splits a value into digits of the given widths and signs, lowest first; `slots` says where each goes.
    """

    def read(self, slot: int) -> V: ...
    def write(self, slot: int, value: V) -> None: ...
    def constant(self, value: int) -> V: ...
    def linear(self, terms: Sequence[tuple[int, V]]) -> V: ...
    def product(self, left: V, right: V) -> V: ...
    def digits(self, value: V, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]) -> Sequence[V]: ...
    def logic(self, op: str, left: V, right: V) -> V: ...
    def load(self, address: V) -> V: ...
    def store(self, address: V, value: V) -> None: ...
    def zero(self, value: V, also: V | None) -> V: ...


@dataclass(frozen=True)
class _Layout:
    """An equation with places and immediates put in: terms as (coefficient, names), digits lowest first, one each limb.

    `copy`: it just moves limbs, which must then keep what is known of each.
    """

    terms: tuple[tuple[int, tuple[str, ...]], ...]
    names: tuple[str, ...]
    widths: tuple[int, ...]
    signs: tuple[int, ...]
    slots: tuple[int, ...]
    copy: bool


class Meaning:
    """The statements of one instruction, with its operands: what can be run on any domain.

    `places` maps names to slots (low limb first), `widths` slots to bits.  Every slot is written after all statements
    were read, so an instruction may name one register twice.
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        places: Mapping[str, tuple[int, ...]],
        immediates: Mapping[str, int],
        widths: Sequence[int],
    ) -> None:
        self.places, self.immediates, self.widths = places, immediates, widths
        self.steps = tuple((statement, self._prepared(statement)) for statement in statements)

    def run(self, domain: Domain[Any]) -> None:
        """Execute on `domain`."""
        _Run(self, domain).all()

    def _prepared(self, statement: Statement) -> _Layout | None:
        if isinstance(statement, Equation):
            return self._layout(statement)
        if isinstance(statement, Load | Store):
            return _Layout(self._terms(statement.address), (), (), (), (), False)
        return None

    def _layout(self, equation: Equation) -> _Layout:
        names: list[str] = []
        widths: list[int] = []
        signs: list[int] = []
        slots: list[int] = []
        for digit in sorted(equation.digits, key=lambda digit: self._count(digit.exponent)):
            mine = self._digit_widths(digit, sum(widths))
            names += [digit.name] * len(mine)
            widths += mine
            signs += [digit.sign] * len(mine)
            slots += self._targets(digit)
        terms = self._terms(equation.terms)
        return _Layout(terms, tuple(names), tuple(widths), tuple(signs), tuple(slots), self._is_copy(equation))

    def _terms(self, terms: tuple[Term, ...]) -> tuple[tuple[int, tuple[str, ...]], ...]:
        return tuple((term.factor << self._count(term.exponent), term.names) for term in terms)

    def _count(self, count: Count) -> int:
        constant, names = count
        return constant + sum(factor * self.immediates[name] for name, factor in names)

    def _targets(self, digit: Digit) -> Sequence[int]:
        """Slots that a digit's limbs go to."""
        if digit.name.endswith("'"):
            return self.places[digit.name[:-1]]
        return (LOST,) if digit.name == "_" else (LOCAL,)

    def _is_copy(self, equation: Equation) -> bool:
        if len(equation.digits) != 1 or len(equation.terms) != 1:
            return False
        term, name = equation.terms[0], equation.digits[0].name
        if term.factor != 1 or term.exponent != CONSTANT or len(term.names) != 1 or not name.endswith("'"):
            return False
        source = self.places.get(term.names[0])
        target = self.places[name[:-1]]
        return source is not None and [self.widths[s] for s in source] == [self.widths[t] for t in target]

    def _digit_widths(self, digit: Digit, below: int) -> list[int]:
        """Widths of a digit's limbs in bits, low first; `below` bits lie under it."""
        if self._count(digit.exponent) != below:
            raise MeaningError(f"digit {digit.name} does not follow the digits below it")
        if digit.width is not None:
            return [self._count(digit.width)]
        if digit.name == "_":
            return [1]
        return [self.widths[slot] for slot in self.places[digit.name[:-1]]]


class _Run:
    """One execution: the new values by slot, and the locals by name."""

    def __init__(self, meaning: Meaning, domain: Domain[Any]) -> None:
        self.meaning, self.domain = meaning, domain
        self.places = meaning.places
        self.new: dict[int, Any] = {}
        self.local: dict[str, Any] = {}

    def all(self) -> None:
        for statement, layout in self.meaning.steps:
            if type(statement) is Equation and layout:
                self.equation(layout)
            elif type(statement) is Load and layout:
                self.set(statement.out, [self.domain.load(self.sum(layout))])
            elif type(statement) is Store and layout:
                self.domain.store(self.sum(layout), self.value(statement.value))
            elif type(statement) is Logic:
                left, right = self.value(statement.left), self.value(statement.right)
                self.set(statement.out, [self.domain.logic(statement.op, left, right)])
            elif type(statement) is Zero:
                also = self.value(statement.also) if statement.also else None
                self.set(statement.out, [self.domain.zero(self.value(statement.of), also)])
        for slot, value in self.new.items():
            self.domain.write(slot, value)

    def slots(self, name: str) -> list[Any]:
        """The values of a place, limb by limb."""
        if name.endswith("'"):
            return [self.new[slot] for slot in self.places[name[:-1]]]
        return [self.domain.read(slot) for slot in self.places[name]]

    def value(self, name: str) -> Any:
        if name in self.local:
            return self.local[name]
        if name in self.meaning.immediates:
            return self.domain.constant(self.meaning.immediates[name])
        slots = self.slots(name)
        if len(slots) == 1:
            return slots[0]
        limb = self.meaning.widths[self.places[name.rstrip("'")][0]]
        return self.domain.linear([(1 << (limb * index), value) for index, value in enumerate(slots)])

    def sum(self, layout: _Layout) -> Any:
        parts = []
        for coefficient, names in layout.terms:
            if not names:
                parts.append((coefficient, self.domain.constant(1)))
            elif len(names) == 1:
                parts.append((coefficient, self.value(names[0])))
            else:
                parts.append((coefficient, self.domain.product(self.value(names[0]), self.value(names[1]))))
        return parts[0][1] if len(parts) == 1 and parts[0][0] == 1 else self.domain.linear(parts)

    def set(self, name: str, values: Sequence[Any]) -> None:
        """Give the primed place, local or lost digit `name` its new values, limb by limb."""
        if name.endswith("'"):
            self.new.update(zip(self.places[name[:-1]], values, strict=True))
        elif name != "_":
            (self.local[name],) = values

    def equation(self, layout: _Layout) -> None:
        if layout.copy:
            self.set(layout.names[0], self.slots(layout.terms[0][1][0]))
            return
        values = self.domain.digits(self.sum(layout), layout.widths, layout.signs, layout.slots)
        for name, slot, value in zip(layout.names, layout.slots, values, strict=True):
            if slot >= 0:
                self.new[slot] = value
            elif slot == LOCAL:
                self.local[name] = value
