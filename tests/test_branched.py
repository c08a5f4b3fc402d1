"""Karatsuba that branches on the sign of M: only where that is permitted, and never at another price."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from commandline import Call
from conftest import avr, compiled, contract, core
from handwritten import Foreign
from mutants import mutants

from sqgen import check, choosing, compare, emit, interpret, timing
from sqgen import kernel as kernels
from sqgen.compile import Compiled, compile_plan
from sqgen.contract import Verdict
from sqgen.encode import disassemble
from sqgen.errors import Exit, UserError
from sqgen.kernel import Kernel
from sqgen.plan import Plan
from sqgen.prove import prove
from sqgen.spec import spec
from sqgen.timing import price

MUL = "--isa avr --op mul --bits 32 --method karatsuba -p signs=branched"
ALLOWED = f"{MUL} --allow-branches"
KARATSUBA = [("mul", "karatsuba", bits) for bits in (16, 24, 32, 88, 136, 256)]
HYBRID = [("sqr", "hybrid-karatsuba", bits) for bits in (64, 88, 136, 256)]
SCHEMA = json.loads((Path(__file__).parent.parent / "docs/manifest.schema.json").read_text())


def image(op: str, method: str, bits: int, **parameters: str) -> bytes:
    return compiled(op, bits // 8, method, signs="branched", **parameters).image


def verdict(code: bytes, op: str, bits: int) -> Verdict:
    return prove(code, contract(op, bits // 8), core(), branches=True)


def made(op: str = "mul", method: str = "karatsuba", bits: int = 32, part: str = "atmega128") -> Kernel:
    given = {"signs": "branched"}
    return kernels.make(spec("avr", bits, op=op, method=method, core=part, parameters=given, allow_branches=True))


def costs(kernel: Kernel) -> tuple[int, int, int]:
    return kernel.price.call, kernel.price.body, kernel.verdict.stack


def four_signs(bits: int) -> list[tuple[int, int]]:
    """Operands of a product with every pair of signs of the differences of their halves."""
    half = bits // 2
    less, more = (3 << half) + 1, (1 << half) + 3  # low half below, above the high one
    return [(a, b) for a in (less, more) for b in (less, more)]


# ---- the proof ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "method", "bits"), KARATSUBA + HYBRID)
def test_both_arms_are_proved_and_take_equally_long(op: str, method: str, bits: int) -> None:
    code = image(op, method, bits)
    found = verdict(code, op, bits)
    assert (found.fault, len(found.others)) == (None, 1)
    one, other = (price(avr(), core(), code, path) for path in (found.path, *found.others))
    assert one.cycles == other.cycles and one.counts != other.counts


@pytest.mark.parametrize(("bits", "form"), [(64, "levels=2"), (128, "levels=2 recombine=looped turn=4")])
def test_only_the_outermost_level_branches(bits: int, form: str) -> None:
    code = image("mul", "karatsuba", bits, **dict(pair.split("=") for pair in form.split()))
    found = verdict(code, "mul", bits)
    assert (found.fault, len(found.others)) == (None, 1)


@pytest.mark.parametrize(("op", "method", "bits"), [KARATSUBA[3], HYBRID[1]])
def test_a_branch_on_a_sign_is_refused_unless_permitted(op: str, method: str, bits: int) -> None:
    fault = prove(image(op, method, bits), contract(op, bits // 8), core()).fault
    assert fault and fault.instruction.startswith("brcs") and "depends on a secret" in fault.message


def test_permission_changes_nothing_for_code_that_does_not_branch() -> None:
    code = compiled("mul", 4, "karatsuba").image
    assert verdict(code, "mul", 32) == prove(code, contract("mul", 4), core())


def test_arms_that_do_not_take_equally_long_are_refused() -> None:
    code = image("mul", "karatsuba", 32)
    (place,) = [at for at, instr in disassemble(avr(), code) if instr.insn.name == "nop"]
    longer = code[:place] + bytes([0x00, 0xC0]) + code[place + 2 :]  # rjmp .+0 takes 2 cycles
    fault = verdict(longer, "mul", 32).fault
    before = price(avr(), core(), code, verdict(code, "mul", 32).path).call
    assert fault and fault.instruction.startswith("brcs")
    assert fault.message == f"takes {before} or {before + 1} cycles, depending on a secret"


def test_mutants_of_the_branch_and_its_arms_are_refused_or_right() -> None:
    code = image("mul", "karatsuba", 16)
    instrs = [instr.insn.name for _, instr in disassemble(avr(), code)]
    branch, done = instrs.index("brcs"), instrs.index("nop")
    near = {*range(branch - 2, branch + 5), *range(done - 3, done + 31)}
    every = [mutant for mutant in mutants(Foreign(contract("mul", 2), code, 0)) if mutant.at in near]
    proved = 0
    for mutant in random.Random(0).sample(every, 150):
        if verdict(mutant.kernel.image, "mul", 16).proved:
            proved += 1
            assert runs_alike(mutant.kernel), mutant
    assert proved < 50


def runs_alike(kernel: Foreign) -> bool:
    """Whether simavr finds nothing wrong, but for a path that hangs on the operands."""
    try:
        check.run(kernel.image, kernel.contract, core(), kernel.entry, 100, branches=True)
    except UserError as error:
        if error.code != Exit.DISAGREES:
            raise
        return False
    return True


# ---- the simulator --------------------------------------------------------------------------------------------------


@pytest.mark.simulator
@pytest.mark.parametrize("part", ["atmega128", "atmega2560"])
@pytest.mark.parametrize(("op", "method", "bits"), [KARATSUBA[0], *KARATSUBA[2:5], HYBRID[1], HYBRID[3]])
def test_simavr_sees_both_paths_and_the_cycles_of_the_manifest(op: str, method: str, bits: int, part: str) -> None:
    kernel = made(op, method, bits, part)
    report = check.run(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, runs=60, branches=True)
    assert (report.call, report.body, report.stack) == costs(kernel)
    assert report.paths == 2


@pytest.mark.parametrize("bits", [32, 128])
def test_all_four_signs_take_the_cycles_of_the_manifest(bits: int) -> None:
    kernel = made(bits=bits)
    paths = set()
    for operands in four_signs(bits):
        result, path = interpret.trace(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, operands)
        assert result == operands[0] * operands[1]
        assert price(avr(), kernel.spec.core, kernel.compiled.image, path).cycles == kernel.price.cycles
        paths.add(path)
    assert paths == {kernel.verdict.path, *kernel.verdict.others}


@pytest.mark.simulator
def test_the_simulators_judge_refuses_two_paths_and_other_cycles() -> None:
    kernel = made()
    what, part = kernel.spec.contract, kernel.spec.core
    with pytest.raises(UserError, match="its path depends on the operands"):
        check.run(kernel.compiled.image, what, part, runs=30)
    code = kernel.compiled.image
    place = next(at for at, instr in disassemble(avr(), code) if instr.insn.name == "nop")
    with pytest.raises(UserError, match=r"it takes \d+ cycles, and \d+ with other operands"):
        check.run(code[:place] + bytes([0x00, 0xC0]) + code[place + 2 :], what, part, runs=30, branches=True)


# ---- the command line and the files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (MUL, "--allow-branches permits that"),
        ("--isa avr --bits 64 --method hybrid-karatsuba -p signs=branched", "--allow-branches permits that"),
        (f"{ALLOWED} --bits 152 -p parts=inline -p levels=1", "signs=branched finds no registers for 19 limbs"),
        ("--isa avr --bits 32 --method hybrid-karatsuba -p signs=branched --allow-branches", "2 limbs do not have"),
        (
            "--isa arm --op mul --bits 256 --method karatsuba -p signs=branched --allow-branches",
            "has branches that sqgen cannot form on arm",
        ),
        (
            "--isa msp430 --op mul --bits 256 --method karatsuba -p parts=rows -p signs=branched --allow-branches",
            "has branches that sqgen cannot form on msp430",
        ),
        (MUL.replace("branched", "wrong"), "'signs' is branch-free or branched or everywhere, not 'wrong'"),
    ],
)
def test_what_may_not_or_cannot_branch_is_refused_in_one_line(
    refused: Callable[..., str], line: str, says: str
) -> None:
    assert says in refused(Exit.USAGE, line)


def test_manifest_and_header_say_that_it_branches() -> None:
    kernel = made()
    manifest = emit.manifest(kernel)
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(emit.manifest_text(kernel)))
    assert manifest["branches"] is True and manifest["parameters"]["signs"] == "branched"
    assert set(manifest["cycles_by_timing"]) == set(avr().timings)
    for text in (emit.header(kernel), emit.assembly(kernel)):
        assert "constant, but not one path: branches on the sign of a difference" in text
        assert "one path for every input" not in text
    without = {"signs": "branch-free"}
    plain = kernels.make(spec("avr", 32, op="mul", method="karatsuba", parameters=without, allow_branches=True))
    assert emit.manifest(plain)["branches"] is False
    assert "one path for every input" in emit.header(plain)
    assert "--allow-branches" in plain.spec.command()


@pytest.mark.parametrize("bits", [64, 256])
def test_auto_branches_where_it_may_and_gains_by_it(bits: int) -> None:
    plain, allowed = (kernels.make(spec("avr", bits, op="mul", allow_branches=may)) for may in (False, True))
    assert allowed.price.body <= plain.price.body
    assert emit.manifest(allowed)["branches"] is (allowed.price.body < plain.price.body)


@pytest.mark.parametrize(("goal", "both"), [("speed", False), ("size", True)])
def test_what_an_answer_says_is_slower_is_not_compiled(monkeypatch: pytest.MonkeyPatch, goal: str, both: bool) -> None:
    asked = spec("avr", 96, op="mul", goal=goal, allow_branches=True)
    plans: list[bool] = []

    def noting(plan: Plan, *args: Any, **more: Any) -> Compiled:
        plans.append(plan.branches)
        return compile_plan(plan, *args, **more)

    monkeypatch.setattr("sqgen.choosing.compile_plan", noting)
    assert choosing.choose(asked).plan.branches == (goal == "speed")
    assert (False in plans) == both


def test_timing_columns_in_which_the_arms_differ_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = made()
    real = timing.prices

    def uneven(isa, cores, code, path):  # type: ignore[no-untyped-def]
        found = real(isa, cores, code, path)
        if path == kernel.verdict.others[0]:
            found[-1] = replace(found[-1], call=found[-1].call + 1)
        return found

    monkeypatch.setattr(kernels, "prices", uneven)
    assert [column.name for column, _ in made().prices] == [column.name for column, _ in kernel.prices[:-1]]


@pytest.mark.simulator
def test_the_command_makes_the_same_files_and_check_wants_the_permission_too(sqgen: Call, here: Path) -> None:
    assert sqgen(f"{ALLOWED} --quiet").code == 0
    before = {path.name: path.read_bytes() for path in (here / "out").iterdir()}
    command = json.loads(before["sqgen_mul32_avr.json"])["command"]
    assert sqgen(" ".join(shlex.split(command)[1:]) + " --quiet").code == 0
    assert {path.name: path.read_bytes() for path in (here / "out").iterdir()} == before
    refused = sqgen("check out/sqgen_mul32_avr.S")
    assert (refused.code, refused.err.count("\n")) == (Exit.DISAGREES, 1)
    seen = sqgen("check out/sqgen_mul32_avr.S --allow-branches")
    assert seen.code == 0 and "2 paths of as many cycles" in seen.out


def test_nothing_that_branches_is_chosen_or_compared_unasked() -> None:
    request = spec("avr", 64, op="mul")
    assert not any(dict(point.parameters).get("signs") == "branched" for point in compare.points(request, "karatsuba"))
