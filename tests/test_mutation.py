"""A kernel with one instruction changed is refused, unless the change is none: no wrong one passes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from handwritten import GENERATED, SOURCES
from mutants import Mutant, is_right, mutants, own, subject

SAMPLE, OTHER_SAMPLE = 40, 30  # mutants of one kernel in a normal run: of one of sqgen's, of another
LARGE = [name for name in GENERATED if int(name.rpartition("_")[2]) <= 64]


def judge(names: Sequence[str], sample: int | None) -> None:
    """Try mutants of these kernels, a `sample` of each or all of them, and print what became of them."""
    rows = {name: trial(name, sample) for name in names}
    total = sum(rows.values(), Counter())
    for name, counts in [*rows.items(), ("all", total)]:
        print(f"{name:24} {counts.total():6} mutants, {counts['refused']:6} refused, {counts['equal']:4} equivalent")
    assert total["refused"] > 0.8 * total.total() > 0


def trial(name: str, sample: int | None) -> Counter[str]:
    """How many mutants of a kernel were refused, and how many do the same as the kernel."""
    kernel = subject(name)
    assert kernel.prove().proved
    every = list(mutants(kernel))
    chosen = every if sample is None or sample >= len(every) else random.Random(name).sample(every, sample)
    return Counter(outcome(name, mutant) for mutant in chosen)


def outcome(name: str, mutant: Mutant) -> str:
    if not mutant.kernel.prove().proved:
        return "refused"
    assert is_right(mutant.kernel), f"{name}, instruction {mutant.at} {mutant.how}: wrong, and proved"
    return "equal"


@pytest.mark.simulator
def test_no_wrong_mutant_of_a_kernel_of_sqgens_is_proved() -> None:
    judge(own(range(2, 5)), SAMPLE)


@pytest.mark.simulator
def test_no_wrong_mutant_of_another_kernel_is_proved() -> None:
    judge([*SOURCES, "streamed_square_32", "signed_product_32"], OTHER_SAMPLE)


@pytest.mark.simulator
@pytest.mark.mutate
@pytest.mark.parametrize("name", own(range(2, 9)))
def test_no_wrong_mutant_at_all_of_a_kernel_of_sqgens_is_proved(name: str) -> None:
    judge([name], None)


@pytest.mark.simulator
@pytest.mark.mutate
@pytest.mark.parametrize("name", [*SOURCES, *LARGE])
def test_no_wrong_mutant_at_all_of_another_kernel_is_proved(name: str) -> None:
    judge([name], None)
