"""What an instruction does, run on any kind of value: its statements with its operands put in.

The interpreter runs them on integers, the proofs on forms: all go through `Meaning`, with a `Domain` that says what
addition, product, digits and memory mean there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .statements import CONSTANT, Count, Digit, Equation, Load, Logic, MeaningError, Statement, Store, Term, Zero

V = TypeVar("V")

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

    `complements`: digits whose name gets one minus them; `copy`: it just moves limbs, which must then keep what is
    known of each.
    """

    terms: tuple[tuple[int, tuple[str, ...]], ...]
    names: tuple[str, ...]
    widths: tuple[int, ...]
    signs: tuple[int, ...]
    slots: tuple[int, ...]
    complements: tuple[bool, ...]
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
        self.limb_bytes = max(widths) // 8
        self.single = {name: slots[0] for name, slots in places.items() if len(slots) == 1}  # where most are
        self.steps = tuple((statement, self._prepared(statement)) for statement in statements)

    def run(self, domain: Domain[Any]) -> None:
        """Execute on `domain`."""
        _Run(self, domain).all()

    def _prepared(self, statement: Statement) -> _Layout | None:
        if isinstance(statement, Equation):
            return self._layout(statement)
        if isinstance(statement, Load | Store):
            return _Layout(self._terms(statement.address), (), (), (), (), (), False)
        return None

    def _layout(self, equation: Equation) -> _Layout:
        names: list[str] = []
        widths: list[int] = []
        signs: list[int] = []
        slots: list[int] = []
        complements: list[bool] = []
        for digit in sorted(equation.digits, key=lambda digit: self._count(digit.exponent)):
            mine = self._digit_widths(digit, sum(widths))
            names += [digit.name] * len(mine)
            widths += mine
            signs += [digit.sign] * len(mine)
            slots += self._targets(digit)
            complements += [digit.complement] * len(mine)
        terms = self._terms(equation.terms)
        limbs = tuple(names), tuple(widths), tuple(signs), tuple(slots), tuple(complements)
        return _Layout(terms, *limbs, self._is_copy(equation))

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
                limbs = len(self.places[statement.out[:-1]]) if statement.out.endswith("'") else 1
                addresses = self.addresses(layout, limbs)
                self.set(statement.out, [self.domain.load(address) for address in addresses])
            elif type(statement) is Store and layout:
                values = self.limbs(statement.value)
                for address, value in zip(self.addresses(layout, len(values)), values, strict=True):
                    self.domain.store(address, value)
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
        slot = self.meaning.single.get(name)
        if slot is not None:
            return self.domain.read(slot)
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

    def addresses(self, layout: _Layout, count: int) -> list[Any]:
        """Of as many limbs, in bytes, from the one that is said on."""
        address, limb = self.sum(layout), self.meaning.limb_bytes
        return [
            self.domain.linear([(1, address), (limb * index, self.domain.constant(1))]) if index else address
            for index in range(count)
        ]

    def limbs(self, name: str) -> list[Any]:
        """The limbs of a name."""
        if name in self.local or name in self.meaning.immediates:
            return [self.value(name)]
        return self.slots(name)

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
        found = self.domain.digits(self.sum(layout), layout.widths, layout.signs, layout.slots)
        for name, slot, digit, complement in zip(layout.names, layout.slots, found, layout.complements, strict=True):
            value = self.domain.linear([(1, self.domain.constant(1)), (-1, digit)]) if complement else digit
            if slot >= 0:
                self.new[slot] = value
            elif slot == LOCAL:
                self.local[name] = value
