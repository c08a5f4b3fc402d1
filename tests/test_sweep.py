"""Every method at every size up to 256 bits: covered, proved, right in the simulator, timed to the cycle.

The normal run has a sample of this in test_kernels.py; here is the rest, `make sweep`, which takes many minutes.
Forms of methods made of parts are in test_parts.py.
"""

from __future__ import annotations

import pytest
from conftest import LARGEST, formed, kernel

from sqgen import check, emit, methods
from sqgen.contract import OPS
from sqgen.residence import PressureError

FORMS = [
    *((op, name, "") for op in OPS for name in methods.names() if formed(name, op)),
    ("sqr", "sbd", "sums=memory"),
    ("sqr", "carry-catcher", "d=3"),
    ("sqr", "lazy-doubling", "d=4"),
    ("mul", "full-operand-caching", "e=3"),  # all its cases come up
]
SIZES = [*range(16, 257, 8), 320, 448, 512]
RUNS = 6  # the first six operands are all limbs 0, 1, 7f, 80, fe, ff


@pytest.mark.simulator
@pytest.mark.sweep
@pytest.mark.parametrize("bits", SIZES)
@pytest.mark.parametrize(("op", "method", "parameter"), FORMS)
def test_every_method_is_proved_and_right_at_every_size(op: str, method: str, parameter: str, bits: int) -> None:
    if bits > LARGEST.get((op, method), bits):
        with pytest.raises(PressureError, match="limbs are live in"):
            kernel(op, bits, method)
        return
    made = kernel(op, bits, method, **dict(pair.split("=") for pair in parameter.split()))
    assert made.verdict.proved
    report = check.run(made.compiled.image, made.spec.contract, made.spec.core, runs=RUNS)
    cycles = emit.manifest(made)["cycles"]
    assert (report.call, report.body) == (cycles["call"], cycles["body"])
