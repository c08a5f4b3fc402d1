"""`--search SECONDS` and `sqgen search`: what they find is faster, repeated by the command in its head, and kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commandline import Call
from conftest import avr

from sqgen import answers, choosing, longer, methods
from sqgen.errors import Exit
from sqgen.spec import spec


def forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No answers are known, and those that are found go to a file of their own."""
    path = tmp_path / "avr.toml"
    monkeypatch.setattr(answers, "path", lambda isa, core=None: path)
    return path


def test_a_longer_search_finds_something_faster_that_its_command_makes_again(
    sqgen: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    forgotten(monkeypatch, tmp_path)
    before = json.loads(sqgen("--isa avr --bits 72 --method sweeps --json").out)
    found = json.loads(sqgen("--isa avr --bits 72 --method sweeps --search 3 --json").out)
    assert found["cycles"]["body"] < before["cycles"]["body"]
    again = json.loads(sqgen(found["command"].removeprefix("sqgen "), "--json").out)
    assert again == found


def test_a_method_without_chance_is_searched_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forgotten(monkeypatch, tmp_path)
    asked = spec("avr", 80, method="sbd")
    found = longer.searched(asked, 4.0)
    assert choosing.rank(found, choosing.choose(found)) < choosing.rank(asked, choosing.choose(asked))


def test_auto_searches_the_methods_whose_answers_are_near() -> None:
    names = longer.contenders(spec("avr", 192))
    best = answers.fastest(avr(), "sqr", 192)
    assert best in names and set(names) < set(methods.names("sqr"))


def test_what_is_found_for_good_is_kept_and_never_lost(
    sqgen: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = forgotten(monkeypatch, tmp_path)
    line = "search --isa avr --method sweeps --least 40 --most 48 --batches 1 --plans 40"
    first = sqgen(line)
    assert first.code == 0 and first.out.count("cycles\n") == 2
    text = path.read_text()
    assert sqgen(f"{line} --goal call --seed 2").code == 0
    known = answers.rows(avr(), "sweeps", "sqr", 40)
    assert int(answers.best(known)[answers.BODY]) <= int(first.out.split()[2])
    assert path.read_text().startswith(text.splitlines()[0])
    made = json.loads(sqgen("--isa avr --bits 40 --json").out)
    assert made["cycles"]["body"] == answers.best(known)[answers.BODY]


def test_answers_that_cannot_be_kept_are_one_line(sqgen: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(answers, "path", lambda isa, core=None: tmp_path / "file" / "avr.toml")
    refused = sqgen("search --isa avr --method sweeps --least 16 --most 16 --batches 1 --plans 1")
    assert refused.code == Exit.FILE and refused.err.count("\n") == 1
