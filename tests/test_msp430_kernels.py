"""Kernels for MSP430: in the interpreter, in mspdebug's simulator, through two assemblers, for both provers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msp430 import CORES, code_of, index_of, made, msp430, of, refused

from sqgen import check, emit, objects, programs
from sqgen.encode import Instr, decode, encode
from sqgen.forward_proof import prove_forward
from sqgen.interpret import call, operands, trace
from sqgen.oracles import mspdebug
from sqgen.oracles.mspdebug_judge import _Judge
from sqgen.prove import prove
from sqgen.timing import price

SIZES = (32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 208, 224, 256, 320)
REQUESTS = [(op, bits) for op in ("sqr", "mul") for bits in SIZES]
EVERY = [
    (op, bits, core) for op, bits in ((op, bits) for op in ("sqr", "mul") for bits in (16, *SIZES)) for core in CORES
]


@pytest.mark.many
@pytest.mark.parametrize(("op", "bits", "core"), EVERY)
def test_a_proved_kernel_gives_the_product_in_the_interpreter(op: str, bits: int, core: str) -> None:
    kernel = made(op, bits, core=core)
    assert kernel.verdict.proved
    for values in operands(kernel.spec.contract, 20):
        assert call(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, values) == values[0] * values[-1]


@pytest.mark.many
@pytest.mark.simulator
@pytest.mark.parametrize("interrupts", ["guard", "caller"])
@pytest.mark.parametrize(("op", "bits"), [*REQUESTS, ("sqr", 512), ("mul", 512)])
def test_a_kernel_is_right_in_mspdebug(op: str, bits: int, interrupts: str) -> None:
    kernel = made(op, bits, interrupts=interrupts)
    report = check.run(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, runs=40)
    assert (report.simulator, report.paths, report.stack) == ("mspdebug", 1, kernel.verdict.stack)


OTHERS = [  # methods whose products are not by columns, and levels of them
    ("mul", 32, "rows", {"strips": "2"}),
    ("mul", 112, "rows", {"strips": "7"}),
    ("mul", 64, "karatsuba", {"levels": "1", "parts": "rows"}),
    ("mul", 224, "karatsuba", {"levels": "1", "parts": "rows"}),
    ("mul", 64, "karatsuba", {"levels": "1", "parts": "calls"}),
    ("mul", 320, "karatsuba", {"levels": "1", "parts": "calls"}),
    ("mul", 512, "karatsuba", {"levels": "2", "parts": "rows"}),
    ("mul", 384, "karatsuba", {"levels": "3", "parts": "rows"}),
    ("sqr", 64, "karatsuba-squaring", {"levels": "1", "leaf": "product-scanning"}),
    ("sqr", 544, "karatsuba-squaring", {"levels": "1", "leaf": "product-scanning"}),
    ("sqr", 512, "karatsuba-squaring", {"levels": "3", "leaf": "product-scanning"}),
]
UNEQUAL = [  # methods whose halves differ
    *(("mul", bits, "karatsuba", {"levels": "1", "parts": "rows"}) for bits in (80, 112, 144, 176, 208, 240)),
    *(("mul", bits, "karatsuba", {"levels": "1", "parts": "calls"}) for bits in (48, 80, 272)),
    ("mul", 496, "karatsuba", {"levels": "2", "parts": "rows"}),
    ("mul", 304, "karatsuba", {"levels": "3", "parts": "rows"}),
    *(("sqr", bits, "karatsuba-squaring", {"levels": "1", "leaf": "product-scanning"}) for bits in (48, 80, 272)),
    *(("sqr", bits, "karatsuba-squaring", {"levels": "3", "leaf": "product-scanning"}) for bits in (272, 304, 368)),
]
OTHERS += UNEQUAL


@pytest.mark.many
@pytest.mark.simulator
@pytest.mark.parametrize(("op", "bits", "method", "parameters"), OTHERS)
def test_rows_and_levels_are_right_in_mspdebug_and_the_interpreter(
    op: str, bits: int, method: str, parameters: dict[str, str]
) -> None:
    given = parameters if method == "rows" else {"recombine": "unrolled", **parameters}
    kernel = made(op, bits, method, **given)
    for values in operands(kernel.spec.contract, 20):
        assert call(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, values) == values[0] * values[-1]
    report = check.run(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, runs=40)
    assert (report.simulator, report.paths, report.stack) == ("mspdebug", 1, kernel.verdict.stack)


@pytest.mark.parametrize(("op", "bits", "method", "parameters"), UNEQUAL)
def test_the_carry_above_the_highest_limb_of_an_upper_half_is_not_lost(
    op: str, bits: int, method: str, parameters: dict[str, str]
) -> None:
    """H + L_hi is longer than H where nearly all limbs of the operands are ones, which random ones are not."""
    kernel = made(op, bits, method, recombine="unrolled", **parameters)
    top, half = (1 << bits) - 1, (bits // 16 - bits // 32) * 16
    for a in (top, top - (1 << half - 1), top ^ 0xFFFF, top >> 1, 1 << bits - 1, top ^ ((1 << half) - 1)):
        values = (a,) if op == "sqr" else (a, top)
        assert call(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, values) == values[0] * values[-1]


def test_parts_share_their_code_in_a_loop_that_the_proof_takes_for_a_function() -> None:
    """So a proof of two levels takes little longer than one of their parts, and the code is short."""
    kernel = made("sqr", 1024)
    assert kernel.compiled.plan.method == "karatsuba-squaring" and kernel.size < 5000
    text = emit.assembly(kernel)
    assert re.search(r"^    \.word 0x5030, 0x[0-9a-f]{4} +; add #\.L\w+-\.-4, pc", text, re.MULTILINE)


def test_an_operand_of_a_part_that_is_changed_is_found() -> None:
    kernel = made("sqr", 128, "karatsuba-squaring", leaf="product-scanning", recombine="unrolled")
    instrs = code_of(kernel)
    at = index_of(instrs, "push", 8)
    instrs[at] = of("push", "r15" if instrs[at].operands != ("r15",) else "r14")
    assert refused(kernel, instrs)


def miscounted(instr: Instr) -> int:
    """Cycles that mspdebug 0.22 counts too many: for each source that the constant generator makes, but for #0."""
    word = int.from_bytes(encode(instr)[:2], "little")
    source, mode = word >> 8 & 15, word >> 4 & 3
    if word < 0x4000 or source not in (2, 3) or (source == 2 and mode < 2):  # no two operands, or no constant
        return 0
    return {(3, 0): 0, (3, 1): 2}.get((source, mode), 1)


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("op", "bits"), [("sqr", 32), ("sqr", 128), ("sqr", 160), ("sqr", 256), ("mul", 96), ("mul", 256)]
)
def test_mspdebug_counts_the_cycles_of_the_manifest_but_for_its_known_miscount(op: str, bits: int) -> None:
    kernel = made(op, bits)
    image = kernel.compiled.image
    too_many = sum(miscounted(decode(msp430(), image, at)) for at in kernel.verdict.path)
    judge = _Judge(image, kernel.spec.contract, 0)
    (after,) = mspdebug.run(image, 0, [judge.call(next(operands(kernel.spec.contract, 1)))])
    assert after.instructions == len(kernel.verdict.path)
    assert after.cycles == emit.manifest(kernel)["cycles"]["call"] + too_many


@pytest.mark.parametrize(("op", "bits", "core"), [request for request in EVERY if request[1] <= 160])
def test_the_second_prover_agrees(op: str, bits: int, core: str) -> None:
    kernel = made(op, bits, core=core)
    verdict = prove_forward(kernel.compiled.image, kernel.spec.contract, kernel.spec.core)
    assert verdict.proved, verdict.why


@pytest.mark.parametrize("op", ["sqr", "mul"])
@pytest.mark.parametrize("core", CORES)
def test_the_price_is_what_the_interpreter_counts_on_the_executed_path(op: str, core: str) -> None:
    kernel = made(op, 128, core=core)
    _, path = trace(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, (0,) * (1 + (op == "mul")))
    assert price(msp430(), kernel.spec.core, kernel.compiled.image, path) == kernel.price


@pytest.mark.many
@pytest.mark.simulator
@pytest.mark.parametrize("assembler", ["GNU", "LLVM"])
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(("op", "bits"), [("sqr", 128), ("sqr", 512), ("mul", 256)])
def test_the_file_assembles_without_warnings_to_the_bytes_that_were_proved(
    op: str, bits: int, core: str, assembler: str, tmp_path: Path
) -> None:
    kernel = made(op, bits, core=core)
    (tmp_path / "kernel.S").write_text(emit.assembly(kernel))
    programs.assemble(tmp_path / "kernel.S", tmp_path / "kernel.o", msp430(), kernel.spec.core, assembler)
    code = objects.read(tmp_path / "kernel.o", msp430(), None)
    assert (code.symbol, code.body) == (kernel.spec.symbol, kernel.compiled.image)
    assert prove(code.image, kernel.spec.contract, kernel.spec.core, code.entry).proved


def test_what_llvm_does_not_know_is_there_as_words_that_say_what_they_are() -> None:
    rows = emit.assembly(made("mul", 256)).splitlines()
    written = [row for row in rows if ".word" in row]
    assert written and all(
        re.search(r"\.word 0x4[0-9a-f]b[0-9a-f], 0x01[0-9a-f]{2} +; mov @r\d+\+, &0x01", r) for r in written
    )
    assert not any(re.match(r" +mov @r\d+\+, &", row) for row in rows)
