"""The README says nothing that is not so."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

from sqgen import answers, draw_svg, methods, tables

TOP = Path(__file__).resolve().parent.parent


def results() -> ModuleType:
    """tools/results.py as a module."""
    spec = importlib.util.spec_from_file_location("results", TOP / "tools" / "results.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["results"] = module
    spec.loader.exec_module(module)
    return module


def test_the_readmes_table_and_example_are_what_the_program_computes_now() -> None:
    readme = (TOP / "README.md").read_text()
    assert results().filled(readme) == readme, "run `make results`"


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
