"""Kernels for Cortex-M, called by a C program as a user's would, on QEMU's boards."""

from __future__ import annotations

import pytest
from arm import made

from sqgen import emit
from sqgen.interpret import operands
from sqgen.oracles import OracleFailed, qemu_arm

pytestmark = pytest.mark.simulator


@pytest.mark.many
@pytest.mark.parametrize("core", sorted(qemu_arm.BOARDS))
@pytest.mark.parametrize(("op", "bits"), [("sqr", 64), ("sqr", 256), ("sqr", 512), ("mul", 256)])
def test_a_kernel_called_from_c_is_right(op: str, bits: int, core: str) -> None:
    kernel = made(op, bits, core=core)
    values = list(operands(kernel.spec.contract, 40))
    found = qemu_arm.run(core, emit.all_files(kernel), kernel.spec.symbol, bits // 32, values)
    assert found == [value[0] * value[-1] for value in values]


@pytest.mark.parametrize(
    ("op", "bits", "method"), [("sqr", 1024, "row-loops"), ("mul", 480, "row-loops"), ("sqr", 1024, "auto")]
)
def test_loops_and_sums_on_the_stack_are_right_too(op: str, bits: int, method: str) -> None:
    kernel = made(op, bits, method)
    values = list(operands(kernel.spec.contract, 12))
    found = qemu_arm.run("cortex-m4", emit.all_files(kernel), kernel.spec.symbol, bits // 32, values)
    assert found == [value[0] * value[-1] for value in values]


def test_a_kernel_that_is_wrong_or_writes_beside_its_result_is_seen() -> None:
    kernel = made("sqr", 64, "product-scanning")
    files = emit.all_files(kernel)
    source = files[f"{kernel.spec.symbol}.S"]
    wrong = {**files, f"{kernel.spec.symbol}.S": source.replace("umull", "umlal", 1)}
    value = (1 << 64) - 1
    assert qemu_arm.run("cortex-m4", wrong, kernel.spec.symbol, 2, [(value,)]) != [value * value]
    beside = {**files, f"{kernel.spec.symbol}.S": source.replace("[r0, #12]", "[r0, #16]")}
    with pytest.raises(OracleFailed, match="exit code"):
        qemu_arm.run("cortex-m4", beside, kernel.spec.symbol, 2, [(value,)])
