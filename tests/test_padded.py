"""Longer operands: copied with zeros above them, which is shorter and faster where limbs cannot be halved again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import avr
from judges import all_agree
from longer import as_fast_as_larger
from test_toy import toy

from sqgen import answers, attempts, choosing, cover, kernel, measure, methods, padding
from sqgen.answers import costs
from sqgen.cover import CoverError
from sqgen.errors import Exit, UserError
from sqgen.plan import Block, Copy, Plan, Step
from sqgen.spec import spec

CALLS = "karatsuba,levels=2,parts=calls,recombine=looped,turn=2"
HALVES = "karatsuba-squaring,levels=1,parts=calls"
MADE = [
    ("mul", 24, {}),
    ("sqr", 24, {}),
    ("mul", 16, {"limbs": "3"}),
    ("mul", 72, {"limbs": "16", "inner": CALLS}),
    ("sqr", 104, {"limbs": "14", "inner": HALVES}),
    ("mul", 72, {"limbs": "12", "inner": "row-loops"}),
    ("sqr", 72, {"limbs": "16", "inner": "karatsuba"}),
]


@pytest.mark.parametrize(("op", "bits", "given"), MADE)
def test_both_proofs_runs_and_the_simulator_agree_that_it_is_the_product(
    op: str, bits: int, given: dict[str, str]
) -> None:
    made = kernel.make(spec(avr(), bits, op=op, method="padded", parameters=given))
    all_agree(made)


@pytest.mark.parametrize(("op", "names"), [("mul", ("a", "b")), ("sqr", ("a",))])
def test_the_result_may_lie_anywhere_on_the_operands(op: str, names: tuple[str, ...]) -> None:
    made = kernel.make(spec(avr(), 40, op=op, method="padded"))
    assert all({*range(-9, 5)} <= {*made.verdict.overlap[name]} for name in names)


def test_what_was_copied_is_cleared_where_that_is_asked_for() -> None:
    made = kernel.make(spec(avr(), 40, op="mul", method="padded", parameters={"wipe": "1"}))
    assert made.residue.nothing
    assert not kernel.make(spec(avr(), 40, op="mul", method="padded")).residue.nothing


# ---- the plan -------------------------------------------------------------------------------------------------------


def plan(op: str = "mul", **given: str) -> Plan:
    return methods.plan(op, 3, "padded", given)


def checked(made: Plan, steps: list[Step]) -> None:
    cover.check(replace(made, steps=tuple(steps)))


@pytest.mark.parametrize("op", ["mul", "sqr"])
def test_no_step_can_be_left_out_or_be_there_twice(op: str) -> None:
    made = plan(op, limbs="5")
    for index, step in enumerate(made.steps):
        if not isinstance(step, Block):
            with pytest.raises(CoverError):
                checked(made, [*made.steps[:index], *made.steps[index + 1 :]])
        if isinstance(step, Copy):
            with pytest.raises(CoverError):
                checked(made, [*made.steps[:index], step, *made.steps[index:]])


def test_copies_of_something_else_are_found() -> None:
    made = plan(limbs="5")
    places = [index for index, step in enumerate(made.steps) if isinstance(step, Copy)]
    for index in places:
        copy = made.steps[index]
        assert isinstance(copy, Copy)
        for other in (
            replace(copy, limbs=replace(copy.limbs, name="b" if copy.limbs.name == "a" else "a")),
            replace(copy, limbs=replace(copy.limbs, count=copy.limbs.count - 1)),
            replace(copy, limbs=replace(copy.limbs, first=1)),
            replace(copy, into=replace(copy.into, count=copy.into.count - 1)),
        ):
            with pytest.raises(CoverError):
                checked(made, [*made.steps[:index], other, *made.steps[index + 1 :]])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"limbs": "3"}, "no more than the 3"),
        ({"inner": "karatsuba,levels"}, "NAME=VALUE"),
        ({"inner": "no-such"}, "unknown method 'no-such'"),
        ({"inner": "karatsuba,levels=x"}, "levels"),
    ],
)
def test_what_makes_no_sense_is_said(given: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        plan(**given)


def test_where_no_idioms_copy_operands_another_method_is_named() -> None:
    asked = spec(toy(), 48, op="mul", method="padded")
    with pytest.raises(UserError, match="cannot form") as refused:
        kernel.make(asked)
    assert refused.value.code == Exit.USAGE
    assert not padding.formed(asked)


# ---- when it is tried -----------------------------------------------------------------------------------------------

SAMPLE = [
    (op, bits, row)
    for op in ("mul", "sqr")
    for bits in (192, 256, 480, 736)
    for row in answers.fronts(avr(), op)[bits]
    if padding.particular(str(row[answers.METHOD]), bits // 8)
][::3]


@pytest.mark.many
@pytest.mark.parametrize(("op", "bits", "row"), SAMPLE, ids=lambda each: str(each)[:40])
@pytest.mark.parametrize("less", [1, 3, 11])
def test_what_it_costs_is_known_and_never_more(op: str, bits: int, row: answers.Row, less: int) -> None:
    asked = spec(avr(), bits - 8 * less, op=op)
    longer = padding.longer(asked, row, bits // 8)
    (made,), _ = choosing.tried(asked, [(padding.NAME, longer)])
    body, call, size, stack = costs(longer)
    price, most = measure.price(made, asked.core), 2 * padding.CYCLES + 2 * 4 * bits // 8
    assert 0 <= call - price.call <= most and 0 <= body - price.body <= most
    assert 0 <= size - len(made.image) <= padding.BYTES and stack == measure.stack(made, asked.core)


@pytest.mark.parametrize(
    ("op", "bits", "limit"),
    [("mul", 280, 3000), ("mul", 528, 6000), ("mul", 616, 3000), ("mul", 1016, 6000), ("sqr", 744, 3000)],
)
def test_within_limits_a_size_is_about_as_fast_as_the_next_larger_ones(op: str, bits: int, limit: int) -> None:
    as_fast_as_larger(spec(avr(), bits, op=op, max_bytes=limit), 5)


def test_loops_that_would_not_come_out_even_are_longer_ones() -> None:
    made = choosing.choose(spec(avr(), 208, op="mul", max_bytes=480))
    assert made.plan.copies and dict(made.plan.parameters)["inner"] == "row-loops"
    assert len(choosing.choose(spec(avr(), 208, op="mul", method="row-loops")).image) > 480


def test_a_row_that_is_better_for_its_own_limbs_is_tried_as_well() -> None:
    asked = spec(avr(), 528, op="sqr", max_bytes=6000)
    made = choosing.choose(asked)
    longer, *_ = padding.padded(asked)
    assert not made.plan.copies and measure.price(made, asked.core).body < costs(longer)[0]


def test_nothing_is_left_out_where_costs_are_not_known() -> None:
    for more in ({"parameters": {"wipe": "1"}}, {"reserve": ("r2",)}):
        asked = spec(avr(), 1016, op="mul", max_bytes=3000, **more)
        assert not padding.padded(asked)
        assert padding.NAME not in {name for name, _ in attempts.requests(asked)}
    assert padding.NAME in {name for name, _ in attempts.requests(spec(avr(), 1016, op="mul", max_bytes=3000))}
