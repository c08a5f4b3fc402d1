"""Kernels larger than others in Unicorn: long code, and much stack."""

from __future__ import annotations

import matrix
import pytest

from sqgen import check, kernel
from sqgen.errors import Exit, UserError
from sqgen.spec import spec

pytestmark = pytest.mark.simulator
LONG, TOO_LONG = 1 << 17, 1 << 20  # bytes; the longest kernel, a square of 2048 bits on Cortex-M0, has 111,104


def padded(size: int) -> check.Report:
    """A right kernel at the end of so much code."""
    made = kernel.make(spec("arm", 64))
    return check.run(bytes(size) + made.compiled.image, made.spec.contract, made.spec.core, size, 4)


def test_long_code_is_run() -> None:
    assert padded(LONG).runs == 4


def test_code_that_it_has_no_room_for_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match=r"^the emulator cannot run this: [0-9]+ bytes of code do not fit") as refused:
        padded(TOO_LONG)
    assert refused.value.code == Exit.LIMITS


def test_a_kernel_with_much_stack_is_right_beside_its_manifest() -> None:
    job = matrix.Job("arm", "cortex-m4", "mul", 4096, "auto")
    known = matrix.Known()
    found = matrix.outcome(job, known)
    assert (found.verdict, found.simulator, found.reason) == (matrix.RIGHT, "Unicorn", "")
    ((_, manifest),) = known.made.values()
    assert manifest["stack"] >= 1024
