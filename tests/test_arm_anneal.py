"""The search for orders of operations on cores without long multiplication: small, the same each time, never worse, and
only what is proved is kept."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from sqgen.isa import arm_orders, arm_small
from sqgen.isa.arm_calls import rows_of
from sqgen.isa.arm_colour import TRIES
from sqgen.isa.arm_fit import WIDTH
from sqgen.isa.arm_orders import Registers
from sqgen.isa.arm_piece import Piece
from sqgen.isa.arm_values import Values, flat

from sqgen import methods
from sqgen.errors import UserError
from sqgen.places import folder
from sqgen.plan import Plan

pytest.importorskip("numpy")
from sqgen.isa import arm_anneal, arm_seeds

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


def plan(what: str, limbs: int) -> Plan:
    """A piece, or the rows around one."""
    op = "mul" if what == "rows" else what
    method, given = arm_small.preferred(op, limbs)[0]
    found = methods.plan(op, limbs, method, given)
    return rows_of(found) if what == "rows" else found


def poor(answers: Path) -> None:
    """Put a bad order for a square of 96 bits into the answers: as it was written."""
    count = len(flat(Piece(plan("sqr", 3)).values.units))
    arm_anneal.stored("sqr96", arm_orders.Order(tuple(range(count)), arm_orders.Registers(8, 2, 1)))
    assert answers.read_text().count("[sqr96]") == 1


def test_every_order_that_is_kept_is_one_of_the_operations_that_there_are() -> None:
    for name, order in arm_orders.known().items():
        piece = Piece(plan(*of(name)))
        assert arm_orders.name(piece.plan) == name and arm_orders.legal(piece, order.numbers), name


def of(name: str) -> tuple[str, int]:
    """What a name in the answers is about, and its limbs."""
    what, bits = arm_anneal.place(name)
    return what, bits // 32


def test_rows_are_known_of_all_sizes_that_have_them() -> None:
    assert {limbs for what, limbs in map(of, arm_orders.known()) if what == "rows"} == set(arm_small.BORDERED)


@pytest.mark.parametrize("name", ["mul160", "sqr160", "rows288"])
def test_the_registers_that_are_kept_are_no_worse_than_those_that_a_run_without_them_finds(name: str) -> None:
    """The beam's cycles, and one for each list that is broken, of all ways to call the function."""
    piece, order = Piece(plan(*of(name))), arm_orders.known()[name]
    assert order.called and order.called.seed is not None

    def cycles(registers: Registers, seeds: Sequence[int]) -> int:
        fitted = arm_seeds.fitted(piece, order.numbers, registers)
        assert fitted
        high = arm_small.registers(registers.high, called=True)
        job = arm_seeds.job(piece, order.numbers, fitted, high)
        return int(arm_seeds.price(fitted, registers, called=True)) + int(arm_seeds.best(job, seeds)[0])

    widths = (order.called.width, WIDTH)
    others = [Registers(order.called.low, high, width) for high in (4, 5) for width in widths]
    assert cycles(order.called, [order.called.seed]) <= min(cycles(each, range(TRIES)) for each in others)


def test_a_seed_is_looked_for_where_none_is_known() -> None:
    order = arm_orders.Order(tuple(range(len(flat(Piece(plan("sqr", 3)).values.units)))), Registers(8, 2, 1))
    found = arm_seeds.seeded(Piece(plan("sqr", 3)), order, seeds=5)
    assert found.numbers == order.numbers and found.alone and found.called
    assert found.alone.seed in range(5) and found.called.seed in range(5)
    assert arm_seeds.seeded(Piece(plan("sqr", 3)), replace(order, alone=None), seeds=5).alone is None


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
