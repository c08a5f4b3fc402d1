"""The methods there are: one module of `schedules/` each, and the parameters they take."""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Protocol, cast

from . import cover
from .errors import UserError
from .places import folder
from .plan import Plan, Step
from .table import nearest

PLAIN = re.compile("[A-Za-z0-9 .,+=_-]*")  # what values of parameters are made of: they are printed into comments
Known = Callable[[str, str, int], Mapping[str, str]]  # good parameters of (method, operation, limbs)


@dataclass(frozen=True)
class Parameter:
    """A parameter of a method: a positive integer, or one of the words `choices`; several, separated by commas, if
    `many`; or a `text` that the method reads itself.  A default may depend on the number of limbs."""

    name: str
    help: str
    default: str | Callable[[int], str]
    many: bool = False
    choices: tuple[str, ...] = ()
    text: bool = False

    def standard(self, limbs: int) -> str:
        """The default for a number of that many limbs."""
        return self.default if isinstance(self.default, str) else self.default(limbs)


REGISTERS = Parameter(  # of methods whose kernels need nearly all of them; read by `looking`
    "registers",
    "how they are looked for: how much nearer the next use may be of what leaves, if it need not be stored, and how"
    " many ways are followed, as in 1.2,10",
    "",
    text=True,
)


@dataclass(frozen=True)
class Values:
    """Checked parameter values of one plan."""

    numbers: Mapping[str, tuple[int, ...]]
    words: Mapping[str, str]
    part: Callable[[str, str, int, Mapping[str, str]], Plan]  # of (method, operation, limbs, parameters or none)

    def many(self, name: str) -> tuple[int, ...]:
        return self.numbers[name]

    def one(self, name: str) -> int:
        return self.numbers[name][0]

    def word(self, name: str) -> str:
        return self.words[name]

    def words_of(self, name: str) -> list[str]:
        return self.words[name].split(",")

    def names(self) -> Iterator[str]:
        """Of all parameters."""
        return itertools.chain(self.numbers, self.words)

    def leaf(self, op: str, limbs: int, given: Mapping[str, str] = MappingProxyType({})) -> Plan:
        """The plan of a part by the method that the parameter `leaf` names, with the parameters `given`, or else with
        those that are known to be good."""
        return self.part(self.words["leaf"], op, limbs, given)

    def text(self, name: str) -> str:
        """As one writes it after `-p NAME=`."""
        return self.words[name] if name in self.words else ",".join(map(str, self.numbers[name]))


class Method(Protocol):
    """What a module in `schedules/` offers."""

    __doc__: str
    TITLE: str
    REFERENCE: str
    OPS: tuple[str, ...]
    PARAMETERS: tuple[Parameter, ...]

    def steps(self, op: str, n: int, values: Values) -> Iterator[Step]: ...


def names(op: str | None = None) -> list[str]:
    """Names of all methods, or of those made for `op`."""
    return [name for name in _schedules(folder("schedules")) if op is None or op in method(name).OPS]


@functools.cache
def _schedules(where: Path) -> Sequence[str]:
    return sorted(info.name.replace("_", "-") for info in pkgutil.iter_modules([str(where)]))


def method(name: str) -> Method:
    """The method of that name; UserError with the nearest name otherwise."""
    known = names()
    if name not in known:
        raise UserError(f"unknown method '{name}'{nearest(name, known)}")
    return cast(Method, importlib.import_module(f"sqgen.schedules.{name.replace('-', '_')}"))


def does(name: str, op: str) -> bool:
    """Whether the method can do `op`: a method for products squares as well, but gains nothing by it."""
    return op in method(name).OPS or (op == "sqr" and "mul" in method(name).OPS)


def compact(name: str, limbs: int) -> list[dict[str, str]]:
    """Parameters with which the method makes small code at that size, for a method that knows."""
    found: Callable[[int], list[dict[str, str]]] = getattr(method(name), "compact", lambda limbs: [])
    return found(limbs)


def between(name: str, limbs: int) -> list[dict[str, str]]:
    """Parameters with which what the method makes is neither the fastest nor the smallest, for a method that knows."""
    found: Callable[[int], list[dict[str, str]]] = getattr(method(name), "between", lambda limbs: [])
    return found(limbs)


def sought(name: str, limbs: int) -> bool:
    """Whether the method is looked at where nobody names it or asks for few bytes or little stack: what it makes of
    fewer limbs than `SOUGHT_FROM` is far slower than other small code."""
    return limbs >= getattr(method(name), "SOUGHT_FROM", 1)


def rare(name: str) -> bool:
    """Whether answers are kept only for sizes at which the method is the fastest, which are few (`RARE`)."""
    return bool(getattr(method(name), "RARE", False))


def in_turns(name: str) -> bool:
    """Whether the method has loops that do some limbs in each turn, and code beside them for what is left (`TURN`)."""
    return hasattr(method(name), "TURN")


def points(name: str, limbs: int) -> list[dict[str, str]]:
    """Parameters that may be the fastest at that size, for a method that knows; else the defaults alone."""
    found: Callable[[int], list[dict[str, str]]] = getattr(method(name), "points", lambda limbs: [{}])
    return found(limbs)


class Searched(Protocol):
    """What a module in `schedules/` offers whose parameters are searched by chance; `mixed(n, given, other, rng)` as
    well, if parameters can be mixed with those of another answer."""

    def changed(self, n: int, given: Mapping[str, str], rng: Random) -> dict[str, str]: ...
    def fitted(self, n: int, given: Mapping[str, str]) -> dict[str, str]: ...


def searched(name: str) -> Searched | None:
    """The method, if its parameters are searched by chance."""
    found = method(name)
    return cast(Searched, found) if hasattr(found, "changed") else None


def defaults(name: str, limbs: int) -> dict[str, str]:
    """All parameters at their defaults."""
    return {parameter.name: parameter.standard(limbs) for parameter in method(name).PARAMETERS}


def picture(name: str) -> str:
    """The method's own account of itself: its module's docstring."""
    return inspect.cleandoc(method(name).__doc__)


def _nothing(method: str, op: str, limbs: int) -> Mapping[str, str]:
    """No parameters are known."""
    return {}


def values(name: str, given: Mapping[str, str], columns: int, known: Known = _nothing) -> Values:
    """Defaults and given values of a method's parameters, checked.  `columns` bounds every one, defaults silently.
    Parts are planned with the parameters that are `known` to be good.

    Raises UserError for an unknown name, an unknown word, a value that is no number, or one out of range.
    """
    parameters = {parameter.name: parameter for parameter in method(name).PARAMETERS}
    for key, text in given.items():
        if not PLAIN.fullmatch(text):
            raise UserError(f"method '{name}': parameter '{key}' has characters that no value has: {text!r}")
        if key not in parameters:
            what = nearest(key, parameters) if parameters else "; it has none"
            raise UserError(f"method '{name}' has no parameter '{key}'{what}")
    numbers: dict[str, tuple[int, ...]] = {}
    words: dict[str, str] = {}
    for key, parameter in parameters.items():
        if parameter.text:
            words[key] = given.get(key, parameter.standard(columns // 2))
        elif parameter.choices:
            words[key] = _word(name, parameter, given.get(key, parameter.standard(columns // 2)))
        elif key in given:
            numbers[key] = _numbers(name, parameter, given[key], columns)
        else:
            numbers[key] = tuple(min(int(part), columns) for part in parameter.standard(columns // 2).split(","))

    parts: dict[tuple[object, ...], Plan] = {}  # many are alike

    def part(of: str, op: str, limbs: int, own: Mapping[str, str]) -> Plan:
        key = (of, op, limbs, *sorted(own.items()))
        if key not in parts:
            parts[key] = plan(op, limbs, of, own or known(of, op, limbs), known)
        return parts[key]

    return Values(numbers, words, part)


def _word(name: str, parameter: Parameter, text: str) -> str:
    if not set(text.split(",") if parameter.many else [text]) <= set(parameter.choices):
        known = " or ".join(parameter.choices)
        raise UserError(f"method '{name}': parameter '{parameter.name}' is {known}, not '{text}'")
    return text


def _numbers(name: str, parameter: Parameter, text: str, columns: int) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) > 1 and not parameter.many:
        raise UserError(f"method '{name}': parameter '{parameter.name}' is one number, not '{text}'")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise UserError(f"method '{name}': parameter '{parameter.name}' is a number from 1 to {columns}, not '{text}'")
    numbers = tuple(int(part) for part in parts)
    if not all(1 <= number <= columns for number in numbers):
        raise UserError(
            f"method '{name}': parameter '{parameter.name}' runs from 1 to {columns}, '{text}' is out of range"
        )
    return numbers


def plan(op: str, limbs: int, name: str, given: Mapping[str, str], known: Known = _nothing) -> Plan:
    """The method's plan for `limbs` limbs, its cover checked.  Raises UserError for what the method cannot do.

    The plan names its parameters, but not words and what depends on the size where they stand at their default,
    unless an answer could say otherwise.
    """
    chosen = method(name)
    if not does(name, op):
        raise UserError(f"method '{name}' cannot do {op}; these can: {', '.join(names(op))}")
    checked = values(name, given, 2 * limbs, known)
    searched = {key for point in points(name, limbs) for key in point}
    shown = tuple(
        (p.name, checked.text(p.name))
        for p in chosen.PARAMETERS
        if checked.text(p.name) != p.standard(limbs)
        or p.name in searched
        or not (p.choices or p.text or callable(p.default))
    )
    made = Plan(op, limbs, name, shown, tuple(chosen.steps(op, limbs, checked)))
    cover.check(made)
    return made
