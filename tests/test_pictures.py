"""docs/methods.md has every method, in words and in a picture, and they are what the program makes now."""

from __future__ import annotations

import importlib
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest
from commandline import Call

from sqgen import draw_svg, draw_text, methods
from sqgen.plan import Block, Plan, Store

TOP = Path(__file__).resolve().parent.parent
DOCS = TOP / "docs"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def pictures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/pictures.py as a module."""
    monkeypatch.syspath_prepend(str(TOP / "tools"))
    return importlib.import_module("pictures")


def test_the_words_that_wait_are_balanced(pictures: ModuleType) -> None:
    """Each product takes what is there, each column leaves with its last word, and nothing is left over."""
    rows = pictures.balance.rows(128)
    waiting = [0] * 8
    for row in rows:
        assert list(row.waiting) == waiting and waiting[row.column] >= row.taken
        waiting[row.column] -= row.taken
        if row.stored:
            assert not waiting[row.column]
        else:
            waiting[row.column] += 1
            waiting[row.column + 1] += row.name != "zero"
    assert not any(waiting)
    assert sorted(row.column for row in rows if row.stored) == list(range(8))
    assert sum(bool(row.text) and not row.stored for row in rows) == 16


def test_nothing_is_stale(pictures: ModuleType) -> None:
    assert pictures.stale() == [], "run `make pictures`"


def test_what_is_stale_missing_or_left_over_is_named(
    pictures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    monkeypatch.setattr(pictures, "DOCS", tmp_path / "docs")
    folder = tmp_path / "docs" / "pictures"
    assert pictures.stale() == []
    changed, missing, extra = folder / "sbd.svg", folder / "yang.svg", folder / "gone.svg"
    changed.write_text(changed.read_text().replace("<title>", "<title>x", 1))
    missing.unlink()
    extra.write_text("")
    assert sorted(pictures.stale()) == sorted([changed, missing, extra])
    pictures.main(["--write"], standalone_mode=False)
    assert pictures.stale() == [] and not extra.exists()


@pytest.mark.parametrize("name", methods.names())
def test_every_method_has_an_entry_of_three_sentences(pictures: ModuleType, name: str) -> None:
    page = (DOCS / "methods.md").read_text()
    (entry,) = re.findall(rf"^### {name}\n\n(.*)\n\n!\[(.*)\]\((.*)\)\n\n`sqgen show (.*)`$", page, re.MULTILINE)
    words, alternative, place, command = entry
    assert len(pictures.sentences(name)) == 3 and words.endswith(".")
    assert name in alternative and place == f"pictures/{name}.svg" and f"--method {name} " in command


@pytest.mark.parametrize("name", methods.names())
def test_the_command_on_the_page_draws_its_picture(name: str, sqgen: Call, here: Path) -> None:
    command = re.findall(rf"^`sqgen (show --method {name} .*)`$", (DOCS / "methods.md").read_text(), re.MULTILINE)
    assert sqgen(f"{command[0]} --svg picture.svg").code == 0
    assert (here / "picture.svg").read_text() == (DOCS / "pictures" / f"{name}.svg").read_text()


@pytest.mark.parametrize("name", methods.names())
def test_a_picture_says_in_words_what_it_shows(name: str) -> None:
    root = ET.fromstring((DOCS / "pictures" / f"{name}.svg").read_text())
    assert name in str(root.findtext(f"{SVG}title")) and "cells" in str(root.findtext(f"{SVG}desc"))


def test_show_needs_no_operation(sqgen: Call) -> None:
    assert "product of 4 limbs" in sqgen("show --method operand-scanning --bits 32").out
    assert "square of 4 limbs" in sqgen("show --method yang --bits 32").out


@pytest.mark.parametrize("op", ["sqr", "mul"])
def test_a_plan_whose_cells_lie_in_its_parts_is_drawn_without_them(op: str) -> None:
    made = Plan(op, 4, "m", (), (Block("sum"), *map(Store, range(8))))
    ET.fromstring(draw_svg.svg(made))
    assert "0 cells in 1 block" in draw_text.terminal(made)
