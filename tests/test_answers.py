"""What the search recorded is still so."""

from __future__ import annotations

import re

import pytest
from conftest import avr

from sqgen import answers, methods, tune

ROW = re.compile(r'^(\d+) = \{ (\w+) = "([\d,]+)" \}  # (\d+) cycles a call$')


Row = tuple[str, str, int, str, str, int]


def recorded() -> list[Row]:
    """(method, operation, bits, parameter, value, cycles) of every answer with parameters."""
    found, method, op = [], "", ""
    for line in answers.path(avr()).read_text().splitlines():
        if line.startswith("["):
            method, op = line.strip("[]").split(".")
        elif match := ROW.match(line):
            bits, parameter, value, cycles = match.groups()
            found.append((method, op, int(bits), parameter, value, int(cycles)))
    return found


def test_every_size_up_to_512_bits_has_a_fastest_method() -> None:
    for op in ("sqr", "mul"):
        assert all(answers.fastest(avr(), op, bits) in methods.names(op) for bits in range(16, 513, 8))


@pytest.mark.parametrize("row", [row for row in recorded() if row[2] % 96 == 0], ids=lambda row: f"{row[0]}-{row[2]}")
def test_an_answer_costs_what_the_search_recorded_and_no_more_than_the_default(
    row: tuple[str, str, int, str, str, int],
) -> None:
    method, op, bits, parameter, value, cycles = row
    assert answers.parameters(avr(), method, op, bits) == {parameter: value}
    assert tune.cost(avr(), op, bits // 8, method, {parameter: value}) == cycles
    assert cycles <= (tune.cost(avr(), op, bits // 8, method, {}) or cycles)


@pytest.mark.parametrize("op", ["sqr", "mul"])
@pytest.mark.parametrize("limbs", [2, 7, 20, 33])
def test_no_method_beats_the_one_recorded_as_fastest(op: str, limbs: int) -> None:
    bits = limbs * 8
    costs = {
        method: tune.cost(avr(), op, limbs, method, answers.parameters(avr(), method, op, bits))
        for method in methods.names(op)
    }
    assert costs[str(answers.fastest(avr(), op, bits))] == min(cost for cost in costs.values() if cost is not None)
