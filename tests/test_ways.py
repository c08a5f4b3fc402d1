"""Called functions that branch: each is shown once in all its ways, and what is said of a kernel holds for all."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from conftest import avr, compiled, contract, core
from handwritten import Foreign
from mutants import mutants
from test_branched import costs, four_signs, runs_alike

from sqgen import answers, attempts, check, frame, interpret, methods, walk
from sqgen.allocate import allocate
from sqgen.choosing import candidates, choose, rank, tried
from sqgen.code import Builder, Code, CodeError, Function, Memory, Op, Virtual
from sqgen.encode import Instr, assemble, disassemble
from sqgen.forked import Ways, best_places
from sqgen.idioms import idioms
from sqgen.kernel import Kernel, make
from sqgen.lemmas import Lemmas
from sqgen.placing import Task
from sqgen.prove import prove
from sqgen.replay import verify
from sqgen.residence import PressureError, residence
from sqgen.spec import spec
from sqgen.timing import prices

INLINE = {"parts": "inline", "recombine": "unrolled", "signs": "everywhere"}
TWO, THREE = {**INLINE, "levels": "2"}, {**INLINE, "levels": "3"}
NESTED = {**INLINE, "parts": "nested", "levels": "3"}
OTHERS = ["atmega2560", "atxmega128a4u", "atmega4809"]


def made(bits: int, given: dict[str, str], part: str = "atmega128") -> Kernel:
    request = spec("avr", bits, op="mul", method="karatsuba", core=part, parameters=given, allow_branches=True)
    return make(request)


# ---- the proof ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("limbs", "given", "ways"), [(12, TWO, 2 * 3**3), (16, THREE, 2 * 2**3)])
def test_the_verdict_is_that_of_a_walk_through_all_calls(
    limbs: int, given: dict[str, str], ways: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, what = compiled("mul", limbs, "karatsuba", **given).image, contract("mul", limbs)
    told = prove(code, what, core(), branches=True)
    assert (told.fault, told.ways) == (None, ways) and len(told.others) < 10
    monkeypatch.setattr(walk, "Lemmas", lambda steps: Lemmas(0))
    walked = prove(code, what, core(), branches=True)
    assert (walked.fault, walked.ways, 1 + len(walked.others)) == (None, ways, ways)
    assert (walked.stack, walked.overlap, walked.arms) == (told.stack, told.overlap, ())
    assert {told.path, *told.others} <= {walked.path, *walked.others}
    seen, all_seen = ({at for path in (found.path, *found.others) for at in path} for found in (told, walked))
    assert seen == all_seen


@pytest.mark.parametrize("bits", [264, 384])
def test_all_paths_of_a_function_take_as_long_on_every_core(bits: int) -> None:
    found = made(bits, NESTED)
    code, cores = found.compiled.image, [avr().core(name) for name in ("atmega128", *OTHERS)]
    assert found.verdict.arms
    for arms in found.verdict.arms:
        for first, *others in zip(*(prices(avr(), cores, code, path) for path in arms), strict=True):
            assert all(other.call == first.call for other in others)
    assert {timing.name for timing, _ in found.prices} >= {each.timing for each in cores}


def test_operands_take_many_of_the_paths_and_all_of_their_instructions() -> None:
    kernel = made(96, TWO)
    code, what, verdict = kernel.compiled.image, kernel.spec.contract, kernel.verdict
    paths = set()
    for operands in [*four_signs(96), *interpret.operands(what, 100)]:
        result, path = interpret.trace(code, what, kernel.spec.core, operands)
        assert result == operands[0] * operands[1]
        paths.add(path)
    assert 4 < len(paths) <= verdict.ways
    assert {at for path in paths for at in path} == {at for path in (verdict.path, *verdict.others) for at in path}


@pytest.mark.simulator
def test_simavr_counts_as_many_cycles_on_all_paths() -> None:
    kernel = made(96, TWO)
    report = check.run(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, runs=60, branches=True)
    assert (report.call, report.body, report.stack) == costs(kernel) and report.paths > 4


@pytest.mark.parametrize("one_of", [pytest.param(1, marks=pytest.mark.mutate), 12])
def test_changes_where_functions_branch_are_refused_or_right(one_of: int) -> None:
    """Among them arms that do not take as long as the others, which is seen in no sum."""
    code, what = compiled("mul", 12, "karatsuba", **TWO).image, contract("mul", 12)
    named = [(at, instr.insn.name) for at, instr in disassemble(avr(), code)]
    flow = [place for place, (_, name) in enumerate(named) if name in ("brcs", "brcc", "rjmp", "nop", "rcall")]
    near = {place + more for place in flow for more in (-1, 0, 1)}
    told: Counter[str] = Counter()
    some = [mutant for mutant in mutants(Foreign(what, code, 0)) if mutant.at in near]
    for mutant in random.Random(5).sample(some, len(some) // one_of):
        found = prove(mutant.kernel.image, what, core(), branches=True)
        told["time" if found.fault and "cycles, depending" in found.fault.message else str(found.proved)] += 1
        assert not found.proved or runs_alike(mutant.kernel), mutant
    assert told["time"] > 10 // one_of and told["False"] > 100 // one_of and told["True"] < 100 // one_of


def test_a_function_with_an_arm_that_takes_longer_is_named() -> None:
    code, what = compiled("mul", 12, "karatsuba", **TWO).image, contract("mul", 12)
    places = dict(disassemble(avr(), code))
    entries = {at + 2 + instr.immediates["k"] for at, instr in places.items() if instr.insn.name == "rcall"}
    at = max(at for at, instr in places.items() if instr.insn.name == "nop")
    assert at > min(entries)
    slow = code[:at] + assemble([Instr(avr().insns["rjmp"], (0,))]) + code[at + 2 :]
    fault = prove(slow, what, core(), branches=True).fault
    assert fault and fault.address in entries and "this function takes" in fault.message
    first, second = (int(word) for word in fault.message.split() if word.isdigit())
    assert second == first + 1


@pytest.mark.parametrize(("bits", "public"), [(384, 9980), (512, 15342), (1024, 50210)])
def test_auto_is_faster_than_public_code_that_branches(bits: int, public: int) -> None:
    """OsEID, as measured in research/avr.md."""
    found = make(spec("avr", bits, op="mul", allow_branches=True))
    assert found.verdict.ways > 100 and found.price.body <= public


# ---- registers: code that forks more than once ----------------------------------------------------------------------


def forks(build: Builder, kept: Virtual, sums: list[Virtual]) -> None:
    """Two ways, which both write the limb that is `kept`, and store others."""
    build.mark("fork", 0)
    for way in range(2):
        if way:
            build.mark("arm")
        build.emit("ldi", kept, way)
        for offset, limb in enumerate(sums if way else sums[::-1]):
            build.memory("store", limb, Memory("r", offset))
    build.mark("join")


def twice() -> tuple[Function, Virtual, Virtual]:
    """Code that forks twice; a limb from before is needed at the end, as is what both ways leave."""
    build = Builder(avr())
    before, first, second, one, two = (build.limb(name) for name in ("before", "first", "second", "one", "two"))
    for number, limb in enumerate((before, one, two)):
        build.emit("ldi", limb, number)
    for kept in (first, second):
        forks(build, kept, [one, two])
    for offset, limb in enumerate((before, first, second)):
        build.memory("store", limb, Memory("r", 2 + offset))
    return Function("", tuple(build.ops), ("r16", "r17", "r18", "r19", "r20")), first, second


def test_what_outlives_both_ways_is_in_the_same_register_after_each() -> None:
    function, *kept = twice()
    done = allocate(function, {}, {})
    verify(function, done)
    ways = iter([op for op in done.ops if op.insn == "ldi"][3:])
    last = [str(op.args[0]) for op in done.ops if op.insn == "store"][-3:]
    assert [(next(ways).args[0], next(ways).args[0]) for _ in kept] == [(last[1], last[1]), (last[2], last[2])]
    assert len(set(last)) == 3
    found = residence(function)
    assert [len(fork.meets) for fork in found.forks] == [1, 1]
    assert found.forks[0].at < found.forks[0].other < found.forks[0].end < found.forks[1].at


def test_a_limb_that_is_elsewhere_after_one_of_two_ways_is_refused() -> None:
    function, *_ = twice()
    done = allocate(function, {}, {})
    writes = [at for at, op in enumerate(done.ops) if op.insn == "ldi"][3:]
    for at in writes:
        other = next(register for register in function.pool if register not in done.ops[at].args)
        wrong = [*done.ops]
        wrong[at] = Op("ldi", (other, *done.ops[at].args[1:]))
        with pytest.raises(CodeError):
            verify(function, Function("", tuple(wrong), done.pool))


def test_a_limb_that_is_elsewhere_whatever_is_not_moved_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[frozenset[int]] = []

    def placed(ways: Ways) -> frozenset[int]:
        tried.append(ways.task.still)
        return frozenset({7})

    monkeypatch.setattr(Ways, "placed", placed)
    with pytest.raises(PressureError, match="elsewhere after the other one of two ways"):
        allocate(twice()[0], {}, {})
    assert tried == [frozenset(), {7}] * (len(tried) // 2)


def test_a_limb_that_one_of_two_ways_alone_puts_into_memory_is_refused() -> None:
    build = Builder(avr())
    before, *others = [build.limb(name) for name in ("before", "one", "two", "three", "four")]
    build.emit("ldi", before, 1)
    build.mark("room", before, Memory("r", 9))
    build.mark("fork", 0)
    for way in (others, others[:1]):  # the first one needs all registers
        for number, limb in enumerate(way):
            build.emit("ldi", limb, number)
        for offset in range(4):
            build.memory("store", way[offset % len(way)], Memory("r", offset))
        build.mark("join" if way != others else "arm")
    build.memory("store", before, Memory("r", 9))
    registers = ("r16", "r17", "r18", "r19")
    with pytest.raises(PressureError, match="before is in memory after one of two ways alone"):
        allocate(Function("", tuple(build.ops), registers), {}, {})
    assert allocate(Function("", tuple(build.ops), (*registers, "r20")), {}, {})


def test_arms_that_do_the_same_have_the_same_registers() -> None:
    """The second one is not placed anew: for what outlives both has its registers already."""
    code: Code = idioms(avr()).lower(methods.plan("mul", 48, "karatsuba", NESTED), avr(), core())
    (function,) = (each for each in code.functions if any(op.insn == "give" for op in each.ops))
    found = residence(function)
    placed = best_places(Task.of(found, frame.prices(avr(), "speed"), avr().pairs()), found)
    last = found.forks[-1]
    assert len(last.meets) > 10
    moved = {stay: to for _, stay, to in placed.moves}
    for new, old in last.meets.items():
        assert moved.get(new, placed.where[new]) == moved.get(old, placed.where[old])


def test_what_is_there_before_both_ways_and_after_them_is_not_moved_in_one_of_them() -> None:
    """Places that are chosen way by way move it here, at first."""
    code: Code = idioms(avr()).lower(methods.plan("mul", 48, "karatsuba", NESTED), avr(), core())
    (function,) = (each for each in code.functions if any(op.insn == "give" for op in each.ops))
    found = residence(function)
    ways = Ways(Task.of(found, frame.prices(avr(), "speed"), avr().pairs()), found)
    assert ways.placed()
    placed = best_places(ways.task, found)
    assert any(fork.lasting for fork in found.forks)
    for fork in found.forks:
        last = dict(enumerate(placed.where)) | {stay: to for at, stay, to in placed.moves if at <= fork.end}
        for new, old in fork.lasting.items():
            assert last[new] == last[old]


def test_where_nothing_is_called_branches_everywhere_are_not_tried_as_well() -> None:
    made = {}
    for bits in (128, 264):
        row = answers.best(answers.rows(avr(), "karatsuba", "mul", bits))
        forms = attempts.branching({key: value for key, value in row.items() if key != answers.BRANCHING})
        found, _ = tried(spec("avr", bits, op="mul", allow_branches=True), [("karatsuba", form) for form in forms])
        made[bits] = {dict(each.plan.parameters).get("signs") for each in found}
    assert made[128] == {"branched"}
    assert made[264] == {"branched", "everywhere"}


def test_code_that_branches_is_made_in_the_form_that_its_answer_says() -> None:
    for bits in (128, 264):
        (row,) = answers.rows(avr(), "karatsuba", "mul", bits)
        found = candidates(spec("avr", bits, op="mul", allow_branches=True))
        signs = {dict(each.plan.parameters).get("signs") for each in found}
        assert signs & {*attempts.BRANCHING} == {row[answers.BRANCHING]}


@pytest.mark.parametrize("goal", ["balanced", "size"])
@pytest.mark.parametrize("bits", [64, 128, 264])
def test_where_bytes_count_code_that_branches_is_no_better_than_what_is_taken(bits: int, goal: str) -> None:
    asked = spec("avr", bits, op="mul", goal=goal, allow_branches=True)
    row = answers.best(answers.rows(avr(), "karatsuba", "mul", bits))
    forms = [*attempts.branching(row), *attempts.branching({"levels": "1"})]
    branching, _ = tried(asked, [("karatsuba", form) for form in forms])
    taken = choose(asked)
    assert branching and not taken.plan.branches
    assert rank(asked, taken) < min(rank(asked, each) for each in branching)
