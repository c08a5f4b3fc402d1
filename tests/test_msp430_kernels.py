"""Kernels for MSP430: in the interpreter, in mspdebug's simulator, through two assemblers, for both provers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from clock import quick
from commandline import Call
from conftest import TESTS
from flips import passed
from msp430 import code_of, index_of, made, msp430, of, refused

from sqgen import check, emit, interpret, judging, measure, methods, objects, programs
from sqgen.contract import Contract
from sqgen.encode import Instr, assemble, decode, encode
from sqgen.errors import Exit, UserError
from sqgen.explain import explain
from sqgen.forward import prove_forward
from sqgen.interpret import call, operands, trace
from sqgen.oracles import mspdebug
from sqgen.oracles.mspdebug_judge import _Judge
from sqgen.prove import prove
from sqgen.spec import spec
from sqgen.timing import price

SIZES = (32, 48, 64, 80, 96, 112, 128, 144, 160, 192, 208, 224, 256, 320)
REQUESTS = [(op, bits) for op in ("sqr", "mul") for bits in SIZES]
CORES = ("msp430", "msp430x", "msp430x-mpy32")
EVERY = [
    (op, bits, core) for op, bits in ((op, bits) for op in ("sqr", "mul") for bits in (16, *SIZES)) for core in CORES
]


@pytest.mark.parametrize(("op", "bits", "core"), EVERY)
def test_a_proved_kernel_gives_the_product_in_the_interpreter(op: str, bits: int, core: str) -> None:
    kernel = made(op, bits, core=core)
    assert kernel.verdict.proved
    for values in operands(kernel.spec.contract, 20):
        assert call(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, values) == values[0] * values[-1]


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


# ---- the multiplier ---------------------------------------------------------------------------------------------


def test_a_result_that_is_read_too_early_is_refused() -> None:
    """The pointer goes back before the last write to OP2, not behind it, where the multiplier needs the time."""
    kernel = made("mul", 96, "product-scanning")
    instrs = code_of(kernel)
    back = [k for k, instr in enumerate(instrs) if (instr.insn.name, *instr.operands) == ("sub_4", "r15")]
    at = next(k for k in back if instrs[k - 1].insn.kind == "store")
    instrs[at - 1 : at + 1] = [instrs[at], instrs[at - 1]]
    assert refused(kernel, instrs) == "reads RESLO of the 16-bit multiplier before the result is there"


def test_a_read_at_an_absolute_address_is_early_enough_and_an_indirect_one_is_not() -> None:
    def message(*instrs: Instr) -> str:
        before = (
            of("dint"),
            of("nop"),
            of("mov_i", "r15", 0x13A),
            of("mov_ra", "r13", 0x130),
            of("mov_ra", "r13", 0x138),
        )
        fault = prove(
            assemble([*before, *instrs, of("ret")]), Contract("sqr", 2, msp430()), msp430().core("msp430")
        ).fault
        assert fault
        return fault.message

    early = "reads RESLO of the 16-bit multiplier before the result is there"
    assert message(of("mov_m", "r11", "r15")) == early
    assert message(of("nop"), of("mov_m", "r11", "r15")) != early
    assert message(of("mov_a", "r11", 0x13A)) != early
    assert "there to be read" in message(of("mov_ra", "r11", 0x13A))
    assert "there to be written" in message(of("mov_a", "r11", 0x130))
    assert "nothing at address 0x0136" in message(of("mov_a", "r11", 0x136))


@pytest.mark.parametrize("nops", range(8))
def test_the_32_bit_multiplier_must_not_be_written_or_read_while_it_is_busy(nops: int) -> None:
    """[SLAU208]: RES0 and RES1 3, RES2 5, RES3 and the carry 6 cycles behind OP2H, as it itself."""

    def message(last: Instr) -> str:
        writes = [of("mov_ra", "r13", 0x4C0 + port) for port in (0x10, 0x12, 0x20, 0x22)]
        code = [of("dint"), of("nop"), *writes, *[of("nop")] * nops, last, of("ret")]
        fault = prove(assemble(code), Contract("sqr", 2, msp430()), msp430().core("msp430x-mpy32")).fault
        assert fault
        return fault.message

    for port, cycle in ((0x24, 3), (0x26, 3), (0x28, 5), (0x2A, 6), (0x0E, 6)):
        early = message(of("mov_a", "r11", 0x4C0 + port))  # reads in its third cycle
        assert ("before the result is there" in early) == (nops + 3 < cycle)
    busy = message(of("mov_ra", "r13", 0x4D0))  # writes in its third cycle
    assert ("while that is busy" in busy) == (nops + 3 < 6)


@pytest.mark.parametrize(
    ("op", "bits", "method"),
    [("mul", 96, "rows"), ("sqr", 160, "column-loops"), ("mul", 160, "column-loops"), ("sqr", 96, "yang")],
)
def test_the_32_bit_multiplier_multiplies_16_bits_where_that_is_what_a_method_needs(
    op: str, bits: int, method: str
) -> None:
    kernel = made(op, bits, method, core="msp430x-mpy32")
    image, contract, core = kernel.compiled.image, kernel.spec.contract, kernel.spec.core
    assert core.devices["mpy32"] == 0x4C0 and any("&0x04c8" in line.instr.text() for line in kernel.compiled.lines)
    assert not any("&0x04d" in line.instr.text() for line in kernel.compiled.lines)
    for values in operands(contract, 20):
        assert call(image, contract, core, values) == values[0] * values[-1]


@pytest.mark.parametrize(("narrow", "wide"), [("&0x04c0", 0x4D0), ("&0x04c8", 0x4E0), ("&0x04c8", 0x4E2)])
def test_what_one_width_of_the_multiplier_left_is_unknown_to_the_other(narrow: str, wide: int) -> None:
    """An operand of 32 bits for one of 16 is another kernel, or none."""
    kernel = made("mul", 16, "product-scanning", core="msp430x-mpy32")
    instrs = code_of(kernel)
    at = next(index for index, instr in enumerate(instrs) if instr.text().endswith(narrow))
    source = instrs[at].operands[0]
    assert isinstance(source, str)
    instrs[at] = of(instrs[at].insn.name, source, wide)
    assert refused(kernel, instrs)
    run = interpret.Run(kernel.spec.contract, kernel.spec.core)
    run.start((0x1234, 0x4321))
    steps(run, assemble(instrs))
    assert run.result() != 0x1234 * 0x4321


@pytest.mark.parametrize("nops", range(5))
def test_of_16_bits_the_32_bit_multiplier_is_busy_for_four_cycles(nops: int) -> None:
    def message(last: Instr) -> str:
        writes = [of("mov_ra", "r13", 0x4C0), of("mov_ra", "r13", 0x4C8)]
        code = [of("dint"), of("nop"), *writes, *[of("nop")] * nops, last, of("ret")]
        fault = prove(assemble(code), Contract("sqr", 1, msp430()), msp430().core("msp430x-mpy32")).fault
        assert fault
        return fault.message

    assert ("while that is busy" in message(of("mov_ra", "r13", 0x4C4))) == (nops + 3 < 4)
    assert "before the result is there" not in message(of("mov_a", "r11", 0x4CA))


def test_a_write_to_a_result_register_is_refused() -> None:
    """Erratum MPY2."""
    kernel = made("sqr", 64, "product-scanning")
    instrs = code_of(kernel)
    instrs.insert(index_of(instrs, "sub_4"), of("mov_ra", "r11", 0x13A))
    assert refused(kernel, instrs) == "writes RESLO of the 16-bit multiplier, which is there to be read"


@pytest.mark.parametrize("left", [("dint",), ("dint", "nop"), ()])
def test_the_multiplier_is_not_touched_where_an_interrupt_may_come(left: tuple[str, ...]) -> None:
    """One may come behind the instruction after DINT [SLAU049]: the NOP is needed before the first write."""
    kernel = made("mul", 32)
    instrs = [instr for instr in code_of(kernel) if instr.insn.name not in ("dint", "nop")]
    first = next(k for k, instr in enumerate(instrs) if instr.text().endswith("&0x0130"))
    instrs[first:first] = [of(name) for name in left]
    if left == ("dint", "nop"):
        assert prove(assemble(instrs), kernel.spec.contract, kernel.spec.core).proved
        return
    message = "uses the 16-bit multiplier where an interrupt may come, whose handler may use it, too"
    assert refused(kernel, instrs) == message
    run = interpret.Run(kernel.spec.contract, kernel.spec.core)
    run.start((1, 1))
    run.machine.slots[msp430().slots["GIE"]] = 1
    with pytest.raises(interpret.Crash, match="where an interrupt may come"):
        steps(run, assemble(instrs))


def steps(run: interpret.Run, image: bytes) -> None:
    """Execute to the end."""
    position: int | None = 0
    while position is not None:
        position = run.machine.step(image, position)


@pytest.mark.parametrize(
    ("op", "bits", "core"), [("mul", 64, "msp430"), ("sqr", 256, "msp430"), ("sqr", 128, "msp430x-mpy32")]
)
def test_a_caller_who_keeps_handlers_away_need_not_turn_interrupts_off(op: str, bits: int, core: str) -> None:
    kernel, guarded = made(op, bits, core=core, interrupts="caller"), made(op, bits, core=core)
    saved = guarded.price.call - kernel.price.call
    assert saved == 3 + 1 + 1 + 2  # PUSH SR, DINT, NOP, POP SR
    assert kernel.spec.contract.alone and kernel.digest != guarded.digest
    image, contract = kernel.compiled.image, kernel.spec.contract
    assert prove_forward(image, contract, kernel.spec.core).proved
    for values in operands(contract, 20):
        assert call(image, contract, kernel.spec.core, values) == values[0] * values[-1]
    fault = prove(image, Contract(op, contract.limbs, msp430()), kernel.spec.core).fault
    assert fault and "where an interrupt may come" in fault.message
    assert emit.manifest(kernel)["interrupts_off"] == 0 and "-p interrupts=caller" in kernel.spec.command()
    assert "which is the caller's to see to" in emit.header(kernel)


def test_who_keeps_handlers_away_is_the_kernel_or_the_caller() -> None:
    with pytest.raises(UserError, match=r"^parameter 'interrupts' is guard or caller, not 'nobody'$"):
        spec("msp430", 128, parameters={"interrupts": "nobody"})
    assert not spec("msp430", 128, parameters={"interrupts": "guard"}).contract.alone
    with pytest.raises(UserError, match="parameters belong to a method"):
        spec("avr", 128, parameters={"interrupts": "caller"})


def test_interrupts_that_are_not_given_back_are_refused() -> None:
    kernel = made("mul", 32)
    instrs = code_of(kernel)
    instrs[index_of(instrs, "pop_sr")] = of("add_sp2")
    assert refused(kernel, instrs) == "returns with interrupts turned off"


def test_other_bits_of_the_status_register_must_come_back_as_they_were() -> None:
    """A low-power mode that is slipped in with the status register stops the processor."""
    kernel = made("mul", 32)
    instrs = code_of(kernel)
    at = index_of(instrs, "pop_sr")
    instrs[at:at] = [of("mov_i", "r11", 16), of("add_rx", "r11", "sp", 0)]
    assert refused(kernel, instrs) == "lpm is not restored"


def test_header_and_manifest_say_how_long_interrupts_are_off() -> None:
    """From behind DINT to the end of what gives them back: all but the saves before and what follows."""
    kernel = made("sqr", 128)
    lines = [line.instr for line in kernel.compiled.lines]
    names = [instr.insn.name for instr in lines]
    inside = lines[names.index("dint") + 1 : names.index("pop_sr") + 1]
    expected = sum(msp430().cycles(instr.insn, kernel.spec.core) for instr in inside)
    assert measure.masked(kernel.compiled.image, kernel.spec.contract, kernel.spec.core) == expected
    assert emit.manifest(kernel)["interrupts_off"] == expected
    assert f"off for {expected} cycles at most on msp430" in emit.all_files(kernel)[f"{kernel.spec.symbol}.h"]


@pytest.mark.parametrize(("op", "bits"), [("sqr", 96), ("mul", 64)])
def test_what_the_proof_lets_pass_after_a_bit_was_flipped_still_multiplies(op: str, bits: int) -> None:
    assert passed(made(op, bits), 300) < 20  # factors swapped, registers that nobody uses


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("op", ["sqr", "mul"])
def test_what_the_multiplier_is_used_for_is_explained_and_never_below_the_floor(op: str, core: str) -> None:
    kernel = made(op, 128, core=core)
    found = explain(kernel)
    for name, floor in found.floor.items():
        assert found.group(name).cycles >= floor, name
    words = 4 if core == "msp430x-mpy32" else 8
    assert sum(part.products for part in found.parts) == (words * words if op == "mul" else words * (words + 1) // 2)


# ---- what is promised -------------------------------------------------------------------------------------------

# Cycles of a call, saves and guard included, at most: what the project set itself.
AT_MOST = {
    ("msp430", "sqr", 128): 613,
    ("msp430", "sqr", 160): 930,
    ("msp430", "sqr", 192): 1250,
    ("msp430", "sqr", 256): 2100,
    ("msp430", "sqr", 512): 7250,
    ("msp430", "mul", 160): 1380,
    ("msp430", "mul", 256): 3050,
    ("msp430", "mul", 512): 10000,
    ("msp430x", "sqr", 128): 509,
    ("msp430x", "sqr", 160): 820,
    ("msp430x", "sqr", 192): 1100,
    ("msp430x", "sqr", 256): 1780,
    ("msp430x", "sqr", 512): 6100,
    ("msp430x-mpy32", "sqr", 128): 431,
    ("msp430x-mpy32", "sqr", 160): 586,
    ("msp430x-mpy32", "sqr", 192): 761,
    ("msp430x-mpy32", "sqr", 256): 1170,
    ("msp430x-mpy32", "sqr", 512): 3600,
    ("msp430x-mpy32", "mul", 160): 761,
    ("msp430x-mpy32", "mul", 256): 1640,
}


@pytest.mark.parametrize(("core", "op", "bits"), AT_MOST)
def test_auto_takes_no_more_cycles_than_it_may(core: str, op: str, bits: int) -> None:
    assert made(op, bits, core=core).price.call <= AT_MOST[core, op, bits]


@pytest.mark.clock
@pytest.mark.parametrize("op", ["sqr", "mul"])
def test_the_proof_of_512_bits_takes_at_most_two_seconds(op: str) -> None:
    kernel = made(op, 512)
    image, contract, core = kernel.compiled.image, kernel.spec.contract, kernel.spec.core
    assert quick(lambda: prove(image, contract, core), 2)


def test_a_size_is_a_multiple_of_16_bits() -> None:
    with pytest.raises(UserError, match="nearest sizes are 96 and 112"):
        spec("msp430", 100)


SHAPES = ("product-scanning", "column-loops", "row-loops", "rows")  # orders that idioms of their own form, or none
SQUARES = [m for m in methods.names("sqr") if "karatsuba" not in m and m not in SHAPES]
PRODUCTS = [m for m in methods.names("mul") if "karatsuba" not in m and m not in SHAPES]


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("op", "method"), [*(("sqr", name) for name in SQUARES), *(("mul", name) for name in PRODUCTS)]
)
@pytest.mark.parametrize("bits", [48, 128, 240])
def test_cells_in_any_order_are_proved_and_right(op: str, method: str, bits: int) -> None:
    kernel = made(op, bits, method)
    report = check.run(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, runs=20)
    assert (report.simulator, report.stack) == ("mspdebug", kernel.verdict.stack)
    assert kernel.price.call >= made(op, bits).price.call


def test_all_methods_that_the_project_names_are_priced_in_the_comparison(sqgen: Call) -> None:
    shown = json.loads(sqgen("compare --isa msp430 --bits 128 --json").out)
    ours = {row["method"] for row in shown["rows"] if row["made_by"] == "sqgen"}
    assert ours >= {"yang", "carry-catcher", "lazy-doubling", "sbd", "karatsuba-squaring", "product-scanning"}
    shown = json.loads(sqgen("compare --isa msp430 --op mul --bits 96 --json").out)
    ours = {row["method"] for row in shown["rows"] if row["made_by"] == "sqgen"}
    assert ours >= {"operand-caching", "hybrid", "operand-scanning", "karatsuba", "rows", "product-scanning"}


KARATSUBA = "-p levels=1 -p parts=calls -p leaf=product-scanning -p recombine=unrolled"


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(
    ("op", "method", "given", "what"),
    [
        ("sqr", "hybrid-karatsuba", {}, "is made of parts that sqgen cannot form on msp430; take "),
        ("sqr", "streamed-karatsuba", {}, "is made of parts that sqgen cannot form on msp430; take "),
        ("sqr", "row-loops", {}, "is made of loops that sqgen cannot form on msp430; take "),
        *(
            (op, method, {"parts": parts}, f"is made of parts that sqgen cannot form on msp430; choose {KARATSUBA}")
            for op, method in (("sqr", "karatsuba-squaring"), ("mul", "karatsuba"))
            for parts in ("inline", "nested", "whole")
            if (op, parts) != ("mul", "inline")
        ),
    ],
)
def test_a_method_that_cannot_be_formed_is_refused_in_a_line_that_says_what_can(
    op: str, method: str, given: dict[str, str], what: str, core: str
) -> None:
    with pytest.raises(UserError, match=f"^method '{method}' {what}"):
        made(op, 512, method, core, **given)


@pytest.mark.parametrize(
    ("op", "method", "given"),
    [("mul", "karatsuba", {}), ("sqr", "karatsuba-squaring", {"leaf": "product-scanning"})],
)
def test_sums_in_loops_are_refused_in_a_line_that_says_what_to_choose(
    op: str, method: str, given: dict[str, str]
) -> None:
    with pytest.raises(UserError, match=r"^karatsuba.* sums up without loops on this core; choose recombine=unrolled$"):
        made(op, 128, method, recombine="looped", **given)


def test_cells_in_any_order_have_no_columns_for_interrupts_to_come_between() -> None:
    with pytest.raises(UserError, match="method 'yang' has no columns between which interrupts could come"):
        made("sqr", 128, "yang", guard="column")


@pytest.mark.parametrize("core", CORES)
def test_the_manifest_is_what_the_schema_says(core: str) -> None:
    schema = json.loads((TESTS.parent / "docs" / "manifest.schema.json").read_text())
    found = emit.manifest(made("sqr", 256, core=core))
    jsonschema.validate(found, schema)
    assert not any(column["confirmed_by"] for column in found["cycles_by_timing"].values())


@pytest.mark.simulator
def test_check_runs_a_written_kernel_in_mspdebug(tmp_path: Path) -> None:
    kernel = made("sqr", 128)
    for name, text in emit.all_files(kernel).items():
        (tmp_path / name).write_text(text)
    given = dict.fromkeys(("isa", "core", "op", "bits", "symbol"))
    file = tmp_path / f"{kernel.spec.symbol}.S"
    assert judging.judge(file, given, runs=20).report.simulator == "mspdebug"
    changed = file.read_text().replace("rrc", "rra", 1)
    file.write_text(changed)
    with pytest.raises(UserError, match="in mspdebug, the result is wrong") as caught:
        judging.judge(file, given, runs=20)
    assert caught.value.code == Exit.DISAGREES
