"""`make matrix`: what is done is not done again; what is wrong is named with the command that repeats it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matrix
import observe
import pytest

from sqgen import check, choosing, emit, kernel
from sqgen.compile import Compiled
from sqgen.contract import Contract
from sqgen.errors import Exit, UserError
from sqgen.spec import Spec, spec
from sqgen.table import Core
from sqgen.tables import isa, isa_names

JOB = matrix.Job("avr", "atmega128", "sqr", 32, "sbd")


@pytest.mark.simulator
def test_a_kernel_is_right_and_its_cycles_are_confirmed() -> None:
    found = matrix.outcome(JOB, matrix.Known())
    assert (found.verdict, found.simulator, found.counted) == (matrix.RIGHT, "simavr", True)


def test_what_cannot_be_is_no_fault_and_what_breaks_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert matrix.outcome(replace(JOB, core="attiny84"), matrix.Known()).verdict == matrix.NONE
    monkeypatch.setattr(choosing, "candidates", lambda spec: 1 // 0)
    found = matrix.outcome(JOB, matrix.Known())
    assert found.verdict == matrix.WRONG and "ZeroDivisionError" in found.reason


@pytest.mark.simulator
def test_a_manifest_that_is_wrong_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = emit.manifest
    monkeypatch.setattr(emit, "manifest", lambda kernel: {**right(kernel), "stack": 99})
    found = matrix.outcome(JOB, matrix.Known())
    assert found.verdict == matrix.WRONG and "stack" in found.reason


def test_what_is_done_counts_for_the_same_code_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "done.jsonl"
    row = {"version": "1", "job": vars(JOB), "verdict": matrix.RIGHT, "reason": ""}
    file.write_text(json.dumps(row) + "\n" + json.dumps(row)[:20])
    assert set(matrix.done(file, "1")) == {JOB} and not matrix.done(file, "2")


def test_only_what_is_not_done_is_done_and_what_went_together_comes_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cores = [JOB, replace(JOB, core="atmega328p"), replace(JOB, core="atmega4809")]
    assert [each.verdict for each in matrix.work(cores, tmp_path)] == [matrix.RIGHT] * 3
    assert len((tmp_path / "avr.jsonl").read_text().splitlines()) == 3
    monkeypatch.setattr(matrix, "together", lambda jobs: 1 // 0)
    assert [each.job for each in matrix.work(cores[::-1], tmp_path)] == cores[::-1]


def test_code_that_other_sources_make_too_is_not_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [replace(JOB, core="atmega4809"), replace(JOB, core="atmega4809", bits=40)]
    first = list(matrix.work(jobs, tmp_path))
    assert [each.verdict for each in first] == [matrix.RIGHT] * 2
    file = tmp_path / "avr.jsonl"
    file.write_text(file.read_text().replace(matrix.version("avr"), "others").replace(first[1].code, "other code"))
    monkeypatch.setattr(kernel, "proved", lambda *_: 1 // 0)
    before = {each.job: each for each in stored(file)}  # in the order in which two processes were done
    same, other = (matrix.outcome(each.job, matrix.Known(), before[each.job]) for each in first)
    assert same == first[0] and "ZeroDivisionError" in other.reason
    monkeypatch.undo()
    assert list(matrix.work(jobs, tmp_path)) == first and len(stored(file)) == 4


def test_what_was_wrong_is_looked_at_again() -> None:
    right = matrix.outcome(replace(JOB, core="atmega4809"), matrix.Known())
    wrong = replace(right, verdict=matrix.WRONG)
    assert matrix.outcome(right.job, matrix.Known(), wrong) == right


def stored(file: Path) -> list[matrix.Outcome]:
    """What stands in a file, of whatever sources."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [matrix.done(file, row["version"])[matrix.Job(**row["job"])] for row in rows]


@pytest.mark.simulator
def test_cores_that_differ_in_name_alone_have_one_kernel_and_each_its_own_simulator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[tuple[str, str]] = []

    def noting(what: str, function: Callable[..., Any], core: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*given: Any, **options: Any) -> Any:
            called.append((what, core(*given).name))
            return function(*given, **options)

        return noted

    monkeypatch.setattr(choosing, "candidates", noting("made", choosing.candidates, lambda spec: spec.core))
    monkeypatch.setattr(check, "run", noting("run", check.run, lambda *given: given[2]))
    cores = ("atmega2560", "atmega128", "atmega328p")  # those with the most room come first
    rows = matrix.together(dict.fromkeys(replace(JOB, core=core) for core in cores))
    assert {row["verdict"] for row in rows} == {matrix.RIGHT}
    assert [core for what, core in called if what == "made"] == ["atmega2560", "atmega128"]
    assert [core for what, core in called if what == "run"] == list(cores)


@pytest.mark.parametrize(
    ("name", "cores", "proofs"),
    [
        ("arm", ("cortex-m4", "cortex-m7"), 1),
        ("avr", ("atmega128", "atxmega32a4u"), 1),
        ("msp430", ("msp430", "msp430x"), 2),
    ],
)
def test_a_code_is_proved_once_where_cores_differ_in_cycles_alone(name: str, cores: Sequence[str], proofs: int) -> None:
    known = matrix.Known()
    for core in cores:
        wanted = spec(name, 64, method="product-scanning", core=core)
        made, _ = known.make(wanted)
        assert made.verdict == kernel.make(wanted).verdict
    assert len(known.verdicts) == proofs


@pytest.mark.parametrize("name", isa_names())
def test_cores_of_a_kind_do_have_one_kernel(name: str) -> None:
    sums: dict[str, set[str]] = {}
    for core in isa(name).cores.values():
        with contextlib.suppress(UserError):  # a core without a multiplier
            made = kernel.make(spec(name, 64, core=core.name))
            sums.setdefault(matrix.kind(core), set()).add(made.sha256)
    assert sums and all(len(each) == 1 for each in sums.values())


def test_what_is_seen_on_one_core_holds_for_those_that_differ_in_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def named(image: bytes, contract: Contract, core: Core, runs: int) -> Sequence[observe.Seen]:
        return [observe.Seen(core.name, (), (), frozenset(), 0)]

    monkeypatch.setattr(observe, "alone", named)
    cores = ("atmega2560", "atmega128", "atmega4809", "atmega328p")  # those with the most room come first
    rows = matrix.together(dict.fromkeys(replace(JOB, core=core) for core in cores))
    assert [(row["traces"], row["reason"].split(";")[0]) for row in rows] == [
        (matrix.TRACES, "atmega2560"),
        (matrix.TRACES, "atmega128"),
        (0, "atmega128"),
        (0, "atmega128"),
    ]


def test_the_interpreter_is_no_outside_simulator() -> None:
    found = matrix.outcome(matrix.Job("msp430", "msp430x", "sqr", 32, "auto"), matrix.Known())
    assert (found.verdict, found.simulator, found.counted) == (matrix.RIGHT, "", False)


def test_code_that_the_simulator_has_no_room_for_is_right_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: object, **named: object) -> None:
        raise UserError("does not fit", Exit.LIMITS)

    monkeypatch.setattr(check, "run", full)
    found = matrix.outcome(JOB, matrix.Known())
    assert (found.verdict, found.simulator, found.reason) == (matrix.RIGHT, "", "does not fit")


def test_the_reports_name_what_is_wrong_and_how_to_repeat_it() -> None:
    facts = matrix.report([matrix.Outcome(JOB, matrix.WRONG, "<late>"), matrix.Outcome(JOB, matrix.NONE, "")])
    assert (facts["kernels"], facts["right"], facts["none"]) == (1, 0, 1)
    assert JOB.command == facts["wrong"][0]["repeat"] and "--least=32 --most=32" in JOB.command
    assert JOB.command in matrix.page(facts) and "&lt;late&gt;" in matrix.page(facts)


def test_what_has_no_room_is_compiled_once_for_all_cores_of_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    compiled = choosing.candidates

    def noting(spec: Spec) -> list[Compiled]:
        made.append(spec.core.name)
        return compiled(spec)

    monkeypatch.setattr(choosing, "candidates", noting)
    known = matrix.Known()
    large = matrix.Job("avr", "", "mul", 256, "product-scanning")
    found = [matrix.outcome(replace(large, core=core), known) for core in ("atmega8", "atmega32u4", "atmega328p")]
    assert [each.verdict for each in found] == [matrix.NONE, matrix.RIGHT, matrix.RIGHT]
    assert "atmega8" in found[0].reason and made == ["atmega8"]


@pytest.mark.parametrize(("cores", "tried"), [(("cortex-m4", "cortex-m7"), 1), (("cortex-m4", "cortex-m3"), 2)])
def test_runs_are_made_once_where_cores_differ_in_cycles_alone(
    monkeypatch: pytest.MonkeyPatch, cores: Sequence[str], tried: int
) -> None:
    calls: list[int] = []
    traces: list[int] = []

    def overlaps(*given: Any) -> list[str]:
        calls.append(given[-1])
        return ["overlapping"]

    monkeypatch.setattr(observe, "overlaps", overlaps)
    known = matrix.Known()
    for core in cores:
        found = matrix.outcome(matrix.Job("arm", core, "sqr", 64, "product-scanning"), known)
        traces.append(found.traces)
        assert "overlapping" in found.reason
    assert calls == [observe.OVERLAPS] * tried and sum(traces) == matrix.TRACES * tried
