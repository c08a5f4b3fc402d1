"""Sweeps: every order of the cells gives a proved square, and the answers are as fast as the prototypes were."""

from __future__ import annotations

import itertools
import random

import pytest
from conftest import avr

from sqgen import answers, kernel, methods
from sqgen.contract import Contract
from sqgen.interpret import call
from sqgen.kernel import Kernel
from sqgen.plan import Plan, Run
from sqgen.spec import spec

ORDERS = ("i", "I", "j", "J", "v", "r")
LIMBS = (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF)
BODY = {64: 236, 96: 478, 128: 803, 160: 1226}  # cycles: what throw-away prototypes reached, or a little more


def made(bits: int, **parameters: str) -> Kernel:
    return kernel.make(spec("avr", bits, op="sqr", method="sweeps", parameters=parameters))


def squares(proved: Kernel) -> None:
    """Run it on operands of limbs that carries are lost at."""
    contract, rng = Contract("sqr", proved.spec.contract.limbs, avr()), random.Random(1)
    for _ in range(30):
        a = int.from_bytes(bytes(rng.choice(LIMBS) for _ in range(contract.limbs)), "little")
        assert call(proved.compiled.image, contract, proved.spec.core, (a,)) == a * a


@pytest.mark.many
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("stages", ["7,11,20", "8,12,20", "4,5,6,20", "20"])
def test_every_order_and_parity_of_stages_is_proved_and_squares(order: str, stages: str) -> None:
    proved = made(80, ends="7,12,18", orders=order, stages=stages)
    assert proved.verdict.proved
    squares(proved)


@pytest.mark.parametrize("bits", range(16, 257, 40))
def test_the_defaults_are_proved_at_any_size(bits: int) -> None:
    assert made(bits, ends=methods.defaults("sweeps", bits // 8)["ends"]).verdict.proved


@pytest.mark.parametrize("bits", BODY)
def test_the_answers_are_as_fast_as_the_prototypes(bits: int) -> None:
    proved = made(bits)
    assert proved.verdict.proved and proved.price.body <= BODY[bits]
    squares(proved)


@pytest.mark.parametrize("bits", [64, 128])
def test_a_normal_run_takes_the_answer_for_its_goal(bits: int) -> None:
    rows = answers.rows(avr(), "sweeps", "sqr", bits)
    assert made(bits).price.body == answers.best(rows)[answers.BODY]
    called = kernel.make(spec("avr", bits, method="sweeps", goal="call"))
    assert called.price.call == answers.best(rows, answers.CALL)[answers.CALL]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", range(2, 12))
def test_a_run_visits_columns_two_apart_and_the_plan_each_cell_once(n: int, order: str) -> None:
    plan: Plan = methods.plan("sqr", n, "sweeps", {"orders": order})
    runs = [step for step in plan.steps if isinstance(step, Run)]
    assert all(b.column - a.column == 2 for run in runs for a, b in itertools.pairwise(run.cells))
    cells = sorted((cell.i, cell.j) for cell in plan.products())
    assert cells == [(i, j) for i in range(n) for j in range(i, n)]
