"""Code in loops on AVR: as small as it says, right for all numbers of limbs, chosen where few bytes are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from sqgen import check, kernel, methods, reduction
from sqgen.errors import Exit, UserError
from sqgen.forward import Machine
from sqgen.forward_numbers import Budget
from sqgen.forward_proof import prove_forward
from sqgen.idioms import idioms
from sqgen.interpret import call, operands
from sqgen.kernel import Kernel
from sqgen.plan import Part, Plan, Slice
from sqgen.spec import spec

FAR = 6  # bytes more: each of three pointers is moved by two instructions, not one
METHODS = ("column-loops", "row-loops")


def made(op: str, bits: int, method: str, **more: Any) -> Kernel:
    return kernel.make(spec("avr", bits, op=op, method=method, **more))


@pytest.mark.parametrize(("op", "most"), [("mul", 86), ("sqr", 112)])
def test_columns_in_loops_do_not_grow_with_the_number_of_limbs(op: str, most: int) -> None:
    sizes = {made(op, bits, "column-loops").size for bits in (16, 72, 256, 512)}
    assert len(sizes) == 1 and max(sizes) <= most


@pytest.mark.parametrize(("op", "most"), [("mul", 280), ("sqr", 410)])
def test_rows_in_loops_grow_by_what_moves_a_pointer_far_alone(op: str, most: int) -> None:
    sizes = [made(op, bits, "row-loops").size for bits in (64, 256, 512)]
    assert sizes == sorted(sizes) and sizes[-1] - sizes[0] <= FAR and sizes[-1] <= most


@pytest.mark.many
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("op", ["sqr", "mul"])
@pytest.mark.parametrize("limbs", [*range(2, 20), 31, 65])
def test_loops_are_right_for_every_number_of_limbs_that_is_left_over(op: str, limbs: int, method: str) -> None:
    made_so = made(op, 8 * limbs, method)
    what = made_so.compiled.image, made_so.spec.contract, made_so.spec.core
    for values in operands(made_so.spec.contract, 12 if limbs < 32 else 4):
        assert call(*what, values) == values[0] * values[-1]
    if limbs < 10:
        assert prove_forward(*what).proved


@pytest.mark.simulator
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("op", "bits"), [("sqr", 16), ("mul", 24), ("sqr", 120), ("mul", 136), ("sqr", 256), ("mul", 1024)]
)
def test_a_simulator_sees_loops_as_the_model_does(op: str, bits: int, method: str) -> None:
    made_so = made(op, bits, method)
    report = check.run(made_so.compiled.image, made_so.spec.contract, made_so.spec.core, runs=8 if bits < 512 else 2)
    assert (report.paths, report.stack) == (1, made_so.verdict.stack)


@pytest.mark.parametrize("op", ["sqr", "mul"])
def test_few_bytes_are_in_loops_and_what_is_balanced_not_in_the_slowest(op: str) -> None:
    least, balanced, fastest = (
        kernel.make(spec("avr", 256, op=op, goal=goal)) for goal in ("size", "balanced", "speed")
    )
    assert least.compiled.plan.method == "column-loops"
    assert balanced.compiled.plan.method == "row-loops" and balanced.price.call < 1.8 * fastest.price.call
    limited = kernel.make(spec("avr", 256, op=op, max_bytes=least.size))
    assert limited.sha256 == least.sha256


def test_loops_leave_registers_alone_or_say_that_they_cannot() -> None:
    left = made("mul", 64, "row-loops", reserve=("r11", "r12"))
    assert not {"r11", "r12"} & {*left.compiled.written}
    with pytest.raises(UserError, match="'row-loops' cannot leave r28 alone") as caught:
        made("mul", 64, "row-loops", reserve=("r28",))
    assert caught.value.code == Exit.LIMITS


@pytest.mark.parametrize(("op", "method"), [("mul", "karatsuba"), ("sqr", "karatsuba-squaring")])
@pytest.mark.parametrize(
    ("limbs", "levels", "recombine"), [(16, 1, "looped"), (17, 1, "unrolled"), (40, 2, "looped"), (64, 1, "looped")]
)
def test_karatsubas_method_calls_parts_in_loops(op: str, method: str, limbs: int, levels: int, recombine: str) -> None:
    ways = {"leaf": "row-loops", "levels": str(levels), "parts": "calls", "recombine": recombine, "turn": "2"}
    made_so = made(op, 8 * limbs, method, parameters=ways)
    what = made_so.compiled.image, made_so.spec.contract, made_so.spec.core
    for values in operands(made_so.spec.contract, 12):
        assert call(*what, values) == values[0] * values[-1]
    if limbs < 20:
        assert prove_forward(*what).proved


@pytest.mark.simulator
@pytest.mark.parametrize(("op", "method"), [("mul", "karatsuba"), ("sqr", "karatsuba-squaring")])
def test_a_simulator_sees_calls_of_loops_as_the_model_does(op: str, method: str) -> None:
    ways = {"leaf": "row-loops", "levels": "2", "parts": "calls", "recombine": "looped", "turn": "2"}
    made_so = made(op, 512, method, parameters=ways)
    report = check.run(made_so.compiled.image, made_so.spec.contract, made_so.spec.core, runs=8)
    assert (report.paths, report.stack) == (1, made_so.verdict.stack)
    assert made_so.size < made(op, 512, "auto").size / 4


@pytest.mark.parametrize(
    ("method", "called", "known"),
    [("row-loops", True, True), ("row-loops", False, False), ("column-loops", True, False)],
)
def test_parts_in_loops_are_rows_and_are_called(method: str, called: bool, known: bool) -> None:
    part = Part(methods.plan("mul", 8, method, {}), Slice("r", 0, 16), Slice("a", 0, 8), Slice("b", 0, 8), called)
    whole = Plan("mul", 16, "karatsuba", (), (part,))
    isa = spec("avr", 128).contract.isa
    assert idioms(isa).forms(whole, isa.core(isa.default_core)) == known


def test_the_second_proof_of_loops_takes_no_longer_for_each_cell() -> None:
    """Their pointers go up and down some limbs in each column: what is known of them must not grow with that."""

    def spent(bits: int) -> int:
        kernel = made("mul", bits, "column-loops")
        budget = Budget()
        machine = Machine(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, 0, budget)
        while machine.step():
            pass
        return Budget().left - budget.left

    assert spent(128) < 4 * spent(64)


def test_pointers_that_loops_move_are_followed_in_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn moves them by one sum; what its carry would say is of no use beyond the branch, so none is kept."""
    steps = 0
    step = reduction.Reduction.step

    def counted(self: reduction.Reduction) -> None:
        nonlocal steps
        steps += 1
        step(self)

    monkeypatch.setattr(reduction.Reduction, "step", counted)
    looped = made("mul", 384, "row-loops")
    assert steps < 2 * len(looped.verdict.path)
