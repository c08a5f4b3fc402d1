"""Arms that join: both proofs go on with one state where the ways of a branch meet, and give nothing away for that."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from conftest import avr, compiled, contract, core
from handwritten import Foreign, link
from leavings import made

from sqgen import runs
from sqgen.contract import Contract, Verdict
from sqgen.encode import Instr, decode
from sqgen.forward_proof import ForwardVerdict, prove_forward
from sqgen.lemmas import Lemmas
from sqgen.meeting import LOOKED, Meetings
from sqgen.mutants import Change, changes
from sqgen.prove import _Proof, prove
from sqgen.walk import longest

NESTED = {"levels": "2", "parts": "nested", "recombine": "unrolled", "signs": "branched"}
BITS = 168  # the fewest at which parts of two levels branch
CALLED = {"levels": "3", "parts": "nested", "recombine": "unrolled", "signs": "everywhere"}


def code_of(bits: int) -> bytes:
    return compiled("mul", bits // 8, "karatsuba", **NESTED).image


def apart(code: bytes, bits: int) -> Verdict:
    """What the first proof says where it joins nothing."""
    what = contract("mul", bits // 8)
    lemmas = Lemmas(longest(what), joins=False)
    return _Proof(runs.Runs(code, what, core()), branches=True, lemmas=lemmas).run()


def test_as_many_ways_as_where_each_is_walked_by_itself() -> None:
    code = code_of(BITS)
    found, all_of_them = prove(code, contract("mul", BITS // 8), core(), branches=True), apart(code, BITS)
    assert (found.fault, found.cases, found.ways) == (None, 4, 6)
    assert (all_of_them.fault, all_of_them.cases, all_of_them.ways) == (None, 12, 6)
    assert {at for path in (found.path, *found.others) for at in path} == {
        at for path in (all_of_them.path, *all_of_them.others) for at in path
    }
    assert {found.path, *found.others} <= {all_of_them.path, *all_of_them.others}
    assert (found.stack, found.overlap) == (all_of_them.stack, all_of_them.overlap)


def test_the_second_proof_joins_as_well() -> None:
    code, what = code_of(BITS), contract("mul", BITS // 8)
    found, second = prove(code, what, core(), branches=True), prove_forward(code, what, core(), branches=True)
    assert (second.why, second.cases, second.ways, second.stack) == ("", 4, 6, found.stack)
    assert {at for path in second.paths for at in path} == {at for path in (found.path, *found.others) for at in path}
    assert second.overlap == {name: tuple(safe) for name, safe in (found.overlap or {}).items()}


@pytest.mark.parametrize("bits", [64, 80, 96])
def test_what_a_called_function_leaves_is_a_product_to_the_second_proof(bits: int) -> None:
    """Or there would be 4 ways for each call, of which there are three."""
    code, what = compiled("mul", bits // 8, "karatsuba", **CALLED).image, contract("mul", bits // 8)
    found, second = prove(code, what, core(), branches=True), prove_forward(code, what, core(), branches=True)
    assert (found.fault, found.ways) == (None, 2 * 3**3)
    assert (second.why, second.cases, second.ways, second.stack) == ("", 4, found.ways, found.stack)
    assert {at for path in second.paths for at in path} == {at for path in (found.path, *found.others) for at in path}


@pytest.mark.sweep
@pytest.mark.parametrize(("bits", "levels"), [(296, "3"), (1024, "4")])
def test_neither_more_registers_nor_a_pointer_hide_the_product(bits: int, levels: str) -> None:
    """At 296 bits more registers differ where H's arms meet than it leaves; at 1024 a pointer is as it was given."""
    code = compiled("mul", bits // 8, "karatsuba", **{**CALLED, "levels": levels}).image
    found = prove_forward(code, contract("mul", bits // 8), core(), branches=True)
    assert (found.why, found.cases) == ("", 4)


@pytest.mark.parametrize("count", [4, pytest.param(8, marks=pytest.mark.sweep)])
def test_the_second_proof_refuses_what_is_changed_in_a_called_function(count: int) -> None:
    code, what = compiled("mul", 8, "karatsuba", **CALLED).image, contract("mul", 8)
    wrong = wrong_ones(code, what, arms(code, called=True), count, seed=5)
    for change in wrong:
        assert prove_forward(change.apply(code), what, core(), branches=True).why, change
    assert len(wrong) > count // 2


def wrong_ones(code: bytes, what: Contract, places: Sequence[range], count: int, seed: int) -> list[Change]:
    """Of so many changes in these places those that a run shows to be wrong."""
    inside = [each for each in changes(avr(), code) if any(each.at in some for some in places)]
    some = random.Random(seed).sample(inside, count)
    return [change for change in some if runs.counterexample(change.apply(code), what, core()) is not None]


def arms(code: bytes, *, called: bool = False) -> list[range]:
    """Where the arms stand that are joined; those behind which nothing branches in a function that is `called`, too."""
    isa = avr()
    meetings = Meetings(lambda at: decode(isa, code, at))
    places, at = [], 0
    while at < len(code):
        branches = called and meetings.control(at) == "branch"
        if (end := meetings.place(at) if branches else meetings.after(at)) is not None:
            places.append(range(at, end))
        at = meetings.following(at)
    return places


def test_the_upper_limbs_of_a_part_may_be_in_registers() -> None:
    """As L's are, where there are 13 limbs in a half."""
    code, what = code_of(208), contract("mul", 26)
    found, second = prove(code, what, core(), branches=True), prove_forward(code, what, core(), branches=True)
    assert (found.fault, found.cases, found.ways) == (None, 4, 18)
    assert (second.why, second.cases, second.ways) == ("", 4, 18)


@pytest.mark.parametrize("bits", [240, 256])
def test_carries_in_a_number_that_cancel_do_not_keep_arms_apart(bits: int) -> None:
    """L of 8 limbs is a level, out of which carries seem to go; halves of 15 limbs leave a number of an odd one."""
    found = prove(code_of(bits), contract("mul", bits // 8), core(), branches=True)
    assert (found.fault, found.cases, found.ways) == (None, 4, 18)


@pytest.mark.parametrize("count", [20, pytest.param(40, marks=pytest.mark.sweep)])
def test_what_is_changed_in_an_arm_is_refused(count: int) -> None:
    """Changes that a run shows to be wrong: the first proof looks at each as if it did not know."""
    code, what = code_of(BITS), contract("mul", BITS // 8)
    wrong = wrong_ones(code, what, arms(code), count, seed=4)
    for change in wrong:
        assert prove(change.apply(code), what, core(), branches=True).fault, change
    assert len(wrong) > count // 2


def test_an_arm_that_takes_longer_is_refused() -> None:
    """A cycle more in one of the small arms inside an arm, and in arms by hand."""
    code, what, isa = code_of(BITS), contract("mul", BITS // 8), avr()
    nops = [at for places in arms(code) for at in places[::2] if decode(isa, code, at).insn.name == "nop"]
    assert nops
    for at in (nops[0], nops[-1]):
        longer = code[:at] + bytes([0x00, 0xC0]) + code[at + 2 :]  # rjmp .+0 takes 2 cycles
        fault = prove(longer, what, core(), branches=True).fault
        assert fault and "cycles, depending on a secret" in fault.message
    first, second = both(branching([*PRODUCT, "nop"], SWAPPED, []))
    assert first.fault and "cycles, depending on a secret" in first.fault.message
    assert "cycles, depending on the operands" in second.why


# ---- code by hand ---------------------------------------------------------------------------------------------------

START = ["movw r30, r24", "movw r26, r22", "movw r28, r20", "ld r22, x", "ld r23, y", "clr r20"]


def branching(one: list[str], other: list[str], then: list[str], last: Sequence[str] = ()) -> Foreign:
    """A product of two limbs: arms, one if a < b, then more, a branch for which it pays to join, and what comes
    last."""
    branch = ["cp r22, r23", "brcs 1f", "rjmp 2f", "1:"]  # taken: 2 cycles, not taken 1 and RJMP 2
    body = [*START, *branch, "nop", *one, "rjmp 3f", "2:", *other, "nop", "nop", "3:", *then]
    again = ["cp r22, r23", "brcs 4f", "nop", "4:", *last]
    lines = [*(f"push r{register}" for register in (28, 29)), *body, *again, "clr r1"]
    lines += [f"pop r{register}" for register in (29, 28)]
    head = ["; void mul8(uint8_t *r, const uint8_t *a, const uint8_t *b)", ".global mul8", "mul8:"]
    return link("\n".join([*head, *lines, "ret"]) + "\n")


def both(code: Foreign) -> tuple[Verdict, ForwardVerdict]:
    what = code.image, code.contract, core(), code.entry
    return prove(*what, branches=True), prove_forward(*what, branches=True)


PRODUCT = ["mul r22, r23", "st z, r0", "std z+1, r1"]
SWAPPED = ["mul r23, r22", "st z, r0", "std z+1, r1"]


def test_limbs_that_each_arm_multiplies_by_itself_are_one_product() -> None:
    first, second = both(branching(PRODUCT, SWAPPED, []))
    assert (first.fault, first.cases, first.ways) == (None, 2, 4)
    assert (second.why, second.cases, second.ways) == ("", 2, 4)


def test_code_that_needs_a_register_that_the_arms_changed_is_proved_without_joining() -> None:
    """Nothing is known of r18 where they were joined."""
    again = ["std z+1, r18"]
    first, second = both(branching([*PRODUCT, "mov r18, r1"], [*SWAPPED, "mov r18, r1"], again))
    assert (first.fault, second.why) == (None, "")
    assert (first.cases, second.cases) == (4, 2)  # where arms are joined it is 2 and 2


@pytest.mark.parametrize(
    "arm",
    [
        ["mul r22, r23", "st z, r1", "std z+1, r0"],  # limbs exchanged
        ["mul r22, r22", "st z, r0", "std z+1, r1"],  # a square
        ["mul r22, r23", "std z+1, r1", "st z, r0"],  # in another order
        ["mul r22, r23", "st z, r0", "nop", "nop"],  # a limb is missing
        ["mul r22, r23", "st z, r0", "std z+1, r20"],  # only where the product is small
    ],
)
def test_an_arm_that_leaves_something_else_is_refused(arm: list[str]) -> None:
    for one, other in itertools.permutations([PRODUCT, arm]):
        first, second = both(branching(one, other, []))
        assert first.fault and not second.proved


# ---- nothing made from operands is left -------------------------------------------------------------------------


def emptied(one: list[str], other: list[str]) -> tuple[str, str]:
    """What both proofs say of arms behind which all registers and flags are cleared that have limbs here, but r18."""
    code = branching(one, other, [], ["clr r0", "clr r23", "sub r22, r22"])
    first, second = both(replace(code, contract=replace(code.contract, wiped=True)))
    return str(first.fault or ""), second.why


PUSHED = ["push r20", "pop r18"]  # zero


def test_arms_that_leave_nothing_are_joined() -> None:
    assert emptied([*PRODUCT, *PUSHED], [*SWAPPED, *PUSHED]) == ("", "")


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        (["ldi r18, 1"], ["ldi r18, 2"], "in r18"),  # which arm it was
        (["mov r18, r22"], ["clr r18"], "in r18"),
        (["push r22", "pop r18", "clr r18"], [*PUSHED, "clr r18"], "on the stack"),
        (["push r22", "pop r18", "clr r18"], ["push r23", "pop r18", "clr r18"], "on the stack"),
    ],
)
def test_arms_that_leave_something_else_each_are_refused(one: list[str], other: list[str], where: str) -> None:
    for some in ((one, other), (other, one)):
        first, second = emptied([*PRODUCT, *some[0]], [*SWAPPED, *some[1]])
        assert where in first and where in second


@pytest.mark.parametrize("bits", [BITS, 200, pytest.param(256, marks=pytest.mark.sweep)])
def test_a_kernel_that_leaves_nothing_is_joined_like_another(bits: int) -> None:
    """At 200 bits nobody shows what L's upper limbs are where H's arms are not joined."""
    found = made("avr", "mul", bits, "karatsuba", **NESTED, wipe="1").verdict
    other = prove(code_of(bits), contract("mul", bits // 8), core(), branches=True)
    assert (found.fault, found.cases, found.ways) == (None, other.cases, other.ways)


def test_two_bits_that_decide_one_branch_make_two_ways() -> None:
    """The last branch of 96 bits hangs on both signs; a loop that clears the stack follows, so its arms are joined."""
    found = made("avr", "mul", 96, "karatsuba", **{**CALLED, "signs": "branched"}, wipe="1").verdict
    assert (found.fault, found.ways) == (None, 2)


# ---- where arms meet ------------------------------------------------------------------------------------------------


def test_branches_without_end_are_given_up_soon() -> None:
    """Each leads as far as one can, past others."""
    code, isa, looked = bytes([0xF8, 0xF1]) * 200_000, avr(), 0  # brcs .+126

    def decoded(at: int) -> Instr:
        nonlocal looked
        looked += 1
        return decode(isa, code, at)

    meetings = Meetings(decoded)
    assert not any(meetings.after(at) for at in range(0, 4000, 2))
    assert 0 < looked < 8 * LOOKED


def test_a_loop_meets_nothing() -> None:
    isa = avr()
    code = bytes([0x0A, 0x95, 0xF1, 0xF7, 0x08, 0x95])  # dec r16; brne .-4; ret
    assert Meetings(lambda at: decode(isa, code, at)).after(2) is None
