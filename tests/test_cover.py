"""The check of a plan: a cell too often, too seldom or too late, a limb stored wrongly, are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sqgen import cover, methods
from sqgen.cover import CoverError
from sqgen.plan import Apart, Double, Gather, Join, Load, Plan, Product, Run, Step, Store

SQUARE: tuple[Step, ...] = (
    Product(0, 1),
    Double(0, 4),
    Product(0, 0),
    Product(1, 1),
    *map(Store, range(4)),
)
RHOMBUS: tuple[Step, ...] = (*(Product(i, j) for i in (0, 1) for j in (0, 1)), *map(Store, range(4)))
ALL = [(op, name) for op in ("sqr", "mul") for name in methods.names() if methods.does(name, op)]


def check(op: str, steps: Sequence[Step]) -> None:
    cover.check(Plan(op, 2, "m", (), tuple(steps)))


def test_a_square_is_a_triangle_or_a_rhombus_and_a_product_a_rhombus() -> None:
    check("sqr", SQUARE)
    check("sqr", RHOMBUS)
    check("mul", RHOMBUS)
    assert Plan("sqr", 2, "m", (), SQUARE).triangle
    assert not Plan("sqr", 2, "m", (), RHOMBUS).triangle
    with pytest.raises(CoverError):
        check("mul", SQUARE)


@pytest.mark.parametrize("missing", range(len(SQUARE)))
def test_no_step_of_a_square_can_be_left_out(missing: int) -> None:
    with pytest.raises(CoverError):
        check("sqr", SQUARE[:missing] + SQUARE[missing + 1 :])


@pytest.mark.parametrize("again", range(len(SQUARE)))
def test_no_step_of_a_square_can_be_there_twice(again: int) -> None:
    with pytest.raises(CoverError):
        check("sqr", SQUARE[:again] + SQUARE[again : again + 1] + SQUARE[again:])


@pytest.mark.parametrize("op", ["sqr", "mul"])
@pytest.mark.parametrize("index", range(len(RHOMBUS)))
def test_no_step_of_a_rhombus_can_be_left_out_or_there_twice(op: str, index: int) -> None:
    with pytest.raises(CoverError):
        check(op, RHOMBUS[:index] + RHOMBUS[index + 1 :])
    with pytest.raises(CoverError):
        check(op, RHOMBUS[:index] + RHOMBUS[index : index + 1] + RHOMBUS[index:])


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ((*RHOMBUS[:4], Double(0, 4), *RHOMBUS[4:]), "doubles nothing"),
        ((*RHOMBUS, Load(4)), "loaded before it was stored"),
        ((*RHOMBUS[:4], Load(0), *RHOMBUS[4:]), "loaded before it was stored"),
        ((*RHOMBUS[:5], RHOMBUS[6], RHOMBUS[5], RHOMBUS[7]), "before the columns below"),
        ((Product(0, 2), *RHOMBUS), "outside"),
    ],
)
def test_a_fault_is_named(steps: tuple[Step, ...], says: str) -> None:
    with pytest.raises(CoverError, match=says):
        check("sqr", steps)


def test_a_rhombus_with_a_cell_twice_in_place_of_its_mirror_image_is_refused() -> None:
    """The sum would be the same number; the method would not be what it says."""
    cells = [Product(i, j) for i in range(3) for j in range(3)]
    cells[cells.index(Product(1, 0))] = Product(0, 1)
    with pytest.raises(CoverError, match="counts"):
        cover.check(Plan("sqr", 3, "m", (), (*cells, *map(Store, range(6)))))


@pytest.mark.parametrize("limbs", [*range(2, 34), 64, 128])
@pytest.mark.parametrize(("op", "name"), ALL)
def test_every_method_forms_the_product_at_every_size(op: str, name: str, limbs: int) -> None:
    made = methods.plan(op, limbs, name, {})  # which checks
    half = Plan(made.op, limbs, name, (), made.steps[: len(made.steps) // 2])
    with pytest.raises(CoverError):
        cover.check(half)


@pytest.mark.parametrize("name", methods.names("mul"))
def test_a_method_for_products_squares_by_visiting_the_same_cells(name: str) -> None:
    square, product = (methods.plan(op, 9, name, {}) for op in ("sqr", "mul"))
    if not list(square.products()):
        pytest.skip("made of products of parts")
    if square.triangle:  # a method for squares as well
        assert "sqr" in methods.method(name).OPS
    else:
        assert replace(square, op="mul") == product


CAUGHT = (Product(0, 0), Product(0, 1, times=2, caught=True), Product(1, 1))


def test_a_product_may_be_added_twice_and_its_carries_caught() -> None:
    check("sqr", (*CAUGHT, Gather(4), *map(Store, range(4))))
    check("sqr", (*CAUGHT, *map(Store, range(3)), Gather(4), Store(3)))


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ((*CAUGHT, Gather(3), *map(Store, range(4))), "column 3 is stored before the carries caught"),
        ((*CAUGHT, *map(Store, range(4)), Gather(4)), "column 3 is stored before the carries caught"),
        ((*CAUGHT, *map(Store, range(3))), "never gathered"),
        ((*CAUGHT, Gather(4), Double(0, 4), *map(Store, range(4))), "counts"),
        ((*RHOMBUS[:3], Product(1, 1, times=2), *RHOMBUS[4:]), "counts 2 times"),
    ],
)
def test_carries_and_products_that_are_lost_or_too_many_are_found(steps: tuple[Step, ...], says: str) -> None:
    with pytest.raises(CoverError, match=says):
        check("sqr", steps)


APART: tuple[Step, ...] = (
    Apart(),
    Product(0, 1, caught=True),
    Gather(4),
    Join(),
    Product(0, 0),
    Product(1, 1),
    *map(Store, range(4)),
)


def test_a_sum_that_was_apart_counts_twice() -> None:
    check("sqr", APART)


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        (APART[1:], "nothing is apart"),
        ((*APART[:3], *APART[4:]), "Store.* comes while a sum is kept apart"),
        ((*APART[:2], *APART[3:]), "wait where another sum begins"),
        ((*APART[:4], *APART[5:]), "counts 0 times"),
        ((*APART[:1], *APART), "Apart.* comes while a sum is kept apart"),
        ((*APART, Apart()), "never joined"),
        ((*APART[:1], *APART[4:6], *APART[1:4], *APART[6:]), "counts 2 times instead of 1"),
        (
            (APART[4], APART[0], *APART[2:4], APART[1], *APART[5:6], Gather(4), *APART[6:]),
            "counts 1 times instead of 2",
        ),
    ],
)
def test_a_sum_that_is_lost_or_doubled_wrongly_is_found(steps: tuple[Step, ...], says: str) -> None:
    with pytest.raises(CoverError, match=says):
        check("sqr", steps)


RUN = Run((Product(0, 1), Product(0, 3)))
OF_FOUR: tuple[Step, ...] = (
    RUN,
    Run((Product(0, 2),)),
    Run((Product(1, 2), Product(2, 3))),
    Run((Product(1, 3),)),
    Double(0, 8),
    *(Product(i, i) for i in range(4)),
    *map(Store, range(8)),
)


def test_the_cells_of_runs_count() -> None:
    cover.check(Plan("sqr", 4, "m", (), OF_FOUR))
    with pytest.raises(CoverError, match=r"cell \(0, 2\) counts 0 times"):
        cover.check(Plan("sqr", 4, "m", (), tuple(step for step in OF_FOUR if step != Run((Product(0, 2),)))))


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        (Run(()), "not two apart"),
        (Run((Product(0, 1), Product(0, 2))), "not two apart"),
        (Run((Product(0, 3), Product(0, 1))), "not two apart"),
        (Run((Product(0, 1, times=2), Product(0, 3))), "added 2 times"),
        (Run((Product(0, 1, caught=True), Product(0, 3))), "carry caught"),
    ],
)
def test_a_run_is_of_neighbours_each_added_once(run: Run, complaint: str) -> None:
    with pytest.raises(CoverError, match=complaint):
        cover.check(Plan("sqr", 4, "m", (), (run, *OF_FOUR[1:])))
