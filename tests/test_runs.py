"""Runs that show code to be wrong: on which operands, how many, and what a proof does with what they show."""

from __future__ import annotations

import pytest
from clock import soon
from conftest import avr, compiled, contract, core

from sqgen import agreement, interpret
from sqgen.carries import Carries
from sqgen.encode import DecodeError, Instr, assemble
from sqgen.mutants import changes
from sqgen.prove import prove
from sqgen.runs import Runs, counterexample, revealing

NESTED = {"levels": "2", "parts": "nested", "recombine": "unrolled", "signs": "branched"}
RANDOM, MIXED = 4, interpret.PLAIN  # operands that come first, and then before those of one limb


def test_the_operands_that_are_tried_first_find_most_of_what_is_wrong() -> None:
    code, what = compiled("mul", 6, "karatsuba").image, contract("mul", 6)
    tried = list(revealing(what, 2 * MIXED))
    assert len(set(tried)) == len(tried) == RANDOM + 2 * MIXED
    found = []
    for change in [*changes(avr(), code)][::67]:
        wrong = change.apply(code)
        try:
            found.append([interpret.call(wrong, what, core(), each) != each[0] * each[1] for each in tried])
        except (interpret.Crash, DecodeError):
            continue
    columns = [sum(column) for column in zip(*found, strict=True)]
    assert columns[0] > max(columns[-MIXED:]) > 20  # those of one limb again and again
    assert sum(map(any, (each[:3] for each in found))) > 0.9 * sum(map(any, found))


@pytest.mark.parametrize("bits", [48, 96, 168])
def test_a_complement_goes_another_way(bits: int) -> None:
    given = NESTED if bits == 168 else {**NESTED, "levels": "1", "parts": "inline"}
    code, what = compiled("mul", bits // 8, "karatsuba", **given).image, contract("mul", bits // 8)
    one, other, *_ = revealing(what, 0)
    assert interpret.trace(code, what, core(), one)[1] != interpret.trace(code, what, core(), other)[1]


def test_as_many_runs_are_made_as_there_is_time_for() -> None:
    code, what = compiled("mul", 4, "product-scanning").image, contract("mul", 4)
    runs = Runs(code, what, core())
    assert not runs.show(0, calls=1) and runs.calls == 1  # how long one is, is not known before
    length = runs.steps
    assert not runs.show(3 * length) and (runs.calls, runs.steps) == (3, 3 * length)
    assert not runs.show(4 * length - 1) and runs.calls == 3
    assert not runs.show(0, calls=5) and runs.calls == 5


def test_what_a_run_has_shown_is_known() -> None:
    code, what = compiled("mul", 4, "product-scanning").image, contract("mul", 4)
    (wrong, *_) = (each.apply(code) for each in changes(avr(), code) if "mul" in str(each.old[0].insn.name))
    runs = Runs(wrong, what, core())
    assert runs.show(10_000) and runs.operands
    assert interpret.call(wrong, what, core(), runs.operands) != runs.operands[0] * runs.operands[1]
    calls = runs.calls
    assert runs.show(10_000) and runs.calls == calls
    assert counterexample(wrong, what, core()) == runs.operands


def test_a_crash_is_wrong_for_no_operands_and_a_run_without_end_shows_nothing() -> None:
    isa, what = avr(), contract("mul", 4)
    crashing = Runs(assemble([Instr(isa.insns["nop"], ())]), what, core())
    assert crashing.show(10_000) and crashing.operands is None
    endless = Runs(assemble([Instr(isa.insns["rjmp"], (-2,))]), what, core())
    assert not endless.show(10_000) and not endless.show(10_000) and endless.calls == 1


def swapped() -> bytes:
    """A kernel of 256 bits that branches, with the operands of a product swapped where one is negative."""
    code = compiled("mul", 32, "karatsuba", **NESTED).image
    found = [each for each in changes(avr(), code) if each.how == "operands swapped" and 600 < each.at < 800]
    return found[0].apply(code)


@pytest.mark.clock
def test_what_takes_long_to_be_shown_right_is_not_looked_for_where_a_run_shows_it_wrong() -> None:
    wrong = swapped()
    assert not soon(lambda: prove(wrong, contract("mul", 32), core(), branches=True), 4).proved


def test_a_long_look_asks_whether_the_code_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    touched = Carries.touched

    def noting(self: Carries, search: object) -> None:
        looked.append(self)
        touched(self, search)  # type: ignore[arg-type]

    monkeypatch.setattr(Carries, "touched", noting)
    code = compiled("mul", 12, "karatsuba").image
    some = [each.apply(code) for each in [*changes(avr(), code)][::29] if each.how == "swapped with the next"]

    def looks(long: int) -> list[int]:
        monkeypatch.setattr(agreement, "LONG", long)
        found = []
        for wrong in some:
            looked.clear()
            assert not prove(wrong, contract("mul", 12), core()).proved or counterexample(wrong, what, core()) is None
            found.append(len(looked))
        return found

    what = contract("mul", 12)
    at_once, late = looks(0), looks(1_000_000)
    assert all(few <= many for few, many in zip(at_once, late, strict=True))
    assert any(2 * few < many for few, many in zip(at_once, late, strict=True))
