"""Where functions stand: each label once, or a jump would go to another place than the one that is meant."""

from __future__ import annotations

import pytest
from conftest import avr

from sqgen.code import Function, Label, Op
from sqgen.layout import layout

JUMP = Op("rjmp", (Label("f"),))
RETURN = Op("ret", ())


def test_functions_stand_one_behind_the_other_and_jumps_know_where() -> None:
    lines = layout([Function("", (JUMP,), ()), Function("f", (RETURN,), ())], avr())
    assert [line.instr.insn.name for line in lines] == ["rjmp", "ret"]
    assert lines[0].target == "f" and lines[1].labels == ("f",)


def test_no_label_stands_at_two_places() -> None:
    twice = [Function("", (JUMP,), ()), Function("f", (RETURN,), ()), Function("f", (RETURN,), ())]
    with pytest.raises(ValueError, match=r"^two places have the label f$"):
        layout(twice, avr())
