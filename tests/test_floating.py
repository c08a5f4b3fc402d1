"""What a caller, a linker or a slip of the pen may do to a kernel, on every instruction set.

Buffers that overlap or are not aligned, bytes before the symbol, jumps into an instruction, code that writes to itself,
a limb past the operand.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from leavings import able, made
from observe import Scene

from sqgen import emit, methods, objects, programs
from sqgen.contract import Contract
from sqgen.encode import Instr, assemble
from sqgen.forward_proof import prove_forward
from sqgen.interpret import Crash, Run, call, follow, operands
from sqgen.kernel import Kernel
from sqgen.prove import prove
from sqgen.tables import isa, isa_names

DEFAULT = {"avr": "atmega128", "msp430": "msp430", "arm": "cortex-m4"}
LIMBS = 4
BESIDE = 2  # limbs between buffers that no longer overlap
Lines = list[tuple[str | int | tuple[str, ...], ...]]


METHODS = [
    (name, op, method)
    for name in isa_names()
    for op in ("sqr", "mul")
    for method in methods.names(op)
    if able(isa(name), op, LIMBS, method, DEFAULT[name])
]


def small(name: str, op: str = "sqr", method: str = "auto") -> Kernel:
    return made(name, op, LIMBS * isa(name).limb_bits, method, DEFAULT[name])


def code(name: str, lines: Lines) -> bytes:
    return assemble([Instr(isa(name).insns[str(insn)], tuple(operands)) for insn, *operands in lines])


def before(name: str, lines: Lines, op: str = "sqr") -> tuple[str, str]:
    """What both proofs say of a right kernel with other instructions before it; "" if it is proved."""
    kernel = small(name, op)
    image, what, core = code(name, lines) + kernel.compiled.image, kernel.spec.contract, kernel.spec.core
    second = prove_forward(image, what, core)
    return str(prove(image, what, core).fault or ""), "" if second.proved else second.why


# ---- buffers that overlap -------------------------------------------------------------------------------------------


@pytest.mark.many
@pytest.mark.parametrize(("name", "op", "method"), METHODS)
def test_overlaps_that_are_promised_are_right_and_no_others(name: str, op: str, method: str) -> None:
    """The result lies at every displacement from each operand, and beyond; where it is not promised, some operands show
    why."""
    kernel = small(name, op, method)
    for operand, safe in kernel.verdict.overlap.items():
        touching = range(1 - 2 * LIMBS, LIMBS)
        for displacement in range(touching[0] - BESIDE, touching[-1] + 1 + BESIDE):
            promised = displacement in safe or displacement not in touching
            assert all_right(kernel, operand, displacement) == promised, (operand, displacement)


def all_right(kernel: Kernel, operand: str, displacement: int) -> bool:
    """Whether the product of many operands is right with the result so many limbs above an operand."""
    contract, core = kernel.spec.contract, kernel.spec.core
    size = contract.isa.limb_bits // 8
    for values in operands(contract, 12, seed=1):
        scene = Scene(contract, core, {operand: displacement * size})
        scene.start(values)
        for _ in follow(scene.machine, kernel.compiled.image, 0):
            pass
        if scene.result() != values[0] * values[-1]:
            return False
    return True


# ---- pointers that are not aligned ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in isa_names() if isa(name).limb_bits > 8])
@pytest.mark.parametrize("buffer", ["r", "a"])
def test_a_pointer_between_two_limbs_is_refused_in_a_run_and_the_header_says_so(name: str, buffer: str) -> None:
    kernel = small(name)
    size = kernel.spec.contract.isa.limb_bits // 8
    for off in range(size):
        run = Run(kernel.spec.contract, kernel.spec.core)
        run.places[buffer] += off
        run.start((1,))
        if off == 0:
            assert list(follow(run.machine, kernel.compiled.image, 0))
            continue
        with pytest.raises(Crash, match=f"is no multiple of {size}"):
            list(follow(run.machine, kernel.compiled.image, 0))
    assert {2: "each even", 4: "each a multiple of 4"}[size] in emit.header(kernel)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("msp430", [("add_1", "r13"), ("mov_m", "r15", "r13"), ("sub_1", "r13")]),
        ("arm", [("adds_i", "r1", 1), ("ldr", "r3", "r1", 0), ("subs_i", "r1", 1)]),
    ],
)
def test_code_that_reads_between_two_limbs_is_refused_by_both_proofs(name: str, lines: Lines) -> None:
    assert all(before(name, lines))


# ---- a limb too far -------------------------------------------------------------------------------------------------

TOO_FAR: dict[str, list[Lines]] = {
    "avr": [[("movw", "r30", "r22"), ("ldd_z", "r0", LIMBS)], [("movw", "r26", "r22"), ("ld_mx", "r0")]],
    "msp430": [
        [("mov_x", "r15", "r13", 2 * LIMBS)],
        [("mov_r", "r15", "r13"), ("sub_2", "r15"), ("mov_m", "r15", "r15")],
    ],
    "arm": [[("ldr", "r3", "r1", 4 * LIMBS)], [("mov", "r3", "r1"), ("subs_i", "r3", 4), ("ldr", "r3", "r3", 0)]],
}
AS_FAR: dict[str, Lines] = {
    "avr": [("movw", "r30", "r22"), ("ldd_z", "r0", LIMBS - 1)],
    "msp430": [("mov_x", "r15", "r13", 2 * LIMBS - 2)],
    "arm": [("ldr", "r3", "r1", 4 * LIMBS - 4)],
}


@pytest.mark.parametrize("op", ["sqr", "mul"])
@pytest.mark.parametrize("name", isa_names())
def test_a_kernel_that_reads_a_limb_past_the_operand_or_before_it_is_refused_by_both(name: str, op: str) -> None:
    assert before(name, AS_FAR[name], op) == ("", "")
    for lines, limb in zip(TOO_FAR[name], (LIMBS, -1), strict=True):
        first, second = before(name, lines, op)
        assert f"a[{limb}] is outside the buffer" in first and f"reads a[{limb}]" in second


# ---- where code lies, and where it jumps ----------------------------------------------------------------------------

ASSEMBLER = {"avr": "LLVM", "msp430": "LLVM", "arm": "LLVM"}


@pytest.mark.parametrize("name", isa_names())
def test_a_kernel_in_the_midst_of_a_section_is_the_same_kernel(name: str, tmp_path: Path) -> None:
    kernel = small(name)
    what, core, symbol = kernel.spec.contract, kernel.spec.core, kernel.spec.symbol
    rng = random.Random(1)
    junk = [f"    .byte {', '.join(str(byte) for byte in rng.randbytes(10))}\n" for _ in range(2)]
    head, label, body = emit.assembly(kernel).partition(f"{symbol}:\n")
    end = f"    .size {symbol}, .-{symbol}\n"
    opening = f"    .global {symbol}\n"
    text = head.replace(opening, junk[0] + opening) + label + body.replace(end, end + junk[1])
    (tmp_path / "k.S").write_text(text)
    programs.assemble(tmp_path / "k.S", tmp_path / "k.o", what.isa, core, ASSEMBLER[name])
    found = objects.read(tmp_path / "k.o", what.isa, symbol)
    assert found.entry >= 10 and len(found.image) >= found.entry + len(kernel.compiled.image) + 10
    assert found.body == kernel.compiled.image
    assert prove(found.image, what, core, found.entry).proved
    assert prove_forward(found.image, what, core, found.entry).proved
    for values in operands(what, 8):
        assert call(found.image, what, core, values, found.entry) == values[0] ** 2


MIDDLE: dict[str, Lines] = {
    "msp430": [("jmp", 2), ("mov_i", "r11", 0x4130)],  # whose second word is RET
    "arm": [("b", 2), ("ldr_w", "r4", "r1", 0x770)],  # whose second half is BX LR
}


@pytest.mark.parametrize("name", MIDDLE)
def test_a_jump_into_an_instruction_goes_on_with_what_lies_there(name: str) -> None:
    which, core = isa(name), isa(name).core(DEFAULT[name])
    what = Contract("sqr", 2, which)
    image = code(name, MIDDLE[name])
    fault, second = prove(image, what, core).fault, prove_forward(image, what, core)
    assert fault is not None and which.insns[fault.instruction.split()[0]].control[:1] == ("return",)
    assert not second.proved


WRITES: dict[str, list[Lines]] = {
    "avr": [[("ldi", "r30", 2), ("ldi", "r31", 0), ("st_zp", "r0")]],
    "msp430": [[("mov_ra", "r15", 0x4400)], [("mov_i", "r15", 0x4400), ("mov_rx", "r15", "r15", 0)]],
    "arm": [[("movs_i", "r3", 64), ("str", "r3", "r3", 0)], [("str_w", "r3", "lr", 0)]],
}


@pytest.mark.parametrize("name", WRITES)
def test_code_that_writes_to_itself_or_its_callers_is_refused_by_both_proofs(name: str) -> None:
    for lines in WRITES[name]:
        assert all(before(name, lines))
