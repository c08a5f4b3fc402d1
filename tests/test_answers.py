"""What the search recorded is still so."""

from __future__ import annotations

import re

import pytest
from conftest import avr

from sqgen import answers, tune

RECORDED = re.findall(r"^(\d+) = .*# (\d+) cycles a call$", answers.path(avr()).read_text(), re.MULTILINE)


def test_every_size_up_to_512_bits_has_an_answer() -> None:
    assert [int(bits) for bits, _ in RECORDED] == list(range(16, 513, 8))


@pytest.mark.parametrize(
    ("bits", "cycles"), [(int(bits), int(cycles)) for bits, cycles in RECORDED if int(bits) % 32 == 0]
)
def test_an_answer_costs_what_the_search_recorded_and_no_more_than_the_default(bits: int, cycles: int) -> None:
    found = answers.parameters(avr(), "sbd", "sqr", bits)
    assert tune.cost(avr(), "sqr", bits // 8, "sbd", found) == cycles
    assert cycles <= (tune.cost(avr(), "sqr", bits // 8, "sbd", {}) or cycles)


@pytest.mark.parametrize("limbs", [2, 7, 20, 33])
def test_the_method_recorded_as_fastest_is_faster_than_the_others(limbs: int) -> None:
    bits = limbs * 8
    best = tune.cost(avr(), "sqr", limbs, "sbd", answers.parameters(avr(), "sbd", "sqr", bits))
    other = tune.cost(avr(), "sqr", limbs, "product-scanning", {})
    assert answers.fastest(avr(), "sqr") == "sbd" and best is not None and other is not None and best <= other
