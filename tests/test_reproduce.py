"""`make reproduce`: the kernels of all answers are what they were when the file of their sums was written."""

from __future__ import annotations

from pathlib import Path

import figures
import pytest
import reproduce
from click.testing import CliRunner

from sqgen.tables import isa, isa_names

JOBS = [job for name in isa_names() for job in reproduce.jobs(isa(name))]
SAMPLE = sorted(JOBS)[::64]


def test_the_file_has_a_line_for_every_kernel_and_no_other() -> None:
    assert len({str(job) for job in JOBS}) == len(JOBS)
    assert set(reproduce.recorded()) == {str(job) for job in JOBS}


@pytest.mark.many
@pytest.mark.parametrize("job", SAMPLE, ids=str)
def test_a_kernel_is_what_it_was(job: reproduce.Job) -> None:
    assert reproduce.recorded()[str(job)] == reproduce.line(job), "made otherwise: tools/reproduce.py --write"


@pytest.mark.parametrize("name", isa_names())
def test_the_figures_that_are_shown_are_of_the_kernels_that_are_recorded(name: str) -> None:
    """Of the fastest by their bytes of code: whoever writes the sums anew has the figures to measure again."""
    shown = {f"{row.core} {row.op} {row.bits}": row.bytes for row in figures.known(figures.SURVEYS[name])}
    fastest = {key: line for key, line in reproduce.recorded().items() if key.endswith(" auto speed 0")}
    recorded = {key.removesuffix(" auto speed 0"): int(line.split()[1]) for key, line in fastest.items()}
    both = shown.keys() & recorded.keys()
    assert len(both) > 40 and {key for key in both if shown[key] != recorded[key]} == set()


def test_what_was_made_is_not_made_again_as_long_as_its_sources_are_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(reproduce, "FOLDER", tmp_path)
    some = [job for job in SAMPLE if job.isa == "msp430"][:2]
    found = reproduce.made("msp430", some)
    assert found == {str(job): reproduce.recorded()[str(job)] for job in some}
    (file,) = tmp_path.iterdir()
    written = file.read_text()
    assert len(written.splitlines()) == 2
    assert reproduce.made("msp430", some) == found and file.read_text() == written
    monkeypatch.setattr(reproduce, "version", lambda name: "another")
    assert reproduce.made("msp430", some) == found and len(file.read_text().splitlines()) == 4


def test_a_kernel_that_changed_or_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "jobs", lambda which: SAMPLE[:3])
    lines = {str(job): reproduce.recorded()[str(job)] for job in SAMPLE[:3]}
    monkeypatch.setattr(reproduce, "recorded", lambda: {**lines, "gone": "it is"})
    other = {name: "0" * 64 + each[64:] for name, each in lines.items()}
    monkeypatch.setattr(reproduce, "made", lambda name, wanted: {str(job): other[str(job)] for job in wanted})
    monkeypatch.setattr(reproduce, "isa_names", lambda: ["avr"])
    done = CliRunner().invoke(reproduce.main, [])
    assert done.exit_code == 1
    assert done.output.count("changed: ") == 3 and "gone: gone" in done.output
    assert "3 kernels made, 0 the same" in done.output
