"""The README says nothing that is not so."""

from __future__ import annotations

import importlib
import itertools
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from conftest import avr

from sqgen import answers, draw_svg, methods, tables
from sqgen.contract import OPS
from sqgen.public import public

TOP = Path(__file__).resolve().parent.parent


def tool(name: str) -> ModuleType:
    """tools/NAME.py as a module."""
    sys.path.insert(0, str(TOP / "tools"))
    return importlib.import_module(name)


def test_the_readmes_table_and_example_are_what_the_program_computes_now() -> None:
    readme = (TOP / "README.md").read_text()
    assert tool("results").filled(readme) == readme, "run `make results`"
    search = (TOP / "docs" / "search.md").read_text()
    assert tool("results").found(search) == search, "run `make results`"


def test_the_plot_of_all_sizes_is_drawn_from_the_figures() -> None:
    sweep = tool("sweep")
    assert sweep.PLOT.read_text() == sweep.plot(sweep.known()), "run `make results`"
    assert {(row.op, row.bits) for row in sweep.known()} == {(op, bits) for op in OPS for bits in sweep.SIZES}


@pytest.mark.simulator
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("bits", [16, 40, 104, 128, 160, 192, 224, 256, 328, 384])
def test_the_figures_are_what_is_made_and_counted_now(op: str, bits: int) -> None:
    sweep = tool("sweep")
    assert sweep.measured((op, bits)) in sweep.known(), "run `make results`"


@pytest.mark.parametrize("op", OPS)
def test_no_size_is_slower_than_the_next_larger_one(op: str) -> None:
    rows = [row for row in tool("sweep").known() if row.op == op]
    assert [(a.bits, a.body) for a, b in itertools.pairwise(rows) if a.body > b.body] == []


# Body cycles that the project set itself for its fastest kernels without branches.
WANTED = {
    "sqr": {64: 236, 96: 478, 128: 803, 160: 1226, 192: 1716, 224: 2238, 256: 2820, 384: 6190, 512: 9860, 1024: 32400},
    "mul": {64: 366, 80: 562, 96: 786, 128: 1350, 192: 2980, 256: 4900, 384: 10200},
}


@pytest.mark.parametrize("op", OPS)
def test_the_figures_that_were_reached_are_kept(op: str) -> None:
    found = {row.bits: row.body for row in tool("sweep").known() if row.op == op}
    assert {bits: found[bits] for bits, most in WANTED[op].items() if found[bits] > most} == {}


def test_no_squaring_is_slower_than_public_code() -> None:
    others = [(row, other) for row in tool("sweep").known() if row.op == "sqr" for other in public(avr(), "sqr")]
    assert [(row.bits, other.who) for row, other in others if row.bits == other.bits and row.body >= other.body] == []


def test_the_readmes_picture_is_what_show_draws_now() -> None:
    parameters = answers.parameters(tables.isa("avr"), "sbd", "sqr", 128)
    assert (TOP / "docs" / "sbd128.svg").read_text() == draw_svg.svg(methods.plan("sqr", 16, "sbd", parameters))


def test_every_method_cites_a_key_of_the_bibliography() -> None:
    bibliography = (TOP / "docs" / "bibliography.md").read_text()
    for name in methods.names():
        assert f"| {methods.method(name).REFERENCE} |" in bibliography, name


def test_links_in_the_documents_lead_somewhere() -> None:
    for document in (TOP / "README.md", TOP / "CONTRIBUTING.md", *(TOP / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
