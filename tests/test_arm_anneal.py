"""The search for orders of operations on cores without long multiplication: small, the same each time, never worse, and
only what is proved is kept."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from sqgen.isa import arm_orders, arm_small
from sqgen.isa.arm_piece import Piece
from sqgen.isa.arm_values import Values, flat

from sqgen import methods
from sqgen.errors import UserError
from sqgen.places import folder
from sqgen.plan import Plan

pytest.importorskip("numpy")
from sqgen.isa import arm_anneal

STEPS = 60


@pytest.fixture
def answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The answers' file, as a copy."""
    path = tmp_path / "answers" / arm_orders.FILE
    path.parent.mkdir()
    shutil.copy(folder("schedules") / "answers" / arm_orders.FILE, path)
    for module in (arm_orders, arm_anneal):
        monkeypatch.setattr(module, "folder", lambda name: tmp_path)
    arm_orders.known.cache_clear()
    yield path
    arm_orders.known.cache_clear()


def plan(op: str, limbs: int) -> Plan:
    method, given = arm_small.preferred(op, limbs)[0]
    return methods.plan(op, limbs, method, given)


def poor(answers: Path) -> None:
    """Put a bad order for a square of 96 bits into the answers: as it was written."""
    count = len(flat(Piece(plan("sqr", 3)).values.units))
    arm_anneal.stored("sqr96", arm_orders.Order(tuple(range(count)), 8, 2, 1))
    assert answers.read_text().count("[sqr96]") == 1


def test_every_order_that_is_kept_is_one_of_the_operations_that_there_are() -> None:
    for name, order in arm_orders.known().items():
        assert arm_orders.legal(Piece(plan(name[:3], int(name[3:]) // 32)), order.numbers), name


@pytest.mark.parametrize("change", [lambda order: order[1:], lambda order: order[::-1], lambda order: [*order, 0]])
def test_an_order_that_does_not_fit_the_operations_is_not_taken(change: object) -> None:
    assert callable(change)
    piece = Piece(plan("sqr", 3))
    assert not arm_orders.legal(piece, change(list(range(len(flat(piece.values.units))))))


def test_an_order_in_which_a_carry_is_lost_is_not_taken() -> None:
    """A shift changes the carry; a multiplication does not."""
    values = Values()
    a, b = values.new(), values.new()
    with values.chain():
        low = values.one("add", a, b)
        values.one("adc", a, b)
    values.one("lsl", low, number=1)
    values.one("mul", low, low)
    piece = SimpleNamespace(values=values)
    assert [arm_orders.legal(piece, order) for order in ([0, 1, 2, 3], [0, 3, 1, 2], [0, 2, 1, 3], [1, 0, 2, 3])] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("hot", [0.1, 1e9])
def test_whatever_moves_the_order_stays_one_that_may_be_taken(hot: float) -> None:
    """With great heat all moves are taken; both are a walk among orders that are right."""
    problem = arm_anneal.Problem(plan("sqr", 4))
    start = problem.drawn(random.Random(1))
    assert arm_orders.legal(problem.piece, start)
    cost, best, last = problem.anneal(start, problem.choices[0], 4 * STEPS, (hot, hot), 5)
    assert arm_orders.legal(problem.piece, best) and arm_orders.legal(problem.piece, last)
    assert last != start
    assert cost <= problem.anneal(start, problem.choices[0], 0, (1.0, 1.0), 5)[0]


def test_orders_by_chance_differ_and_the_same_seed_gives_the_same() -> None:
    problem = arm_anneal.Problem(plan("sqr", 4))
    found = [problem.drawn(random.Random(seed)) for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


def test_the_same_seed_finds_the_same_and_nothing_worse(answers: Path) -> None:
    poor(answers)
    first, again = (list(arm_anneal.search(plan("sqr", 3), 2, STEPS, 1, arm_anneal.proved)) for _ in range(2))
    assert first == again
    costs = [cost for cost, _ in first]
    assert costs == sorted(costs, reverse=True)
    piece = Piece(plan("sqr", 3))
    assert all(arm_orders.legal(piece, order.numbers) for _, order in first)


def test_the_command_writes_what_is_better_and_a_second_run_begins_there(answers: Path) -> None:
    poor(answers)
    problem = arm_anneal.Problem(plan("sqr", 3))
    least = problem.cost(problem.known())
    asked = ["--op", "sqr", "--least", "96", "--most", "96", "--rounds", "1", "--steps", str(4 * STEPS)]
    result = CliRunner().invoke(arm_anneal.main, asked)
    assert result.exit_code == 0, result.output
    after = problem.cost(arm_orders.known()["sqr96"])
    assert after < least and result.output == f"sqr96: {after} cycles without the frame\n"
    assert next(arm_anneal.search(plan("sqr", 3), 1, STEPS, 2, arm_anneal.proved)) == (
        after,
        arm_orders.known()["sqr96"],
    )


def test_what_is_not_proved_is_not_kept(answers: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    poor(answers)

    def fails(*_: object) -> None:
        raise UserError("the proof failed")

    monkeypatch.setattr(arm_anneal, "make", fails)
    kept = answers.read_text()
    arm_anneal.improve(plan("sqr", 3), 1, 4 * STEPS, seed=1)
    assert answers.read_text() == kept
