"""Stretches and loops that a proof does at once: they do what their instructions do, one by one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from math import prod

import pytest
from conftest import Line, avr, core, instrs
from hypothesis import given, settings
from hypothesis import strategies as st

from sqgen import choosing, hot
from sqgen.compile import Compiled
from sqgen.contract import Contract
from sqgen.encode import Instr, assemble
from sqgen.fusing import fused
from sqgen.held import Event
from sqgen.instructions import Instructions
from sqgen.interpret import Machine
from sqgen.laps import Laps, laps
from sqgen.prove import _Proof, prove
from sqgen.runs import Runs
from sqgen.spec import Spec, spec
from sqgen.stretch import Addition, Bitwise, Stretch, Sum, ZeroCheck, record, recorded
from sqgen.symbolic import State

REGISTERS = ("r16", "r17", "r18", "r19", "r24", "r25")
TWO = ("add", "adc", "sub", "sbc", "mul", "mov", "eor", "and", "or", "cp", "cpc")
PAIRS = ("adiw", "sbiw")
ONE = ("inc", "dec", "lsr", "ror", "asr", "com", "neg", "swap")
operation = st.one_of(
    st.tuples(st.sampled_from(("add", "adc", "adc", "mul")), *[st.sampled_from((*REGISTERS, "r0", "r1"))] * 2),
    st.tuples(st.sampled_from(TWO), *[st.sampled_from(REGISTERS)] * 2),
    st.tuples(st.sampled_from(ONE), st.sampled_from(REGISTERS)),
    st.tuples(st.sampled_from(PAIRS), st.just("r24"), st.integers(0, 63)),
    st.tuples(st.sampled_from(("subi", "sbci", "ldi")), st.sampled_from(REGISTERS), st.integers(0, 255)),
)


def proof(image: bytes, *, at_once: bool = True) -> _Proof:
    return _Proof(Runs(image, Contract("sqr", 2, avr()), core()), branches=False, at_once=at_once)


def stretch(code: Sequence[Instr], constants: dict[str, int] | None = None) -> Stretch | None:
    """What code does from its start on, recorded where some registers hold constants."""
    walk = proof(assemble(code))
    state = walk.start()
    for name, value in (constants or {}).items():
        state.slots[avr().slots[name]] = state.constant(value)
    found = recorded(Instructions(assemble(code), avr()), state, 0, walk.allowed)
    if found:
        fused(found)
    return found


def whole(lines: Sequence[Line]) -> Stretch:
    """The same of lines all of which are recorded."""
    found = stretch(instrs(lines))
    assert found is not None and len(found.addresses) == len(lines)
    return found


def number(terms: Sum, values: dict[int, int]) -> int:
    return sum(coefficient * prod(values[value] for value in key) for key, coefficient in terms.items())


def executed(found: Stretch, machine: Machine) -> dict[int, int]:
    """What slots hold behind a stretch that begins in a machine, as far as that is known, worked out on integers."""
    values = {value: machine.slots[slot] for slot, value in found.inputs.items()}
    for step in found.steps:
        if isinstance(step, Addition):
            total, rest = number(step.terms, values), step.digits[-1]
            widths, signs = [digit.width for digit in step.digits], [digit.sign for digit in step.digits]
            digits = machine.digits(total, widths, signs, [])
            values.update((digit.value, each) for digit, each in zip(step.digits, digits, strict=True))
            weighed = zip(step.weights(), digits, strict=True)
            assert rest.sign < 0 or total == sum(weight * each for weight, each in weighed), "a digit is cut off"
        elif isinstance(step, Bitwise):
            values[step.value] = machine.logic(step.op, number(step.left, values), number(step.right, values))
        else:
            assert isinstance(step, ZeroCheck)
            flag = None if step.flag is None else number(step.flag, values)
            values[step.value] = machine.zero(number(step.of, values), flag)
    for value, most in enumerate(found.tops):
        assert 0 <= values.get(value, 0) <= most
    return {slot: number(terms, values) for slot, terms in found.slots.items() if terms is not None}


def one_by_one(code: Sequence[Instr], machine: Machine) -> list[int]:
    image, at = assemble(code), 0
    for instr in code:
        machine.step(image, at)
        at += instr.insn.size
    return machine.slots


@settings(max_examples=400)
@given(st.lists(operation, min_size=2, max_size=24), st.integers(0, 1 << 32))
def test_a_fused_stretch_does_what_its_instructions_do(lines: list[Line], seed: int) -> None:
    code = instrs(lines)
    found = stretch(code)
    if found is None:  # a flag is read of which nothing is known
        return
    for seeded, limbs in ((seed, range(256)), (seed, (0, 1, 0x7F, 0x80, 0xFE, 0xFF))):
        rng = random.Random(seeded)
        machine = Machine(avr(), core(), 0)
        machine.slots = [rng.choice(limbs) if width == 8 else rng.getrandbits(width) for width in avr().widths]
        known = executed(found, machine)
        slots = one_by_one(code[: len(found.addresses)], machine)
        assert known == {slot: slots[slot] for slot in known}


PRODUCT: list[Line] = [("mul", "r16", "r17"), ("add", "r18", "r0"), ("adc", "r19", "r1"), ("adc", "r20", "r2")]


def additions(found: Stretch) -> list[tuple[int, int]]:
    """Bits of the lowest and of the highest digits of each addition."""
    return [(step.below, step.digits[-1].width) for step in found.steps if isinstance(step, Addition)]


def test_a_product_and_the_chain_that_adds_it_are_one_sum() -> None:
    found = whole(PRODUCT)
    assert additions(found) == [(24, 1)]
    assert [found.slots[avr().slots[name]] for name in ("r0", "r1")] == [None, None], "no longer known"


def test_two_chains_that_drop_their_carries_are_one_sum_which_drops_what_both_may_be() -> None:
    found = whole([*PRODUCT, *PRODUCT[1:]])
    assert additions(found) == [(24, 2)]


def test_a_digit_that_is_used_in_between_stays() -> None:
    used = whole([*PRODUCT[:3], ("mov", "r21", "r18"), ("add", "r21", "r19"), *PRODUCT[3:]])
    assert len(additions(used)) > 1


def test_what_the_next_turn_reads_stays() -> None:
    """r0 is read before it is written, so that what it holds in the end is known."""
    found = whole([("add", "r22", "r0"), ("adc", "r23", "r2"), *PRODUCT])
    assert found.slots[avr().slots["r0"]] is not None


# ---- loops ------------------------------------------------------------------------------------------------------


def code_of(request: Spec) -> Compiled:
    return choosing.choose(request)


LOOPS = [
    ("avr", "sqr", 128, "column-loops"),
    ("avr", "mul", 128, "column-loops"),
    ("avr", "sqr", 256, "row-loops"),
    ("avr", "mul", 256, "row-loops"),
    ("arm", "mul", 512, "row-loops"),
]


@pytest.mark.parametrize("wipe", ["0", "1"])
@pytest.mark.parametrize(("isa", "op", "bits", "method"), LOOPS)
def test_a_proof_that_does_loops_at_once_says_the_same(isa: str, op: str, bits: int, method: str, wipe: str) -> None:
    request = spec(isa, bits, op=op, method=method, parameters={"wipe": wipe})
    runs = Runs(code_of(request).image, request.contract, request.core)
    whole, single = (_Proof(runs, branches=False, at_once=at_once) for at_once in (True, False))
    verdict = whole.run()
    assert verdict.fault is None and verdict == single.run()
    assert whole.done_at_once > 0 == single.done_at_once
    assert whole.steps == single.steps and whole.seen == single.seen


def walked(code: bytes, request: Spec, *, at_once: bool) -> tuple[State, _Proof]:
    walk = _Proof(Runs(code, request.contract, request.core), branches=False, at_once=at_once)
    state = walk.start()
    assert walk.walk(state, 0) is None
    return state, walk


@pytest.mark.parametrize("method", ["column-loops", "row-loops"])
def test_the_same_accesses_and_branches_are_noted(method: str) -> None:
    request = spec("avr", 192, op="mul", method=method)
    (whole, walk), (single, _) = (walked(code_of(request).image, request, at_once=on) for on in (True, False))
    assert any(isinstance(event, Event) for event in whole.events)
    assert whole.events == single.events and whole.path == single.path
    assert any(found and found[1] for found in walk.stretches.values()) == (method == "column-loops")


def test_a_loop_is_proved_in_a_few_steps_whatever_the_count_of_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done singly grows with the columns, not with the products."""
    singly = []
    step = hot.Hot.plain

    def counted(self: hot.Hot, state: State, instr: Instr) -> None:
        singly.append(instr)
        step(self, state, instr)

    monkeypatch.setattr(hot.Hot, "plain", counted)
    request = spec("avr", 512, op="mul", method="column-loops")
    verdict = prove(code_of(request).image, request.contract, request.core)
    assert verdict.fault is None and len(singly) < 64**2


LONG = 200  # bytes of code above which only some are


@pytest.mark.parametrize(("isa", "op", "bits", "method"), [LOOPS[1], LOOPS[3], LOOPS[4]])
def test_of_loops_that_are_wrong_the_same_instruction_is_at_fault(isa: str, op: str, bits: int, method: str) -> None:
    """Instructions of a loop dropped in turn: what is found at once is what is found one by one."""
    request = spec(isa, bits // 2, op=op, method=method)
    image = code_of(request).image
    code, at, tried = Instructions(image, request.contract.isa), 0, 0
    nothing = {"avr": bytes(2), "arm": bytes([0, 0xBF])}[isa]
    while at < len(image):
        size = code.at(at).insn.size
        if len(image) > LONG and at % 8:
            at += size
            continue
        changed = image[:at] + nothing * (size // 2) + image[at + size :]
        runs = Runs(changed, request.contract, request.core)
        alone = _Proof(runs, branches=False, at_once=False).run()
        found = prove(changed, request.contract, request.core)
        assert (found.fault is None) == (alone.fault is None)
        assert found.fault == alone.fault
        tried += found.fault is not None
        at += size
    assert tried > 10


def loop(turn: Sequence[Line], back: str = "brne") -> Laps | None:
    """What is known of a loop that counts r18 down."""
    code = instrs(turn)
    size = sum(instr.insn.size for instr in code)
    code.append(Instr(avr().insns[back], (-size - 2,)))
    walk = proof(assemble(code))
    found = recorded(walk.instructions, walk.start(), 0, walk.allowed)
    assert found is not None
    fused(found)
    return laps(found, walk.instructions)


SUM: list[Line] = [("ld_xp", "r0"), ("add", "r20", "r0"), ("adc", "r21", "r2")]
COUNT: Line = ("dec", "r18")


def test_a_loop_that_sums_is_done_at_once() -> None:
    known = loop([*SUM, COUNT])
    assert known and known.counter.change == -1 and [step for _, step in known.steps] == [1]
    assert loop([COUNT, *SUM[:1]]), "one that but reads is, too"


@pytest.mark.parametrize(
    "turn",
    [
        [*SUM, COUNT, ("st_xp", "r20")],  # writes
        [*SUM, ("eor", "r20", "r3"), COUNT],  # does more than add
        [*SUM, ("sub", "r20", "r0"), COUNT],  # takes away
        [COUNT, *SUM],  # the branch asks of the sum
        [*SUM, ("sub", "r18", "r0")],  # the counter changes by what is read
        [*SUM, ("adc", "r18", "r19")],  # or by a carry
        [("ld_x", "r0"), ("inc", "r26"), *SUM[1:], COUNT],  # the carry into the address's higher limb is lost
        [("add", "r20", "r0"), ("adc", "r21", "r2"), ("ld_xp", "r0"), COUNT],  # adds what the turn before has read
        [("adc", "r20", "r2"), COUNT],  # the carry of the turn before
        [("mov", "r26", "r20"), *SUM, COUNT],  # the address is a sum
    ],
)
def test_other_loops_are_not(turn: list[Line]) -> None:
    assert loop(turn) is None


def test_a_loop_that_ends_on_something_else_is_not() -> None:
    assert loop([*SUM, COUNT], "brcs") is None and loop([*SUM, COUNT], "breq") is None


def laps_walked(count: int, turn: Sequence[Line] = SUM, *, at_once: bool) -> tuple[_Proof, State]:
    """A loop that sums limbs of the operand, or has another turn, counted down from a number."""
    code = instrs([("movw", "r26", "r22"), ("ldi", "r18", count), ("eor", "r20", "r20"), ("eor", "r2", "r2")])
    body = instrs([*turn, COUNT])
    back = Instr(avr().insns["brne"], (-sum(instr.insn.size for instr in body) - 2,))
    code += [*instrs([("eor", "r21", "r21")]), *body, back, *instrs([("ret",)])]
    what = Contract("sqr", 20, avr())
    walk = _Proof(Runs(assemble(code), what, core()), branches=False, at_once=at_once)
    return walk, walk.start()


def test_a_sum_of_all_turns_is_the_sum_of_each() -> None:
    (one, whole), (other, single) = laps_walked(20, at_once=True), laps_walked(20, at_once=False)
    assert one.walk(whole, 0) is None and other.walk(single, 0) is None
    assert one.done_at_once == 1 and whole.path == single.path and whole.events == single.events
    names = [avr().slots[name] for name in ("r20", "r21")]
    for walk, state in ((one, whole), (other, single)):
        total = state.linear([(1, state.slots[names[0]]), (256, state.slots[names[1]])])
        assert walk.atoms.reduce(total, {}) == dict.fromkeys(walk.operands["a"], 1)


def test_a_loop_that_takes_away_from_a_secret_is_not_done_at_once() -> None:
    turn: list[Line] = [("subi", "r19", 100)]
    assert loop([*turn, COUNT]), "of a number that is known it is"
    walk, state = laps_walked(20, turn, at_once=True)
    assert walk.walk(state, 0) is None and walk.done_at_once == 0


@pytest.mark.parametrize("count", [0, 21])
def test_a_loop_that_leaves_its_buffer_is_refused_where_it_does(count: int) -> None:
    """Of no turns there are 256."""
    faults = []
    for at_once in (True, False):
        walk, _ = laps_walked(count, at_once=at_once)
        faults.append(walk.run().fault)
    assert faults[0] == faults[1] and faults[0] and "a[20] is outside the buffer of 20 limbs" in faults[0].message


def test_where_a_constant_is_another_one_instructions_are_executed_one_by_one() -> None:
    found = stretch(instrs(PRODUCT), {"r2": 0})
    assert found
    walk = proof(assemble(instrs(PRODUCT)))
    state = walk.start()
    assert not found.begins(state)
    state.slots[avr().slots["r2"]] = state.constant(0)
    assert found.begins(state)
    assert replace(found, constants={}).begins(walk.start())


def test_a_constant_that_is_written_is_none_from_there_on() -> None:
    code = instrs([("add", "r18", "r2"), ("mov", "r2", "r18"), ("add", "r19", "r2")])
    walk = proof(assemble(code))
    state, slot = walk.start(), avr().slots["r2"]
    found = record(walk.instructions, state, 0, walk.allowed, {slot: 0})
    machine = Machine(avr(), core(), 0)
    machine.slots = [3 if width == 8 and at != slot else 0 for at, width in enumerate(avr().widths)]
    assert executed(found, machine)[avr().slots["r19"]] == one_by_one(code, machine)[avr().slots["r19"]] == 6


@pytest.mark.parametrize("past", [1, 3, 4])
def test_no_place_is_walked_past_where_the_walk_is_to_end(past: int) -> None:
    """That may be in a turn, or the branch behind it."""
    walk, state = laps_walked(20, at_once=True)
    walk.walk(state, 0)
    (at, known), *_ = [(at, found[0]) for at, found in walk.stretches.items() if found]
    again, slots = walk.start(), avr().slots
    again.slots[slots["r26"]], again.slots[slots["r27"]] = again.slots[slots["r22"]], again.slots[slots["r23"]]
    again.slots[slots["r2"]], again.slots[slots["r18"]] = again.constant(0), again.constant(5)
    assert walk.executed(again, at, 1000, [*known.addresses, known.end][past]) == [] == again.events
    assert len(walk.executed(again, at, 1000, None)) == 5 * 5
