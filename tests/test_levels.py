"""Levels of Karatsuba: rows in strips, limbs on the stack, the last step, carries on a tape, calls over long ways."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Sequence

import pytest
from conftest import avr, kernel
from sqgen.isa.avr_unrolled import SECOND
from test_parts import CALLED, INLINE, NESTED, code, given, names

from sqgen import methods
from sqgen.code import Arg, Builder, Memory, Op, Virtual
from sqgen.plan import Strip, cells

tape_module = importlib.import_module("sqgen.isa.avr_tape")
Tape, Waiting = tape_module.Tape, tape_module.Waiting


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


@pytest.mark.parametrize(("bits", "limbs"), [(144, 0), (152, 2 * 10), (192, 2 * 12)])
def test_differences_that_registers_do_not_hold_are_pushed_and_all_popped(bits: int, limbs: int) -> None:
    made = code(("mul", "karatsuba", bits, INLINE))
    saved = sum(register in avr().abi.callee_saved for register in made.written)
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


@pytest.mark.parametrize("order", [(1, 2, 1, 0, 1, 2, 0), (0, 2, 1, 0, 1, 2), (2, 0, 1, 2, 1, 0)])
def test_a_tape_gives_each_chain_its_own_carry(order: Sequence[int]) -> None:
    build = Builder(avr())
    tape = Tape(build, 1)
    limbs = [build.limb(f"x{chain}") for chain in range(3)]
    for chain in order:
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


@pytest.mark.parametrize("together", [False, True])
def test_carries_that_wait_come_back_the_last_one_first(together: bool) -> None:
    build = Builder(avr())
    waiting = Waiting(build, together)
    x = [build.limb(f"x{index}") for index in range(5)]
    for limb in x[:3]:
        waiting.put(build.emit("add", limb, limb))
    build.emit("and", x[3], waiting.first())
    build.emit("adc", x[3], x[3], takes=waiting.carry())
    build.emit("and", x[4], waiting.mask())
    for ones in itertools.product((0, 0x80), repeat=3):
        found = run(build, dict(zip(x, (*ones, 0xFF, 0xFF), strict=True)))
        assert found[x[3]] == (2 * (0xFF if ones[0] else 0) & 0xFF) + (ones[2] > 0)
        assert found[x[4]] == (0xFF if ones[1] else 0)


def run(build: Builder, values: dict[Virtual, int]) -> dict[Virtual, int]:
    """The values of all variables after what was built, which is made of instructions with one carry."""
    carry = 0
    for op in build.ops:
        to, *others = op.args
        assert isinstance(to, Virtual)
        (other,) = others or [to]
        assert isinstance(other, Virtual)
        match op.insn:
            case "add" | "adc":
                total = values[to] + values[other] + (carry if op.insn == "adc" else 0)
                values[to], carry = total & 0xFF, total >> 8
            case "sbc":
                values[to] = 0xFF if carry else 0
            case "ror" | "lsr":
                total = values[to] | (carry << 8 if op.insn == "ror" else 0)
                values[to], carry = total >> 1, total & 1
            case "asr":
                values[to], carry = values[to] >> 1 | values[to] & 0x80, values[to] & 1
            case "mov":
                values[to] = values[other]
            case "and":
                values[to] &= values[other]
    return values


# ---- two levels in place --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [96, 160, 256])
def test_the_upper_half_of_l_is_not_stored_before_the_sums(bits: int) -> None:
    half = bits // 16
    (function,) = code(("mul", "karatsuba", bits, NESTED)).code.functions
    last = max(index for index, op in enumerate(function.ops) if "L + H - M" in op.heading)
    low = max(index for index, op in enumerate(function.ops) if op.heading.startswith("L\n"))
    stored = [op.args[1] for op in function.ops[low:last] if op.insn == "store"]
    assert stored == [Memory("r", column) for column in range(half)]


def test_limbs_of_l_that_stay_are_not_loaded_again_for_the_sums() -> None:
    """Those that the rows of L's middle leave; the ones below become that middle."""
    made = code(("mul", "karatsuba", 192, NESTED))
    (function,) = made.registers.functions
    last = max(index for index, op in enumerate(function.ops) if "L + H - M" in op.heading)
    loaded = [op.args[1] for op in function.ops[last:] if op.insn == "ldd_z"]
    assert set(range(6)) <= set(loaded) and not set(range(6, 12)) & set(loaded)


def test_a_sign_in_flag_t_and_what_w_carries_out_are_one_number() -> None:
    (function,) = code(("mul", "karatsuba", 160, NESTED)).code.functions
    last = max(index for index, op in enumerate(function.ops) if "L + H - M" in op.heading)
    names = [op.insn for op in function.ops[last:] if op.insn not in ("load", "store", "own")]
    at = names.index("bld")
    assert names[at - 2 : at + 5] == ["sbc", "eor", "bld", "mov", "adc", "neg", "eor"]
    assert "asr" not in names and "bst" not in names


def test_a_level_takes_the_highest_limbs_of_l_from_registers() -> None:
    made = code(("mul", "karatsuba", 512, "levels=3 parts=nested recombine=unrolled"))
    entry, inner = made.code.functions
    (given,) = (op.args for op in inner.ops if op.insn == "give")
    calls = [op for op in entry.ops if op.insn == "rcall"]
    assert len(given) == 16 and all(len(op.writes) == len(given) for op in calls)
    loaded = {str(op.args[1]) for op in entry.ops[entry.ops.index(calls[-1]) :] if op.insn == "load"}
    again = [limb for limb in range(64) if {f"r[{limb}]", f"{SECOND}[{limb}]"} & loaded]  # either pointer reaches them
    assert again == [*range(49)]  # one of 16: as many as pay are taken; one group more costs as much


def test_limbs_left_in_registers_are_stored_behind_the_calls_of_m_and_h_and_those_of_l_are_not() -> None:
    made = code(("sqr", "karatsuba-squaring", 256, "levels=1 parts=calls recombine=unrolled"))
    entry, leaf = made.code.functions
    (given,) = (op.args for op in leaf.ops if op.insn == "give")
    limbs, left = made.plan.limbs, len(given)  # of a part
    assert {str(op.args[1]) for op in leaf.ops if op.insn == "store"} == {f"r[{at}]" for at in range(limbs - left)}
    middle, high, low = (entry.ops.index(op) for op in entry.ops if op.insn == "rcall")
    behind = [
        [str(op.args[1]) for op in entry.ops[first:last] if op.insn == "store"]
        for first, last in ((middle, high), (high, low))
    ]
    ends = (("m", limbs), ("r", 2 * limbs))
    assert behind == [[f"{base}[{at}]" for at in range(end - left, end)] for base, end in ends]
    loaded = {str(op.args[1]) for op in entry.ops[low:] if op.insn == "load"}
    assert not loaded & {f"{base}[{at}]" for base in ("r", SECOND) for at in range(limbs - left, limbs)}


@pytest.mark.parametrize(
    ("op", "method", "bits", "parameters"),
    [
        ("sqr", "karatsuba-squaring", 384, "leaf=streamed-karatsuba levels=1 parts=calls recombine=unrolled"),
        ("mul", "karatsuba", 320, "levels=3 parts=nested recombine=unrolled"),
        ("mul", "karatsuba", 384, "levels=3 parts=nested recombine=unrolled"),
        ("mul", "karatsuba", 400, "levels=3 parts=nested recombine=unrolled"),
    ],
)
def test_a_function_takes_limbs_of_the_difference_before_it_where_they_are(
    op: str, method: str, bits: int, parameters: str
) -> None:
    """They are loaded for H and L alone, and not by the function before it has used them."""
    made = code((op, method, bits, parameters))
    entry, inner = made.code.functions
    (at,) = (at for at, each in enumerate(inner.ops) if each.insn == "accept")
    taken = inner.ops[at].writes
    middle, high, low = (at for at, each in enumerate(entry.ops) if each.insn == "rcall")
    assert all(set(entry.ops[call].reads) <= loaded(entry.ops[:call], len(taken)) for call in (high, low))
    assert not set(entry.ops[middle].reads) & loaded(entry.ops[:middle], len(taken))
    seen: set[Virtual] = set()
    for each in inner.ops[at + 1 :]:
        assert each.insn != "load" or each.args[0] not in set(taken) - seen
        seen.update(each.reads)
    assert set(taken) <= seen


def loaded(ops: Sequence[Op], last: int) -> set[Arg]:
    """What the last ones of so many loads have loaded."""
    return {op.args[0] for op in [op for op in ops if op.insn == "load"][-last:]}
