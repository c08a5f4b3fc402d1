"""The search: its changes give plans, its seed decides everything, and hints never cost cycles."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from conftest import avr

from sqgen import methods, search
from sqgen.allocate import best_place
from sqgen.errors import UserError
from sqgen.search import Cooling, Job


def job(limbs: int, method: str = "sweeps", seed: int = 1) -> Job:
    return Job(avr(), "sqr", limbs, method, seed)


def start(limbs: int) -> dict[str, str]:
    return job(limbs).way.fitted(limbs, methods.defaults("sweeps", limbs))


@pytest.mark.parametrize("limbs", [2, 3, 5, 12])
def test_any_number_of_changes_gives_a_plan(limbs: int) -> None:
    given, rng = start(limbs), random.Random(limbs)
    for _ in range(200):
        given = job(limbs).way.changed(limbs, given, rng)
        methods.plan("sqr", limbs, "sweeps", given)  # its cover is checked


@pytest.mark.parametrize("limbs", range(2, 33, 5))
def test_parameters_of_one_size_fit_another(limbs: int) -> None:
    for other in range(2, 33, 3):
        methods.plan("sqr", limbs, "sweeps", job(limbs).way.fitted(limbs, start(other)))


def test_the_same_seed_finds_the_same_and_it_is_better() -> None:
    found = [job(10).parameters([start(10)], 100) for _ in range(2)]
    assert found[0] == found[1]
    assert job(10).estimate(found[0][0]) < job(10).estimate(start(10))


def test_hints_make_no_kernel_slower_and_none_is_idle() -> None:
    _, task = job(14).task(start(14))
    found = search.hints(task, 300, 1)
    registers = {stay: task.registers[register] for stay, register in found.items()}
    assert best_place(task, registers).cost <= best_place(task, {}).cost
    for stay in registers:
        fewer = {other: register for other, register in registers.items() if other != stay}
        assert best_place(task, fewer).cost > best_place(task, registers).cost


def test_a_plan_that_needs_too_many_registers_is_never_taken() -> None:
    too_wide: Mapping[str, str] = {"ends": "62", "orders": "i", "stages": "64"}
    assert job(32).estimate(dict(too_wide)) == float("inf")


def test_a_method_that_is_not_searched_by_chance_is_refused() -> None:
    with pytest.raises(UserError, match="make answers"):
        _ = job(8, "sbd").way


def test_annealing_takes_worse_states_early_and_only_better_ones_late() -> None:
    def change(state: int, rng: random.Random) -> int:
        return state + rng.choice((-1, 1))

    visited = [state for _, state in search.anneal(5, change, abs, Cooling(400, 50.0, 0.01), random.Random(3))]
    assert max(map(abs, visited)) > 5 and abs(visited[-1]) <= 3
