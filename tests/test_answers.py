"""What the search recorded is still so."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from conftest import avr

from sqgen import answers, methods, tune
from sqgen.contract import OPS

Row = tuple[str, str, int, dict[str, str], tuple[int, int]]


def recorded() -> list[Row]:
    """(method, operation, bits, parameters, cycles of call and body) of the shortest body of every answer."""
    document = tomllib.loads(answers.path(avr()).read_text())
    return [
        (method, op, int(bits), answers.given(rows[0]), (rows[0][answers.CALL], rows[0][answers.BODY]))
        for method, tables in document.items()
        for op, sizes in tables.items()
        for bits, rows in sizes.items()
    ]


FILES = sorted({*answers.path(avr()).parent.glob("*.toml")} - {answers.path(avr()).with_name("arm-orders.toml")})
SAMPLE = [row for row in recorded() if row[2] % 96 == 0 and row[2] <= 768]
LARGE = 480  # bits above which each takes seconds


def test_every_size_up_to_512_bits_has_a_fastest_method() -> None:
    for op in OPS:
        assert all(answers.fastest(avr(), op, bits) in methods.names(op) for bits in range(16, 513, 8))


def test_the_file_has_answers_for_the_methods_that_are_searched() -> None:
    assert {row[0] for row in SAMPLE} >= {"sbd", "operand-caching", "karatsuba", "karatsuba-squaring"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_is_read_of_a_file_is_what_it_says(file: Path) -> None:
    whole = tomllib.loads(file.read_text())
    tables = {op: rows for op, rows in whole.items() if op in OPS}
    tables |= {f"{name}.{op}": rows for name, ops in whole.items() if name not in OPS for op, rows in ops.items()}
    found = {name: {str(bits): rows for bits, rows in answers.Sizes(file, name).items()} for name in tables}
    assert found == tables and sum(map(len, found.values())) > 20 and not answers.Sizes(file, "none.sqr")


@pytest.mark.many
@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=pytest.mark.sweep if row[2] > LARGE else ()) for row in SAMPLE],
    ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}",
)
def test_an_answer_costs_what_the_search_recorded_and_no_more_than_the_default(row: Row) -> None:
    method, op, bits, parameters, cycles = row
    assert answers.parameters(avr(), method, op, bits) == parameters
    costs = tuple(tune.cost(avr(), op, bits // 8, method, parameters, goal=goal) for goal in ("call", "speed"))
    assert costs == cycles
    if method != "hybrid":  # its default may be product scanning at small sizes
        assert cycles[1] <= (tune.cost(avr(), op, bits // 8, method, {}) or cycles[1])


@pytest.mark.many
@pytest.mark.parametrize("op", ["sqr", "mul"])
@pytest.mark.parametrize("limbs", [2, 7, 20, 33])
def test_no_method_beats_the_one_recorded_as_fastest(op: str, limbs: int) -> None:
    bits = limbs * 8
    costs = {
        method: tune.cost(avr(), op, limbs, method, answers.parameters(avr(), method, op, bits))
        for method in methods.names(op)
    }
    assert costs[str(answers.fastest(avr(), op, bits))] == min(cost for cost in costs.values() if cost is not None)


@pytest.mark.parametrize("op", ["sqr", "mul"])
def test_no_size_is_slower_than_a_larger_one(op: str) -> None:
    cycles = [min(int(row[answers.BODY]) for _, row in answers.known(avr(), op, bits)) for bits in range(16, 513, 8)]
    assert cycles == sorted(cycles)
