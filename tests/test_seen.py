"""What `docs/SOUNDNESS.md` says that the second proof sees: the fastest kernels, by `pytest -n 2 -m sweep FILE`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sqgen.contract import OPS
from sqgen.forward_proof import prove_forward
from sqgen.kernel import make
from sqgen.spec import spec

SIZES = {  # bits, by core
    "avr/atmega128": [*range(16, 385, 8), 512, 768, 1024],
    "arm/cortex-m4": range(32, 513, 32),
    "arm/cortex-m3": range(32, 513, 32),
    "arm/cortex-m0": range(32, 513, 32),
    "msp430/msp430": range(16, 513, 16),
    "msp430/msp430x-mpy32": range(16, 513, 16),
}
BRANCHING = [bits for bits in SIZES["avr/atmega128"] if bits >= 48]  # products: smaller ones have nothing to branch on


def cases() -> Iterator[tuple[str, str, int, bool]]:
    """Instruction set and core, operation, size, whether branches on operands are permitted."""
    for where, sizes in SIZES.items():
        yield from ((where, op, bits, False) for op in OPS for bits in sizes)
    yield from (("avr/atmega128", "mul", bits, True) for bits in BRANCHING)


@pytest.mark.sweep
@pytest.mark.parametrize(("where", "op", "bits", "branches"), [*cases()])
def test_the_fastest_kernel_is_seen(where: str, op: str, bits: int, branches: bool) -> None:
    isa, core = where.split("/")
    kernel = make(spec(isa, bits, op=op, core=core, allow_branches=branches))
    verdict = prove_forward(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, branches=branches)
    assert verdict.why == ""
