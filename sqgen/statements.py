"""The statements of the `meaning` lines of an instruction table, and their parser.

    d' + 2^8*C' = d + r + C      an integer equation; the new values are the digits of the right side
    d' = d ^ r                   bitwise, also & and |
    d' = [Y + q]   [SP] = r      one limb from or to memory, or as many as the name has, at ascending addresses
    ZF' = zero(d') & ZF          a flag that says whether a value is zero

A primed name is the value after the instruction, an unprimed one the value before it, `_` a digit that is lost, `x:4` a
local of that many bits, `~C'` a bit of which the name has the complement (a carry that is one where nothing is
borrowed), `count(l)` the number of registers in a list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    """One unknown of an equation: sign * 2^exponent * name, of `width` bits (None: the name's own width); of a
    `complement` the name gets 1 - digit."""

    name: str
    sign: int
    exponent: Count
    width: Count | None
    complement: bool = False


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
    """out = the limb at the address, or the limbs from there on."""

    out: str
    address: tuple[Term, ...]


@dataclass(frozen=True)
class Store:
    """The limb at the address, or the limbs from there on, = value."""

    address: tuple[Term, ...]
    value: str


@dataclass(frozen=True)
class Zero:
    """out = 1 if `of` is zero (and the flag `also` was 1, where given)."""

    out: str
    of: str
    also: str | None


Statement = Equation | Logic | Load | Store | Zero

_TOKEN = re.compile(r"\s*(\d+|[A-Za-z_][A-Za-z0-9_]*'?|[-+*^()=:&|~\[\]])")


def count_of(name: str) -> str:
    """How the number of registers in a list is called."""
    return f"count({name})"


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
            elif token == "count":
                self.take("(")
                names.append(count_of(self.take()))
                self.take(")")
            elif token == "~":
                names.append(f"~{self.take()}")
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
            name, sign = term.names[0], 1 if term.factor > 0 else -1
            digits.append(Digit(name.removeprefix("~"), sign, exponent, width, name.startswith("~")))
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
