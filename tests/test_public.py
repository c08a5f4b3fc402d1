"""Public code in the comparison: its figures as they are, only where they hold, and how ours stand."""

from __future__ import annotations

import json

import pytest
from commandline import Call
from conftest import avr

from sqgen.compare import Comparison, public_row
from sqgen.contract import OPS
from sqgen.public import comparable, public
from sqgen.spec import spec


@pytest.mark.parametrize("op", OPS)
def test_the_figures_are_whole_and_in_order(op: str) -> None:
    rows = public(avr(), op)
    assert rows == sorted(rows, key=lambda row: (row.bits, row.body, row.who))
    assert all(row.basis in ("measured", "published") and (row.call is None) == (row.bytes is None) for row in rows)
    assert all(row.call is None or row.body < row.call for row in rows)
    assert len({(row.bits, row.who) for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("op", "bits", "body"),
    [("sqr", 128, 911), ("sqr", 256, 3084), ("sqr", 1024, 34736), ("mul", 160, 2030), ("mul", 256, 4961)],
)
def test_the_best_without_branches_is_what_the_survey_says(op: str, bits: int, body: int) -> None:
    assert min(row.body for row in public(avr(), op) if row.bits == bits and not row.signs) == body


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
    assert comparable(avr(), avr().core("atmega328p")) and not comparable(avr(), avr().core("avr128da48"))
    assert Comparison(spec("avr", 128, core="avr128da48")).public() == []
    assert [public_row(row).body for row in Comparison(spec("avr", 128, core="atmega328p")).public()][:1] == [911]
