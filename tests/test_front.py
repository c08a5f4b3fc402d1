"""The front: what small code and little stack cost, as recorded; requests take the best of it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from clock import quick
from conftest import avr
from reproduce import homes

from sqgen import answers, attempts, choosing, front, goals, kernel, measure, methods
from sqgen.answers import COSTS, Row, costs
from sqgen.contract import OPS
from sqgen.public import public
from sqgen.spec import GOALS, Spec, spec
from sqgen.table import Core, Isa
from sqgen.tables import isa, isa_names

HOMES = [(which, core, op) for which in map(isa, isa_names()) for core, op in itertools.product(homes(which), OPS)]
RECORDED = [
    (front.Job(which.name, op, bits, core.name, core.any_time), row)
    for which, core, op in HOMES
    for bits, rows in answers.fronts(which, op, core).items()
    for row in rows
]
SAMPLE = [each for each in RECORDED if each[0].bits in (32, 96, 192)]
of_each_home = pytest.mark.parametrize(("which", "core", "op"), HOMES, ids=lambda each: getattr(each, "name", each))


@pytest.mark.many
@pytest.mark.parametrize(("job", "row"), SAMPLE, ids=lambda each: str(each)[:60])
def test_a_row_costs_what_was_recorded(job: front.Job, row: Row) -> None:
    again = front.priced(job.spec, row)
    assert again and costs(again) == costs(row)


@of_each_home
def test_no_row_beats_another_in_everything(which: Isa, core: Core, op: str) -> None:
    fronts = answers.fronts(which, op, core)
    assert fronts
    for rows in fronts.values():
        for row in rows:
            assert not any(o != row and all(a <= b for a, b in zip(costs(o), costs(row), strict=True)) for o in rows)


@of_each_home
def test_the_fastest_that_is_known_is_on_the_front(which: Isa, core: Core, op: str) -> None:
    """Or else who asks for what it takes at most would not get it."""
    for bits, rows in answers.fronts(which, op, core).items():
        for what in (answers.BODY, answers.CALL):
            known = [row[what] for _, row in answers.known(which, op, bits, core)]
            assert min(int(row[what]) for row in rows) <= min(map(int, known), default=1 << 60), bits


@of_each_home
def test_stack_hardly_grows_faster_than_the_operands(which: Isa, core: Core, op: str) -> None:
    """Code in one piece takes hardly any, from what fills the registers up to 1024 bits."""
    least = {bits: min(costs(row)[3] for row in rows) for bits, rows in answers.fronts(which, op, core).items()}
    for few, many in itertools.combinations(sorted(bits for bits in least if 256 <= bits <= front.LONGEST), 2):
        assert least[many] / many <= 1.2 * least[few] / few, (few, many)


def test_long_code_is_tried_only_for_who_asks_for_little_stack() -> None:
    """It takes seconds to make on this core."""

    def names(asked: Spec) -> set[str]:
        return {name for name, _ in attempts.requests(asked)}

    asked = spec("arm", 992, op="mul", core="cortex-m0")
    others = replace(asked, goal="size"), replace(asked, goal="balanced"), replace(asked, max_bytes=9000)
    assert "free-order" in names(replace(asked, max_stack=100))
    assert all("free-order" not in names(other) for other in others)


@pytest.mark.many
@pytest.mark.parametrize(
    ("name", "op", "bits", "stack", "method"),
    [
        ("avr", "sqr", 384, 20, "sweeps"),
        ("avr", "sqr", 440, 20, "sweeps"),
        ("avr", "sqr", 384, 30, "streamed-karatsuba"),
        ("avr", "mul", 552, 20, "operand-caching"),
        ("msp430", "sqr", 608, 90, "product-scanning"),
        ("msp430", "mul", 336, 24, "hybrid"),
        ("msp430", "mul", 640, 24, "hybrid"),
    ],
)
def test_in_little_stack_nothing_is_slower_than_a_method_in_one_piece(
    name: str, op: str, bits: int, stack: int, method: str
) -> None:
    """However long that is."""
    asked = spec(name, bits, op=op, max_stack=stack)
    taken, known = (choosing.rank(each, choosing.choose(each)) for each in (asked, replace(asked, method=method)))
    assert taken <= known


def test_no_row_is_longer_than_what_a_part_can_hold() -> None:
    asked = spec(avr(), 1024, op="mul")
    row: Row = {answers.METHOD: "operand-caching", answers.GOAL: "speed"}
    assert front.priced(asked, row) is None
    assert all(costs(row)[2] <= 1 << 17 for op in OPS for rows in answers.fronts(avr(), op).values() for row in rows)


def test_what_fits_is_enough_where_all_else_is_far_slower() -> None:
    asked = spec(avr(), 520, op="mul", max_stack=18)
    (fast,) = (row for row in answers.fronts(avr(), "mul")[512] if row[answers.METHOD] == "full-operand-caching")
    (slow,) = (row for row in answers.fronts(avr(), "mul")[512] if row[answers.METHOD] == "column-loops")
    made = [each for each in choosing.candidates(asked) if each.plan.method == fast[answers.METHOD]]
    assert choosing.beaten(asked, slow, made, 0) and not choosing.beaten(asked, fast, made, 0)
    assert not choosing.beaten(replace(asked, max_stack=17), slow, made, 0)  # for it does not fit


@pytest.mark.parametrize(("op", "name"), [("mul", "karatsuba"), ("sqr", "karatsuba-squaring")])
def test_what_lies_between_is_smaller_than_what_is_the_fastest(op: str, name: str) -> None:
    asked = spec(avr(), 128, op=op)
    rows = [
        front.priced(asked, {answers.METHOD: name, answers.GOAL: "call", **way}) for way in methods.between(name, 16)
    ]
    sizes = [costs(row)[2] for row in rows if row]
    assert len(sizes) > 3 and min(sizes) < min(kernel.make(asked).size, 1200)


@pytest.mark.parametrize("op", OPS)
def test_the_points_of_all_goals_are_beaten_by_no_public_code_in_both_cycles_and_bytes(op: str) -> None:
    fronts = answers.fronts(avr(), op)
    for bits in (128, 160, 192, 224, 256, 384, 512, 768, 1024):
        others = [other for other in public(avr(), op) if other.bits == bits and other.bytes and not other.leaks]
        for goal in GOALS:
            asked = spec(avr(), bits, op=op, goal=goal)
            best = min(fronts[bits], key=lambda row: goals.ranked(asked, *costs(row)[:3]))
            body, _, size, _ = costs(best)
            assert not [other.who for other in others if other.cycles <= body and (other.bytes or 0) <= size], (
                bits,
                goal,
            )


@pytest.mark.many
@pytest.mark.clock
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize(
    ("op", "bits"), [("sqr", 128), ("mul", 128), ("sqr", 232), ("mul", 200), ("sqr", 1000), ("mul", 744)]
)
def test_a_goal_is_met_in_two_seconds(op: str, bits: int, goal: str) -> None:
    kernel.make(spec(avr(), 64, op=op))
    assert quick(lambda: kernel.make(spec(avr(), bits, op=op, goal=goal)), 2)


@pytest.mark.parametrize(("op", "bits"), [("sqr", 72), ("mul", 72), ("sqr", 312), ("mul", 328), ("mul", 952)])
def test_between_two_fronts_no_loops_are_better_balanced_than_what_is_taken(op: str, bits: int) -> None:
    asked = spec(avr(), bits, op=op, goal="balanced")
    taken = choosing.rank(asked, choosing.choose(asked))
    for method in ("column-loops", "row-loops"):
        assert taken <= choosing.rank(asked, choosing.choose(spec(avr(), bits, op=op, method=method)))


@pytest.mark.parametrize(("op", "bits"), [("sqr", 128), ("mul", 96)])
def test_limits_choose_the_fastest_that_fits(op: str, bits: int) -> None:
    for row in answers.fronts(avr(), op)[bits]:
        body, _, size, stack = costs(row)
        made = kernel.make(spec(avr(), bits, op=op, max_bytes=size, max_stack=stack))
        assert made.size <= size and made.verdict.stack <= stack and made.price.body <= body


@pytest.mark.parametrize(("op", "bits"), [("mul", 56), ("mul", 72), ("sqr", 88)])
def test_between_the_sizes_of_the_front_no_kernel_is_larger_than_the_fastest(op: str, bits: int) -> None:
    small, fast = (kernel.make(spec("avr", bits, op=op, goal=goal)).size for goal in ("size", "speed"))
    assert small <= fast


def test_stack_is_measured_as_the_proof_sees_it() -> None:
    for method, more in (("sbd", {}), ("karatsuba-squaring", {"levels": "2", "parts": "calls"})):
        made = kernel.make(spec(avr(), 128, method=method, parameters=more))
        assert measure.stack(made.compiled, made.spec.core) == made.verdict.stack


def test_a_row_about_as_fast_and_no_larger_makes_another_idle() -> None:
    def row(*figures: int) -> Row:
        return dict(zip(COSTS, figures, strict=True))

    rows = [row(1000, 1050, 500, 10), row(1005, 1055, 500, 10), row(1005, 1055, 400, 10), row(900, 990, 900, 10)]
    assert front.front(rows) == [row(900, 990, 900, 10), row(1000, 1050, 500, 10), row(1005, 1055, 400, 10)]


def test_between_the_sizes_of_fronts_a_tighter_limit_gives_smaller_code_that_is_no_faster() -> None:
    limit, before = 6000, 0
    for _ in range(4):
        made = kernel.make(spec(avr(), 280, op="mul", max_bytes=limit))
        assert made.size <= limit and made.price.body >= before
        limit, before = made.size - 1, made.price.body


def test_no_cycles_are_counted_where_the_smallest_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked: list[int] = []
    monkeypatch.setattr(choosing, "rank", lambda spec, each: ranked.append(len(each.image)))
    asked = spec(avr(), 280, op="mul", goal="size")
    smallest = len(choosing.choose(asked).image)
    assert smallest == min(len(each.image) for each in choosing.candidates(asked)) and {*ranked} <= {smallest}


def test_limits_are_met_by_code_that_branches_where_that_is_allowed_and_faster() -> None:
    plain, branching = (
        kernel.make(spec(avr(), 280, op="mul", max_bytes=6000, allow_branches=allowed)) for allowed in (False, True)
    )
    assert branching.size <= 6000 and branching.compiled.plan.branches and branching.price.body < plain.price.body
