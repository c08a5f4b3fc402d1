"""The report of what was tried, and the README's line of it, say what the files of figures say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
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

from sqgen.tables import isa_names

TOP = sources.TOP
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
    assert [line for row in trust.document(trust.FUZZ).values() for line in row["wrong"]] == []
    kept = figures("trust.json")
    assert [name for name, row in kept["matrix"].items() if row["wrong"] or row["right"] != row["kernels"]] == []
    assert [name for name, row in kept["reproduce"].items() if row["same"] != row["kernels"]] == []


def test_the_totals_are_those_of_the_files() -> None:
    changed = figures("mutation.json")
    report = trust.REPORT.read_text().partition("## Changed kernels")[2]
    total = sum(count for entry in changed.values() for counts in entry["counts"].values() for count in counts.values())
    assert numbers(report, "all")[0] == total == sum(numbers(report, core)[0] for _, core in mutate.SIZES)
    assert f"{total:,} kernels with an instruction or two changed" in trust.README.read_text().replace("\n", " ")
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
    (tmp_path / "counted").write_text('{"codes": 2}')
    monkeypatch.setattr(trust, "HOSTILE", tmp_path / "counted")
    assert trust.gathered(kept)["hostile"] == {"files": 3, "codes": 2}


def test_it_says_what_is_of_older_sources() -> None:
    entry = {"prover": mutate.prover(), "second": mutate.prover(mutate.SECOND), "table": mutate.table_of(avr())}
    others = {f"atmega128/sqr/{key}/16": {**entry, key: "another"} for key in ("prover", "second")}
    mutation = {"atmega128/sqr/a/16": entry, **others}
    kept = {
        "matrix": {"arm": {trust.SOURCES: matrix.version("arm")}, "avr": {trust.SOURCES: "others"}},
        "reproduce": {
            "avr-3.12.1": {trust.SOURCES: reproduce.version("avr")},
            "msp430-3.12.1": {trust.SOURCES: reproduce.version("avr")},
        },
    }
    assert [line.partition(":")[0] for line in trust.older(mutation, kept)] == [
        "2 of 3 kernels were changed when provers or tables were others",
        *("avr", "msp430-3.12.1"),
    ]


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
    assert found["simulated"] == {"simavr": len(done) - 1, matrix.NOWHERE: 1} and found["counted"] == len(done) - 1


def test_a_kernel_that_is_made_otherwise_counts_as_different(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [str(job) for job in sorted(reproduce.jobs(avr()))[:3]]
    lines = {job: reproduce.recorded()[job] for job in jobs}
    monkeypatch.setattr(reproduce, "known", lambda path, name: {**lines, jobs[0]: "0" * 64 + lines[jobs[0]][64:]})
    found = trust.made_again(tmp_path / "avr-3.12.1.jsonl")
    assert (found["kernels"], found["same"]) == (3, 2) and found["of"] > 1000


def relative(paths: Iterable[Path]) -> set[str]:
    return {str(path.relative_to(sources.TOP)) for path in paths}


def test_a_file_that_is_imported_counts_however_far_away_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "sqgen/one": "from . import two\nimport click\nfrom os import path\n",
        "sqgen/two": "def f():\n    from .three import x\n",
        "sqgen/three": "from sqgen.isa.four import x\n",
        "isa/four": "from .five import x\nfrom sqgen import six\nfrom sqgen.seven import x\n",
        **dict.fromkeys(["isa/five", "sqgen/six", "sqgen/seven", "sqgen/five", "isa/six", "sqgen/click"], ""),
    }
    for name, text in files.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(sources, "TOP", tmp_path)
    names = ["isa/five", "isa/four", "sqgen/one", "sqgen/seven", "sqgen/six", "sqgen/three", "sqgen/two"]
    found = sources.closure(sources.modules(["one"]))
    assert relative(found) == {f"{name}.py" for name in names}
    assert relative(sources.closure(sources.modules(["one"]), sources.modules(["two"]))) == {"sqgen/one.py"}
    before = sources.digest(found)
    (tmp_path / "isa" / "five.py").write_text("x = 1\n")
    assert sources.digest(found) != before


PROGRAM = '''"""What it is."""

import os  # needed


def f(x: str = "# no comment") -> str:
    """What it does,
    in two lines."""
    # why
    """no docstring"""
    return f"{x}#"  # here
'''


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("What it is", "What else", True),
        ("in two lines", "in\n    three lines", True),
        ("# why\n", "\n\n", True),
        ("  # here", "", True),
        ("# no comment", "# no", False),
        ("no docstring", "none", False),
        ('{x}#"', '{x}"', False),
        ("import os", "import sys", False),
    ],
)
def test_what_is_said_of_a_program_does_not_count_and_what_it_does_does(
    tmp_path: Path, old: str, new: str, same: bool
) -> None:
    path, before = tmp_path / "one.py", tmp_path / "two.py"
    before.write_text(PROGRAM)
    path.write_text(PROGRAM.replace(old, new))
    assert path.read_text() != PROGRAM
    assert (sources.digest([path]) == sources.digest([before])) is same
    assert compile(sources.bare(PROGRAM), "bare", "exec")


def test_what_decides_on_mutants_is_all_that_the_provers_are_made_of() -> None:
    first, second = (
        {path.stem for path in sources.closure(sources.modules(some))} for some in (mutate.FIRST, mutate.SECOND)
    )
    assert {"walk", "symbolic", "interpret", "meaning", "bus", "table"} <= first
    assert {"forward", "forward_numbers", "forward_end", "meaning", "bus", "table"} <= second
    assert not [name for name in first if name.startswith("forward")] and not {"walk", "forms", "symbolic"} & second
    assert not {"emit", "cli", "allocate", "search"} & (first | second)


def test_kernels_of_one_instruction_set_do_not_rest_on_the_files_of_another() -> None:
    code, kernels = relative(sources.of_code("avr")), relative(sources.of_kernels("avr"))
    assert {"isa/avr.toml", "isa/avr_tape.py", "schedules/answers/avr-front.toml", "schedules/rows.py"} <= code
    assert {"sqgen/compile.py", "sqgen/allocate.py", "sqgen/measure.py", "sqgen/cover.py", "sqgen/table.py"} <= code
    assert not {"sqgen/prove.py", "sqgen/walk.py", "sqgen/emit.py", "isa/arm_anneal.py"} & code
    assert {"sqgen/prove.py", "sqgen/oracles/simavr_driver.c", "templates/avr/kernel.S.j2"} <= kernels - code
    assert {"sqgen/emit.py", "sqgen/oracles/simavr.py", "sqgen/oracles/__init__.py", "tools/observe.py"} <= kernels
    assert not {"sqgen/tune.py", "sqgen/workers.py", "sqgen/cli.py", "sqgen/oracles/mspdebug.py"} & kernels
    others = ("isa/arm", "isa/msp430", "schedules/answers/arm", "schedules/answers/msp430", "templates/arm")
    assert code < kernels and not [path for path in kernels if path.startswith(others)]


@pytest.mark.parametrize("name", isa_names())
def test_what_is_seen_of_a_code_does_not_rest_on_what_made_it(name: str) -> None:
    seen = relative(sources.of_sight(name))
    assert seen < relative(sources.of_kernels(name))
    assert {f"isa/{name}.toml", "sqgen/prove.py", "sqgen/walk.py", "sqgen/interpret.py", "sqgen/emit.py"} <= seen
    assert {"sqgen/kernel.py", "sqgen/timing.py", "tools/observe.py", "tools/matrix.py"} <= seen
    assert all(path.startswith(("sqgen/", "tools/")) for path in seen - {f"isa/{name}.toml"})
    assert not {"sqgen/beam.py", "sqgen/allocate.py", "sqgen/attempts.py", "sqgen/choosing.py", "sqgen/plan.py"} & seen


@pytest.mark.parametrize("name", isa_names())
def test_all_that_is_loaded_behind_the_code_is_what_its_outcome_rests_on(name: str) -> None:
    job = f"next(job for job in matrix.jobs([{name!r}]) if job.bits == 32 and job.op == 'sqr')"
    code = "known.code(matrix.spec(job.isa, job.bits, op=job.op, core=job.core, method=job.method))"
    start = f"import sys; sys.path.insert(0, 'tools'); import matrix; known, job = matrix.Known(), {job}; {code}"
    behind = loaded(f"{start}; matrix.outcome(job, known)") - loaded(start)
    assert TOP / "sqgen" / "symbolic.py" in behind | loaded(start) and behind <= set(sources.of_sight(name))


@pytest.mark.parametrize("name", isa_names())
def test_all_that_is_loaded_to_make_code_is_what_it_rests_on(name: str) -> None:
    files = loaded(f"from sqgen import choosing, spec; choosing.choose(spec.spec({name!r}, 32))")
    proof = sources.closure(sources.modules(["prove"]))
    assert TOP / "sqgen" / "compile.py" in files and files <= {*sources.of_code(name), *proof}


@pytest.mark.parametrize("name", isa_names())
def test_all_that_is_loaded_for_the_matrix_is_what_it_rests_on(name: str) -> None:
    job = f"next(job for job in matrix.jobs([{name!r}]) if job.bits == 32 and job.op == 'sqr')"
    made = f"import matrix; assert matrix.together({{{job}: None}})[0]['verdict'] == matrix.RIGHT"
    beside = set(sources.modules(["workers", "progress"]))  # which know no kernel
    files = loaded(f"import sys; sys.path.insert(0, 'tools'); {made}")
    assert TOP / "sqgen" / "check.py" in files and files <= {*sources.of_kernels(name), *beside}


def loaded(program: str) -> set[Path]:
    """The files of sqgen that a program has loaded when it ends."""
    program += "; import sys; print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('sqgen.')))"
    done = subprocess.run([sys.executable, "-c", program], cwd=TOP, capture_output=True, check=True)
    return {Path(path).resolve() for path in done.stdout.decode().split() if not path.endswith("__init__.py")}


def test_the_tests_say_how_many_bad_inputs_they_tried(tmp_path: Path) -> None:
    file = tmp_path / "tried.json"
    chosen = "tests/test_input.py::test_a_value_that_is_taken_is_plain"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "--tried", str(file), chosen]
    subprocess.run(command, cwd=trust.TOP, check=True, capture_output=True)
    assert list(json.loads(file.read_text())) == [hostile.VALUES] and json.loads(file.read_text())[hostile.VALUES] > 100
