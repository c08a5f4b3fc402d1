"""The comparison shows what is so: a true front, kernels that a normal run makes, only right code of compilers."""

from __future__ import annotations

import csv
import ctypes
import functools
import importlib.util
import io
import json
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Call, shell
from conftest import avr, contract, core, formed, missing

from sqgen import answers, check, choosing, draw_plot, kernel, methods, programs, rows, straight
from sqgen.compare import Comparison, Row, points, values
from sqgen.compilers import Bench, Built, Measure
from sqgen.errors import Exit, UserError
from sqgen.interpret import operands
from sqgen.methods import Parameter
from sqgen.residence import PressureError
from sqgen.spec import Spec, spec
from sqgen.table import Compiler
from sqgen.timing import Price

SVG = "{http://www.w3.org/2000/svg}"
BITS = 64
GCC, LLVM = avr().compilers
OPS = ["sqr", "mul"]
C, CRASHING = straight.c, (sys.executable, "-c", "import os; os.abort()")


@functools.cache
def compared(op: str) -> Comparison:
    """Everything for a small size."""
    comparison = Comparison(spec("avr", BITS, op=op))
    for job in comparison.jobs():
        job.run()
    return comparison


def need_llvm() -> None:
    if importlib.util.find_spec(LLVM.module) is None:
        missing(f"{LLVM.module} is not installed; pip install 'sqgen[llvm]'")


def need_gcc() -> None:
    if not programs.installed(GCC):
        missing(f"{GCC.name} is not installed; install {GCC.package}")


def bench(level: str = "O2", compiler: Compiler = GCC, op: str = "sqr", limbs: int = 4) -> Bench:
    """One compiler at one level."""
    made = Bench(contract(op, limbs), core())
    made.add(compiler, level)
    return made


# ---- rows and front --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPS)
def test_the_front_is_every_proved_row_that_no_proved_row_beats(op: str) -> None:
    found = compared(op).rows()
    proved = [(row.call or 0, row.bytes or 0, row.stack or 0) for row in found if row.proved]
    for row in found:
        mine = (row.call or 0, row.bytes or 0, row.stack or 0)
        beaten = any(one <= mine[0] and two <= mine[1] and three <= mine[2] for one, two, three in set(proved) - {mine})
        assert row.front == (row.proved and not beaten), row
    assert any(row.front for row in found)


def test_a_row_that_is_not_proved_is_not_on_the_front_and_beats_none() -> None:
    comparison = Comparison(spec("avr", BITS))
    slow = Row("sqgen", "sbd", "", 9, 10, 10, 0, proved=True)
    comparison.found, comparison.base = {"sbd": [slow]}, {"sbd": slow}
    measure = Measure(Price(1, 1, ()), 0, False, "not proved")
    comparison.bench.found["gcc", b""] = Built("gcc", ["O2"], 1, measure)
    assert [row.front for row in comparison.rows()] == [True, False]


@pytest.mark.parametrize("op", OPS)
def test_rows_of_sqgen_are_the_kernels_that_the_same_request_makes(op: str) -> None:
    ours = [row for row in compared(op).rows() if row.made_by == "sqgen"]
    for row in ours:
        parameters = dict(word.split("=") for word in shlex.split(row.parameters))
        made = kernel.make(spec("avr", BITS, op=op, method=row.method, parameters=parameters))
        assert (row.body, row.call, row.bytes) == (made.price.body, made.price.call, made.size)
        assert row.stack == made.verdict.stack and row.proved


@pytest.mark.parametrize("op", OPS)
def test_every_method_has_the_row_that_a_normal_run_makes(op: str) -> None:
    ours = compared(op).rows()
    for name in [name for name in methods.names() if formed(name, op)]:
        made = kernel.make(spec("avr", BITS, op=op, method=name))
        assert (name, made.price.call, made.size) in [(row.method, row.call, row.bytes) for row in ours]


def test_where_branches_are_allowed_kernels_that_branch_stand_beside_public_code_that_does(sqgen: Call) -> None:
    line = "compare --isa avr --op mul --bits 48 --json"
    plain, branching = (json.loads(sqgen(f"{line} {option}").out) for option in ("", "--allow-branches"))
    rows = [row for row in branching["rows"] if row not in plain["rows"]]
    (row,) = [row for row in rows if row["note"] == "branches on signs, in arms of equal time"]
    made = kernel.make(spec("avr", 48, op="mul", allow_branches=True))
    assert (row["body"], row["call"], row["bytes"]) == (made.price.body, made.price.call, made.size)
    others = "the fastest public code that branches on a sign: Hutter-Schwabe, branched, 217 by body (published)"
    assert f"{others}; ours {100 * (row['body'] - 217) / 217:+.1f} %" in branching["notes"]
    alike = [note for note in plain["notes"] if note in branching["notes"] and "leaks nothing" in note]
    assert alike and not any("signs=" in each["parameters"] for each in plain["rows"])


def test_values_of_a_parameter_are_few_and_in_range() -> None:
    assert values(Parameter("e", "", "10"), "7", 8) == ["1", "2", "4", "6", "8", "10"]
    assert values(Parameter("block", "", "4", many=True), "7,3", 8) == ["1", "2", "4", "8"]


@pytest.mark.parametrize("name", methods.names())
def test_the_points_of_a_method_begin_with_the_normal_run_and_differ(name: str) -> None:
    op = methods.method(name).OPS[0]
    found = [methods.plan(op, 16, name, dict(each.parameters)) for each in points(spec("avr", 128, op=op), name)]
    best = answers.parameters(avr(), name, op, 128)
    assert found[0].steps == methods.plan(op, 16, name, best).steps
    assert len({plan.steps for plan in found}) == len(found) <= 12
    assert len(found) > 1 or not methods.method(name).PARAMETERS or methods.searched(name)


def test_what_branches_has_its_registers_as_a_normal_run_does() -> None:
    _, second, *_ = points(spec("avr", 256, op="mul", allow_branches=True), "karatsuba")
    made = choosing.choose(spec("avr", 256, op="mul", allow_branches=True)).plan
    assert dict(second.parameters)["signs"] == "branched" and set(second.parameters) <= set(made.parameters)


def test_what_is_not_made_is_said_once_for_each_method(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(point: Spec) -> kernel.Kernel:
        raise PressureError("no room") if point.method == "sbd" else UserError(f"bad {point.parameters}")

    monkeypatch.setattr(kernel, "make", fails)
    comparison = Comparison(spec("avr", BITS))
    for job in comparison.jobs():
        if isinstance(job.run, functools.partial) and job.run.func == comparison.make:
            job.run()
    assert comparison.rows() == []
    notes = comparison.notes()
    assert notes[0] == "sbd: no room" and len({note.split(":")[0] for note in notes}) == len(notes)
    assert any(re.fullmatch(r"yang: \d+ not made, the first: bad .*", note) for note in notes)


# ---- compilers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("compiler", [GCC, LLVM], ids=["avr-gcc", "LLVM"])
def test_a_compiler_has_a_row_with_cycles_for_each_of_its_levels(op: str, compiler: Compiler) -> None:
    need_gcc() if compiler is GCC else need_llvm()
    found = [row for row in compared(op).rows() if row.made_by.startswith(compiler.name)]
    assert found and all(row.call and row.body and row.stack is not None for row in found)
    levels = [word.strip("-") for row in found for word in row.method.split(", ")]
    assert sorted(levels) == sorted(compiler.levels)


def test_a_compilers_code_is_proved_where_the_prover_can() -> None:
    need_gcc()
    ((_, square),) = bench(limbs=8).right()
    assert square.proved and not square.remark
    ((_, product),) = bench(op="mul", limbs=8).right()  # avr-gcc takes room on the stack by calls that never return
    assert product.price and product.stack and not product.proved
    assert product.remark.startswith("not proved: ") and "overwrites a return address" in product.remark


@pytest.mark.simulator
@pytest.mark.parametrize("op", OPS)
def test_a_compilers_cycles_are_those_of_the_simulator(op: str, tmp_path: Path) -> None:
    need_gcc()
    made = bench(op=op, limbs=5)
    ((built, measure),) = made.right()
    ((_, image),) = made.found
    report = check.run(image, made.what, made.core, 0, 30)
    assert measure.price and (measure.price.call, measure.stack) == (report.call, report.stack)
    assert built.size == len(image)


def test_a_child_that_crashes_is_a_note_and_no_traceback(monkeypatch: pytest.MonkeyPatch, sqgen: Call) -> None:
    need_llvm()
    monkeypatch.setattr(programs, "LLVM_CHILD", CRASHING)
    run = sqgen(f"compare --isa avr --bits {BITS}")
    assert run.code == 0 and not run.err and "Traceback" not in run.out
    assert "O2: SIGABRT in the code generator" in run.out and "(crashed)" in run.out
    assert "sbd" in run.out


def test_a_true_abort_of_llvm_stays_in_the_child(tmp_path: Path) -> None:
    need_llvm()
    nonsense = """define i8 @f() { %1 = call i8 @llvm.read_register.i8(metadata !0) ret i8 %1 }
        declare i8 @llvm.read_register.i8(metadata)
        !0 = !{!"nonsense"}"""
    with pytest.raises(UserError, match=r"Invalid register name.*\(crashed\)") as error:
        programs.compile_ir(LLVM, "O2", core(), nonsense, tmp_path / "f.o")
    assert error.value.code is Exit.TOOL and not (tmp_path / "f.o").exists()


def test_what_llvm_refuses_is_one_line(tmp_path: Path) -> None:
    need_llvm()
    with pytest.raises(UserError, match=r"refused: .*parsing error"):
        programs.compile_ir(LLVM, "O2", core(), "define", tmp_path / "f.o")


def test_a_child_that_does_not_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "TIMEOUT", 0.2)
    monkeypatch.setattr(programs, "LLVM_CHILD", (sys.executable, "-c", "import time; time.sleep(60)"))
    with pytest.raises(UserError, match="no end after"):
        programs.compile_ir(LLVM, "O2", core(), "", tmp_path / "f.o")


def test_a_missing_compiler_is_a_note_that_names_the_package(monkeypatch: pytest.MonkeyPatch, sqgen: Call) -> None:
    monkeypatch.setattr(programs, "installed", lambda tool: False)
    run = sqgen(f"compare --isa avr --bits {BITS}")
    assert run.code == 0 and not run.err
    assert "avr-gcc: not installed; install the Debian packages gcc-avr and avr-libc" in run.out
    assert "LLVM: not installed; install the Python package llvmlite (pip install 'sqgen[llvm]')" in run.out
    assert run.out.count("not installed") == len(avr().compilers)


def spoil(monkeypatch: pytest.MonkeyPatch, change: Callable[[str], str]) -> None:
    """What avr-gcc gets is changed on the way."""
    text = C(contract("sqr", 4), "straight")
    assert change(text) != text
    monkeypatch.setattr(straight, "c", lambda what, symbol: change(C(what, symbol)))


@pytest.mark.parametrize(
    "change",
    [
        ("a[0] * a[1]", "a[1] * a[1]"),  # a wrong cell
        ("twice << 1", "twice"),  # not doubled
        ("r[6] = (uint8_t)sum; sum >>= 8;", "r[6] = (uint8_t)sum; sum >>= 8; sum &= 0xfd;"),  # a bit that is rarely set
        ("    uint32_t sum = 0, twice;", "    uint32_t sum = 0; uint16_t twice;"),  # a carry that is rarely there
    ],
)
def test_a_wrong_result_is_refused(change: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    need_gcc()
    spoil(monkeypatch, lambda text: text.replace(*change))
    made = bench()
    assert not list(made.right())
    (remark,) = made.remarks()
    assert "O2: wrong result for a = 0x" in remark


def test_code_whose_path_depends_on_the_operands_has_bytes_and_no_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    need_gcc()
    spoil(monkeypatch, lambda text: text.replace("{\n", '{\n    if (a[0] == 127) __asm__ volatile ("nop\\nnop");\n', 1))
    ((built, measure),) = bench().right()
    assert built.size and measure.price is None and not measure.proved
    assert measure.remark == "not priced: its path depends on the operands"


def test_an_instruction_that_the_table_lacks_is_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    need_gcc()
    spoil(monkeypatch, lambda text: text.replace("{\n", '{\n    __asm__ volatile ("wdr");\n', 1))
    ((built, measure),) = bench().right()
    assert built.size and measure.price is None
    assert measure.remark == "not priced: the table cannot follow it (unknown instruction 0x95a8)"


def test_code_that_does_what_no_kernel_may_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    need_gcc()
    spoil(monkeypatch, lambda text: text.replace("{\n", '{\n    __asm__ volatile ("cli");\n', 1))
    made = bench()
    assert not list(made.right()) and "the interrupt flag is changed" in "".join(made.remarks())


def test_c_that_is_refused_is_one_line() -> None:
    need_gcc()
    made = bench(level="nonsense")
    (note,) = made.remarks()
    assert "nonsense: refused: " in note and "\n" not in note


# ---- the straight-line code itself -----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("limbs", [2, 7, 40, pytest.param(128, marks=pytest.mark.sweep)])
def test_the_straight_line_c_multiplies_on_this_machine_too(op: str, limbs: int, tmp_path: Path) -> None:
    what = contract(op, limbs)
    source, library = tmp_path / "straight.c", tmp_path / "straight.so"
    source.write_text(straight.c(what, "straight"))
    subprocess.run(["cc", "-Wall", "-Werror", "-O1", "-shared", "-fPIC", source, "-o", library], check=True)
    function = ctypes.CDLL(str(library)).straight
    for given in operands(what, 24):
        result = ctypes.create_string_buffer(2 * limbs)
        function(result, *(value.to_bytes(limbs, "little") for value in given))
        assert int.from_bytes(result.raw, "little") == given[0] * given[-1]


@pytest.mark.parametrize("op", OPS)
def test_straight_line_code_has_every_cell_once_and_no_branch(op: str) -> None:
    ir = straight.llvm_ir(contract(op, 8), "f")
    assert ir.count(" mul ") == straight.c(contract(op, 8), "f").count(" * ") == (36 if op == "sqr" else 64)
    assert " br " not in ir and ir.count("load i8") == (8 if op == "sqr" else 16) and ir.count("store") == 16


# ---- outputs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", OPS)
def test_the_plot_is_xml_with_words_and_asks_for_nothing_from_outside(op: str) -> None:
    comparison = compared(op)
    text = draw_plot.svg(comparison.heading, comparison.rows())
    root = ET.fromstring(text)
    assert root[0].tag == f"{SVG}title" and comparison.heading in str(root[0].text)
    assert root[1].tag == f"{SVG}desc" and all(row.name in str(root[1].text) for row in comparison.rows() if row.call)
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "href" not in text and "url(" not in text and " id=" not in text and "@import" not in text
    assert "prefers-color-scheme: dark" in text


def test_the_plot_has_every_row_at_its_place_and_rings_the_front() -> None:
    found = compared("sqr").rows()
    root = ET.fromstring(draw_plot.svg("x", found))
    marks = {g.findtext(f"{SVG}title"): g for g in root.iter(f"{SVG}g") if g.get("class") == "row"}
    assert len(marks) == len(found)
    places = {}
    for row in found:
        (mark,) = (mark for title, mark in marks.items() if title and title.startswith(f"{row.name}: {row.call} "))
        x, y = map(float, mark.attrib["transform"].removeprefix("translate(").rstrip(")").split())
        assert draw_plot.LEFT <= x <= draw_plot.LEFT + draw_plot.ACROSS
        assert draw_plot.TOP <= y <= draw_plot.TOP + draw_plot.DOWN
        assert (mark.find(f"{SVG}circle") is not None) == row.front
        places[row] = x, y
    assert sorted(found, key=lambda row: row.call or 0) == sorted(found, key=lambda row: places[row][0])
    assert sorted(found, key=lambda row: -(row.bytes or 0)) == sorted(found, key=lambda row: places[row][1])


def test_the_plot_lets_no_markup_in_and_leaves_out_what_has_no_cycles() -> None:
    some = [
        Row("<b>", "-O2 & so", "", 9, 10, 10, 0, proved=True),
        Row("gcc", "-O3", "", None, None, 1, None, proved=False),
    ]
    root = ET.fromstring(draw_plot.svg("<i>", some))
    assert len([g for g in root.iter(f"{SVG}g") if g.get("class") == "row"]) == 1
    assert "<b> -O2 & so: 10 cycles" in str(root.findtext(f"{SVG}desc"))


def test_a_plot_of_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="nothing to plot"):
        draw_plot.svg("x", [])


def test_json_csv_and_markdown_say_the_same(sqgen: Call) -> None:
    document = json.loads(sqgen("compare --isa avr --bits 16 --json").out)
    assert (document["isa"], document["core"], document["op"], document["bits"]) == ("avr", "atmega128", "sqr", 16)
    lines = list(csv.DictReader(io.StringIO(sqgen("compare --isa avr --bits 16 --csv").out)))
    assert [(line["method"], int(line["call"])) for line in lines] == [
        (row["method"], row["call"]) for row in document["rows"]
    ]
    assert [line["front"] == "True" for line in lines] == [row["front"] for row in document["rows"]]
    markdown = sqgen("compare --isa avr --bits 16 --markdown").out.splitlines()
    assert len(markdown) == len(lines) + 2 and {line.count(" | ") for line in markdown} == {len(lines[0]) - 1}


def test_markdown_cells_keep_to_themselves() -> None:
    assert (
        rows.as_markdown([{"a": "x|*\ny", "b": None, "c": True}])
        == "| a | b | c |\n| --- | --- | --- |\n| x\\|\\* y |  | * |\n"
    )
    assert rows.as_csv([]) == "\n" and rows.as_markdown([]) == "|  |\n|  |\n"


def test_the_table_fits_and_names_the_plot_that_it_wrote(sqgen: Call, here: Path) -> None:
    run = sqgen("compare --isa avr --bits 16 --op mul --svg plots/mul.svg")
    assert run.code == 0 and not run.err and run.out.endswith("wrote plots/mul.svg\n")
    assert max(map(len, run.out.splitlines())) <= 100
    ET.fromstring((here / "plots" / "mul.svg").read_text())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("compare --isa avr --bits 17", Exit.USAGE),
        ("compare --isa avr", Exit.USAGE),
        ("compare --isa avr --bits 16 --op div", Exit.USAGE),
        ("compare --isa avr --bits 16 --json --csv", Exit.USAGE),
        ("compare --isa avr --bits 16 --core attiny85", Exit.LIMITS),
    ],
)
def test_nonsense_is_refused_in_one_line(line: str, code: Exit, refused: Callable[..., str]) -> None:
    refused(code, line)


def test_the_command_imports_nothing_slow_before_it_runs() -> None:
    slow = ("rich", "jinja2", "elftools", "sqgen.compare", "sqgen.kernel", "sqgen.table")
    probe = f"import sys, sqgen.cli; print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert "compare" in shell("--help").stdout


@pytest.mark.parametrize(("name", "bits"), [("arm", 32), ("msp430", 16)])
def test_a_single_limb_is_compared_without_the_methods_that_halve_it(name: str, bits: int) -> None:
    assert points(spec(name, bits), "sbd") and not points(spec(name, bits), "hybrid-karatsuba")
