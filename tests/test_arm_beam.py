"""The search for orders of a square's cells by a beam: what it finds is an order, the same each time, whose cycles its
own bound never passed, and only what is better is kept."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqgen.isa import arm_beam
from sqgen.isa.arm_beam import Beam

from sqgen import answers, methods, places
from sqgen.search import Job

LOADED, WIDTH = 5, 20


def test_a_round_finds_an_order_of_all_words_and_finds_it_again() -> None:
    found = arm_beam.order(7, LOADED, WIDTH, 1)
    assert found == arm_beam.order(7, LOADED, WIDTH, 1)
    every = methods.method("free-order").read("sqr", 7, "")  # type: ignore[attr-defined]
    doublings = {f"={column}" for column in range(2, 13)}  # no product off the diagonal lies below the second column
    words = found.replace("+", "").split()
    assert len(words) == len(set(words)) and "+0.1" in found.split()
    assert set(words) == {str(word) for word in every if "." in str(word)} | doublings


def test_what_is_still_to_come_is_never_said_to_be_more_than_it_is() -> None:
    beam = Beam(7, LOADED, WIDTH, 3)
    ways = [arm_beam.State(0, 0, 0, (1 << LOADED) - 1, False, True, 1 + LOADED)]
    bounds = [beam.least(ways[0]) + ways[0].cycles]
    for _ in range(beam.steps):
        states = [state for way in ways for state, _ in beam.after(way)]
        ways = sorted(set(states), key=lambda state: (state.cycles + beam.least(state), beam.live(state)))[:WIDTH]
        bounds.append(min(state.cycles + beam.least(state) for state in ways))
    assert bounds == sorted(bounds) and bounds[-1] == ways[0].cycles


def test_a_column_has_the_zeros_that_its_words_need() -> None:
    """Against all ways to add its products, by UMULL, UMAAL or a zero and UMAAL, one word coming at any time."""

    def fewest(left: int, below: int, words: int) -> int:
        if not left and not below:
            return 0 if words == 1 else arm_beam.WORST
        ways = [fewest(left, below - 1, words + 1)] if below else []
        if left:
            ways.append(1 + fewest(left - 1, below, words + 1))
            if words >= 2:
                ways.append(1 + fewest(left - 1, below, words - 1))
            elif words == 1:
                ways.append(2 + fewest(left - 1, below, 1))
        return min(ways, default=arm_beam.WORST)

    for left, below, words in itertools.product(range(5), range(5), range(4)):
        found, best = Beam.column(left, below, words), fewest(left, below, words)
        assert found <= best
        assert left == 0 or words == 0 or best >= arm_beam.WORST or found == best, (left, below, words)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The answers' file, as a copy in which the square of 224 bits has a bad order."""
    path = tmp_path / "answers" / "arm.toml"
    path.parent.mkdir()
    shutil.copy(places.folder("schedules") / "answers" / "arm.toml", path)
    monkeypatch.setattr(answers, "folder", lambda name: tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    first = next(at for at, line in enumerate(lines) if line.startswith("[free-order.sqr]"))
    bad = next(at for at, line in enumerate(lines) if at > first and line.startswith("224 = "))
    lines[bad] = '224 = [{ order = "0.0", body = 160, call = 180 }]\n'
    path.write_text("".join(lines))
    answers.forget()
    yield path
    answers.forget()


def test_the_command_keeps_what_is_better_and_nothing_else(file: Path) -> None:
    asked = ["--bits", "224", "--loaded", str(LOADED), "--width", str(WIDTH), "--rounds", "1"]
    job = Job("arm", "sqr", 7, "free-order")
    before = job.before()
    assert before
    result = CliRunner().invoke(arm_beam.main, asked)
    assert result.exit_code == 0, result.output
    after = job.before()
    assert after and int(after["call"]) < int(before["call"])
    assert result.output == f"sqr 224: {after['call']} cycles per call; before: {before['call']}\n"
    text = file.read_text()
    again = CliRunner().invoke(arm_beam.main, asked)
    assert again.exit_code == 0 and file.read_text() == text
