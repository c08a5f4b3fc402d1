"""`make reproduce`: the kernels of all answers are what they were when the file of their sums was written."""

from __future__ import annotations

import pytest
import reproduce
from click.testing import CliRunner

from sqgen.tables import isa, isa_names

MOST = 128  # bits: the sums of larger kernels are not recorded yet
JOBS = [job for name in isa_names() for job in reproduce.jobs(isa(name)) if job.bits <= MOST]
SAMPLE = sorted(JOBS)[::16]


def test_the_file_has_a_line_for_every_kernel_and_no_other() -> None:
    assert len({str(job) for job in JOBS}) == len(JOBS)
    assert set(reproduce.recorded()) == {str(job) for job in JOBS}


@pytest.mark.parametrize("job", SAMPLE, ids=str)
def test_a_kernel_is_what_it_was(job: reproduce.Job) -> None:
    assert reproduce.recorded()[str(job)] == reproduce.line(job), "made otherwise: tools/reproduce.py --write"


def test_a_kernel_that_changed_or_is_gone_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "jobs", lambda which: SAMPLE[:3])
    lines = {str(job): reproduce.recorded()[str(job)] for job in SAMPLE[:3]}
    monkeypatch.setattr(reproduce, "recorded", lambda: {**lines, "gone": "it is"})
    monkeypatch.setattr(reproduce, "made", lambda wanted: ["0" * 64 + lines[str(job)][64:] for job in wanted])
    monkeypatch.setattr(reproduce, "isa_names", lambda: ["avr"])
    done = CliRunner().invoke(reproduce.main, [])
    assert done.exit_code == 1
    assert done.output.count("changed: ") == 3 and "gone: gone" in done.output
    assert "3 kernels made, 0 the same" in done.output
