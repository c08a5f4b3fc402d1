"""The search for orders of cells on cores with UMAAL: its operations and its price are those of the code that is made,
what it finds is an order, the same each time, and only what is better is kept."""

from __future__ import annotations

import itertools
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from arm import arm
from click.testing import CliRunner

from sqgen import answers, measure, methods, places
from sqgen.compile import compile_plan
from sqgen.errors import UserError
from sqgen.idioms import idioms
from sqgen.search import Job

pytest.importorskip("numpy")
from sqgen.isa import arm_free, arm_word_price, arm_words

STEPS = 40
KEPT = [(op, n) for op in ("sqr", "mul") for n in (2, 4, 5, 6, 8, 10) if (op, n) != ("mul", 10)]
NAMES = {arm_words.UMULL: "umull", arm_words.UMAAL: "umaal", arm_words.UMLAL: "umlal", arm_words.ZERO: "mov_i"}


def kept(op: str, n: int) -> str:
    """The order in the repository."""
    return str(answers.rows(arm(), arm_free.METHOD, op, 32 * n)[0]["order"])


def others(op: str, n: int) -> Iterator[str]:
    """Orders that some random changes of the one in the repository lead to."""
    rng, given = random.Random(f"{op} {n}"), {"order": " ".join(map(str, method().read(op, n, kept(op, n))))}
    for number in itertools.count():
        changed = given
        for _ in range(1 + number % 4):
            changed = method().changed(n, changed, rng)
        yield changed["order"]


def method() -> Any:
    return methods.method(arm_free.METHOD)


def expanded(op: str, n: int, text: str) -> arm_words.Board | None:
    board = arm_words.board(n)
    fits = arm_words.expand(board, arm_words.sheet(op, n), *arm_free.numbers(op, n, text))
    return board if fits else None


def cost(op: str, n: int, text: str) -> int:
    board = arm_words.board(n)
    desk, cells = arm_word_price.desk(board), arm_words.sheet(op, n)
    order, twice = arm_free.numbers(op, n, text)
    registers = arm_free.REGISTERS[op]
    ways = (arm_word_price.evaluate(board, desk, cells, order, twice, registers, framed) for framed in (False, True))
    return int(min(ways))


@pytest.mark.many
@pytest.mark.parametrize(("op", "n"), KEPT)
def test_an_order_has_the_operations_that_the_compiler_makes_of_it(op: str, n: int) -> None:
    tried = 0
    for text in itertools.islice(others(op, n), 12):
        board = expanded(op, n, text)
        plan = methods.plan(op, n, arm_free.METHOD, {"order": text})
        (function,) = idioms(arm()).lower(plan, arm(), arm().core("cortex-m4")).functions
        merged = any("two words in one" in op.comment or op.insn == "adds_w" for op in function.ops)
        assert (board is None) == merged
        if board is not None:
            rows = board.ops[: board.tally[arm_words.OPS]]
            made = [NAMES[kind] for kind in rows[:, arm_words.KIND] if kind in NAMES]
            assert made == [op.insn for op in function.ops if op.insn in NAMES.values()]
            assert Counter(rows[:, arm_words.KIND])[arm_words.STORE] == 2 * n
            tried += 1
    assert tried > 1


@pytest.mark.parametrize(("op", "n"), KEPT)
def test_the_price_is_within_two_cycles_of_the_code_with_its_frame(op: str, n: int) -> None:
    """It says who is evicted by one rule; the compiler tries two, and moves a load where nothing minds afterwards."""
    near = 0
    for text in [kept(op, n), *itertools.islice(others(op, n), 6)]:
        if expanded(op, n, text):
            plan = methods.plan(op, n, arm_free.METHOD, {"order": text})
            code = measure.price(compile_plan(plan, arm()), arm().core("cortex-m4"))
            found = cost(op, n, text)
            assert code.body - 2 <= found <= code.body + 6, text
            near += found <= code.body + 2
    assert near


def test_what_does_not_fit_the_registers_is_too_dear() -> None:
    board, cells = arm_words.board(6), arm_words.sheet("mul", 6)
    desk = arm_word_price.desk(board)
    order, twice = arm_free.numbers("mul", 6, kept("mul", 6))
    assert arm_word_price.evaluate(board, desk, cells, order, twice, 4, False) >= arm_word_price.TOO_DEAR
    assert arm_word_price.evaluate(board, desk, cells, order, twice, 10, False) < arm_word_price.TOO_DEAR


@pytest.mark.parametrize(("op", "n"), [("sqr", 5), ("mul", 4)])
def test_text_and_numbers_say_the_same(op: str, n: int) -> None:
    text = next(others(op, n))
    assert arm_free.written(op, n, *arm_free.numbers(op, n, text)) == text


@pytest.mark.parametrize("op", ["sqr", "mul"])
def test_a_round_finds_orders_of_all_words_and_finds_them_again(op: str) -> None:
    start = arm_free.Round(op, 4, "", STEPS, 3, framed=False)
    cycles, found = start.run()
    assert (cycles, found) == start.run()
    assert found and cycles < arm_word_price.TOO_DEAR
    for text in found:
        words = sorted(text.replace("+", "").split())
        assert words == sorted(map(str, method().read(op, 4, "")))
    assert arm_free.Round(op, 4, "", STEPS, 4, framed=False).run() != (cycles, found)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The answers' file, as a copy in which the square of 128 bits has a bad order."""
    path = tmp_path / "answers" / "arm.toml"
    path.parent.mkdir()
    shutil.copy(places.folder("schedules") / "answers" / "arm.toml", path)
    monkeypatch.setattr(answers, "folder", lambda name: tmp_path)
    answers.forget()
    lines = path.read_text().splitlines(keepends=True)
    bad = next(at for at, line in enumerate(lines) if line.startswith("128 = ") and kept("sqr", 4) in line)
    lines[bad] = '128 = [{ order = "3.3 2.2 1.1 0.0", body = 60, call = 80 }]\n'
    path.write_text("".join(lines))
    answers.forget()
    yield path
    answers.forget()


def test_the_command_keeps_what_is_better(file: Path) -> None:
    job = Job("arm", "sqr", 4, arm_free.METHOD)
    before = job.before()
    asked = ["--op", "sqr", "--least", "128", "--most", "128", "--rounds", "4", "--steps", str(STEPS)]
    result = CliRunner().invoke(arm_free.main, asked)
    assert result.exit_code == 0, result.output
    after = job.before()
    assert before and after and int(after["call"]) < int(before["call"])
    assert result.output == f"sqr 128: {after['call']} cycles per call\n"


def test_what_is_not_proved_is_not_kept(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise UserError("the proof failed")

    monkeypatch.setattr(arm_free, "make", fails)
    text = file.read_text()
    with pytest.raises(UserError):
        arm_free.improve("sqr", 4, 4, STEPS, seed=1)
    assert file.read_text() == text
