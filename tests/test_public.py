"""Public code in the comparison: its figures as they are, only where they hold, and how ours stand."""

from __future__ import annotations

import json

import pytest
from arm import arm
from commandline import Call
from conftest import avr

from sqgen.compare import Comparison, public_row
from sqgen.contract import OPS
from sqgen.public import public
from sqgen.spec import spec


@pytest.mark.parametrize("op", OPS)
def test_the_figures_are_whole_and_in_order(op: str) -> None:
    rows = public(avr(), op)
    assert rows == sorted(rows, key=lambda row: (row.bits, row.cycles, row.who))
    assert all(row.basis in ("measured", "published") and (row.call is None) == (row.bytes is None) for row in rows)
    assert all(row.call is None or row.cycles < row.call for row in rows)
    assert len({(row.bits, row.who) for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("op", "bits", "body"),
    [("sqr", 128, 911), ("sqr", 256, 3084), ("sqr", 1024, 34736), ("mul", 160, 2030), ("mul", 256, 4961)],
)
def test_the_best_without_branches_is_what_the_survey_says(op: str, bits: int, body: int) -> None:
    assert min(row.cycles for row in public(avr(), op) if row.bits == bits and not row.leaks) == body


def test_they_stand_in_the_comparison_unproved_and_off_the_front(sqgen: Call) -> None:
    shown = json.loads(sqgen("compare --isa avr --bits 64 --op mul --json").out)
    rows = {row["method"]: row for row in shown["rows"] if row["made_by"] == "public"}
    assert {name: row["body"] for name, row in rows.items()} == {
        row.who: row.body for row in public(avr(), "mul") if row.bits == 64
    }
    assert not any(row["front"] or row["proved"] for row in rows.values())
    ours = min(row["body"] for row in shown["rows"] if row["made_by"] == "sqgen")
    change = 100 * (ours - 368) / 368
    assert any("Hutter-Schwabe, branch-free, 368" in note and f"{change:+.1f} %" in note for note in shown["notes"])


def test_figures_for_one_core_are_not_shown_for_another() -> None:
    assert public(avr(), "sqr", avr().core("atmega328p")) and not public(avr(), "sqr", avr().core("avr128da48"))
    assert Comparison(spec("avr", 128, core="avr128da48")).public() == []
    assert [public_row(row).body for row in Comparison(spec("avr", 128, core="atmega328p")).public()][:1] == [911]


def test_each_core_has_figures_of_its_own_and_calls_are_compared_where_they_are_what_is_counted(sqgen: Call) -> None:
    """The figures are the survey's, research/arm.md, section 1."""
    fastest = {
        core: next(row.cycles for row in public(arm(), "sqr", arm().core(core)) if row.bits == 256 and not row.leaks)
        for core in ("cortex-m0", "cortex-m3", "cortex-m4")
    }
    assert fastest == {"cortex-m0": 848, "cortex-m3": 848, "cortex-m4": 140}
    assert [row.leaks for row in public(arm(), "sqr", arm().core("cortex-m3"))].count("takes time by the operands") == 1
    shown = json.loads(sqgen("compare --isa arm --bits 128 --json").out)
    ours = min(row["call"] for row in shown["rows"] if row["made_by"] == "sqgen")
    fastest_one = "the fastest public code that leaks nothing: C by gcc 12 -O3, 88 by call (model)"
    assert f"{fastest_one}; ours {100 * (ours - 88) / 88:+.1f} %" in shown["notes"]
