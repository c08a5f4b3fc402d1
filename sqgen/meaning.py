"""What an instruction does, run on any kind of value: its statements with its operands put in.

The interpreter runs them on integers, the proofs on forms: all go through `Meaning`, with a `Domain` that says what
addition, product, digits and memory mean there.  An instruction is run far more often than it is met, so what can be
known of its statements before is: where each name is read, and where each digit goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .statements import CONSTANT, Count, Digit, Equation, Load, Logic, MeaningError, Statement, Store, Term, Zero

V = TypeVar("V")
New = dict[int, Any]  # what one execution has found so far, by slot or by a local's number

LOST, LOCAL = -1, -2  # where a digit goes that has no slot; of several locals the others have the numbers below


class Domain(Protocol[V]):
    """What `Meaning.run` needs to know of a kind of value.

    `digits` splits a value into digits of the given widths and signs, lowest first; `slots` says where each goes: to a
    slot, nowhere (`LOST`), or to a local (from `LOCAL` downwards).
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


class Meaning:
    """The statements of one instruction, with its operands: what can be run on any domain.

    `places` maps names to slots (low limb first), `widths` slots to bits.  Every slot is written after all statements
    were read, so an instruction may name one register twice.  Raises MeaningError for digits that do not fit together,
    KeyError for a name that stands for nothing.
    """

    def __init__(
        self,
        statements: Sequence[Statement],
        places: Mapping[str, tuple[int, ...]],
        immediates: Mapping[str, int],
        widths: Sequence[int],
    ) -> None:
        names = _Names(places, immediates, widths)
        self.acts = [_ACTS[type(statement)](statement, names) for statement in statements]
        self.written = tuple(dict.fromkeys(slot for act in self.acts for slot in act.targets if slot >= 0))

    def run(self, domain: Domain[Any]) -> None:
        """Execute on `domain`."""
        new: New = {}
        for act in self.acts:
            act.run(domain, new)
        for slot in self.written:
            domain.write(slot, new[slot])


# ---- names ------------------------------------------------------------------------------------------------------


class _Source(Protocol):
    """Where a value is read."""

    def read(self, domain: Domain[Any], new: New) -> Any: ...


@dataclass(frozen=True)
class _Held(_Source):
    """A slot, as it was before the instruction."""

    slot: int

    def read(self, domain: Domain[Any], new: New) -> Any:
        return domain.read(self.slot)


@dataclass(frozen=True)
class _Found(_Source):
    """A slot's new value, or a local."""

    number: int

    def read(self, domain: Domain[Any], new: New) -> Any:
        return new[self.number]


@dataclass(frozen=True)
class _Constant(_Source):
    value: int

    def read(self, domain: Domain[Any], new: New) -> Any:
        return domain.constant(self.value)


@dataclass(frozen=True)
class _Product(_Source):
    left: _Sum
    right: _Sum

    def read(self, domain: Domain[Any], new: New) -> Any:
        return domain.product(self.left.read(domain, new), self.right.read(domain, new))


class _Sum(_Source):
    """sum(coefficient * source); most are of slots alone."""

    def __init__(self, terms: Sequence[tuple[int, _Source]]) -> None:
        self.terms = tuple(terms)
        held = [(factor, source.slot) for factor, source in self.terms if isinstance(source, _Held)]
        self.held = held if len(held) == len(self.terms) else None
        self.alone = self.terms[0][1] if len(self.terms) == 1 and self.terms[0][0] == 1 else None

    def read(self, domain: Domain[Any], new: New) -> Any:
        if self.alone:
            return self.alone.read(domain, new)
        if self.held:
            read = domain.read
            return domain.linear([(factor, read(slot)) for factor, slot in self.held])
        return domain.linear([(factor, source.read(domain, new)) for factor, source in self.terms])


class _Names:
    """What the names in the statements of an instruction stand for."""

    def __init__(
        self, places: Mapping[str, tuple[int, ...]], immediates: Mapping[str, int], widths: Sequence[int]
    ) -> None:
        self.places, self.immediates, self.widths = places, immediates, widths
        self.limb = max(widths)  # in bits
        self.locals: dict[str, int] = {}

    def limbs(self, name: str) -> list[_Source]:
        """Where the limbs of a name are read, the low one first."""
        if name.endswith("'"):
            return [_Found(slot) for slot in self.places[name[:-1]]]
        if len(self.places.get(name, ())) != 1:
            if name in self.locals:
                return [_Found(self.locals[name])]
            if name in self.immediates:
                return [_Constant(self.immediates[name])]
        return [_Held(slot) for slot in self.places[name]]

    def value(self, name: str) -> list[tuple[int, _Source]]:
        """A name's value as terms of a sum."""
        limbs = self.limbs(name)
        width = self.widths[self.places[name.rstrip("'")][0]] if len(limbs) > 1 else 0
        return [(1 << (width * index), limb) for index, limb in enumerate(limbs)]

    def sum(self, terms: Sequence[Term], beyond: int = 0) -> _Sum:
        """The sum of terms, and of so much more."""
        found: list[tuple[int, _Source]] = []
        for term in terms:
            factor = term.factor << self.count(term.exponent)
            if not term.names:
                found.append((factor, _Constant(1)))
            elif len(term.names) == 1:
                found += [(factor * weight, source) for weight, source in self.value(term.names[0])]
            else:
                left, right = (_Sum(self.value(name)) for name in term.names)
                found.append((factor, _Product(left, right)))
        return _Sum([*found, *([(beyond, _Constant(1))] if beyond else [])])

    def addresses(self, terms: Sequence[Term], limbs: int) -> list[_Sum]:
        """Of as many limbs, in bytes, from the one that is said on."""
        return [self.sum(terms, index * (self.limb // 8)) for index in range(limbs)]

    def targets(self, name: str) -> tuple[int, ...]:
        """Where what is given to a primed place, a local, or nothing goes, limb by limb."""
        if name.endswith("'"):
            return self.places[name[:-1]]
        return (LOST if name == "_" else self.locals.setdefault(name, LOCAL - len(self.locals)),)

    def count(self, count: Count) -> int:
        constant, names = count
        return constant + sum(factor * self.immediates[name] for name, factor in names)


# ---- statements -------------------------------------------------------------------------------------------------


class _Act(Protocol):
    """A statement, ready to run; `targets`: slots and locals that it gives a value."""

    targets: tuple[int, ...]

    def run(self, domain: Domain[Any], new: New) -> None: ...


class _Copy(_Act):
    """An equation that just moves limbs, which must then keep what is known of each."""

    def __init__(self, equation: Equation, names: _Names) -> None:
        self.limbs = names.limbs(equation.terms[0].names[0])
        self.targets = names.targets(equation.digits[0].name)

    def run(self, domain: Domain[Any], new: New) -> None:
        for slot, limb in zip(self.targets, self.limbs, strict=True):
            new[slot] = limb.read(domain, new)


class _Split(_Act):
    """Any other equation: its sum is split into digits, the lowest first; `complements`: where one minus a digit
    goes."""

    def __init__(self, equation: Equation, names: _Names) -> None:
        self.sum = names.sum(equation.terms)
        widths: list[int] = []
        signs: list[int] = []
        targets: list[int] = []
        complements: list[int] = []
        for digit in sorted(equation.digits, key=lambda digit: names.count(digit.exponent)):
            mine = _widths(digit, sum(widths), names)
            its = names.targets(digit.name)
            widths += mine
            signs += [digit.sign] * len(mine)
            targets += its
            complements += its if digit.complement else ()
        self.widths, self.signs, self.targets = tuple(widths), tuple(signs), tuple(targets)
        self.complements = tuple(complements)

    def run(self, domain: Domain[Any], new: New) -> None:
        found = domain.digits(self.sum.read(domain, new), self.widths, self.signs, self.targets)
        new.update(zip(self.targets, found, strict=True))
        for target in self.complements:
            new[target] = domain.linear([(1, domain.constant(1)), (-1, new[target])])


class _Loaded(_Act):
    def __init__(self, load: Load, names: _Names) -> None:
        self.targets = names.targets(load.out)
        self.addresses = names.addresses(load.address, len(self.targets))

    def run(self, domain: Domain[Any], new: New) -> None:
        for target, address in zip(self.targets, self.addresses, strict=True):
            new[target] = domain.load(address.read(domain, new))


class _Stored(_Act):
    targets: tuple[int, ...] = ()

    def __init__(self, store: Store, names: _Names) -> None:
        self.limbs = names.limbs(store.value)
        self.addresses = names.addresses(store.address, len(self.limbs))

    def run(self, domain: Domain[Any], new: New) -> None:
        for limb, address in zip(self.limbs, self.addresses, strict=True):
            domain.store(address.read(domain, new), limb.read(domain, new))


class _Bitwise(_Act):
    def __init__(self, logic: Logic, names: _Names) -> None:
        self.op = logic.op
        self.left, self.right = (_Sum(names.value(name)) for name in (logic.left, logic.right))
        self.targets = names.targets(logic.out)

    def run(self, domain: Domain[Any], new: New) -> None:
        (target,) = self.targets
        new[target] = domain.logic(self.op, self.left.read(domain, new), self.right.read(domain, new))


class _Tested(_Act):
    def __init__(self, zero: Zero, names: _Names) -> None:
        self.of = _Sum(names.value(zero.of))
        self.also = _Sum(names.value(zero.also)) if zero.also else None
        self.targets = names.targets(zero.out)

    def run(self, domain: Domain[Any], new: New) -> None:
        (target,) = self.targets
        also = self.also.read(domain, new) if self.also else None
        new[target] = domain.zero(self.of.read(domain, new), also)


def _equation(equation: Equation, names: _Names) -> _Act:
    return (_Copy if _is_copy(equation, names) else _Split)(equation, names)


def _is_copy(equation: Equation, names: _Names) -> bool:
    if len(equation.digits) != 1 or len(equation.terms) != 1:
        return False
    term, name = equation.terms[0], equation.digits[0].name
    if term.factor != 1 or term.exponent != CONSTANT or len(term.names) != 1 or not name.endswith("'"):
        return False
    source, target = names.places.get(term.names[0]), names.places[name[:-1]]
    return source is not None and [names.widths[s] for s in source] == [names.widths[t] for t in target]


def _widths(digit: Digit, below: int, names: _Names) -> list[int]:
    """Widths of a digit's limbs in bits, low first; `below` bits lie under it."""
    if names.count(digit.exponent) != below:
        raise MeaningError(f"digit {digit.name} does not follow the digits below it")
    if digit.width is not None:
        return [names.count(digit.width)]
    if digit.name == "_":
        return [1]
    return [names.widths[slot] for slot in names.places[digit.name[:-1]]]


_ACTS: dict[type, Callable[[Any, _Names], _Act]] = {
    Equation: _equation,
    Load: _Loaded,
    Store: _Stored,
    Logic: _Bitwise,
    Zero: _Tested,
}
