"""The search: its changes give plans, and its seed decides everything."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from conftest import avr

from sqgen import anneal, answers, choosing, methods, search
from sqgen.anneal import Cooling
from sqgen.errors import UserError
from sqgen.plan import Block, Run
from sqgen.search import Budget, Job
from sqgen.spec import spec
from sqgen.tables import isa

MIXING: dict[str, Any] = {name: methods.method(name) for name in ("sweeps", "streamed-karatsuba")}


def job(limbs: int, method: str = "sweeps", goal: str = "speed", core: str | None = None) -> Job:
    return Job("avr", "sqr", limbs, method, goal, core)


def start(limbs: int) -> dict[str, str]:
    return job(limbs).way.fitted(limbs, methods.defaults("sweeps", limbs))


@pytest.mark.parametrize("limbs", [2, 3, 5, 12])
def test_any_number_of_changes_gives_a_plan(limbs: int) -> None:
    given, rng = start(limbs), random.Random(limbs)
    for _ in range(200):
        given = job(limbs).way.changed(limbs, given, rng)
        methods.plan("sqr", limbs, "sweeps", given)  # its cover is checked


@pytest.mark.parametrize("method", ["sweeps", "streamed-karatsuba"])
@pytest.mark.parametrize("limbs", [4, 5, 12])
def test_what_is_mixed_of_two_is_a_plan(limbs: int, method: str) -> None:
    way, rng = MIXING[method], random.Random(limbs)
    one = other = way.fitted(limbs, methods.defaults(method, limbs))
    found = set()
    for _ in range(60):
        other = way.changed(limbs, other, rng)
        one = way.mixed(limbs, one, other, rng)
        methods.plan("sqr", limbs, method, one)  # its cover is checked
        found.add(str(one))
    assert len(found) > 20


def test_blocks_below_a_column_are_of_one_and_above_it_of_the_other() -> None:
    low = {"ends": "3,9,14", "orders": "i,j,v", "stages": "4,10,16", "ahead": "0.3,2.7"}
    high = {"ends": "5,11,14", "orders": "I,J,r", "stages": "7,12,16", "ahead": "0.5,5.6"}
    for seed in range(20):
        mixed = MIXING["sweeps"].Given.read(MIXING["sweeps"].mixed(8, low, high, random.Random(seed)))
        at = random.Random(seed).randrange(1, 14)
        for ours, whose in ((mixed.ends, "ends"), (mixed.stages, "stages")):
            both = [[int(end) for end in given[whose].split(",")] for given in (low, high)]
            assert ours == [end for end in both[0] if end < at] + [end for end in both[1] if end >= at]
        assert len(mixed.orders) == len(mixed.ends)


@pytest.mark.parametrize("limbs", range(2, 33, 5))
def test_parameters_of_one_size_fit_another(limbs: int) -> None:
    for other in range(2, 33, 3):
        methods.plan("sqr", limbs, "sweeps", job(limbs).way.fitted(limbs, start(other)))


def test_the_same_seed_finds_the_same_and_it_is_better() -> None:
    found = [job(10).parameters([start(10)], Budget(300), 1) for _ in range(2)]
    assert found[0] == found[1]
    assert job(10).estimate(found[0][0]) < job(10).estimate(start(10))


def test_a_plan_that_needs_too_many_registers_is_never_taken() -> None:
    too_wide: Mapping[str, str] = {"ends": "62", "orders": "i", "stages": "64"}
    assert job(32).estimate(dict(too_wide)) == float("inf")


@pytest.mark.parametrize(("limbs", "method"), [(6, "sweeps"), (16, "sweeps"), (24, "streamed-karatsuba")])
def test_a_limit_refuses_what_is_above_it_and_nothing_else(limbs: int, method: str) -> None:
    what, rng, refused = job(limbs, method), random.Random(limbs), 0
    given = what.starts()[0]
    for _ in range(12):
        given = what.way.changed(limbs, given, rng)
        exact = what.estimate(given)
        assert what.estimate(given, exact) == exact
        refused += what.estimate(given, exact - 20) == float("inf")
    assert refused > 6  # early: what registers cost is not above 20 cycles


def test_cells_ahead_of_their_block_are_added_there() -> None:
    def blocks(ahead: str) -> list[set[tuple[int, int]]]:
        given = {"ends": "4,14", "orders": "i", "stages": "4,16", "ahead": ahead}
        found: list[set[tuple[int, int]]] = []
        for step in methods.plan("sqr", 8, "sweeps", given).steps:
            match step:
                case Block():
                    found.append(set())
                case Run():
                    found[-1] |= {(cell.i, cell.j) for cell in step.cells}
        return found

    (low, high), (taking, rest) = blocks(""), blocks("0.4,2.6,0.1")
    assert taking == low | {(0, 4), (2, 6)} and rest == high - taking  # (0, 1) has no block before its own
    for wrong in ("4.0", "1.1", "0.8", "0", "0.4,", "x"):
        with pytest.raises(UserError, match="no cell off the diagonal"):
            blocks(wrong)


def test_an_answer_that_leaves_out_defaults_is_begun_with(monkeypatch: pytest.MonkeyPatch) -> None:
    what = job(36, "streamed-karatsuba")
    whole = what.starts()
    monkeypatch.setattr(Job, "known", lambda self, limbs, goal: {"middle-ends": "9,34"})
    starts = what.starts()
    assert starts != whole and starts[0]["middle-ends"] == "9,34" and starts[0]["high-ends"]
    for given in starts:
        what.plan(given)


def test_a_method_that_is_not_searched_by_chance_is_refused() -> None:
    with pytest.raises(UserError, match="not searched by chance"):
        _ = job(8, "sbd").way


def test_annealing_takes_worse_states_early_and_only_better_ones_late() -> None:
    def change(state: int, rng: random.Random) -> int:
        return state + rng.choice((-1, 1))

    def price(state: int, limit: float) -> float:
        return abs(state) if abs(state) <= limit else float("inf")

    visited = [state for _, state in anneal.anneal(5, change, price, Cooling(400, 50.0, 0.01), random.Random(3))]
    assert max(map(abs, visited)) > 5 and abs(visited[-1]) <= 3


def test_a_search_is_decided_by_its_seed_and_never_loses_what_there_was() -> None:
    what = job(6)
    before = what.before()
    assert before
    found = [list(search.search(what, search.rounds(2, 20), seed=7)) for _ in range(2)]
    assert found[0] == found[1] and len(found[0]) == 2
    assert what.cost(before) >= what.cost(found[0][0]) >= what.cost(found[0][1])


def test_a_search_ends_when_its_time_is_up() -> None:
    budgets = list(search.seconds(0.0))
    assert budgets == []
    first = next(search.seconds(5.0))
    assert first.deadline < float("inf") and first.plans > 0
    given = job(20).parameters([start(20)], Budget(10**6, deadline=0.0), 1)
    assert given == [start(20)]


def test_each_goal_and_core_has_its_row_and_no_row_is_idle() -> None:
    rows = [job(8, goal=goal).round([start(8)], Budget(30), 3) for goal in ("speed", "call")]
    known = [row for row in rows if row]
    kept = search.kept(avr(), "sqr", 8, "sweeps", [*known, *known, job(8).priced(start(8))])
    for goal in ("speed", "call"):
        for core in ("atmega128", "atxmega32a4u", "avr128da48"):
            what = job(8, goal=goal, core=core)
            assert min(map(what.cost, kept)) == min(map(what.cost, [*known, job(8).priced(start(8))]))
    assert len(kept) == len({str(row) for row in kept})


@pytest.mark.parametrize("core", ["atmega128", "atxmega128a4u", "avr128da48"])
@pytest.mark.parametrize("goal", ["speed", "call"])
def test_auto_takes_no_answer_that_is_slower_on_the_core_asked_for(core: str, goal: str) -> None:
    asked = spec("avr", 96, goal=goal, core=core)
    least = choosing.rank(asked, choosing.choose(asked))
    for name, row in answers.known(isa("avr"), "sqr", 96):
        one = spec("avr", 96, goal=goal, core=core, method=name, parameters=answers.given(row))
        assert least <= choosing.rank(one, choosing.choose(one))
