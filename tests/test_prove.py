"""The proof accepts what is right, whoever wrote it, and refuses everything else by the name of an instruction."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pytest
from clock import quick, soon
from conftest import avr, compiled, contract, core
from handwritten import NAMES, Foreign, foreign, link
from mutants import METHODS

from sqgen import check, interpret, runs
from sqgen.choosing import choose
from sqgen.contract import Fault
from sqgen.encode import DecodeError, decode, disassemble
from sqgen.oracles import simavr
from sqgen.prove import prove
from sqgen.spec import spec
from sqgen.timing import price

# ---- what is right ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "method"), METHODS)
@pytest.mark.parametrize("limbs", [2, 3, 4, 5, 8, 13, 16])
def test_kernels_of_every_method_are_proved(op: str, method: str, limbs: int) -> None:
    verdict = prove(compiled(op, limbs, method).image, contract(op, limbs), core())
    assert verdict.fault is None


@pytest.mark.clock
@pytest.mark.parametrize(("op", "method"), [("sqr", "sbd"), ("mul", "product-scanning"), ("mul", "operand-scanning")])
def test_proof_of_a_512_bit_kernel_takes_at_most_two_seconds(op: str, method: str) -> None:
    image = compiled(op, 64, method).image
    assert quick(lambda: prove(image, contract(op, 64), core()), 2)


@pytest.mark.clock
@pytest.mark.parametrize("bits", [168, 208, 240, 256])
@pytest.mark.parametrize("branches", [False, True])
def test_proof_of_the_fastest_product_takes_half_a_second(bits: int, branches: bool) -> None:
    """Halves of an odd number of limbs leave carries over that cancel: nothing else is looked for before that."""
    image = choose(spec("avr", bits, op="mul", allow_branches=branches)).image
    assert quick(lambda: prove(image, contract("mul", bits // 8), core(), branches=branches), 0.5)


@pytest.mark.clock
@pytest.mark.parametrize(("bits", "branches"), [(768, False), (1024, False), (384, True)])
def test_proof_of_a_large_product_takes_less_than_a_second(bits: int, branches: bool) -> None:
    """The last carry of a difference of 64 limbs takes more terms than a first look has: then it is seen at once."""
    image = choose(spec("avr", bits, op="mul", allow_branches=branches)).image
    assert quick(lambda: prove(image, contract("mul", bits // 8), core(), branches=branches), 1)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_that_sqgen_did_not_write_are_proved(name: str) -> None:
    assert foreign(name).prove().fault is None


@pytest.mark.simulator
@pytest.mark.parametrize("name", NAMES)
def test_kernels_that_sqgen_did_not_write_do_in_simavr_what_the_proof_says(name: str) -> None:
    kernel = foreign(name)
    report = check.run(kernel.image, kernel.contract, core(), kernel.entry, runs=100)
    verdict = kernel.prove()
    priced = price(kernel.contract.isa, core(), kernel.image, verdict.path, kernel.entry)
    assert (report.call, report.stack) == (priced.call, verdict.stack)


@pytest.mark.parametrize(("name", "most"), [("streamed_square_96", 4), ("signed_product_96", 33), ("signed32", 16)])
def test_sign_extended_sums_of_carries_split_the_proof_into_few_cases(name: str, most: int) -> None:
    assert 1 < foreign(name).prove().cases <= most


def test_masks_alone_do_not_split_the_proof() -> None:
    assert foreign("karatsuba32").prove().cases == 1


LOOPS = (
    "1: rjmp 1b",
    "1: ldi r16, 1\n add r0, r2\n adc r3, r4\n rjmp 1b",
    "movw r30, r22\n1: ld r16, Z\n mul r16, r16\n add r2, r0\n adc r3, r1\n adc r4, r5\n rjmp 1b",
    "1: add r2, r3\n lsr r2\n ror r3\n rjmp 1b",
    "1: ldi r16, 1\n add r2, r3\n dec r16\n breq 1b",
)


# ---- what is not ------------------------------------------------------------------------------------------------

SQUARE = """
    movw r30, r22
    movw r26, r24
    ld r18, Z+
    ld r19, Z
    clr r20
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
    ret
"""
CALL_SAVED_Y = ("push r28", "push r29", "in r28, 0x3d", "in r29, 0x3e")
RESTORED_Y = ("pop r29", "pop r28")


@dataclass(frozen=True)
class Broken:
    """The square above with line `old`, counted from 0, replaced by `new`, and the fault that this is.

    The fault names the line `named`, of several that read so the one number `which`.
    """

    old: int
    new: tuple[str, ...]
    named: str
    message: str
    column: int | None = None
    which: int = 0

    @property
    def lines(self) -> list[str]:
        lines = SQUARE.split("\n")[1:-1]
        return [*lines[: self.old], *self.new, *lines[self.old + 1 :]]

    def assembled(self) -> Foreign:
        return link(
            "; void sqr16(uint8_t *r, const uint8_t *a)\n.global sqr16\nsqr16:\n" + "\n".join(self.lines) + "\n"
        )

    def address(self) -> int:
        """Of the line that the fault names: every instruction here has two bytes."""
        instructions = [line.strip() for line in self.lines if not line.endswith(":")]
        return 2 * [index for index, line in enumerate(instructions) if line == self.named][self.which]


CARRIES_OUT = "what this instruction carries out is not added where it belongs"
UNKNOWN = "the result depends on something that is no operand"
BELOW = "writes below the stack pointer, where an interrupt may write too"
HALF = "an interrupt could come while the stack pointer is half written"
MISSING = "a product is missing in the result, or counts too often"
SET_N = ("in r21, 0x3f", "andi r21, 0x80", "out 0x3f, r21", "subi r21, 1")  # N is 0, then what SUBI makes of it
THRICE = ("add r23, r0", "adc r24, r1", "adc r25, r20")
SIGNS = (  # r21 is 0 or 255, and the sum of two such makes a case for each
    *("mov r21, r18", "lsl r21", "sbc r21, r21", "mov r0, r21"),
    *("mov r1, r19", "lsl r1", "sbc r1, r1", "add r0, r1"),
)

BROKEN = {
    "a carry dropped": Broken(15, (), "adc r24, r1", CARRIES_OUT, 3, which=1),
    "a product left out": Broken(9, ("mul r18, r20",), "ret", MISSING, 1),
    "a product counted three times": Broken(12, ("adc r25, r20", *THRICE), "ret", MISSING, 1),
    "a limb never stored": Broken(19, (), "ret", "this limb of the result is never written", 3),
    "a limb stored in another's place": Broken(
        17, ("st X, r23",), "ret", "this limb of the result is never written", 3
    ),
    "r1 not zero": Broken(20, (), "ret", "r1 is not zero on return"),
    "a register not restored": Broken(4, ("clr r20", "clr r2"), "ret", "r2 is not restored"),
    "a register set by nobody": Broken(4, (), "adc r25, r20", "the result depends on r20, which nobody has set", 3),
    "a carry used after MUL": Broken(10, ("adc r23, r0",), "adc r23, r0", UNKNOWN, 1),
    "memory used that nobody has written": Broken(
        16, ("ld r21, X", "eor r22, r21", "eor r22, r21", "st X+, r22"), "eor r22, r21", UNKNOWN, 0, which=1
    ),
    "the operand read behind its end": Broken(
        3, ("ldd r19, Z+1",), "ldd r19, Z+1", "a[2] is outside the buffer of 2 limbs"
    ),
    "the operand read before its start": Broken(
        2, ("ld r18, -Z",), "ld r18, -Z", "a[-1] is outside the buffer of 2 limbs"
    ),
    "the result written behind its end": Broken(
        19, ("st X+, r25", "st X, r1"), "st X, r1", "r[4] is outside the buffer of 4 limbs"
    ),
    "the operand written": Broken(4, ("clr r20", "st Z, r20"), "st Z, r20", "writes to operand a"),
    "a branch on a secret carry": Broken(
        15, ("brcc .+2", "inc r25", "nop"), "brcc .+2", "branches on C, which depends on a secret or is unknown"
    ),
    "a branch on a secret zero": Broken(
        5,
        ("tst r18", "breq .+0", "mul r18, r18"),
        "breq .+0",
        "branches on ZF, which depends on a secret or is unknown",
    ),
    "a branch on zero left by MUL": Broken(
        6,
        ("movw r22, r0", "clc", "ldi r21, 0", "sbc r21, r21", "breq .+0"),
        "breq .+0",
        "branches on ZF, which depends on a secret or is unknown",
    ),
    "a branch to the next instruction on a bit that the proof splits on": Broken(
        9,
        (*SIGNS, "tst r21", "breq .+0", "mul r18, r19"),
        "breq .+0",
        "branches on ZF, which depends on a secret",
    ),
    "an address from a secret": Broken(
        4, ("clr r20", "add r30, r18", "adc r31, r20", "ldd r0, Z+0"), "ldd r0, Z+0", "the address depends on a secret"
    ),
    "an address from a bit that the proof splits on": Broken(
        9,
        (*SIGNS, "add r30, r21", "adc r31, r21", "ldd r0, Z+0", "mul r18, r19"),
        "ldd r0, Z+0",
        "the address depends on a secret",
    ),
    "an instruction that is undefined for its register": Broken(
        3, ("ld r19, Z", ".word 0x91e1"), ".word 0x91e1", "unknown instruction 0x91e1"
    ),
    "an unknown instruction": Broken(4, (".word 0xffff",), ".word 0xffff", "unknown instruction 0xffff"),
    "no return": Broken(21, (), "clr r1", "the code runs past its end"),
    "a jump before the start": Broken(21, ("rjmp .-48", "ret", "nop"), "rjmp .-48", "the code runs before its start"),
    "a loop without end": Broken(4, ("clr r20", "1:", "rjmp 1b"), "rjmp 1b", "no end after 4160 instructions"),
    "a limb left on the stack": Broken(
        20, ("clr r1", "push r1"), "ret", "returns with the stack pointer not at the return address"
    ),
    "the return address read": Broken(4, ("clr r20", "pop r21"), "pop r21", "reads the caller's stack"),
    "a store below the stack pointer": Broken(
        4, ("clr r20", *CALL_SAVED_Y, "st Y, r18", "ldd r18, Y+0", *RESTORED_Y), "st Y, r18", BELOW
    ),
    "the stack pointer raised over what is still read": Broken(
        4,
        ("clr r20", *CALL_SAVED_Y, "push r18", "pop r21", "ldd r18, Y+0", *RESTORED_Y),
        "ldd r18, Y+0",
        "reads below the stack pointer, where an interrupt may have written",
    ),
    "half a stack pointer with interrupts on": Broken(
        4,
        (
            "clr r20",
            *CALL_SAVED_Y,
            "sbiw r28, 4",
            "out 0x3e, r29",
            "out 0x3d, r28",
            "adiw r28, 4",
            "out 0x3e, r29",
            "out 0x3d, r28",
            *RESTORED_Y,
        ),
        "out 0x3e, r29",
        HALF,
    ),
    "half a stack pointer, interrupts turned on too early": Broken(
        4,
        (
            "clr r20",
            *CALL_SAVED_Y,
            "sbiw r28, 4",
            "in r0, 0x3f",
            "cli",
            "out 0x3e, r29",
            "out 0x3f, r0",
            "nop",
            "out 0x3d, r28",
        ),
        "nop",
        HALF,
    ),
    "a return with half a stack pointer": Broken(
        20,
        ("clr r1", "in r30, 0x3d", "in r31, 0x3e", "sbiw r30, 1", "cli", "out 0x3d, r30"),
        "ret",
        "the stack pointer is half written",
    ),
    "interrupts left off": Broken(20, ("clr r1", "cli"), "ret", "returns with interrupts turned off"),
    "interrupts turned on": Broken(20, ("clr r1", "sei"), "sei", "turns interrupts on, which may be off in the caller"),
    "a flag used that no instruction defines": Broken(
        16,
        (*SET_N, "in r21, 0x3f", "andi r21, 4", "add r22, r21", "st X+, r22"),
        "in r21, 0x3f",
        UNKNOWN,
        0,
        which=1,
    ),
    "a case taken for impossible": Broken(
        9,
        (
            "mov r21, r18",
            "ori r21, 128",
            "lsr r21",
            "ori r21, 64",
            "lsr r21",
            "sbc r21, r21",
            "clr r1",
            "and r19, r21",
            "mul r18, r19",
        ),
        "lsr r21",
        CARRIES_OUT,
        1,
    ),
}


@functools.cache
def refusal(name: str) -> tuple[Foreign, Fault]:
    kernel = BROKEN[name].assembled()
    fault = kernel.prove().fault
    assert fault is not None, "accepted"
    return kernel, fault


def test_the_kernel_that_is_broken_below_is_right() -> None:
    assert Broken(0, ("movw r30, r22",), "", "").assembled().prove().proved


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_refused_and_the_instruction_named(name: str) -> None:
    broken, (kernel, fault) = BROKEN[name], refusal(name)
    assert (fault.message, fault.column, fault.address) == (broken.message, broken.column, broken.address())
    try:
        text = decode(kernel.contract.isa, kernel.image, kernel.entry + fault.address).text()
    except DecodeError:
        text = "?"
    assert fault.instruction == text
    assert str(fault).startswith(f"0x{fault.address:04x} `{text}`")


@pytest.mark.parametrize("name", [name for name, broken in BROKEN.items() if broken.message in (CARRIES_OUT, MISSING)])
def test_a_wrong_result_comes_with_operands_that_show_it(name: str) -> None:
    kernel, _ = refusal(name)
    shown = runs.counterexample(kernel.image, kernel.contract, core(), kernel.entry)
    assert shown is not None
    assert interpret.call(kernel.image, kernel.contract, core(), shown, kernel.entry) != shown[0] * shown[-1]


@pytest.mark.clock
def test_a_large_wrong_kernel_is_refused_in_reasonable_time() -> None:
    """What would show it right is looked for only where no run shows it wrong."""
    whole = compiled("mul", 40, "karatsuba", levels="2", parts="inline", recombine="unrolled").image
    wrong = bytearray(whole)
    middle = range(len(whole) // 4 * 2, len(whole), 2)
    wrong[next(at for at in middle if decode(avr(), whole, at).insn.name == "adc")] ^= 1
    assert not soon(lambda: prove(bytes(wrong), contract("mul", 40), core()), 2).proved


@pytest.mark.clock
def test_a_product_of_a_wrong_limb_is_refused_before_carries_are_looked_at() -> None:
    """No carry can make up for it, so a run is made first; carries of 512 bits took half a minute."""
    code = choose(spec("avr", 512, op="mul")).image
    places = [at for at, instr in disassemble(avr(), code) if instr.insn.name == "mul"]
    wrong = bytearray(code)
    wrong[places[-1]] ^= 1  # the other register of a pair
    assert not soon(lambda: prove(bytes(wrong), contract("mul", 64), core()), 4).proved


@pytest.mark.clock
@pytest.mark.parametrize("bits", [16, 256, pytest.param(512, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_without_end_is_refused_in_reasonable_time(bits: int, loop: str) -> None:
    kernel = link(f"; void sqr{bits}(uint8_t *r, const uint8_t *a)\n.global sqr{bits}\nsqr{bits}:\n{loop}\n")
    fault = soon(kernel.prove, 4).fault
    assert fault is not None and fault.message.startswith("no end after ")


# ---- overlapping buffers ----------------------------------------------------------------------------------------

OVERLAP = [
    ("sqr", 4, "sbd"),
    ("sqr", 8, "sbd"),
    ("sqr", 5, "product-scanning"),
    ("mul", 4, "product-scanning"),
    ("mul", 4, "operand-scanning"),
]


def own(op: str, limbs: int, method: str) -> Foreign:
    """A kernel of sqgen's."""
    return Foreign(contract(op, limbs), compiled(op, limbs, method).image, 0)


@pytest.mark.simulator
@pytest.mark.parametrize(("op", "limbs", "method"), OVERLAP)
def test_safe_overlaps_of_own_kernels_are_safe_in_simavr_and_others_are_not(op: str, limbs: int, method: str) -> None:
    overlaps_are_as_reported(own(op, limbs, method))


@pytest.mark.simulator
@pytest.mark.parametrize("name", NAMES)
def test_safe_overlaps_of_other_kernels_are_safe_in_simavr_and_others_are_not(name: str) -> None:
    overlaps_are_as_reported(foreign(name))


def overlaps_are_as_reported(kernel: Foreign) -> None:
    """The result lies at every displacement from every operand: right where that is safe, wrong somewhere else."""
    verdict = kernel.prove()
    for operand, safe in verdict.overlap.items():
        length = kernel.contract.limbs
        for displacement in range(1 - 2 * length, length):
            right = all_right(kernel, operand, displacement)
            assert right or displacement not in safe, f"{operand}{displacement:+d} is not safe"
        unsafe = sorted(set(range(1 - 2 * length, length)) - set(safe))
        assert not unsafe or not all(all_right(kernel, operand, displacement) for displacement in unsafe)


@functools.cache
def all_right(kernel: Foreign, operand: str, displacement: int) -> bool:
    """Whether simavr finds the product of many operands where the result lies `displacement` limbs above an operand."""
    values = list(interpret.operands(kernel.contract, 20))
    requests = [overlapping(kernel, operand, displacement, value) for value in values]
    outcomes = simavr.call("atmega128", kernel.image, requests, sp=0x0FFF, entry=kernel.entry)
    results = [int.from_bytes(outcome.memory[0], "little") for outcome in outcomes]
    return results == [value[0] * value[-1] for value in values]


def overlapping(kernel: Foreign, operand: str, displacement: int, values: tuple[int, ...]) -> simavr.Request:
    isa, length = kernel.contract.isa, kernel.contract.limbs
    places = {"a": 0x400, "b": 0x600}
    places["r"] = places[operand] + displacement
    registers = {isa.slots[name]: 0 for name in isa.abi.zero_on_return}
    for buffer, group in zip(kernel.contract.buffers, isa.abi.arguments, strict=False):
        registers |= {isa.slots[name]: places[buffer] >> 8 * part & 255 for part, name in enumerate(group)}
    memory = tuple(
        simavr.Buffer(places[name], value.to_bytes(length, "little")) for name, value in zip("ab", values, strict=False)
    )
    return simavr.Request(registers, memory, ((places["r"], 2 * length),))
