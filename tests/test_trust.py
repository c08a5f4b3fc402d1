"""The report of what was tried, and the README's line of it, say what the files of figures say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import hostile
import matrix
import mutate
import mutate_tables
import pytest
import reproduce
import sources
import trust
from conftest import avr

ANEW = "run `make trust`"
JOB = matrix.Job("avr", "atmega128", "sqr", 16, "sbd")


def figures(name: str) -> dict[str, Any]:
    """A file of figures as it lies in docs/."""
    return dict(json.loads((trust.DOCS / name).read_text()))


def numbers(text: str, behind: str) -> list[int]:
    """The numbers of the row of a table that begins with these words."""
    row = next(line for line in text.splitlines() if line.startswith(f"| {behind} |"))
    return [int(cell.replace(",", "")) for cell in row.split("|")[2:-1]]


def test_the_report_and_the_readme_are_made_from_the_files_of_figures() -> None:
    values = trust.facts()
    assert trust.report(values) == trust.REPORT.read_text(), ANEW
    readme = trust.README.read_text()
    assert trust.filled(readme, values) == readme, ANEW


def test_nothing_that_was_tried_was_accepted_though_wrong() -> None:
    changed = figures("mutation.json")
    assert [line for entry in changed.values() for line in entry["wrong"]] == []
    assert not any(mutate.WRONG in counts for entry in changed.values() for counts in entry["counts"].values())
    tables = figures("table-mutation.json")
    assert not any(mutate_tables.NOBODY in seers for fields in tables.values() for seers in fields.values())
    kept = figures("trust.json")
    assert [name for name, row in kept["matrix"].items() if row["wrong"] or row["right"] != row["kernels"]] == []
    assert [name for name, row in kept["reproduce"].items() if row["same"] != row["kernels"]] == []


def test_the_totals_are_those_of_the_files() -> None:
    changed = figures("mutation.json")
    report = trust.REPORT.read_text()
    total = sum(count for entry in changed.values() for counts in entry["counts"].values() for count in counts.values())
    assert numbers(report, "all")[0] == total == sum(numbers(report, core)[0] for _, core in mutate.SIZES)
    assert f"{total:,} changed kernels" in trust.README.read_text().replace("\n", " ")
    assert set(changed) == {name for name in changed if name.partition("/")[0] in {core for _, core in mutate.SIZES}}


def test_what_is_not_tried_again_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "FOLDER", tmp_path)
    monkeypatch.setattr(reproduce, "FOLDER", tmp_path / "reproduce")
    monkeypatch.setattr(trust, "HOSTILE", tmp_path / "none")
    kept: dict[str, dict[str, Any]] = {
        "matrix": {"avr": {"kernels": 7}},
        "reproduce": {"avr-3.12.1": {"same": 5}},
        "hostile": {"files": 3},
    }
    assert trust.gathered(kept) == kept


def test_a_matrix_that_is_not_whole_says_up_to_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "FOLDER", tmp_path)
    monkeypatch.setattr(matrix, "SIZES", (16, 24))
    jobs = list(matrix.jobs(["avr"]))
    done = [matrix.Outcome(job, matrix.RIGHT, "", "simavr", 9, True, 8) for job in jobs if job.bits == 16]
    done.append(matrix.Outcome(next(job for job in jobs if job.bits == 24), matrix.WRONG, "late"))
    monkeypatch.setattr(matrix, "done", lambda file, version: {each.job: each for each in done})
    found = trust.of_matrix("avr")
    assert (found["combinations"], found["tried"], found["complete"]) == (len(jobs), len(jobs) // 2 + 1, 16)
    assert (found["kernels"], found["right"], found["wrong"]) == (len(done), len(done) - 1, 1)
    assert found["traces"] == 8 * (len(done) - 1)


def test_a_kernel_that_is_made_otherwise_counts_as_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [str(job) for job in sorted(reproduce.jobs(avr()))[:3]]
    lines = {job: reproduce.recorded()[job] for job in jobs}
    monkeypatch.setattr(reproduce, "known", lambda path, name: {**lines, jobs[0]: "0" * 64 + lines[jobs[0]][64:]})
    found = trust.made_again(tmp_path / "avr-3.12.1.jsonl")
    assert (found["kernels"], found["same"]) == (3, 2) and found["of"] > 1000


def test_what_decides_on_mutants_is_all_that_the_provers_are_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {path.stem for path in sources.closure(mutate.PROVERS)}
    assert {"walk", "symbolic", "forward_sums", "meaning", "bus", "table"} <= names
    assert not {"emit", "cli", "allocate", "search"} & names
    (tmp_path / "sqgen").mkdir()
    for name, text in {"one": "from . import two\n", "two": "from .three import x\n", "three": "", "four": ""}.items():
        (tmp_path / "sqgen" / f"{name}.py").write_text(text)
    monkeypatch.setattr(sources, "TOP", tmp_path)
    assert [path.stem for path in sources.closure(["one"])] == ["one", "three", "two"]
    before = sources.digest(sources.closure(["one"]))
    (tmp_path / "sqgen" / "four.py").write_text("x = 1\n")
    assert sources.digest(sources.closure(["one"])) == before
    (tmp_path / "sqgen" / "three.py").write_text("x = 1\n")
    assert sources.digest(sources.closure(["one"])) != before


def test_kernels_of_one_instruction_set_do_not_rest_on_the_files_of_another() -> None:
    paths = {str(path.relative_to(sources.TOP)) for path in sources.of_kernels("avr", ["matrix"])}
    assert {"isa/avr.toml", "isa/avr_tape.py", "schedules/answers/avr-front.toml", "tools/matrix.py"} <= paths
    assert {
        "sqgen/kernel.py",
        "sqgen/oracles/simavr_driver.c",
        "schedules/rows.py",
        "templates/avr/kernel.S.j2",
    } <= paths
    others = ("isa/arm", "isa/msp430", "schedules/answers/arm", "schedules/answers/msp430", "templates/arm")
    assert not [path for path in paths if path.startswith(others)]


def test_the_tests_say_how_many_bad_inputs_they_tried(tmp_path: Path) -> None:
    file = tmp_path / "tried.json"
    chosen = "tests/test_input.py::test_a_value_that_is_taken_is_plain"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--tried", str(file), chosen]
    subprocess.run(command, cwd=trust.TOP, check=True, capture_output=True)
    assert list(json.loads(file.read_text())) == [hostile.VALUES] and json.loads(file.read_text())[hostile.VALUES] > 100
