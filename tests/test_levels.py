"""Levels of Karatsuba: rows in strips, limbs on the stack, the last step, carries on a tape, calls over long ways."""

from __future__ import annotations

import importlib
import itertools

import pytest
from conftest import avr, kernel
from test_parts import CALLED, INLINE, code, given, names

from sqgen import methods
from sqgen.code import Builder
from sqgen.plan import Strip, cells

Tape = importlib.import_module("sqgen.isa.avr_tape").Tape


# ---- rows in strips -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strips", ["3,3,3", "5,4", "1,8", "9"])
@pytest.mark.parametrize("start", ["empty", "filled"])
def test_strips_are_all_rows_of_some_limbs_of_b(strips: str, start: str) -> None:
    steps = methods.plan("mul", 9, "rows", {"strips": strips, "start": start}).steps
    found: dict[int, set[tuple[int, int]]] = {}
    strip = Strip(0, 0)
    for step in steps:
        strip = step if isinstance(step, Strip) else strip
        for cell in cells(step):
            found.setdefault(strip.first, set()).add((cell.i, cell.j))
    ends = [*found, 9]
    for first, end in itertools.pairwise(ends):
        assert found[first] == {(i, j) for i in range(9) for j in range(first, end)}
    assert ends[1:] == list(itertools.accumulate(map(int, strips.split(","))))


@pytest.mark.parametrize("bits", [144, 152, 192])
def test_differences_that_registers_do_not_hold_are_pushed_and_all_popped(bits: int) -> None:
    made = code(("mul", "karatsuba", bits, INLINE))
    saved = sum(register in avr().abi.callee_saved for register in made.written)
    limbs = 2 * -(-bits // 16)
    moves = [line.instr.insn.name for line in made.lines if line.instr.insn.name in ("push", "pop")]
    assert moves == ["push"] * (saved + limbs) + ["pop"] * (saved + limbs)
    assert kernel("mul", bits, "karatsuba", **given(INLINE)).verdict.stack == saved + limbs


# ---- the last step --------------------------------------------------------------------------------------------------


def test_no_limb_of_m_is_read_by_a_pointer_nor_is_the_frame_given_back_at_the_end() -> None:
    made = code(("sqr", "karatsuba-squaring", 384, CALLED))
    found = names(made)
    assert found["out_spl"] == 1 and found["pop"] == 2 * 24 + 2 + 2 + found["push"] - 4


def test_parts_that_lie_far_apart_are_called_by_way_of_jumps() -> None:
    made = code(("sqr", "karatsuba-squaring", 504, "leaf=streamed-karatsuba levels=1 parts=calls recombine=unrolled"))
    jumps = [line for line in made.lines if any(label.startswith("hop") for label in line.labels)]
    assert jumps and all(line.instr.insn.name == "rjmp" for line in jumps)
    reached = {line.target for line in made.lines if line.instr.insn.name == "rcall"}
    assert any(target.startswith("hop") for target in reached)


def test_a_tape_gives_each_chain_its_own_carry() -> None:
    build = Builder(avr())
    tape = Tape(build, 1)
    limbs = [build.limb(f"x{chain}") for chain in range(3)]
    for chain in (1, 2, 1, 0, 1, 2, 0):
        tape.move(chain)
        tape.carry = build.emit("adc" if tape.carry else "add", limbs[chain], limbs[chain], takes=tape.carry)
    ops = [op for op in build.ops if op.args[0] in limbs]
    last: dict[object, int] = {}
    carries = run_tape(build)
    for index, op in enumerate(ops):
        assert carries[index] == last.get(op.args[0])
        last[op.args[0]] = index


def run_tape(build: Builder) -> list[int | None]:
    """For each addition to a limb, the number of that whose carry it takes, None for none; the code is run with
    these numbers in the place of bits."""
    found: list[int | None] = []
    tape: list[int | None] = [None] * 8
    carry: int | None = None
    for op in build.ops:
        if op.insn == "sbc":
            tape = [carry] * 8
        elif op.insn in ("ror", "lsr"):
            carry, tape = tape[0], [*tape[1:], carry if op.takes else None]
        elif op.args[0] is op.args[1] and str(op.args[0]) == "%tape":
            carry, tape = tape[7], [carry if op.takes else None, *tape[:7]]
        else:
            found.append(carry if op.takes else None)
            carry = len(found) - 1
    return found
