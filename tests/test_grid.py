"""Every parameter of every method, one at a time, and options together by chance: a proved kernel, or a refusal that
names no fault."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from sqgen import kernel, methods
from sqgen.errors import Exit, UserError
from sqgen.spec import spec
from sqgen.tables import isa

CORES = [("avr", "atmega128"), ("msp430", "msp430"), ("msp430", "msp430x-mpy32")]
CORES += [("arm", f"cortex-m{which}") for which in ("0", "3", "4")]
LIMBS = (5, 8)
PROVED_OR_REFUSED = (Exit.OK, Exit.USAGE, Exit.LIMITS)
NUMBERS = "12367"  # for parameters that are numbers


def outcome(name: str, core: str, op: str, limbs: int, method: str = "auto", **more: Any) -> Exit:
    """Whether it is made and proved, and if not, the exit code.  Anything but a UserError is one too many."""
    try:
        kernel.make(spec(name, limbs * isa(name).limb_bits, op=op, method=method, core=core, **more))
    except UserError as error:
        return error.code
    return Exit.OK


def variations(method: str, limbs: int) -> Iterator[dict[str, str]]:
    """Each value of each parameter; where operands are split, also beside each way to form the parts."""
    known = methods.method(method).PARAMETERS
    parts = next((parameter.choices for parameter in known if parameter.name == "parts"), ())
    for parameter in known:
        number = methods.defaults(method, limbs)[parameter.name].isdigit()
        for value in parameter.choices or (NUMBERS if number else ()):
            yield {parameter.name: value}
            yield from ({"parts": which, parameter.name: value} for which in parts if parameter.name == "split")


def wish(rng: random.Random) -> dict[str, Any]:
    """What may be asked for beside a size."""
    name, core = rng.choice(CORES)
    registers = isa(name).abi.callee_saved
    return {
        "name": name,
        "core": core,
        "op": rng.choice(("sqr", "mul")),
        "limbs": rng.randrange(2, 66 if name == "avr" else 33),
        "goal": rng.choice(("speed", "call", "balanced", "size")),
        "max_bytes": rng.choice((None, None, 300, 1000, 4000)),
        "max_stack": rng.choice((None, None, 20, 60, 100)),
        "reserve": (rng.choice(registers),) if rng.random() < 0.2 else (),
        "allow_branches": rng.random() < 0.5,
        "parameters": {"wipe": rng.choice("01")},
    }


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(30))
def test_whatever_is_asked_for_together_is_proved_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        asked = wish(rng)
        assert outcome(**asked) in PROVED_OR_REFUSED, asked


ROWS = [(name, core, op, method) for name, core in CORES for op in ("sqr", "mul") for method in methods.names(op)]


@pytest.mark.many
@pytest.mark.parametrize(("name", "core", "op", "method"), ROWS)
def test_each_value_of_a_parameter_is_proved_or_refused(name: str, core: str, op: str, method: str) -> None:
    for limbs in LIMBS:
        for parameters in variations(method, limbs):
            found = outcome(name, core, op, limbs, method, parameters=parameters)
            assert found in PROVED_OR_REFUSED, (limbs, parameters)


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "core"), CORES)
def test_each_register_that_is_reserved_is_left_alone_or_that_is_refused(name: str, core: str) -> None:
    for op, limbs in (("mul", 3), ("sqr", 6), ("mul", 6)):
        for register in isa(name).abi.callee_saved:
            found = outcome(name, core, op, limbs, reserve=(register,))
            assert found in PROVED_OR_REFUSED, (op, limbs, register)


@pytest.mark.parametrize(
    ("name", "core", "limbs", "parameters"),
    [
        ("avr", "atmega128", 8, {"parts": "inline", "split": "6"}),  # its middle would go on behind the result
        ("avr", "atmega128", 8, {"parts": "shared", "split": "7"}),
        ("avr", "atmega128", 8, {"parts": "calls", "split": "6"}),
        ("arm", "cortex-m0", 5, {"parts": "whole", "split": "4"}),
        ("arm", "cortex-m3", 5, {"parts": "whole"}),
    ],
)
def test_squares_of_parts_that_are_not_formed_are_refused(
    name: str, core: str, limbs: int, parameters: dict[str, str]
) -> None:
    assert outcome(name, core, "sqr", limbs, "karatsuba-squaring", parameters=parameters) == Exit.USAGE


@pytest.mark.parametrize("register", ["r4", "r7"])
def test_a_limb_that_is_overwritten_stays_where_it_is_else(register: str) -> None:
    """With a register less its copy in a high one was forgotten for another limb."""
    assert outcome("arm", "cortex-m0", "mul", 3, reserve=(register,)) == Exit.OK
