"""Two proofs that share the table and nothing else, `prove` and `forward`, say the same."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from conftest import core
from handwritten import NAMES, Foreign
from mutants import is_right, mutants, own, subject
from patience import patience

from sqgen.forward_proof import prove_forward

PATIENCE = 2.0  # seconds for one proof of a mutant
FEW, MANY = 3, 100  # mutants tried of one kernel in a normal run, and among the slow tests
KERNELS = [name for name in (*NAMES, *own(range(2, 9, 2))) if not name.endswith("96")]
MANY_CASES = [name for name in KERNELS if name.startswith(("signed", "streamed"))]  # the forward proof takes seconds


class Slow(Exception):
    """A proof takes longer than there is patience."""


@pytest.mark.many
@pytest.mark.parametrize("name", KERNELS)
def test_both_proofs_accept_the_kernel(name: str) -> None:
    kernel = subject(name)
    assert kernel.contract.limbs <= 8
    assert prove_forward(kernel.image, kernel.contract, core(), kernel.entry).proved
    assert kernel.prove().proved


@pytest.mark.simulator
def test_both_proofs_say_the_same_of_mutants() -> None:
    small = [name for name in KERNELS if name.endswith(("16", "24", "32")) and name not in MANY_CASES]
    compare(small, FEW)


@pytest.mark.simulator
@pytest.mark.mutate
@pytest.mark.parametrize("name", [name for name in KERNELS if name not in MANY_CASES])
def test_both_proofs_say_the_same_of_many_mutants(name: str) -> None:
    compare([name], MANY)


def compare(names: list[str], count: int) -> None:
    """Both proofs on `count` mutants of each kernel, and simavr's word on those of which they say different things."""
    found: Counter[str] = Counter()
    for name in names:
        every = list(mutants(subject(name)))
        for mutant in random.Random(name).sample(every, min(count, len(every))):
            said = both(mutant.kernel)
            found[said] += 1
            if said.startswith("only"):
                assert is_right(mutant.kernel), f"{name}, instruction {mutant.at} {mutant.how}: wrong, and {said}"
    print(dict(found))
    assert found["proved"] > 0 and found["refused"] > found.total() / 2
    assert found["too slow"] <= found.total() / 10


def both(kernel: Foreign) -> str:
    """What the two proofs say of a kernel."""
    try:
        with patience(PATIENCE, Slow()):
            forward = prove_forward(kernel.image, kernel.contract, core(), kernel.entry).proved
    except Slow:
        return "too slow"
    reverse = kernel.prove().proved
    if forward == reverse:
        return "proved" if forward else "refused"
    return "only proved forwards" if forward else "only proved in reverse"
