"""Runs in an order of their own: any order is a proved square, whatever the search makes of it, and text that is none
is refused."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Sequence
from typing import cast

import pytest

from sqgen import kernel, methods, run_order, tables
from sqgen.contract import Contract
from sqgen.errors import UserError
from sqgen.interpret import call
from sqgen.methods import Searched
from sqgen.plan import Double, Product, Run, Step
from sqgen.residence import PressureError
from sqgen.search import Job
from sqgen.spec import spec

WIDTHS = {"avr": 8, "msp430": 16, "arm": 32}
HELD = 8  # limbs, at most, any order of whose runs registers hold
TINY = "0.1+0.3 0.2 1.2 1.3 2.3"


def sweeps() -> Searched:
    return cast(Searched, methods.searched("sweeps"))


def chance(n: int, seed: int, changes: int = 40) -> tuple[list[Run], random.Random]:
    """Cells in no order, changed often."""
    rng = random.Random(seed)
    runs = [Run((cell,)) for cell in run_order.triangle(n)]
    rng.shuffle(runs)
    for _ in range(changes):
        runs = run_order.changed(runs, rng)
    return runs, rng


def steps(n: int, **given: str) -> Sequence[Step]:
    return methods.plan("sqr", n, "sweeps", given).steps


@pytest.mark.parametrize("n", range(1, 12))
def test_changes_keep_each_cell_once_and_columns_two_apart(n: int) -> None:
    lengths = set()
    for seed in range(20):
        runs, _ = chance(n, seed, 60)
        assert sorted(map(str, (cell for run in runs for cell in run.cells))) == sorted(map(str, run_order.triangle(n)))
        assert all(b.column - a.column == 2 for run in runs for a, b in itertools.pairwise(run.cells))
        assert run_order.read(n, run_order.written(runs)) == runs
        lengths |= {len(run.cells) for run in runs}
    assert n < 5 or {1, 2, 3} <= lengths


def test_runs_come_as_they_stand_and_the_rest_behind_them() -> None:
    assert [step for step in steps(4, runs=TINY) if isinstance(step, Run)] == run_order.read(4, TINY)
    rest = [Run((Product(0, 1),)), Run((Product(0, 2),)), Run((Product(1, 2),)), Run((Product(2, 3),))]
    assert run_order.read(4, "1.3 0.3") == [Run((Product(1, 3),)), Run((Product(0, 3),)), *rest]


@pytest.mark.parametrize("stages", ["8", "3,8", "2,4,8", "2,3,4,5,6,8"])
def test_a_stage_ends_as_soon_as_its_columns_are_complete(stages: str) -> None:
    ends = [int(end) for end in stages.split(",")]
    missing = [cell.column for cell in run_order.triangle(4)]
    for step in steps(4, runs="0.3 0.1 2.3 0.2 1.3 1.2", stages=stages):
        if isinstance(step, Double):
            assert step.last == ends.pop(0) and not any(column < step.last for column in missing)
        elif isinstance(step, Run):
            assert not ends or any(column < ends[0] for column in missing)
            for cell in step.cells:
                missing.remove(cell.column)
    assert not ends and not missing


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ("0.4", "'0.4' is no cell off the diagonal"),
        ("1.0", "no cell"),
        ("1.1", "no cell"),
        ("x", "no cell"),
        ("0.1+", "no cell"),
        (f"0.{'9' * 5000}", "no cell"),
        ("0.1+0.2", "'0.1+0.2' is no run"),
        ("0.3+0.1", "no run"),
        ("0.1+0.1", "no run"),
        ("0.1 0.3 0.1", "'0.1' comes twice"),
    ],
)
@pytest.mark.parametrize(("method", "name", "limbs"), [("sweeps", "runs", 4), ("streamed-karatsuba", "high-runs", 8)])
def test_what_is_no_order_is_refused(method: str, name: str, limbs: int, runs: str, says: str) -> None:
    with pytest.raises(UserError, match=says.replace("+", r"\+")):
        methods.plan("sqr", limbs, method, {name: runs})


def fitting(isa: str, n: int, seed: int) -> kernel.Kernel | None:
    """The kernel of an order by chance, None where that needs more registers than there are."""
    runs, rng = chance(n, seed)
    stages = [*sorted(rng.sample(range(1, 2 * n), min(3, 2 * n - 1))), 2 * n]
    given = {"runs": run_order.written(runs), "stages": ",".join(map(str, stages))}
    with contextlib.suppress(PressureError):
        return kernel.make(spec(isa, n * WIDTHS[isa], op="sqr", method="sweeps", parameters=given))
    return None


@pytest.mark.many
@pytest.mark.parametrize("isa", WIDTHS)
@pytest.mark.parametrize("n", [2, 3, 5, 8, 11])
@pytest.mark.parametrize("seed", range(4))
def test_any_order_is_proved_and_squares(isa: str, n: int, seed: int) -> None:
    seeds = [seed] if n <= HELD else range(seed, 40, 4)
    made = next(filter(None, (fitting(isa, n, each) for each in seeds)))
    rng = random.Random(seed)
    assert made.verdict.proved
    contract = Contract("sqr", n, tables.isa(isa))
    limbs = (0, 1, (1 << (WIDTHS[isa] - 1)) - 1, 1 << (WIDTHS[isa] - 1), (1 << WIDTHS[isa]) - 2, (1 << WIDTHS[isa]) - 1)
    for _ in range(20):
        a = sum(rng.choice(limbs) << (WIDTHS[isa] * k) for k in range(n))
        assert call(made.compiled.image, contract, made.spec.core, (a,)) == a * a


@pytest.mark.parametrize("prefix", ["", "high-", "middle-"])
def test_each_square_of_a_streamed_one_may_have_an_order(prefix: str) -> None:
    given = {f"{prefix}runs": run_order.written(chance(6, 1)[0])}
    made = kernel.make(spec("avr", 96, op="sqr", method="streamed-karatsuba", parameters=given))
    assert made.verdict.proved


def test_a_search_goes_on_from_blocks_to_the_same_runs_one_by_one() -> None:
    job, rng = Job("avr", "sqr", 10, "sweeps"), random.Random(1)
    given = methods.defaults("sweeps", 10)
    found = given
    while not found.get("runs"):
        found = job.way.changed(10, given, rng)
    runs = [[step for step in job.plan(each).steps if isinstance(step, Run)] for each in (given, found)]
    assert runs[0] == runs[1]
    seen = set()
    for _ in range(100):
        found = job.way.changed(10, found, rng)
        job.plan(found)  # its cover is checked
        seen.add((found["runs"], found["stages"]))
    assert len(seen) > 50 and len({stages for _, stages in seen}) > 2


@pytest.mark.parametrize("n", range(2, 9))
def test_an_order_fits_another_size(n: int) -> None:
    given = {"runs": run_order.written(chance(6, 3)[0]), "stages": "3,7,12"}
    fitted = sweeps().fitted(n, given)
    methods.plan("sqr", n, "sweeps", fitted)  # its cover is checked
    assert fitted["stages"].endswith(str(2 * n)) and (n != 6 or fitted == given)
