"""Kernels with one bit of their code flipped."""

from __future__ import annotations

import random

from sqgen.kernel import Kernel
from sqgen.prove import prove
from sqgen.runs import counterexample


def passed(kernel: Kernel, count: int) -> int:
    """How many of so many such kernels are proved; each of those multiplies all the same."""
    contract, core, image = kernel.spec.contract, kernel.spec.core, kernel.compiled.image
    found = 0
    for bit in random.Random(0).sample(range(8 * len(image)), count):
        mutant = bytearray(image)
        mutant[bit // 8] ^= 1 << bit % 8
        if prove(bytes(mutant), contract, core).proved:
            found += 1
            assert counterexample(bytes(mutant), contract, core) is None
    return found
