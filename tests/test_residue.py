"""What several paths leave behind: what each leaves alone, though where they meet one machine goes on for those that it
speaks for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from conftest import Line, contract, core, instrs

from sqgen import choosing, interpret
from sqgen import kernel as kernels
from sqgen import residue as residues
from sqgen.encode import assemble
from sqgen.prove import prove
from sqgen.residue import Residue, residue
from sqgen.spec import spec


@pytest.mark.parametrize("bits", [48, 96, 168, 208, 384])
def test_all_paths_together_leave_what_each_of_them_leaves(bits: int) -> None:
    request = spec("avr", bits, op="mul", allow_branches=True)
    code, what = choosing.choose(request).image, request.contract
    verdict = prove(code, what, core(), branches=True)
    paths = (verdict.path, *verdict.others)
    assert len(paths) > 2
    apart = [residue(code, what, core(), [path]) for path in paths]
    whole = residue(code, what, core(), paths)
    assert set(whole.stack) == {at for each in apart for at in each.stack}
    assert set(whole.registers) == {name for each in apart for name in each.registers}
    assert whole.flags == any(each.flags for each in apart)


def test_of_paths_that_meet_few_steps_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    request = spec("avr", 208, op="mul", allow_branches=True)
    code = choosing.choose(request).image
    verdict = prove(code, request.contract, core(), branches=True)
    steps = []
    step = residues._Marking.step

    def noting(self: residues._Marking, image: bytes, at: int) -> int | None:
        steps.append(at)
        return step(self, image, at)

    monkeypatch.setattr(residues._Marking, "step", noting)
    residue(code, request.contract, core(), (verdict.path, *verdict.others))
    assert len(steps) < 2 * len(verdict.path) < (1 + len(verdict.others)) * len(verdict.path) / 1.5


SECRET: list[Line] = [("movw", "r30", "r22"), ("ldd_z", "r18", 0), ("ldd_z", "r19", 1)]
ZERO = ("r20", "r21")  # registers that hold nothing before the arms


def left(one: Sequence[Line], other: Sequence[Line], after: Sequence[Line]) -> Residue:
    """What is left by code that goes one of two ways, whichever of the two comes first."""
    what = contract("mul", 2)
    start: list[Line] = [*SECRET, *(("eor", name, name) for name in ZERO)]
    code = instrs([*start, *one, *other, *after, ("ret",)])
    ends = [*itertools.accumulate(instr.insn.size for instr in code)]
    places, first, second = [0, *ends[:-1]], len(start), len(start) + len(one)
    paths = [
        (*places[:second], *places[second + len(other) :]),
        (*places[:first], *places[second:]),
    ]
    found, again = (residue(assemble(code), what, core(), order) for order in (paths, paths[::-1]))
    assert found == again
    return found


def test_what_only_one_way_leaves_is_left() -> None:
    found = left([("mov", "r20", "r18")], [("mov", "r21", "r19")], [])
    assert {"r20", "r21"} <= set(found.registers)


def test_what_no_way_leaves_is_not_left() -> None:
    """Each way makes one factor and leaves the other one zero, so the product is zero after both."""
    found = left([("mov", "r20", "r18")], [("mov", "r21", "r19")], [("mul", "r20", "r21")])
    assert not {"r0", "r1"} & set(found.registers)


def test_a_limb_that_is_the_same_as_another_one_after_one_way_alone_is_left() -> None:
    """The difference is nothing after the first way, and something after the other one."""
    found = left([("mov", "r20", "r18")], [("mov", "r20", "r19")], [("sub", "r20", "r18")])
    assert "r20" in found.registers
    same: Residue = left(
        [("mov", "r20", "r18")], [("mov", "r21", "r18"), ("mov", "r20", "r21")], [("sub", "r20", "r18")]
    )
    assert "r20" not in same.registers


def test_what_only_one_way_leaves_on_the_stack_is_left() -> None:
    """Both ways leave the same number, which is a limb of an operand after one of them alone."""
    pushed = [("push", "r18"), ("pop", "r21"), ("eor", "r21", "r21")]
    assert left(pushed, [("push", "r20"), ("pop", "r21"), ("eor", "r21", "r21")], []).stack


@pytest.mark.parametrize(
    ("isa", "op", "bits", "method"),
    [
        ("avr", "sqr", 136, "column-loops"),
        ("avr", "mul", 152, "column-loops"),
        ("avr", "sqr", 256, "row-loops"),
        ("avr", "mul", 256, "row-loops"),
        ("avr", "mul", 256, "auto"),
        ("arm", "mul", 512, "row-loops"),
        ("arm", "mul", 512, "auto"),
        ("msp430", "sqr", 256, "karatsuba-squaring"),
    ],
)
def test_sums_that_are_not_worked_out_leave_the_same(
    isa: str, op: str, bits: int, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = spec(isa, bits, op=op, method=method)
    compiled = choosing.choose(request)
    paths = [kernels.proved(request, compiled).path]
    found = residue(compiled.image, request.contract, request.core, paths)
    mixed = []

    def worked_out(self: residues._Marking, sums: residues._Sums) -> bool:
        mixed.append(sums)
        return False

    monkeypatch.setattr(residues._Marking, "mixed", worked_out)
    assert residue(compiled.image, request.contract, request.core, paths) == found
    assert mixed or "loops" not in method


@pytest.mark.parametrize(
    ("again", "clean"),
    [
        ([("sub", "r18", "r18")], "r18"),
        ([("mov", "r19", "r18"), ("sub", "r18", "r19")], "r18"),
        ([("mul", "r18", "r20")], "r0"),
        ([("com", "r18"), ("mov", "r18", "r20")], "r18"),
        ([("and", "r18", "r20")], "r18"),
    ],
)
def test_code_that_is_executed_again_cleans_what_it_cleans_the_first_time(again: Sequence[Line], clean: str) -> None:
    """In a loop of three turns, r20 being zero."""
    what = contract("mul", 2)
    turn: list[Line] = [("movw", "r30", "r22"), ("ldd_z", "r18", 0), *again, ("dec", "r21")]
    start: list[Line] = [("eor", "r20", "r20"), ("ldi", "r21", 3)]
    size = sum(instr.insn.size for instr in instrs(turn))
    image = assemble(instrs([*start, *turn, ("brne", -size - 2), ("ret",)]))
    _, path = interpret.trace(image, what, core(), (1, 1))
    assert clean not in residue(image, what, core(), [path]).registers
