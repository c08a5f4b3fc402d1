"""MSP430: code in loops, and the options that say where the multiplier is and who keeps interrupts away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from commandline import Call
from conftest import TESTS
from msp430 import code_of, index_of, made, msp430, of, refused

from sqgen import check, emit, judging, programs
from sqgen import kernel as kernel_module
from sqgen.encode import assemble
from sqgen.errors import Exit, UserError
from sqgen.forward_proof import prove_forward
from sqgen.interpret import call, operands
from sqgen.prove import prove
from sqgen.spec import spec

# ---- loops ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("op", "most"), [("sqr", 180), ("mul", 140)])
def test_code_in_loops_does_not_grow_with_the_number_of_limbs(op: str, most: int) -> None:
    sizes = {made(op, bits, "column-loops").size for bits in (144, 160, 256, 1024)}
    assert len(sizes) == 1 and max(sizes) <= most


@pytest.mark.simulator
@pytest.mark.parametrize(("op", "bits"), [("sqr", 144), ("mul", 160), ("sqr", 256), ("mul", 240), ("sqr", 1024)])
def test_code_in_loops_is_right(op: str, bits: int) -> None:
    kernel = made(op, bits, "column-loops")
    image, contract, core = kernel.compiled.image, kernel.spec.contract, kernel.spec.core
    for values in operands(contract, 10):
        assert call(image, contract, core, values) == values[0] * values[-1]
    assert check.run(image, contract, core, runs=10).stack == kernel.verdict.stack
    if bits <= 256:
        assert prove_forward(image, contract, core).proved


@pytest.mark.parametrize("asked", [{"goal": "size"}, {"goal": "balanced"}, {"max_bytes": 1160}])
def test_a_small_square_of_256_bits_is_fast_too(asked: dict[str, Any]) -> None:
    """What the project set itself."""
    kernel = kernel_module.make(spec("msp430", 256, **asked))
    assert kernel.size <= 1160 and kernel.price.call <= 2300


def test_loops_of_few_limbs_are_for_those_who_ask_for_few_bytes() -> None:
    assert kernel_module.make(spec("msp430", 256, max_bytes=200)).compiled.plan.method == "column-loops"
    with pytest.raises(
        UserError, match=r"the smallest known takes 172 bytes \(column-loops\), 72 more than --max-bytes"
    ):
        kernel_module.make(spec("msp430", 256, max_bytes=100))


def test_1024_bits_in_loops_take_less_than_twice_the_cycles() -> None:
    small = kernel_module.make(spec("msp430", 1024, goal="size"))
    assert small.compiled.plan.method == "column-loops" and small.price.call < 2 * made("sqr", 1024).price.call


def test_loops_are_for_more_than_one_limb() -> None:
    with pytest.raises(UserError, match="'column-loops' is made of loops that sqgen cannot form on msp430; take "):
        made("sqr", 16, "column-loops")


# ---- interrupts and the multiplier's address --------------------------------------------------------------------

BRIEF = [("sqr", 128, "auto"), ("sqr", 256, "auto"), ("mul", 256, "auto"), ("mul", 272, "product-scanning")]
BRIEF += [("sqr", 512, "karatsuba-squaring"), ("sqr", 256, "column-loops")]


@pytest.mark.simulator
@pytest.mark.parametrize(("op", "bits", "method"), BRIEF)
def test_interrupts_are_off_for_a_column_at_a_time(op: str, bits: int, method: str) -> None:
    given = {"leaf": "product-scanning"} if method == "karatsuba-squaring" else {}
    whole = made(op, bits, method, **given)
    kernel = kernel_module.make(spec("msp430", bits, op=op, method=method, parameters={**given, "guard": "column"}))
    image, contract, core = kernel.compiled.image, kernel.spec.contract, kernel.spec.core
    assert check.run(image, contract, core, runs=40).simulator == "mspdebug"
    assert kernel.interrupts_off < whole.interrupts_off / 5
    assert emit.manifest(kernel)["interrupts_off"] == kernel.interrupts_off
    assert f"off for {kernel.interrupts_off} cycles at most on msp430" in emit.header(kernel)
    assert "-p guard=column" in kernel.spec.command()
    again = kernel_module.make(spec("msp430", bits, op=op, method=method, parameters={**given, "guard": "column"}))
    assert again.digest == kernel.digest != whole.digest


def test_interrupts_come_between_columns_and_find_the_flag_as_it_was() -> None:
    """Every column ends with the status register's return, and no column begins before the multiplier is private."""
    kernel = made("sqr", 128, guard="column")
    names = [line.instr.insn.name for line in kernel.compiled.lines]
    assert names.count("push_sr") == names.count("dint") == names.count("pop_sr") == 15  # columns with products
    instrs = code_of(kernel)
    del instrs[index_of(instrs, "dint", 3)]
    assert refused(kernel, instrs).startswith("uses the 16-bit multiplier where an interrupt may come")


@pytest.mark.parametrize(
    ("core", "ports"), [("msp430x", ("0x04c0", "0x04c4")), ("msp430x-mpy32", ("0x0150", "0x0158"))]
)
def test_the_multiplier_may_be_elsewhere(core: str, ports: tuple[str, str], tmp_path: Path) -> None:
    base = "0x4c0" if core == "msp430x" else "0x0140"
    kernel = made("sqr", 128, core=core, mpy_base=base)
    text = emit.assembly(kernel)
    assert all(f"&{port}" in text for port in ports) and f"-p mpy_base={int(base, 16):#06x}" in text
    assert f"at {int(base, 16):#06x}" in emit.header(kernel)
    image, contract = kernel.compiled.image, kernel.spec.contract
    fault = prove(image, contract, msp430().core(core)).fault
    assert fault and "address" in fault.message
    for name, content in emit.all_files(kernel).items():
        (tmp_path / name).write_text(content)
    given = dict.fromkeys(("isa", "core", "op", "bits", "symbol"))
    seen = judging.judge(tmp_path / f"{kernel.spec.symbol}.S", given, runs=20).report
    assert (seen.simulator, seen.call, seen.body) == (
        "the interpreter of the table",
        kernel.price.call,
        kernel.price.body,
    )
    schema = json.loads((TESTS.parent / "docs" / "manifest.schema.json").read_text())
    jsonschema.validate(emit.manifest(kernel), schema)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mpy_base": "0x131"}, "is an even address from 0x0100 to 0x0fc0, such as 0x0130, not '0x131'"),
        ({"mpy_base": "here"}, "is an even address .* not 'here'"),
        ({"guard": "never"}, "parameter 'guard' is call or column, not 'never'"),
        ({"guard": "column", "interrupts": "caller"}, "choose one"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_one_line(given: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        spec("msp430", 128, parameters=given)
    assert caught.value.code == Exit.USAGE and "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "message"), [("rrc", "the result is wrong"), ("ret", "r10 is not kept")])
def test_the_interpreter_sees_what_is_wrong(name: str, message: str) -> None:
    kernel = made("sqr", 128, core="msp430x", interrupts="caller")
    instrs = code_of(kernel)
    at = index_of(instrs, name)
    instrs[at : at + (name == "rrc")] = [] if name == "rrc" else [of("clr", "r10")]
    with pytest.raises(UserError, match=message):
        check.run(assemble(instrs), kernel.spec.contract, kernel.spec.core, runs=20)


@pytest.mark.simulator
def test_the_simulator_says_where_it_has_too_little_stack() -> None:
    kernel = made("sqr", 64, interrupts="caller")
    instrs = code_of(kernel)
    at = index_of(instrs, "ret")
    instrs[at:at] = [of("push", "r10")] * 481 + [of("pop", "r10")] * 481
    with pytest.raises(UserError, match="more than 960 bytes of stack are written"):
        check.run(assemble(instrs), kernel.spec.contract, kernel.spec.core, runs=2)


def test_a_file_that_leaves_interrupts_to_the_caller_is_proved_if_that_is_said(tmp_path: Path, sqgen: Call) -> None:
    kernel = made("mul", 64, interrupts="caller")
    (tmp_path / "kernel.S").write_text(emit.assembly(kernel))
    programs.assemble(tmp_path / "kernel.S", tmp_path / "kernel.o", msp430(), kernel.spec.core)
    words = f"prove {tmp_path / 'kernel.o'} --isa msp430 --op mul --bits 64"
    assert sqgen(f"{words} -p interrupts=caller").code == 0
    assert "where an interrupt may come" in sqgen(words).err
    assert (
        sqgen(f"{words} -p strips=4").err
        == "Error: 'strips' is no option of msp430; there are wipe, interrupts, guard, mpy_base\n"
    )
