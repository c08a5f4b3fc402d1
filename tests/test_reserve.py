"""Registers that are to be left alone: `auto` finds what can do that, on every core, or says that nothing can."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sqgen import choosing
from sqgen.attempts import requests
from sqgen.errors import Exit, UserError
from sqgen.kernel import make
from sqgen.spec import spec

DEEP = {"levels": "3", "parts": "inline", "recombine": "unrolled", "signs": "branched"}
FEWER = [
    ("avr", "atmega128", "mul", 96, ("r2", "r3")),
    ("avr", "atmega128", "mul", 160, ("r2",)),
    ("avr", "atmega128", "mul", 256, ("r2", "r3", "r4", "r5")),
    ("avr", "atmega128", "sqr", 512, ("r2",)),
    ("msp430", "msp430", "sqr", 256, ("r4",)),
    ("msp430", "msp430x", "mul", 64, ("r9", "r10")),
    ("arm", "cortex-m0", "mul", 128, ("r7",)),
]


@pytest.mark.parametrize(("isa", "core", "op", "bits", "registers"), FEWER)
def test_auto_leaves_registers_alone_where_the_best_kernel_would_not(
    isa: str, core: str, op: str, bits: int, registers: Sequence[str]
) -> None:
    kernel = make(spec(isa, bits, op=op, core=core, reserve=registers))
    assert kernel.verdict.proved and not {*registers} & {*kernel.compiled.written}
    assert set(registers) <= set(make(spec(isa, bits, op=op, core=core)).compiled.written)


@pytest.mark.parametrize(("goal", "bits"), [("size", 256), ("balanced", 256), ("call", 160)])
def test_so_it_does_for_other_goals(goal: str, bits: int) -> None:
    assert "r17" not in make(spec("avr", bits, op="mul", goal=goal, reserve=("r17",))).compiled.written


def test_the_best_of_several_forms_is_taken() -> None:
    """Two levels in place need r2 at this size; one in place does not, and is faster than rows."""
    kernel = make(spec("avr", 160, op="mul", reserve=("r2",)))
    others = [make(spec("avr", 160, op="mul", method=name, reserve=("r2",))) for name in ("operand-caching", "hybrid")]
    assert all(kernel.price.body < 0.95 * other.price.body for other in others)


def test_each_form_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    request = spec("avr", 96, op="mul", reserve=("r2",))
    seen = []
    real = choosing.plan

    def plan(*args):  # type: ignore[no-untyped-def]
        seen.append(real(*args).key)
        return real(*args)

    monkeypatch.setattr(choosing, "plan", plan)
    choosing.candidates(request)
    assert len(seen) == len(set(seen)) < len(requests(request))


def test_what_nothing_leaves_alone_is_refused() -> None:
    """A product on AVR needs three pointers."""
    with pytest.raises(UserError, match="no method leaves r28 alone") as caught:
        make(spec("avr", 64, op="mul", reserve=("r28",)))
    assert caught.value.code == Exit.LIMITS


@pytest.mark.parametrize("registers", [("r2", "r3"), ("r2", "r4", "r10")])
def test_code_that_branches_leaves_them_alone_too(registers: Sequence[str]) -> None:
    """Limbs that a function has left are elsewhere when the code forks, and begin the other way there."""
    kernel = make(
        spec("avr", 512, op="mul", reserve=registers, method="karatsuba", allow_branches=True, parameters=DEEP)
    )
    assert kernel.verdict.proved and not {*registers} & {*kernel.compiled.written}
