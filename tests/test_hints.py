"""How registers are looked for: as an answer says, which gives the fewest cycles of all ways that were tried."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from conftest import avr

from sqgen import answers, attempts, forked, hints, methods, residence, tune, workers
from sqgen.code import Function
from sqgen.errors import UserError
from sqgen.evict import PressureError
from sqgen.idioms import idioms
from sqgen.looking import EVERYWHERE, Looking, looking
from sqgen.methods import REGISTERS
from sqgen.plan import Plan

NESTED = {"levels": "2", "parts": "nested"}


def plan(**more: str) -> Plan:
    return methods.plan("mul", 24, "karatsuba", {**NESTED, **more})


def test_a_plan_says_how_far_to_look_or_nothing() -> None:
    assert looking(plan()) == EVERYWHERE
    assert looking(plan(registers="1.2,10")) == Looking((1.2,), 10)
    assert looking(methods.plan("sqr", 8, "sbd", {})) == EVERYWHERE


@pytest.mark.parametrize("text", ["2", "0,4", "2,0", "2,100", "2.25,4", "2,4,6", "a,4", "10,4", " 2,4"])
def test_what_is_no_weight_and_width_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"'registers' is a weight from 1 to .*, as in 1.2,10, not"):
        looking(plan(registers=text))


def test_weights_that_find_no_registers_leave_it_to_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    (function, *_) = hinted_functions()
    usual = residence.residences(function)
    lending = residence._lending

    def refusing(which: Function, saved: float, **how: bool) -> residence.Residence:
        if saved == 3:
            raise PressureError("no")
        return lending(which, saved, **how)

    monkeypatch.setattr(residence, "_lending", refusing)
    assert [way.stays for way in residence.residences(function, weights=(3,))] == [way.stays for way in usual]


def hinted_functions() -> tuple[Function, ...]:
    """Those of a product before their registers are given out."""
    return idioms(avr()).lower(plan(), avr(), avr().core("atmega128")).functions


def test_a_narrow_beam_is_no_wider_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    widths = set()
    best = forked.best_places

    def noting(task, found):  # type: ignore[no-untyped-def]
        widths.add(task.width)
        return best(task, found)

    monkeypatch.setattr("sqgen.allocate.best_places", noting)
    assert tune.body(avr(), "mul", 24, "karatsuba", {**NESTED, "registers": "2,3"})
    assert widths == {3}


def test_the_best_way_is_found_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "WEIGHTS", ("2", "1.2"))
    monkeypatch.setattr(hints, "WIDTHS", (2, 3))
    saved: dict[str, object] = {}

    def save(which: object, method: str, op: str, rows: object) -> None:
        saved[f"{method} {op}"] = rows

    monkeypatch.setattr(hints, "save", save)
    monkeypatch.setattr(workers, "pool", InOneProcess)
    run = CliRunner().invoke(hints.main, ["--isa", "avr", "--least", "192", "--most", "192"], catch_exceptions=False)
    assert run.exit_code == 0
    (row,) = saved["karatsuba mul"][192]  # type: ignore[index]
    costs = {way: tune.body(avr(), "mul", 24, "karatsuba", {**NESTED, REGISTERS.name: way}) for way in hints.ways()}
    assert row[REGISTERS.name] == min(costs, key=lambda way: costs[way]) and row[answers.BODY] == min(costs.values())
    assert min(costs.values()) < tune.body(avr(), "mul", 24, "karatsuba", NESTED)


def test_where_code_branches_registers_may_be_looked_for_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    best = {"": "1.2,6", "branched": "2,3", "everywhere": "2,3"}  # by signs

    def body(which: object, op: str, limbs: int, method: str, given: tune.Given) -> int:
        return 10 - (given.get(REGISTERS.name) == best[given.get("signs", "")])

    monkeypatch.setattr(tune, "body", body)
    monkeypatch.setattr(tune, "row", lambda which, op, limbs, method, given: given)
    nested, square = ("avr", "karatsuba", "mul", 24), ("avr", "karatsuba-squaring", "sqr", 24)
    ways = {REGISTERS.name: "1.2,6", answers.BRANCHING: "branched", answers.BRANCHED: "2,3"}
    assert hints.better(nested, {}) == ways
    assert hints.better(square, {}) == {REGISTERS.name: "1.2,6"}
    best |= {"branched": "none", "everywhere": "1.2,6"}
    assert hints.better(nested, {}) == {REGISTERS.name: "1.2,6", answers.BRANCHING: "everywhere"}


def test_arms_for_which_a_second_must_do_have_narrow_beams(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(which: object, op: str, limbs: int, method: str, given: tune.Given) -> int:
        return 100 - int(given.get(REGISTERS.name, "2,16").split(",")[1])

    monkeypatch.setattr(tune, "body", body)
    monkeypatch.setattr(tune, "row", lambda which, op, limbs, method, given: given)
    form = {answers.BRANCHING: "branched"}
    arms = {REGISTERS.name: "2,20", **form, answers.BRANCHED: "2,4"}
    assert hints.better(("avr", "karatsuba", "mul", 32), {}) == arms
    assert hints.better(("avr", "karatsuba", "mul", 33), {}) == {REGISTERS.name: "2,20", **form}


def test_beyond_512_bits_beams_are_narrow_lest_a_kernel_takes_more_than_two_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def body(which: object, op: str, limbs: int, method: str, given: tune.Given) -> int:
        return 100 - int(given.get(REGISTERS.name, "2,90").split(",")[1])

    monkeypatch.setattr(tune, "body", body)
    monkeypatch.setattr(tune, "row", lambda which, op, limbs, method, given: given)
    assert hints.better(("avr", "karatsuba", "mul", 64), {}) == {answers.BRANCHING: "branched"}
    assert hints.better(("avr", "karatsuba", "mul", 65), {})[REGISTERS.name] == "2,4"
    assert hints.better(("avr", "karatsuba-squaring", "sqr", 96), {}) == {}  # looked for everywhere


def test_where_code_cannot_branch_no_way_is_kept_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(which: object, op: str, limbs: int, method: str, given: tune.Given) -> int:
        return tune.NEVER if "signs" in given else 10 - (given.get(REGISTERS.name) == "1.2,6")

    monkeypatch.setattr(tune, "body", body)
    monkeypatch.setattr(tune, "row", lambda which, op, limbs, method, given: given)
    assert hints.better(("avr", "karatsuba", "mul", 24), {}) == {REGISTERS.name: "1.2,6"}


def test_what_branches_is_compiled_as_its_answer_says_and_nothing_else_is() -> None:
    row: answers.Row = {"levels": "2", REGISTERS.name: "1.2,14", answers.BRANCHED: "1.2,2", answers.BODY: 9}
    forms: list[answers.Row] = [{"levels": "2", REGISTERS.name: "1.2,2", "signs": form} for form in attempts.BRANCHING]
    assert attempts.branching(row) == forms
    assert attempts.branching({**row, answers.BRANCHING: "everywhere"}) == forms[1:]
    assert answers.given(row) == {"levels": "2", REGISTERS.name: "1.2,14"}


class InOneProcess:
    """A pool without processes, which would not see what a test has changed."""

    def __enter__(self) -> InOneProcess:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, work, jobs):  # type: ignore[no-untyped-def]
        return map(work, jobs)


def test_all_long_answers_of_methods_that_can_say_it_do_or_are_better_without() -> None:
    for op in ("sqr", "mul"):
        for name in methods.names(op):
            if REGISTERS in methods.method(name).PARAMETERS:
                table = answers.table(avr(), name, op)
                rows = [(bits, row) for bits, rows in table.items() for row in rows if bits >= hints.LONG * 8]
                bare = [(bits, row) for bits, row in rows if REGISTERS.name not in row]
                assert len(bare) < len(rows) / 10
                for bits, row in bare:
                    hinted = {**answers.given(row), REGISTERS.name: "2,16"}
                    assert tune.body(avr(), op, bits // 8, name, hinted) > int(row[answers.BODY])
