"""The multiplier of MSP430, a device: what code must not do to it, when, and who else may be there."""

from __future__ import annotations

import pytest
from flips import passed
from msp430 import CORES, code_of, index_of, made, msp430, of, refused

from sqgen import emit, interpret
from sqgen.contract import Contract
from sqgen.encode import Instr, assemble
from sqgen.errors import UserError
from sqgen.explain import explain
from sqgen.forward_proof import prove_forward
from sqgen.interpret import call, operands
from sqgen.prove import prove
from sqgen.spec import spec


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
    assert kernel.interrupts_off == expected
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
