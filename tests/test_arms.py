"""Karatsuba in place that branches on both signs, and what lets code go two ways: registers, memory and cycles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from clock import soon
from conftest import avr, compiled, contract, core
from handwritten import Foreign
from mutants import mutants
from sqgen.isa.avr_address import address
from test_branched import costs, four_signs, runs_alike

from sqgen import check, choosing, frame, interpret, measure, methods
from sqgen import kernel as kernels
from sqgen.allocate import allocate
from sqgen.code import Builder, Code, CodeError, Function, Label, Memory, Op
from sqgen.encode import disassemble
from sqgen.errors import UserError
from sqgen.forked import best_places
from sqgen.forward_proof import prove_forward
from sqgen.idioms import idioms
from sqgen.kernel import Kernel
from sqgen.placing import Task
from sqgen.prove import prove
from sqgen.replay import verify
from sqgen.residence import residence
from sqgen.spec import spec
from sqgen.timing import price, prices

IN_PLACE = {"levels": "1", "parts": "inline", "signs": "branched"}
NESTED = {"levels": "2", "parts": "nested", "recombine": "unrolled", "signs": "branched"}
SIZES = [*range(16, 152, 8)]
TOGETHER = 160  # bits of two levels, up to which the parts go one way
OTHERS = ["atmega2560", "atxmega128a4u", "atmega4809"]


def how_many(bits: int) -> int:
    """Ways through the code of `made`."""
    return 3 if bits in SIZES else of_two_levels(bits)


def of_two_levels(bits: int) -> int:
    """Ways through two levels: those of the last step, and of H, and L where b_lo - b_hi comes after its H."""
    half = (bits + 8) // 16
    return 2 if bits <= TOGETHER else 2 * 3 * (1 if half in (11, 12, 14) else 3)


def made(bits: int, part: str = "atmega128") -> Kernel:
    """One level in place, or two where one has too many limbs."""
    given = IN_PLACE if bits in SIZES else NESTED
    request = spec("avr", bits, op="mul", method="karatsuba", core=part, parameters=given, allow_branches=True)
    return kernels.make(request)


def lowered(bits: int) -> Function:
    code: Code = idioms(avr()).lower(methods.plan("mul", bits // 8, "karatsuba", IN_PLACE), avr(), core())
    return code.functions[0]


# ---- the kernels ----------------------------------------------------------------------------------------------------


@pytest.mark.many
@pytest.mark.parametrize("bits", SIZES)
def test_three_ways_are_proved_twice_and_take_equally_long_on_every_core(bits: int) -> None:
    code = compiled("mul", bits // 8, "karatsuba", **IN_PLACE).image
    what = contract("mul", bits // 8)
    found, second = prove(code, what, core(), branches=True), prove_forward(code, what, core(), branches=True)
    assert (found.fault, len(found.others), second.why, len(second.paths)) == (None, 2, "", 3)
    cores = [avr().core(name) for name in ("atmega128", *OTHERS)]
    ways = [prices(avr(), cores, code, path) for path in (found.path, *found.others)]
    for first, second_way, third in zip(*ways, strict=True):
        assert first.cycles == second_way.cycles == third.cycles
    fault = prove(code, what, core()).fault
    assert fault and fault.instruction.startswith("brcs") and "depends on a secret" in fault.message


@pytest.mark.parametrize("bits", [96, 152, 160, 168, 192, 216, 256])
def test_the_ways_of_two_levels_are_equal_on_every_core(bits: int) -> None:
    """The last step goes two ways.  M's sign is in flag T up to 20 limbs, above that on the stack, and H and L may go
    three ways each."""
    code, what = compiled("mul", bits // 8, "karatsuba", **NESTED).image, contract("mul", bits // 8)
    found = prove(code, what, core(), branches=True)
    assert (found.fault, found.cases, found.ways) == (None, 4, of_two_levels(bits))
    cores = [avr().core(name) for name in ("atmega128", *OTHERS)]
    ways = [prices(avr(), cores, code, path) for path in (found.path, *found.others)]
    assert all(each.cycles == costs[0].cycles for costs in zip(*ways, strict=True) for each in costs)
    plain = compiled("mul", bits // 8, "karatsuba", **{**NESTED, "signs": "branch-free"}).image
    before = prices(avr(), cores, plain, prove(plain, what, core()).path)
    assert all(first.body < other.body for first, other in zip(ways[0], before, strict=True))


@pytest.mark.parametrize(
    ("bits", "given"),
    [
        (128, {}),
        (256, {"allow_branches": True}),
        (320, {"allow_branches": True}),
        (512, {}),
        (128, {"goal": "size"}),
    ],
    ids=["straight", "arms", "calls and arms", "calls", "loops"],
)
def test_cycles_that_are_read_off_the_flow_are_those_of_a_run(bits: int, given: dict[str, Any]) -> None:
    asked = spec("avr", bits, op="mul", **given)
    code = choosing.choose(asked)
    _, path = interpret.trace(code.image, asked.contract, asked.core, (0, 0))
    assert measure.price(code, asked.core) == price(avr(), asked.core, code.image, path)


def test_the_second_proof_sees_two_levels_too() -> None:
    code = compiled("mul", 12, "karatsuba", **NESTED).image
    second = prove_forward(code, contract("mul", 12), core(), branches=True)
    assert (second.why, len(second.paths)) == ("", 2)


@pytest.mark.parametrize("bits", [16, 64, 88, 128, 144, 160, 168, 256])
def test_all_four_signs_give_the_product_by_all_ways_that_there_are(bits: int) -> None:
    kernel, paths = made(bits), set[tuple[int, ...]]()
    signs = four_signs((bits + 8) // 16 * 16)  # the low half of an odd number of limbs is the larger one
    for operands in (*signs, *interpret.operands(kernel.spec.contract, 40)):
        result, path = interpret.trace(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, operands)
        assert result == operands[0] * operands[1]
        paths.add(path)
    said = (kernel.verdict.path, *kernel.verdict.others)
    assert {at for path in paths for at in path} == {at for path in said for at in path}
    assert len(paths) <= how_many(bits) == kernel.verdict.ways and (bits > TOGETHER or paths == {*said})


@pytest.mark.simulator
@pytest.mark.parametrize("part", ["atmega128", "atmega2560"])
@pytest.mark.parametrize("bits", [16, 64, 96, 128, 160, 192])
def test_simavr_sees_all_paths_and_the_cycles_of_the_manifest(bits: int, part: str) -> None:
    kernel = made(bits, part)
    report = check.run(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, runs=60, branches=True)
    assert (report.call, report.body, report.stack) == costs(kernel)
    assert report.paths == how_many(bits) or (bits > TOGETHER and 2 < report.paths < how_many(bits))


@pytest.mark.parametrize(
    ("bits", "public"), [(48, 217), (64, 360), (80, 522), (96, 780), (128, 1301), (160, 1969), (192, 2868)]
)
def test_auto_is_faster_than_public_code_that_branches(bits: int, public: int) -> None:
    """The best of papers/public/avr.toml, which may be faster than the figures of issue 5."""
    found = kernels.make(spec("avr", bits, op="mul", allow_branches=True))
    assert found.verdict.others and found.price.body <= public


def test_mutants_of_the_branches_and_of_what_waits_are_refused_or_right() -> None:
    code = compiled("mul", 2, "karatsuba", **IN_PLACE).image
    names = [instr.insn.name for _, instr in disassemble(avr(), code)]
    flow = [at for at, name in enumerate(names) if name in ("brcs", "brcc", "rjmp", "nop", "asr", "com", "or", "bst")]
    near = {at + more for at in flow for more in (-1, 0, 1)}
    proved = 0
    for mutant in mutants(Foreign(contract("mul", 2), code, 0)):
        if mutant.at not in near:
            continue
        if prove(mutant.kernel.image, mutant.kernel.contract, core(), branches=True).proved:
            proved += 1
            assert runs_alike(mutant.kernel), mutant
    assert 0 < proved < 100


@pytest.mark.clock
def test_a_wrong_arm_of_a_function_is_refused_where_it_is_seen() -> None:
    """Not once all cases of all its calls are walked, which takes many times as long."""
    request = spec("avr", 384, op="mul", allow_branches=True)
    code = choosing.choose(request).image
    entry = next(at for at, instr in disassemble(avr(), code) if instr.insn.name == "ret")
    middle = (entry + len(code)) // 2
    at = next(at for at, instr in disassemble(avr(), code) if instr.insn.name == "adc" and at > middle)
    wrong = bytearray(code)
    wrong[at + 1] ^= 0x10  # add: the carry before it is lost
    *_, carried = (each for each in disassemble(avr(), code[:at]) if each[1].insn.kind == "add")

    def refused() -> str:
        return str(prove(bytes(wrong), request.contract, core(), branches=True).fault)

    assert soon(refused, 2).startswith(
        f"0x{carried[0]:04x} `{carried[1].text()}`: what this instruction carries out is not"
    )


@pytest.mark.parametrize(
    ("bits", "given", "says"),
    [
        (152, IN_PLACE, "finds no registers for 19 limbs in one level"),
        (320, IN_PLACE, "finds no registers for 40 limbs"),
        (264, NESTED, "two levels in one piece have up to 32 limbs, not 33"),
        (512, {**NESTED, "signs": "branch-free"}, "two levels in one piece have up to 32 limbs, not 64"),
    ],
)
def test_what_has_too_many_limbs_says_so(bits: int, given: dict[str, str], says: str) -> None:
    with pytest.raises(UserError, match=says):
        kernels.make(spec("avr", bits, op="mul", method="karatsuba", parameters=given, allow_branches=True))


# ---- registers: two ways from one place -----------------------------------------------------------------------------


def index_of(ops: Sequence[Op], name: str) -> int:
    return next(index for index, op in enumerate(ops) if op.insn == name)


@pytest.mark.parametrize("bits", [64, 80, 128])
def test_both_ways_begin_with_the_same_limbs_in_the_same_registers(bits: int) -> None:
    function = lowered(bits)
    found = residence(function)
    task = Task.of(found, frame.prices(avr(), "speed"), avr().pairs())
    placed = best_places(task, found)
    (fork,) = found.forks
    assert fork.twins and (fork.at, fork.other) == (index_of(function.ops, "fork"), index_of(function.ops, "arm"))
    for new, old in fork.twins.items():
        moved = [to for time, stay, to in placed.moves if stay == old and time <= fork.at]
        assert placed.where[new] == (moved or [placed.where[old]])[-1]
        assert found.stays[old].virtual is found.stays[new].virtual
        assert found.stays[old].birth < 2 * fork.at < found.stays[old].death
        assert found.stays[old].death <= found.stays[new].birth == 2 * fork.other


def test_what_the_first_way_stores_is_nothing_to_the_other_one() -> None:
    function = lowered(128)
    done = allocate(function, frame.prices(avr(), "speed"), avr().pairs())
    verify(function, done)
    arm = index_of(done.ops, "arm")
    stores = [at for at, op in enumerate(done.ops) if op.insn == "store" and op not in function.ops]
    own = {op.args[1] for op in function.ops if op.insn == "store"}
    added = [at for at in stores if at > arm and done.ops[at].args[1] in own]
    assert added
    refused = 0
    for at in added:
        try:
            verify(function, Function("", (*done.ops[:at], *done.ops[at + 1 :]), done.pool))
        except CodeError:
            refused += 1
    assert refused == len(added)


def two_ways() -> tuple[Builder, Function]:
    """Three limbs, two registers; one of them is used in one way, the others in the other one."""
    build = Builder(avr())
    one, two, three = (build.limb(name) for name in ("one", "two", "three"))
    for number, limb in enumerate((one, two)):
        build.emit("ldi", limb, number)
        build.mark("room", limb, Memory("r", 4 + number))
    build.mark("fork", 0)
    build.emit("ldi", three, 2)
    for offset, limb in enumerate((three, one, two)):
        build.memory("store", limb, Memory("r", offset))
    build.mark("arm")
    for offset, limb in enumerate((two, one)):
        build.memory("store", limb, Memory("r", offset))
    build.mark("join")
    return build, Function("", tuple(build.ops), ("r16", "r17"))


def test_a_limb_that_one_way_puts_away_is_still_there_in_the_other() -> None:
    _, function = two_ways()
    done = allocate(function, {}, {})
    verify(function, done)
    fork, arm = index_of(done.ops, "fork"), index_of(done.ops, "arm")
    assert [op.insn for op in done.ops[:fork]].count("store") == 0
    assert [op.insn for op in done.ops[fork:arm]].count("store") == 4
    assert [op.insn for op in done.ops[arm:]] == ["arm", "store", "store", "join"]


# ---- memory and cycles ----------------------------------------------------------------------------------------------


def arms(first: Sequence[Op], second: Sequence[Op], later: int = 0) -> list[str]:
    """The instructions of two ways, each behind its own start, the first one with a jump and a label at its end."""
    start = [Op("point", ("Z", Memory("r", 0))), Op("fork", (later,))]
    out = [Op("rjmp", ()), Op("label", ())]
    return [op.insn for op in address([*start, *first, *out, Op("arm", ()), *second, Op("join", ())], avr())]


STORE = Op("store", ("r16", Memory("r", 1)))
ONE = Op("inc", ("r16",))


@pytest.mark.parametrize(
    ("first", "second", "later", "before_jump", "at_end"),
    [
        ([STORE], [STORE], 0, 0, 2),  # the jump
        ([STORE], [STORE], 2, 0, 0),
        ([STORE], [STORE, ONE, ONE, ONE], 0, 1, 0),
        ([STORE, ONE], [STORE], 1, 0, 2),
        ([Op("mov", ("r16", "r18")), Op("mov", ("r17", "r19"))], [ONE], 2, 0, 0),  # which become one MOVW
    ],
)
def test_the_shorter_way_waits(first: list[Op], second: list[Op], later: int, before_jump: int, at_end: int) -> None:
    made = arms(first, second, later)
    jump = made.index("rjmp")
    assert (made[:jump].count("nop"), made[jump:].count("nop")) == (before_jump, at_end)
    assert made[jump - before_jump : jump] == ["nop"] * before_jump and made[len(made) - at_end :] == ["nop"] * at_end


def test_of_arms_in_an_arm_the_one_that_ends_with_a_jump_counts() -> None:
    """It takes three cycles, and the other one is as long already."""
    jump, done = Op("rjmp", ("done",)), Op("label", ("done",))
    made = arms([ONE, jump, ONE, ONE, Op("wait", (1,)), done], [ONE, ONE, ONE], 0)
    assert made[-5:] == ["inc", "inc", "inc", "nop", "nop"] and made.count("nop") == 1 + 2  # the jump out of it


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([STORE], []),
        ([STORE], [Op("load", ("r16", Memory("r", 1)))]),
        ([STORE], [Op("store", ("r16", Memory("r", 2)))]),
        ([Op("walk", (Memory("r", 4),))], []),
    ],
)
def test_ways_that_would_not_use_memory_alike_are_refused(first: list[Op], second: list[Op]) -> None:
    with pytest.raises(UserError, match="would not use memory alike"):
        arms(first, second)


@pytest.mark.parametrize("way", ["1.2,2", "1.2,14"])
def test_small_arms_take_as_long_whichever_registers_limbs_are_in(way: str) -> None:
    """With the first of these two limbs of L are moved to a pair from a pair, in one cycle where MOVW does it."""
    code = compiled("mul", 32, "karatsuba", **NESTED, registers=way).image
    assert prove(code, contract("mul", 32), core(), branches=True).fault is None


def test_moves_are_joined_but_where_code_goes_two_ways() -> None:
    move = [Op("mov", ("r20", "r10")), Op("mov", ("r21", "r11"))]
    after, end = Label("after"), Label("end")
    small = [Op("brcc", (after,)), *move, Op("rjmp", (end,)), Op("label", (after,)), *move, Op("label", (end,))]
    names = [op.insn for op in address([*move, *small, *move], avr())]
    apart = ["brcc", "mov", "mov", "rjmp", "label", "mov", "mov", "label"]
    assert names == ["movw", *apart, "movw"]
    turn = Label("turn")
    loop = [Op("label", (turn,)), *move, Op("brne", (turn,)), *move]
    assert [op.insn for op in address(loop, avr())] == ["label", "movw", "brne", "movw"]
