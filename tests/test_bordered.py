"""A product bordered by rows: a little above sizes that Karatsuba's method suits, what is over is added by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from conftest import avr
from judges import all_agree

from sqgen import answers, cover, kernel, methods, tune
from sqgen.cover import CoverError
from sqgen.errors import UserError
from sqgen.plan import Block, Load, Product, Run, Store
from sqgen.spec import spec

KEPT = answers.table(avr(), "bordered", "mul")
MADE = [
    (16, {}),
    (24, {}),
    (32, {"border": "2"}),
    (72, {"block": "1"}),
    (88, {"border": "3", "block": "6"}),
    (136, {"block": "10"}),
    (264, {}),
]


@pytest.mark.many
@pytest.mark.parametrize(("bits", "given"), MADE)
def test_both_proofs_runs_and_the_simulator_agree_that_it_is_the_product(bits: int, given: dict[str, str]) -> None:
    made = kernel.make(spec(avr(), bits, op="mul", method="bordered", parameters=given))
    all_agree(made)


@pytest.mark.parametrize(("border", "block", "limbs"), [*itertools.product((1, 2, 3), (1, 2, 7, 10), (8, 13))])
def test_each_cell_of_the_border_is_added_once_and_each_limb_stored_after_it(
    border: int, block: int, limbs: int
) -> None:
    made = methods.plan("mul", limbs, "bordered", {"border": str(border), "block": str(block)})
    inside = limbs - border
    cells = sorted((cell.i, cell.j) for cell in made.products())
    assert cells == [(i, j) for i in range(limbs) for j in range(limbs) if max(i, j) >= inside]
    assert [step.column for step in made.steps if isinstance(step, Store)] == [*range(inside, 2 * limbs)]
    assert [step.column for step in made.steps if isinstance(step, Load)] == [*range(inside, 2 * inside)]


def test_no_step_can_be_left_out_or_be_there_twice() -> None:
    made = methods.plan("mul", 5, "bordered", {"block": "2"})
    for index, step in enumerate(made.steps):
        if not isinstance(step, Block):
            for steps in (made.steps[:index], (*made.steps[:index], step, step)):
                with pytest.raises(CoverError):
                    cover.check(replace(made, steps=(*steps, *made.steps[index + 1 :])))


def test_a_block_has_two_products_of_each_column_for_each_limb_of_the_border() -> None:
    made = methods.plan("mul", 33, "bordered", {"block": "8", "border": "2"})
    assert [len(cells) for title, cells in made.blocks() if title.startswith("columns 3")] == [30, 32]  # one row later
    assert {type(step) for step in made.steps if isinstance(step, Product | Run)} == {Run}


def test_a_border_of_all_limbs_is_refused() -> None:
    with pytest.raises(UserError, match="a border of 2 leaves nothing of 2 limbs"):
        methods.plan("mul", 2, "bordered", {"border": "2"})


@pytest.mark.parametrize("bits", [16, 24, 32, 136, 536])
def test_the_border_tried_first_leaves_what_can_be_halved(bits: int) -> None:
    first, *others = methods.points("bordered", bits // 8)
    assert first["border"] == ("3" if bits == 536 else "1") and first not in others


# ---- where it is the fastest ----------------------------------------------------------------------------------------


def test_answers_are_kept_where_it_is_the_fastest_alone() -> None:
    assert {264, 520, 528} <= {*KEPT}  # bits; 521 are a curve's
    for bits, (mine,) in KEPT.items():
        others = [row for name, row in answers.known(avr(), "mul", bits) if name != "bordered"]
        assert int(mine[answers.BODY]) < int(answers.best(others)[answers.BODY])


@pytest.mark.parametrize("bits", [264, 328])
def test_it_is_taken_where_it_is_the_fastest_and_takes_what_its_answer_says(bits: int) -> None:
    made = kernel.make(spec(avr(), bits, op="mul"))
    assert made.compiled.plan.method == "bordered"
    assert made.price.body == KEPT[bits][0][answers.BODY]


@pytest.mark.parametrize(("limbs", "better"), [(41, True), (40, False)])
def test_a_search_keeps_no_answer_that_another_method_beats(limbs: int, better: bool) -> None:
    core = avr().core(avr().default_core)
    cycles = tune.body(avr(), "mul", limbs, "bordered", {})
    found = {limbs: {"bordered": (cycles, {"border": "1"}), "rows": (cycles, {})}}
    assert tune.kept(avr(), "mul", "bordered", found, core) == ({limbs: {"border": "1"}} if better else {})
    assert tune.kept(avr(), "mul", "rows", found, core) == {limbs: {}}
    assert tune.kept(avr(), "mul", "karatsuba", found, core) == {}
