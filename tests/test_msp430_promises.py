"""MSP430: what is promised of its kernels, and what is refused in one line."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from clock import quick
from commandline import Call
from conftest import TESTS
from msp430 import CORES, made

from sqgen import check, choosing, emit, judging, measure, methods
from sqgen import kernel as kernel_module
from sqgen.errors import Exit, UserError
from sqgen.interpret import call, operands
from sqgen.prove import prove
from sqgen.spec import spec

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


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize(("op", "sizes"), [("mul", (224, 272)), ("mul", (464, 528)), ("sqr", (496, 544))])
def test_no_size_is_slower_than_the_next_larger_one(core: str, op: str, sizes: tuple[int, int]) -> None:
    """Where halves are not equal, and where the number of levels changes."""
    asked = [spec("msp430", bits, op=op, core=core) for bits in range(sizes[0], sizes[1] + 1, 16)]
    prices = [measure.price(choosing.choose(each), each.core) for each in asked]
    assert all(a.body <= b.body and a.call <= b.call for a, b in itertools.pairwise(prices))


@pytest.mark.clock
@pytest.mark.parametrize("op", ["sqr", "mul"])
def test_the_proof_of_512_bits_takes_at_most_two_seconds(op: str) -> None:
    kernel = made(op, 512)
    image, contract, core = kernel.compiled.image, kernel.spec.contract, kernel.spec.core
    assert quick(lambda: prove(image, contract, core), 2)


def test_a_size_is_a_multiple_of_16_bits() -> None:
    with pytest.raises(UserError, match="nearest sizes are 96 and 112"):
        spec("msp430", 100)


def test_a_part_without_a_multiplier_is_refused(sqgen: Call) -> None:
    found = sqgen("--isa msp430 --core msp430g2553 --bits 128")
    assert found.code == Exit.LIMITS and found.err == (
        "Error: msp430g2553 has neither the 16-bit multiplier nor the 32-bit multiplier;"
        " choose a core that has one (see `sqgen cores`)\n"
    )
    row = next(row for row in sqgen("cores --isa msp430").out.splitlines() if "msp430g2553" in row)
    assert row.split()[-2:] == ["mpy16,", "mpy32"]


@pytest.mark.many
@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("op", ["sqr", "mul"])
@pytest.mark.parametrize("bits", [32, 48, 112, 128, 144])
def test_code_in_loops_is_as_short_at_any_size(op: str, bits: int, core: str) -> None:
    kernel = made(op, bits, "column-loops", core=core)
    assert kernel.size <= (176 if op == "sqr" else 136)
    for values in operands(kernel.spec.contract, 20):
        assert call(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, values) == values[0] * values[-1]


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("bits", [128, 256, 1008, 1024])
def test_who_has_few_bytes_gets_loops(bits: int, core: str) -> None:
    kernel = kernel_module.make(spec("msp430", bits, core=core, goal="size", max_bytes=400))
    assert kernel.compiled.plan.method == "column-loops" and kernel.size <= 176


def test_the_small_256_bit_square_is_not_much_slower() -> None:
    kernel = kernel_module.make(spec("msp430", 256, goal="size"))
    assert kernel.size <= 1160 and kernel.price.call <= 2300


SHAPES = (  # that idioms of their own form, or none
    "product-scanning",
    "column-loops",
    "row-loops",
    "rows",
    "padded",
    "bordered",
)
SQUARES = [m for m in methods.names("sqr") if "karatsuba" not in m and m not in SHAPES]
PRODUCTS = [m for m in methods.names("mul") if "karatsuba" not in m and m not in SHAPES]


@pytest.mark.many
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
