"""The README says nothing that is not so."""

from __future__ import annotations

import importlib
import itertools
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

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


def figures(name: str = "avr") -> list[Any]:
    """What the fastest kernels of an instruction set cost, as it is kept."""
    made: list[Any] = tool("figures").known(tool("figures").SURVEYS[name])
    return made


@pytest.mark.parametrize("document", ["README.md", "docs/results.md", "docs/search.md"])
def test_tables_and_the_example_are_what_the_program_computes_now(document: str) -> None:
    text = (TOP / document).read_text()
    assert tool("results").filled(document, text) == text, "run `make results`"


@pytest.mark.parametrize("name", ["cortex", "msp430"])
def test_the_readme_has_every_size_that_others_have_too(name: str) -> None:
    parts = tool("results").PARTS
    ours, compared = (parts[document][name]().splitlines()[3:] for document in ("docs/results.md", "README.md"))
    assert compared == [row for row in ours if row.count("%") or not row]
    assert len(compared) > 10


def test_the_plot_of_all_sizes_is_drawn_from_the_figures() -> None:
    sweep = tool("sweep")
    assert sweep.PLOT.read_text() == sweep.plot(figures("avr")), "run `make results`"


@pytest.mark.parametrize("name", ["avr", "arm", "msp430"])
def test_no_size_is_missing(name: str) -> None:
    jobs = [(job.core, job.op, job.bits) for job in tool("figures").SURVEYS[name].jobs]
    assert [(row.core, row.op, row.bits) for row in figures(name)] == jobs, "run `make results`"


@pytest.mark.simulator
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("bits", [16, 40, 104, 128, 160, 192, 224, 256, 328, 384])
def test_the_figures_are_what_is_made_and_counted_now(op: str, bits: int) -> None:
    made = tool("figures").measured(tool("figures").Job("avr", "atmega128", op, bits))
    assert made in figures(), "run `make results`"


@pytest.mark.simulator
@pytest.mark.parametrize("bits", [64, 128, 160])
def test_the_figures_with_branches_are_what_is_made_and_counted_now(bits: int) -> None:
    tools = tool("figures")
    made = tools.measured(tools.Job("avr", "atmega128", "mul", bits), branches=True)
    assert made in tools.known(tools.BRANCHING), "run `make results`"
    assert [row.bits for row in tools.known(tools.BRANCHING)] == list(tools.MUL_SIZES)


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("name", ["avr", "arm", "msp430"])
def test_no_size_is_slower_than_the_next_larger_one(name: str, op: str) -> None:
    rows = [row for row in figures(name) if row.op == op]
    found = [(a.core, op, a.bits) for a, b in itertools.pairwise(rows) if a.core == b.core and a.body > b.body]
    assert found == []


# Body cycles that the project set itself for its fastest kernels without branches.
WANTED = {
    "sqr": {64: 236, 96: 478, 128: 803, 160: 1226, 192: 1716, 224: 2238, 256: 2820, 384: 6190, 512: 9860, 1024: 32400},
    "mul": {64: 366, 80: 562, 96: 786, 128: 1350, 160: 2030, 192: 2980, 256: 4900, 384: 10200, 512: 15700, 1024: 50500},
}


@pytest.mark.parametrize("op", OPS)
def test_the_figures_that_were_reached_are_kept(op: str) -> None:
    found = {row.bits: row.body for row in figures() if row.op == op}
    assert {bits: found[bits] for bits, most in WANTED[op].items() if found[bits] > most} == {}


@pytest.mark.parametrize("op", OPS)
def test_no_size_is_slower_than_public_code_that_does_not_branch_on_operands(op: str) -> None:
    others = [(row, other) for row in figures() if row.op == op for other in public(avr(), op) if not other.leaks]
    assert [(row.bits, other.who) for row, other in others if row.bits == other.bits and row.body >= other.cycles] == []


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
