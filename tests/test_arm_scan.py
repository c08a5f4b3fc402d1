"""Methods of cells on cores without long multiplication: every one of them is formed, proved, and right in Unicorn."""

from __future__ import annotations

import pytest
from arm import made

from sqgen import check
from sqgen.interpret import call, operands
from sqgen.methods import names

CORE = "cortex-m0"
LOOPS = {"row-loops", "column-loops"}
LEVELS = {  # parts, loops
    "karatsuba",
    "karatsuba-squaring",
    "hybrid-karatsuba",
    "streamed-karatsuba",
    "padded",
    "bordered",
    *LOOPS,
}
METHODS = [(op, method) for op in ("sqr", "mul") for method in names(op) if method not in LEVELS]


@pytest.mark.many
@pytest.mark.parametrize("bits", [64, 96, 160, 256])
@pytest.mark.parametrize(("op", "method"), METHODS)
def test_a_method_gives_the_product_in_the_interpreter(op: str, method: str, bits: int) -> None:
    kernel = made(op, bits, core=CORE, method=method)
    assert kernel.verdict.proved
    for values in operands(kernel.spec.contract, 20):
        assert call(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, values) == values[0] * values[-1]


@pytest.mark.many
@pytest.mark.simulator
@pytest.mark.parametrize(("op", "method"), METHODS)
def test_a_method_is_right_in_unicorn(op: str, method: str) -> None:
    kernel = made(op, 192, core=CORE, method=method)
    report = check.run(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, runs=60)
    assert (report.paths, report.stack) == (1, kernel.verdict.stack)


@pytest.mark.parametrize(
    ("op", "bits"),
    [
        ("sqr", 1024),
        ("mul", 640),
        *(pytest.param(*large, marks=pytest.mark.sweep) for large in (("mul", 1056), ("sqr", 992), ("sqr", 1088))),
    ],
)
def test_what_one_pointer_does_not_reach_is_proved_too(op: str, bits: int) -> None:
    """An offset goes to 31 limbs; and so large a product takes many instructions for each of its cells."""
    assert made(op, bits, core=CORE, method="product-scanning").verdict.proved


def test_a_square_of_columns_takes_a_multiplication_less_for_each_cell_of_the_diagonal() -> None:
    """Three where a cell off the diagonal takes four: 28 and 8 cells."""
    counts = dict(made("sqr", 256, core=CORE, method="product-scanning").price.counts)
    assert counts["mul"] == 28 * 4 + 8 * 3
