"""What sqgen promises of a kernel holds outside of sqgen: in simulators, assemblers and compilers that others wrote."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import LARGEST, assemble, avr, compiled, contract, core, formed, kernel

from sqgen import check, emit, methods, objects
from sqgen.contract import OPS
from sqgen.encode import Instr
from sqgen.encode import assemble as encode_all
from sqgen.errors import Exit, UserError
from sqgen.interpret import operands
from sqgen.kernel import Kernel
from sqgen.oracles import OracleMissing, qemu_avr, simavr

RUNS = 6  # the first six operands are all limbs 0, 1, 7f, 80, fe, ff

# Every size up to 256 bits with one method, and all of them with some other one; the sweep has all with all.
EVERY_SIZE = [("sqr", bits, "sbd") for bits in (*range(16, 257, 8), 320, 392, 512)]
FORMS = [(op, name) for op in OPS for name in methods.names() if formed(name, op)]
IN_TURN = [
    (op, bits, name)
    for at, (op, name) in enumerate(FORMS)
    for bits in range(16 + 8 * (at % 11), LARGEST.get((op, name), 256) + 1, 88)
]
SOME_SIZES = [
    *IN_TURN,
    *(("sqr", bits, "product-scanning") for bits in (16, 24, 256, 392)),
    *(("mul", bits, "product-scanning") for bits in (16, 24, 256)),
    *(("mul", bits, "full-operand-caching") for bits in (16, 112, 144, 160, 184, 216)),
    *(("mul", bits, "operand-scanning") for bits in (16, 24, 40)),
    *(("sqr", 88, method) for method in methods.names() if formed(method, "sqr")),
    *(("sqr", bits, method) for bits in (16, 24, 40, 136) for method in ("carry-catcher", "lazy-doubling", "su")),
    *(("sqr", bits, "operand-caching") for bits in (16, 160)),
]
EACH_METHOD = [
    ("sqr", 72, "sbd"),
    ("sqr", 160, "sbd"),
    ("sqr", 64, "product-scanning"),
    ("mul", 72, "product-scanning"),
    ("mul", 64, "operand-scanning"),
    ("mul", 88, "karatsuba"),
]

CONFIRMED = [
    name for name, part in avr().cores.items() if avr().timings[part.timing].confirmed and "mul" not in part.lacks
]


def numbers(made: Kernel) -> tuple[int, int, int]:
    """Cycles of a call and of its body, and bytes of stack, as the manifest has them."""
    manifest = emit.manifest(made)
    return manifest["cycles"]["call"], manifest["cycles"]["body"], manifest["stack"]


def seen(made: Kernel, runs: int = RUNS) -> tuple[int, int, int]:
    """The same as the outside simulator counts them, after it found the values right."""
    report = check.run(made.compiled.image, made.spec.contract, made.spec.core, runs=runs)
    return report.call, report.body, report.stack


@pytest.mark.many
@pytest.mark.simulator
@pytest.mark.parametrize(("op", "bits", "method"), dict.fromkeys(EVERY_SIZE + SOME_SIZES))
def test_manifest_and_simavr_are_one_number_and_the_values_are_right(op: str, bits: int, method: str) -> None:
    made = kernel(op, bits, method)
    assert seen(made) == numbers(made)


@pytest.mark.many
@pytest.mark.simulator
@pytest.mark.parametrize("part", CONFIRMED)
@pytest.mark.parametrize(("op", "bits", "method"), EACH_METHOD)
def test_manifest_and_simavr_are_one_number_on_every_core_that_simavr_confirms(
    op: str, bits: int, method: str, part: str
) -> None:
    made = kernel(op, bits, method, core=part)
    assert seen(made) == numbers(made)
    calls_and_returns = dict(made.price.counts)["flow"]  # these kernels have no branches
    longer = calls_and_returns if part == "atmega2560" else 0  # one each where the program counter has 22 bits
    assert made.price.call == kernel(op, bits, method).price.call + longer
    assert made.price.body == kernel(op, bits, method).price.body + max(0, longer - 1)


@pytest.mark.simulator
def test_stack_and_buffers_are_put_where_the_part_has_its_ram() -> None:
    wanted = {"atmega128": (0x100, 0x10FF), "atmega328p": (0x100, 0x8FF), "atmega2560": (0x200, 0x21FF)}
    assert {part: simavr.ram(part) for part in wanted} == wanted


@pytest.mark.simulator
@pytest.mark.parametrize(("bits", "published"), [(128, 1003), (160, 1456), (192, 2014)])
def test_sbd_takes_no_more_cycles_in_simavr_than_its_authors_published(bits: int, published: int) -> None:
    """[SBD13, Table 4]."""
    made = kernel("sqr", bits, "sbd")
    _, body, _ = seen(made, runs=100)
    assert body <= published


@pytest.mark.simulator
@pytest.mark.parametrize(("op", "bits", "method"), EACH_METHOD)
def test_qemu_computes_the_same_product_from_the_emitted_file(op: str, bits: int, method: str) -> None:
    made = kernel(op, bits, method)
    calls = list(operands(made.spec.contract, 40))
    size = bits // 8
    given = [tuple(value.to_bytes(size, "little") for value in values) for values in calls]
    results = qemu_avr.run(emit.assembly(made), made.spec.symbol, given, 2 * size)
    wanted = [values[0] * values[-1] for values in calls]
    assert [int.from_bytes(result, "little") for result in results] == wanted


# ---- assemblers and compilers ---------------------------------------------------------------------------------------


@pytest.mark.simulator
@pytest.mark.parametrize("assembler", ["avr-gcc", "LLVM"])
@pytest.mark.parametrize(("op", "bits", "method"), [*EACH_METHOD, ("sqr", 16, "sbd"), ("sqr", 256, "sbd")])
def test_the_emitted_file_assembles_to_the_proved_bytes(
    tmp_path: Path, op: str, bits: int, method: str, assembler: str
) -> None:
    made = kernel(op, bits, method)
    source = tmp_path / "kernel.S"
    source.write_text(emit.assembly(made))
    code = objects.read(assemble(source, tmp_path / "kernel.o", assembler), avr(), None)
    assert (code.symbol, code.entry, code.image) == (made.spec.symbol, 0, made.compiled.image)


def compile_with(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(command[0]) is None:
        raise OracleMissing(f"{command[0]} not found; install the Debian package gcc-avr")
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.simulator
@pytest.mark.parametrize("part", ["attiny84", "at90s8515"])
def test_a_part_without_multiplier_gets_an_error_that_says_so(tmp_path: Path, part: str) -> None:
    made = kernel("sqr", 72, "sbd")
    (tmp_path / "kernel.S").write_text(emit.assembly(made))
    done = compile_with(tmp_path, "avr-gcc", f"-mmcu={part}", "-c", "kernel.S", "-o", "kernel.o")
    assert done.returncode
    assert f"{made.spec.symbol} needs the MUL and MOVW instructions, which this part does not have" in done.stderr


CALLER = """
#include "{square}.h"
#include "{product}.h"
#include "{square}.h"

static uint8_t result[18];
static const uint8_t left[9] = {{1}}, right[9] = {{2}};

int main(void)
{{
    {square}(result, left);
    {product}(result, left, right);
    return result[0];
}}
"""


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("compiler", "language", "source"),
    [
        ("avr-gcc", "c99", "main.c"),
        ("avr-gcc", "c11", "main.c"),
        ("avr-g++", "c++11", "main.cpp"),
        ("avr-g++", "c++17", "main.cpp"),
    ],
)
def test_c_and_cpp_programs_call_kernels_without_a_warning(
    tmp_path: Path, compiler: str, language: str, source: str
) -> None:
    square, product = kernel("sqr", 72, "sbd"), kernel("mul", 72, "product-scanning")
    for made in (square, product):
        for name, text in emit.all_files(made).items():
            (tmp_path / name).write_text(text)
    symbols = {"square": square.spec.symbol, "product": product.spec.symbol}
    (tmp_path / source).write_text(CALLER.format(**symbols))
    strict = ["-Os", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wl,--fatal-warnings", "-Wl,--gc-sections"]
    files = [source, *(f"{symbol}.S" for symbol in symbols.values())]
    command = [compiler, "-mmcu=atmega128", *strict, "-o", "program.elf"]
    for name in files:
        standard = [f"-std={language}"] if name == source else []
        done = compile_with(tmp_path, *command[:2], *strict[:5], *standard, "-c", name, "-o", f"{name}.o")
        assert (done.returncode, done.stderr) == (0, "")
    done = compile_with(tmp_path, *command, *(f"{name}.o" for name in files))
    assert (done.returncode, done.stderr) == (0, "")
    for made in (square, product):
        code = objects.read(tmp_path / "program.elf", avr(), made.spec.symbol)
        assert code.image[code.entry : code.entry + made.size] == made.compiled.image


# ---- the simulator sees what is wrong -------------------------------------------------------------------------------


def kernel_with(name: str, operands: Sequence[str | int], new: Sequence[tuple[str, tuple[str | int, ...]]]) -> bytes:
    """A good 32-bit kernel with the last of some instruction replaced by others; in front of all if there is none."""
    instrs = [line.instr for line in compiled("sqr", 4, "sbd").lines]
    where = [k for k, instr in enumerate(instrs) if (instr.insn.name, instr.operands) == (name, tuple(operands))]
    at, end = (where[-1], where[-1] + 1) if where else (0, 0)
    assert where or not name
    instrs[at:end] = [Instr(avr().insns[other], arguments) for other, arguments in new]
    return encode_all(instrs)


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("name", "old", "new", "complaint"),
    [
        ("mul", ("r24", "r24"), (), "result is wrong"),
        ("eor", ("r1", "r1"), (), "r1 is not zero on return"),
        ("eor", ("r1", "r1"), (("eor", ("r1", "r1")), ("inc", ("r2",))), "r2 is not kept"),
        ("ret", (), (("push", ("r0",)), ("ret", ())), "did not return"),
        ("movw", ("r30", "r22"), (("movw", ("r30", "r22")), ("std_z", ("r0", 4))), "operand a or memory beside it"),
        ("ret", (), (("st_xp", ("r1",)), ("st_x", ("r1",)), ("ret", ())), "memory beside the result is changed"),
        ("ret", (), (("add", ("r0", "r0")), ("brcs", (0,)), ("sec", ()), ("ret", ())), "with other operands"),
        ("ret", (), (("lsr", ("r23",)), ("brcs", (2,)), ("nop", ()), ("ret", ())), "path depends on the operands"),
        ("ret", (), (("cli", ()), ("ret", ())), "interrupt flag is changed"),
        ("ret", (), (("rjmp", (-2,)),), "did not return"),
        ("", (), (("push", ("r0",)), ("pop", ("r18",)), ("push", ("r0",)), ("pop", ("r19",))), ""),
    ],
)
def test_the_simulator_refuses_a_broken_kernel(
    name: str, old: tuple[str | int, ...], new: tuple[tuple[str, tuple[str | int, ...]], ...], complaint: str
) -> None:
    image = kernel_with(name, old, new)
    if not complaint:  # the change is harmless, so that what is refused is not refused for being changed
        check.run(image, contract("sqr", 4), core(), runs=20)
        return
    with pytest.raises(UserError, match=complaint) as caught:
        check.run(image, contract("sqr", 4), core(), runs=20)
    assert caught.value.code == Exit.DISAGREES
