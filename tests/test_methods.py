"""Parameters of methods: what they take, what they refuse, and the search over them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from conftest import avr

from sqgen import choosing, kernel, methods, report, tune
from sqgen import compile as compile_module
from sqgen.encode import EncodeError
from sqgen.errors import UserError
from sqgen.methods import Parameter
from sqgen.spec import spec

WORDS = Parameter("sums", "where the sums wait", "here", choices=("here", "there"))
NUMBER = Parameter("e", "a number", "2")
WIDTHS = Parameter("block", "widths", "4", many=True)


@pytest.fixture
def three_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sbd take a word, a number and widths; its plan looks at the widths alone."""
    monkeypatch.setattr(methods.method("sbd"), "PARAMETERS", (WORDS, NUMBER, WIDTHS))


@pytest.mark.usefixtures("three_parameters")
def test_words_and_numbers_stand_side_by_side() -> None:
    values = methods.values("sbd", {"sums": "there", "block": "3,5"}, 16)
    assert (values.word("sums"), values.one("e"), values.many("block")) == ("there", 2, (3, 5))
    plan = methods.plan("sqr", 8, "sbd", {"block": "3,5"})
    assert plan.parameters == (("e", "2"), ("block", "3,5"))
    plan = methods.plan("sqr", 8, "sbd", {"sums": "there"})
    assert plan.parameters == (("sums", "there"), ("e", "2"), ("block", "4"))


@pytest.mark.usefixtures("three_parameters")
@pytest.mark.parametrize("word", ["elsewhere", "3", "here,there", ""])
def test_an_unknown_word_is_refused_with_the_words_there_are(word: str) -> None:
    with pytest.raises(UserError, match=f"'sums' is here or there, not '{word}'"):
        methods.values("sbd", {"sums": word}, 16)


@pytest.mark.usefixtures("three_parameters")
def test_a_word_where_a_number_belongs_is_refused() -> None:
    with pytest.raises(UserError, match="'e' is a number from 1 to 16, not 'here'"):
        methods.values("sbd", {"e": "here"}, 16)


@pytest.mark.usefixtures("three_parameters")
def test_the_table_of_methods_shows_the_words() -> None:
    assert report.parameter_line(WORDS) == "sums: where the sums wait: here or there [here]"
    assert "here or there" in " ".join(report.methods_table().split())


@pytest.mark.usefixtures("three_parameters")
def test_the_search_changes_numbers_and_widths_and_leaves_words_alone() -> None:
    cycles, found = tune.tuned(5, "sbd", {}, lambda given: body(given) + abs(int(given.get("e", 2)) - 3))
    assert found.keys() == {"e", "block"} and found["e"] == "3"
    assert cycles == body(found)
    assert cycles <= min(body({"block": str(width)}) for width in range(1, 10))


@pytest.mark.usefixtures("three_parameters")
def test_a_number_that_changes_nothing_is_not_named() -> None:
    assert tune.tuned(5, "sbd", {}, body)[1].keys() == {"block"}


def body(given: Mapping[str, str]) -> int:
    return tune.body(avr(), "sqr", 5, "sbd", dict(given))


def test_a_method_for_products_squares_only_if_it_is_named() -> None:
    assert methods.does("operand-caching", "sqr") and not methods.does("sbd", "mul")
    tried = choosing.candidates(spec("avr", 32, op="sqr", goal="size"))
    assert {each.plan.method for each in tried} <= set(methods.names("sqr"))
    assert "operand-caching" not in methods.names("sqr")
    assert kernel.make(spec("avr", 32, op="sqr", method="operand-caching")).compiled.plan.method == "operand-caching"


@pytest.mark.parametrize(
    ("method", "advice"), [("karatsuba", "choose more levels"), ("hybrid", "take another method or a smaller size")]
)
def test_code_that_reaches_too_far_is_refused_with_what_helps(
    method: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(instrs: object) -> bytes:
        raise EncodeError("4096 is not in 0..4095")

    monkeypatch.setattr(compile_module, "assemble", refuse)
    with pytest.raises(UserError, match=rf"^method '{method}' reaches too far: 4096 is not in 0\.\.4095; {advice}$"):
        kernel.make(spec("avr", 64, op="mul", method=method))
