"""Functions that are shown once: what later calls are told of them is so, or they are walked again."""

from __future__ import annotations

import functools
import re
from unittest.mock import Mock

import pytest
from arm import arm
from clock import soon
from conftest import avr, core
from handwritten import Foreign, link
from msp430 import code_of, msp430, of
from test_products import BROKEN, INNER, OUTER

from sqgen import brought, interpret, lemmas, runs, walk
from sqgen.bus import connect
from sqgen.encode import assemble
from sqgen.instructions import Instructions
from sqgen.kernel import Kernel, make
from sqgen.lemmas import Lemmas
from sqgen.prove import prove
from sqgen.spec import spec

ALONE = INNER.replace("    ld   r18, X+\n", "    clr  r2\n    ld   r18, X+\n")  # it needs no zero of its caller
TWICE = """
; void sqr16(uint8_t *r, const uint8_t *a)
.global sqr16
sqr16:
    push r2
    push r28
    push r29
    movw r30, r24
    movw r26, r22
    movw r28, r22
    rcall mul16             ; r = a * a
    ldd  r18, Y+0
    ldd  r19, Y+1
    std  Z+2, r18
    std  Z+3, r19
    adiw r30, 2
    movw r26, r30
    movw r28, r30
    sbiw r30, 2
    rcall mul16             ; and again, of the limbs where its upper half will be
    clr  r1
    pop  r29
    pop  r28
    pop  r2
    ret
"""
EARLY = ALONE.replace(
    "    ld   r18, X+\n", "    ld   r18, X+\n    std  Z+3, r18\n"
)  # a limb written before all are read


STORES = "    std  Z+2, r24\n    std  Z+3, r25\n"
HIGH = ALONE.replace(STORES, "")  # it leaves the upper half of its product in registers
STORED = OUTER.replace("rcall mul16", f"rcall mul16\n{STORES}")

LOADS = "    ldd  r20, Y+0\n    ldd  r21, Y+1\n"
TAKES = ALONE.replace(LOADS, "")  # its caller has loaded the second operand
BRINGS = OUTER.replace("    rcall mul16", f"{LOADS}    rcall mul16")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether a lemma fitted, each time that there was one for a call."""
    found: list[bool] = []
    applied = lemmas.applied

    def watched(*arguments: object) -> bool:
        found.append(applied(*arguments))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(walk, "applied", watched)
    return found


def test_a_function_is_shown_once_and_told_to_each_call(told: list[bool]) -> None:
    assert link(ALONE + OUTER).prove().proved
    assert told == [True] * 4


def test_limbs_of_a_product_may_be_in_registers_alone(told: list[bool]) -> None:
    assert link(HIGH + STORED).prove().proved
    assert told == [True] * 4


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (STORES, STORES.replace("r24", "r26").replace("r25", "r24").replace("r26", "r25")),  # in the wrong order
        (STORES, STORES.replace("std  Z+3, r25", "std  Z+3, r23")),
        (STORES, "    std  Z+3, r25\n"),  # and nothing at Z+2
        ("    std  Z+1, r23\n    ret", "    std  Z+1, r23\n    inc  r24\n    ret"),
        ("    std  Z+1, r23\n    ret", "    std  Z+1, r23\n    mov  r24, r25\n    ret"),
        ("    std  Z+1, r23\n    ret", "    ret"),
    ],
)
def test_no_lemma_of_limbs_in_registers_lets_a_wrong_kernel_pass(old: str, new: str) -> None:
    text = HIGH + STORED
    assert old in text
    kernel = link(text.replace(old, new, 1))
    assert not kernel.prove().proved
    assert runs.counterexample(kernel.image, kernel.contract, core(), kernel.entry) is not None


def test_limbs_of_an_operand_may_be_in_registers_already(told: list[bool]) -> None:
    assert link(TAKES + BRINGS).prove().proved
    assert told == [True] * 4


def test_limbs_that_are_in_registers_may_be_loaded_as_well(told: list[bool]) -> None:
    again = TAKES.replace("    mul  r19, r20\n", "    ldd  r20, Y+0\n    mul  r19, r20\n")
    assert again != TAKES
    assert link(again + BRINGS).prove().proved
    assert told == [True] * 4


@pytest.mark.parametrize("call", range(4))
@pytest.mark.parametrize(
    "brought",
    ["    ldd  r21, Y+0\n    ldd  r20, Y+1\n", "    ldd  r20, Y+0\n", "    ldd  r20, Y+0\n    ld   r21, X\n"],
    ids=["in the wrong order", "one from before", "one of the other operand"],
)
def test_no_lemma_of_limbs_brought_lets_a_wrong_kernel_pass(brought: str, call: int) -> None:
    before, *rest = BRINGS.split(LOADS)
    each = [LOADS] * len(rest)
    each[call] = brought
    kernel = link(TAKES + before + "".join(loads + part for loads, part in zip(each, rest, strict=True)))
    assert not kernel.prove().proved
    assert runs.counterexample(kernel.image, kernel.contract, core(), kernel.entry) is not None


def test_what_a_function_takes_is_read_before_it_is_written_on_its_way_to_the_first_jump() -> None:
    isa = avr()
    code = "push r8\n ldd r18, Y+1\n add r18, r3\n mov r4, r5\n add r4, r5\n pop r8\n rjmp .\n add r6, r7\n"
    image = link(f"; void sqr8(uint8_t *r, const uint8_t *a)\n.global sqr8\nsqr8:\n{code}    ret\n").image
    read = brought.first_read(Instructions(image, isa), 0)
    assert {isa.slots[name] for name in ("r3", "r5", "r28", "r29")} == {*read}


def test_what_a_function_has_written_above_its_product_is_not_told(told: list[bool]) -> None:
    """The place of a limb that is in a register: who reads it there reads something else."""
    spoiled = HIGH.replace("    std  Z+1, r23\n", "    std  Z+1, r23\n    std  Z+2, r18\n")
    assert link(spoiled + STORED).prove().proved
    assert told == [True] * 4
    told.clear()
    assert not link(spoiled + STORED.replace(STORES, "    std  Z+3, r25\n", 1)).prove().proved
    assert told


def test_a_function_that_is_reached_by_way_of_jumps_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One jump for each call, as calls have where they do not reach."""
    ways = iter(range(100))
    calls = re.sub("rcall mul16", lambda _: f"rcall hop{next(ways)}", OUTER)
    text = ALONE + "".join(f"hop{way}:\n    rjmp mul16\n" for way in range(next(ways))) + calls
    shown = Mock(wraps=lemmas.lemma)
    monkeypatch.setattr(walk, "lemma", shown)
    kernel = link(text)
    verdict = kernel.prove()
    assert verdict.proved and shown.call_count == 1
    assert verdict.path == interpret.trace(kernel.image, kernel.contract, core(), (1, 1), kernel.entry)[1]


@pytest.mark.parametrize("jumps", ["    rjmp mul16\n", "    rjmp .\n" * 1500], ids=["round", "many"])
def test_jumps_that_lead_to_no_function_are_refused(jumps: str) -> None:
    assert not link(f"mul16:\n{jumps}{OUTER}").prove().proved


def test_what_needs_something_of_its_caller_is_walked(told: list[bool]) -> None:
    assert link(INNER + OUTER).prove().proved
    assert told == []


@pytest.mark.parametrize("name", BROKEN)
def test_no_lemma_lets_a_wrong_kernel_pass(name: str) -> None:
    text = ALONE + OUTER
    assert BROKEN[name].old in text
    assert not link(text.replace(BROKEN[name].old, BROKEN[name].new, 1)).prove().proved


def test_a_call_whose_buffers_overlap_is_walked(told: list[bool]) -> None:
    assert link(ALONE + TWICE).prove().proved
    assert told[:2] == [True, False]


def test_what_is_wrong_only_where_buffers_overlap_is_refused(told: list[bool]) -> None:
    kernel = link(EARLY + TWICE)
    assert not kernel.prove().proved
    assert told[0]
    assert runs.counterexample(kernel.image, kernel.contract, core(), kernel.entry) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    rcall mul16             ; and", "    adiw r26, 4\n    sbiw r30, 1\n    rcall mul16             ; and"),
        ("    rcall mul16             ; and", "    push r2\n    in r30, 0x3d\n    in r31, 0x3e\n    rcall mul16 ;"),
        ("    rcall mul16             ; and", "    movw r30, r22\n    rcall mul16             ; and"),
        ("    rcall mul16             ; and", "    clr r31\n    rcall mul16             ; and"),
    ],
    ids=["beyond the buffers", "over the return address", "to an operand", "where nothing is known to be"],
)
def test_a_call_must_not_write_elsewhere(old: str, new: str, told: list[bool]) -> None:
    text = ALONE + TWICE
    assert old in text
    assert not link(text.replace(old, new)).prove().proved
    assert told[0]


def test_no_flag_is_what_it_was_before_the_call(told: list[bool]) -> None:
    """The carry is zero before it, and after it one where the function has compared so."""
    once = TWICE[: TWICE.index("    ldd  r18")] + TWICE[TWICE.index("    clr  r1") :]
    right = ALONE.replace("    ret", "    cp r18, r19\n    ret") + once.replace("    rcall", "    cp r2, r2\n    rcall")
    wrong = right.replace("    clr  r1\n", "    ldd r18, Z+3\n    adc r18, r2\n    std Z+3, r18\n    clr  r1\n")
    assert right != wrong and link(right).prove().proved
    assert not link(wrong).prove().proved
    assert told == [True, True]


@functools.cache
def kernel(name: str, core_name: str | None, op: str, bits: int, guard: str = "") -> Kernel:
    found, method, given = {"avr": avr, "arm": arm, "msp430": msp430}[name](), "auto", {"guard": guard}
    return make(spec(found, bits, op=op, core=core_name, method=method, parameters=given if guard else {}))


@pytest.mark.many
@pytest.mark.parametrize(
    "wanted",
    [
        ("avr", None, "sqr", 384),
        ("avr", None, "mul", 320),
        ("avr", "atmega2560", "mul", 272),
        ("avr", None, "sqr", 712),
        ("arm", "cortex-m3", "sqr", 512),
        ("arm", "cortex-m3", "mul", 352),
        ("arm", "cortex-m0", "sqr", 384),
        ("msp430", None, "sqr", 512),
        ("msp430", None, "mul", 448),
        ("msp430", None, "mul", 448, "column"),
        ("msp430", "msp430x", "mul", 496),
        ("msp430", "msp430x-mpy32", "mul", 640),
    ],
)
def test_the_verdict_is_that_of_a_walk_through_all_calls(
    wanted: tuple[str, str | None, str, int], told: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = kernel(*wanted)
    image, contract = made.compiled.image, made.spec.contract
    verdict = prove(image, contract, made.spec.core)
    assert verdict.proved and sum(told) > 2
    told.clear()
    monkeypatch.setattr(walk, "Lemmas", lambda steps: Lemmas(0))
    assert prove(image, contract, made.spec.core) == verdict
    assert not told


# ---- turns of loops, and devices --------------------------------------------------------------------------------


def turning() -> Kernel:
    """Three squares are formed by one loop, with a multiplier that is busy for some cycles."""
    given = {"levels": "1", "parts": "calls", "leaf": "product-scanning", "recombine": "unrolled"}
    return make(spec("msp430", 128, core="msp430x-mpy32", method="karatsuba-squaring", parameters=given))


def head(made: Kernel) -> int:
    """Where the loop begins."""
    return next(index for index, line in enumerate(made.compiled.lines) if any("turn" in name for name in line.labels))


def test_what_a_turn_was_shown_to_do_while_the_multiplier_rests_is_not_told_where_it_is_busy(told: list[bool]) -> None:
    made = turning()
    instrs = code_of(made)
    instrs.insert(head(made), of("mov_ra", "r15", made.spec.core.devices["mpy32"] + 0x22))
    told.clear()
    assert prove(assemble(instrs), made.spec.contract, made.spec.core).proved
    assert not told[0] and any(told)


def test_what_a_turn_was_shown_to_do_without_interrupts_is_not_told_where_one_may_come() -> None:
    made = turning()
    before = connect(made.spec.contract.isa, made.spec.core, alone=False)
    assert before
    first = code_of(made)[head(made) + 2]
    assert before.suits(before.apart(), first)
    before.quiet = 2
    shown = before.apart()
    assert before.suits(shown, first)
    before.quiet = 1
    assert not before.suits(shown, first)


def test_a_turn_that_returns_is_not_told_to_come_to_its_end(told: list[bool]) -> None:
    """It would return to where the count of the turns points."""
    made = turning()
    instrs = code_of(made)
    count = [index for index, instr in enumerate(instrs) if instr.text() == "pop r15"][-1]
    instrs[count - 1 : count] = [instrs[count - 1], of("ret")]
    size = instrs[count].insn.size
    back = next(index for index in range(count, len(instrs)) if instrs[index].insn.control[:1] == ("branch",))
    instrs[back] = of(instrs[back].insn.name, next(iter(instrs[back].immediates.values())) - size)
    told.clear()
    fault = prove(assemble(instrs), made.spec.contract, made.spec.core).fault
    assert fault and fault.message == "returns with the stack pointer not at the return address"
    assert not any(told)


def chain(count: int, last: str) -> Foreign:
    """Functions each of which calls the next one; the last one is given."""
    calls = "".join(f"f{at}:\n    rcall f{at + 1}\n    ret\n" for at in range(count))
    return link(f"; void sqr16(uint8_t *r, const uint8_t *a)\n.global sqr16\nsqr16:\n{calls}f{count}:\n{last}\n")


@pytest.mark.clock
@pytest.mark.parametrize("last", ["1: rjmp 1b", "    rcall f0\n    ret"], ids=["no end", "recursion"])
@pytest.mark.parametrize("count", [100, 1000])
def test_a_chain_of_calls_without_end_is_refused_in_reasonable_time(count: int, last: str) -> None:
    endless = chain(count, last)
    assert not soon(endless.prove, 4).proved
