"""Interrupts: kernels stand one before every instruction, and code that does not is refused and seen to fail."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import contract, core
from handwritten import Foreign, foreign, link
from mutants import METHODS, subject

from sqgen import check, interpret, kernel
from sqgen.errors import Exit, UserError
from sqgen.spec import spec

PROTOTYPE = "; void sqr16(uint8_t *r, const uint8_t *a)\n.global sqr16\nsqr16:"
OPEN = """
    push r28
    push r29
    movw r30, r22
    movw r26, r24
    ld r18, Z
    ldd r19, Z+1
    clr r20
"""
CLOSE = """
    mul r18, r18
    movw r22, r0
    mul r19, r19
    movw r24, r0
    mul r18, r19
    add r23, r0
    adc r24, r1
    adc r25, r20
    add r23, r0
    adc r24, r1
    adc r25, r20
    st X+, r22
    st X+, r23
    st X+, r24
    st X, r25
    clr r1
    pop r29
    pop r28
    ret
"""
# A frame of 252 bytes: with only the low half of the new stack pointer written, it lies above what was pushed.
LOWERED = """in r28, 0x3d
    in r29, 0x3e
    subi r28, 252
    sbci r29, 0"""
RAISED = """subi r28, 4
    sbci r29, 255
    in r0, 0x3f
    cli
    out 0x3e, r29
    out 0x3f, r0
    out 0x3d, r28"""
FAULTS = {  # title: (code, what the proof says)
    "a store below the stack pointer": (
        """
    in r28, 0x3d
    in r29, 0x3e
    st Y, r18
    eor r18, r18
    ld r18, Y
""",
        "writes below the stack pointer, where an interrupt may write too",
    ),
    "the stack pointer raised over what is still read": (
        """
    push r18
    in r28, 0x3d
    in r29, 0x3e
    pop r21
    eor r18, r18
    ldd r18, Y+1
""",
        "reads below the stack pointer, where an interrupt may have written",
    ),
    "half a stack pointer with interrupts on": (
        f"""
    {LOWERED}
    out 0x3d, r28
    out 0x3e, r29
    {RAISED}
""",
        "an interrupt could come while the stack pointer is half written",
    ),
    "half a stack pointer, interrupts turned on too early": (
        f"""
    {LOWERED}
    in r0, 0x3f
    cli
    out 0x3d, r28
    out 0x3f, r0
    nop
    out 0x3e, r29
    {RAISED}
""",
        "an interrupt could come while the stack pointer is half written",
    ),
}


def planted(fault: str) -> Foreign:
    """A square of 16 bits with one of the faults in it."""
    code = FAULTS[fault][0]
    return link(f"{PROTOTYPE}{OPEN}{code}{CLOSE}")


@pytest.mark.simulator
@pytest.mark.parametrize(("op", "method"), METHODS)
@pytest.mark.parametrize("bits", [16, 40, 128])
def test_kernels_of_every_method_stand_an_interrupt_before_every_instruction(op: str, method: str, bits: int) -> None:
    kernel = subject(f"{op}/{method}/{bits}")
    assert check.run(kernel.image, contract(op, bits // 8), core()).interrupted > 0


@pytest.mark.simulator
@pytest.mark.parametrize("name", ["frame24", "calls32", "pushpop24", "signed_product_48"])
def test_kernels_with_a_frame_calls_or_pushes_stand_an_interrupt_before_every_instruction(name: str) -> None:
    kernel = foreign(name)
    assert check.run(kernel.image, kernel.contract, core(), kernel.entry).interrupted > 0


@pytest.mark.simulator
@pytest.mark.parametrize("fault", FAULTS)
def test_a_kernel_that_an_interrupt_breaks_is_refused_and_fails_in_simavr_with_interrupts_only(fault: str) -> None:
    kernel = planted(fault)
    found = kernel.prove().fault
    assert found is not None and found.message == FAULTS[fault][1]
    with pytest.raises(UserError, match="with an interrupt before every instruction") as caught:
        check.run(kernel.image, kernel.contract, core(), kernel.entry)
    assert caught.value.code == Exit.DISAGREES


@pytest.mark.simulator
def test_a_frame_made_with_interrupts_off_is_proved_and_stands_them() -> None:
    right = RAISED.replace("subi r28, 4", "subi r28, 252").replace("sbci r29, 255", "sbci r29, 0")
    kernel = link(f"{PROTOTYPE}{OPEN}    in r28, 0x3d\n    in r29, 0x3e\n    {right}\n    {RAISED}{CLOSE}")
    assert kernel.prove().proved
    assert check.run(kernel.image, kernel.contract, core(), kernel.entry).interrupted > 0


@pytest.mark.parametrize(
    ("isa", "op", "bits", "more"),
    [
        ("avr", "mul", 256, {}),
        ("avr", "mul", 256, {"allow_branches": True}),
        ("avr", "sqr", 512, {"max_bytes": 3000}),
        ("msp430", "sqr", 128, {}),
        ("msp430", "mul", 256, {}),
        ("msp430", "mul", 192, {"goal": "size"}),
        ("msp430", "mul", 256, {"core": "msp430x-mpy32"}),
    ],
    ids=str,
)
def test_interrupts_are_off_as_long_as_a_run_says(isa: str, op: str, bits: int, more: dict[str, Any]) -> None:
    """The proof notes before which instructions they are; a run of numbers looks at the flag itself."""
    made = kernel.make(spec(isa, bits, op=op, **more))
    what, flag = made.spec.contract, made.spec.contract.isa.interrupt_enable
    assert flag
    run = interpret.Run(what, made.spec.core)
    run.start((0,) * (len(run.places) - 1))
    machine, slot = run.machine, what.isa.slots[flag]
    machine.slots[slot] = 1
    longest = since = 0
    position: int | None = 0
    while position is not None:
        allowed = machine.slots[slot]
        assert (position in made.verdict.masked) == (not allowed)
        position = machine.step(made.compiled.image, position)
        if allowed:
            since = machine.cycles
        longest = max(longest, machine.cycles - since)
    assert made.interrupts_off == longest > 0
