"""What code takes at least is known before registers are chosen, and what is too long is then left there."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator

import pytest
from conftest import avr

from sqgen import choosing, methods
from sqgen import compile as compiling
from sqgen.compile import compile_plan, least_length
from sqgen.contract import OPS
from sqgen.errors import UserError
from sqgen.idioms import idioms
from sqgen.spec import spec
from sqgen.table import Core, Isa
from sqgen.tables import isa

CORES = {"avr": ("atmega128", "attiny1614"), "arm": ("cortex-m4", "cortex-m0"), "msp430": ("msp430",)}
CASES = [
    pytest.param(name, core, op, bits, marks=[pytest.mark.sweep] * (bits > 160))
    for name, cores in CORES.items()
    for core, op, bits in itertools.product(cores, OPS, (64, 160, 256))
]


def lengths(which: Isa, core: Core, op: str, bits: int) -> Iterator[tuple[int, int]]:
    """Of each method that makes code there: bytes at least, and how many there are."""
    for method in methods.names(op):
        with contextlib.suppress(UserError):
            plan = methods.plan(op, bits // which.limb_bits, method, {})
            made = len(compile_plan(plan, which, core=core).image)
            yield least_length(idioms(which).lower(plan, which, core), which), made


@pytest.mark.many
@pytest.mark.parametrize(("name", "core", "op", "bits"), CASES)
def test_no_code_is_shorter_than_what_is_said_of_it(name: str, core: str, op: str, bits: int) -> None:
    which = isa(name)
    found = list(lengths(which, which.core(core), op, bits))
    assert len(found) > 2 and all(0 < least <= made for least, made in found)
    # where lists of registers are loaded little is known
    assert name != "avr" or all(least > 0.6 * made for least, made in found)


def test_code_that_is_too_long_is_said_to_be() -> None:
    plan = methods.plan("mul", 16, "rows", {})
    least = least_length(idioms(avr()).lower(plan, avr(), avr().core("atmega128")), avr())
    assert compile_plan(plan, avr(), most=least).image == compile_plan(plan, avr()).image
    with pytest.raises(UserError, match=f"^method 'rows' takes {least} bytes and more$"):
        compile_plan(plan, avr(), most=least - 1)


@pytest.mark.parametrize(
    ("op", "bits", "limit", "goal"),
    [("mul", 528, 4000, "speed"), ("sqr", 456, 3000, "call"), ("mul", 200, None, "size"), ("mul", 1016, 6000, "speed")],
)
def test_the_choice_is_the_same_as_if_all_were_made(
    monkeypatch: pytest.MonkeyPatch, op: str, bits: int, limit: int | None, goal: str
) -> None:
    asked = spec("avr", bits, op=op, max_bytes=limit, goal=goal)
    few = choosing.candidates(asked)
    monkeypatch.setattr(compiling, "least_length", lambda *_: -math.inf)
    every = choosing.candidates(asked)
    assert len(few) < len(every)
    assert choosing.picked(asked, few).image == choosing.picked(asked, every).image
