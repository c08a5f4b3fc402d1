"""An instruction set of the tests' own goes through every stage: nothing in sqgen knows AVR."""

from __future__ import annotations

import functools
import itertools
import json
import re
from pathlib import Path

import pytest
from conftest import TESTS
from flips import passed
from leavings import differing

from sqgen import check, choosing, emit, kernel, methods, programs, report
from sqgen.contract import Contract
from sqgen.encode import DecodeError, EncodeError, Instr, assemble, decode, disassemble, encode
from sqgen.errors import Exit, UserError
from sqgen.idioms import idioms
from sqgen.interpret import Machine, call, operands
from sqgen.kernel import Kernel
from sqgen.prove import prove
from sqgen.residence import PressureError
from sqgen.spec import spec
from sqgen.table import Isa
from sqgen.tables import load

REQUESTS = [
    (op, bits, method, parameters)
    for bits in (32, 48, 64, 128)
    for op, method, parameters in (
        ("sqr", "product-scanning", ""),
        ("sqr", "sbd", "block=1"),
        ("sqr", "sbd", "block=2"),
        ("sqr", "su", ""),
        ("sqr", "carry-catcher", "d=1"),
        ("sqr", "lazy-doubling", "d=1"),
        ("sqr", "operand-scanning", ""),  # the whole rhombus
        ("mul", "product-scanning", ""),
        ("mul", "operand-scanning", ""),
    )
]
SMALL = [request for request in REQUESTS if request[1] == 48]


@functools.cache
def toy() -> Isa:
    return load(TESTS / "toy" / "toy.toml")


@functools.cache
def made(op: str, bits: int, method: str, parameter: str = "", core: str = "toy1") -> Kernel:
    """A proved kernel for the toy."""
    parameters = dict([parameter.split("=")]) if parameter else {}
    return kernel.make(spec(toy(), bits, op=op, method=method, parameters=parameters, core=core))


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_proved_kernel_gives_the_product_in_the_interpreter(request_: tuple[str, int, str, str]) -> None:
    proved = made(*request_)
    contract = proved.spec.contract
    assert proved.verdict.proved
    for values in operands(contract, 20):
        assert call(proved.compiled.image, contract, proved.spec.core, values) == values[0] * values[-1]


@pytest.mark.parametrize("request_", SMALL)
@pytest.mark.parametrize("core", ["toy1", "toy2"])
def test_the_price_is_what_the_interpreter_counts(request_: tuple[str, int, str, str], core: str) -> None:
    proved = made(*request_, core=core)
    machine, at = Machine(toy(), proved.spec.core, 1024), 0
    for register, address in zip(("g0", "g1", "g2"), (0, 256, 512), strict=True):
        machine.set_wide((register,), address)
    while (following := machine.step(proved.compiled.image, at)) is not None:
        at = following
    assert machine.cycles == proved.price.call == proved.price.body + toy().insns["ret"].cycles["slow"]


@pytest.mark.parametrize("request_", SMALL)
def test_a_kernel_leaves_nothing_of_its_operands_if_it_is_to(request_: tuple[str, int, str, str]) -> None:
    """The idioms clear its registers, those of the multiplier, and the carry; there is no stack."""
    op, bits, method, parameter = request_
    given = dict([parameter.split("=")]) if parameter else {}
    plain, wiped = (
        kernel.make(spec(toy(), bits, op=op, method=method, parameters={**given, "wipe": wipe})) for wipe in "01"
    )
    assert wiped.verdict.proved and differing(wiped) == (set(), set(), set()) != differing(plain)
    assert {"LO", "HI"} & set(plain.residue.registers) and wiped.residue.nothing
    assert "may be left in" in str(prove(plain.compiled.image, wiped.spec.contract, plain.spec.core).fault)


def test_a_faster_multiplier_makes_a_faster_kernel() -> None:
    slow, fast = (made("mul", 64, "product-scanning", core=core) for core in ("toy1", "toy2"))
    assert slow.compiled.image == fast.compiled.image
    assert slow.price.call - fast.price.call == 16 * (9 - 2)


@pytest.mark.parametrize("request_", SMALL)
def test_the_bytes_disassemble_to_the_listing(request_: tuple[str, int, str, str]) -> None:
    compiled = made(*request_).compiled
    again = [instr for _, instr in disassemble(toy(), compiled.image)]
    assert again == [line.instr for line in compiled.lines]
    assert assemble(again) == compiled.image
    assert len({instr.insn.size for instr in again}) == 3  # codes of one, two and three bytes


def test_codes_that_stand_for_no_operand_are_not_decoded() -> None:
    isa = toy()
    good = encode(Instr(isa.insns["adci"], ("g9", "HI", 9)))
    assert decode(isa, good, 0).operands == ("g9", "HI", 9)
    for byte, value in ((1, 0x3A), (2, 0xC9), (2, 0xBA)):  # g10; the register after HI; 10
        code = bytearray(good)
        code[byte] = value
        with pytest.raises(DecodeError):
            decode(isa, bytes(code), 0)
    with pytest.raises(EncodeError):
        encode(Instr(isa.insns["adci"], ("LO", "g0", 0)))


@pytest.mark.parametrize("request_", SMALL)
def test_what_the_proof_lets_pass_after_a_bit_was_flipped_still_multiplies(
    request_: tuple[str, int, str, str],
) -> None:
    assert passed(made(*request_), 60) < 12  # carries that never occur, and the like


def test_a_branch_on_a_carry_of_the_operands_is_refused() -> None:
    isa = toy()
    program: dict[str, tuple[str | int, ...]] = {
        "ld": ("g3", "g1", 0),
        "add": ("g3", "g3", "g3"),
        "bk": (0,),
        "ret": (),
    }
    image = assemble([Instr(isa.insns[name], arguments) for name, arguments in program.items()])
    fault = prove(image, Contract("sqr", 2, isa), isa.core("toy1")).fault
    assert fault and fault.address == 6 and "branches on K" in fault.message


def test_a_store_beside_a_limb_is_refused() -> None:
    image = assemble([Instr(toy().insns["st"], ("g1", "g0", 4)), Instr(toy().insns["ret"], ())])
    fault = prove(image, Contract("sqr", 2, toy()), toy().core("toy1")).fault
    assert fault and "r[4] is outside the buffer of 4 limbs" in fault.message


def test_auto_takes_the_fastest_method() -> None:
    chosen = kernel.make(spec(toy(), 64, op="mul"))
    plans = {method: methods.plan("mul", 4, method, {}) for method in methods.names("mul")}
    whole = [method for method, plan in plans.items() if idioms(toy()).forms(plan, toy().core(toy().default_core))]
    costs = {method: made("mul", 64, method).price.call for method in whole}
    assert chosen.price.call == min(costs.values()) == costs[chosen.compiled.plan.method] < costs["operand-scanning"]


@pytest.mark.parametrize(("op", "method"), [("sqr", "sweeps"), ("mul", "rows")])
def test_a_method_with_runs_is_refused_with_those_to_take_instead(op: str, method: str) -> None:
    with pytest.raises(UserError, match=f"method '{method}' adds products in runs .* on toy; take .*product-scanning"):
        made(op, 64, method)


def test_a_core_without_the_multiplier_is_refused() -> None:
    with pytest.raises(UserError, match="toy0 has no MUL instruction") as caught:
        spec(toy(), 64, core="toy0")
    assert caught.value.code == Exit.LIMITS


def test_a_size_is_a_multiple_of_the_toys_limbs() -> None:
    with pytest.raises(UserError, match="nearest sizes are 32 and 48"):
        spec(toy(), 40)


@pytest.mark.parametrize(
    ("op", "method"), [("mul", "karatsuba"), ("sqr", "karatsuba-squaring"), ("sqr", "hybrid-karatsuba")]
)
def test_a_method_made_of_parts_is_refused_with_those_to_take_instead(op: str, method: str) -> None:
    with pytest.raises(UserError) as caught:
        made(op, 128, method)
    message = str(caught.value)
    assert message.startswith(f"method '{method}' is made of parts that sqgen cannot form on toy; take ")
    offered = message.partition("; take ")[2].split(", ")
    assert {"product-scanning", "operand-scanning" if op == "mul" else "sbd"} <= set(offered)
    assert not [name for name in offered if "karatsuba" in name]


@pytest.mark.parametrize("goal", ["speed", "size", "balanced"])
@pytest.mark.parametrize("op", ["sqr", "mul"])
def test_auto_leaves_out_methods_made_of_parts(op: str, goal: str) -> None:
    for bits in (64, 128):
        tried = choosing.candidates(spec(toy(), bits, op=op, goal=goal))
        assert tried and not [each.plan.method for each in tried if any(each.plan.parts())]


def test_too_wide_a_block_names_its_place_and_the_registers() -> None:
    with pytest.raises(PressureError, match=r"in 8 registers at block of columns"):
        made("sqr", 128, "sbd", "block=6")


def test_without_simulator_and_assembler_the_user_is_told(tmp_path: Path) -> None:
    proved = made("sqr", 48, "product-scanning")
    with pytest.raises(UserError, match="no outside simulator for toy1") as caught:
        check.run(proved.compiled.image, proved.spec.contract, proved.spec.core)
    assert caught.value.code == Exit.TOOL
    with pytest.raises(UserError, match="no assembler for toy is known"):
        programs.assemble(tmp_path / "a.S", tmp_path / "a.o", toy(), proved.spec.core)


@pytest.mark.parametrize("request_", SMALL)
def test_every_stage_can_be_printed_and_every_file_is_written_with_the_toys_own_template(
    request_: tuple[str, int, str, str],
) -> None:
    proved = made(*request_)
    assert "column" in proved.compiled.plan.text()
    assert "%a0" in proved.compiled.code.text()
    assert "%" not in proved.compiled.registers.text()
    symbol = f"sqgen_{request_[0]}48_toy"
    files = emit.all_files(proved)
    assert files.keys() >= {f"{symbol}.S", f"{symbol}.h", f"{symbol}.json"}
    texts = [line.instr.text() for line in proved.compiled.lines]
    rows = [row.split("#")[0].strip() for row in files[f"{symbol}.S"].splitlines()]
    assert [row for row in rows if row and not row.endswith(":")] == texts
    assert f"void {symbol}(uint16_t *r, const uint16_t *a" in files[f"{symbol}.h"]
    manifest = json.loads(files[f"{symbol}.json"])
    assert (manifest["stack"], manifest["bytes"]) == (0, len(proved.compiled.image))
    assert manifest["cycles_by_timing"].keys() == {"slow", "fast"}
    assert manifest["command"].startswith("sqgen --isa toy --core toy1")
    assert f"{symbol}: 48-bit" in report.kernel_table(proved, [])


def test_no_module_names_an_instruction_set() -> None:
    """Only the command line's words and examples do, and what it shows a picture for when nobody says which."""
    for path in sorted((TESTS.parent / "sqgen").glob("*.py")):
        if not path.name.startswith("cli"):
            assert not re.search("avr", path.read_text(), re.IGNORECASE), path.name


def test_the_toys_encodings_do_not_begin_each_other() -> None:
    for one, other in itertools.permutations(toy().insns.values(), 2):
        shift = other.bits - one.bits
        if shift >= 0:
            assert (one.fixed ^ other.fixed >> shift) & one.mask & other.mask >> shift, (one.name, other.name)
