"""A kernel with one instruction changed is refused, unless the change is none: no wrong one passes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Container, Sequence

import pytest
from handwritten import GENERATED, SOURCES
from mutants import PARTS, Mutant, is_right, mutants, own, subject

SAMPLE, OTHER_SAMPLE = 8, 8  # mutants of one kernel in a normal run: of one of sqgen's, of another
MASKS_AND_FLOW = frozenset(
    ["eor", "lsr", "sbc", "rcall", "rjmp", "breq", "dec", "ldi", "ret", "push", "pop", "out_spl", "out_sph", "cli"]
)
LARGE = [name for name in GENERATED if int(name.rpartition("_")[2]) <= 64]


def judge(names: Sequence[str], sample: int | None, only: Container[str] | None = None) -> None:
    """Try mutants of these kernels, a `sample` of each or all of them, and print what became of them.

    `only`: where the instruction that is changed is one of these.
    """
    rows = {name: trial(name, sample, only) for name in names}
    total = sum(rows.values(), Counter())
    for name, counts in [*rows.items(), ("all", total)]:
        print(f"{name:24} {counts.total():6} mutants, {counts['refused']:6} refused, {counts['equal']:4} equivalent")
    assert total["refused"] > 0.5 * total.total() > 0


def trial(name: str, sample: int | None, only: Container[str] | None) -> Counter[str]:
    """How many mutants of a kernel were refused, and how many do the same as the kernel."""
    kernel = subject(name)
    assert kernel.prove().proved
    every = [mutant for mutant in mutants(kernel) if only is None or mutant.old[0].insn.name in only]
    chosen = every if sample is None or sample >= len(every) else random.Random(name).sample(every, sample)
    return Counter(outcome(name, mutant) for mutant in chosen)


def outcome(name: str, mutant: Mutant) -> str:
    if not mutant.kernel.prove().proved:
        return "refused"
    assert is_right(mutant.kernel), f"{name}, instruction {mutant.at} {mutant.how}: wrong, and proved"
    return "equal"


@pytest.mark.simulator
@pytest.mark.parametrize("limbs", [2, 3, 4])
def test_no_wrong_mutant_of_a_kernel_of_sqgens_is_proved(limbs: int) -> None:
    judge(own(range(limbs, limbs + 1)), SAMPLE)


@pytest.mark.simulator
@pytest.mark.parametrize("name", PARTS)
def test_no_wrong_mutant_of_a_kernel_with_masks_calls_and_loops_is_proved(name: str) -> None:
    judge([name], OTHER_SAMPLE, MASKS_AND_FLOW)


@pytest.mark.simulator
def test_no_wrong_mutant_of_another_kernel_is_proved() -> None:
    judge([*SOURCES, "streamed_square_32", "signed_product_32"], OTHER_SAMPLE)


@pytest.mark.simulator
@pytest.mark.mutate
@pytest.mark.parametrize("name", [*own(range(2, 9)), *PARTS])
def test_no_wrong_mutant_at_all_of_a_kernel_of_sqgens_is_proved(name: str) -> None:
    judge([name], None)


@pytest.mark.simulator
@pytest.mark.mutate
@pytest.mark.parametrize("name", [*SOURCES, *LARGE])
def test_no_wrong_mutant_at_all_of_another_kernel_is_proved(name: str) -> None:
    judge([name], None)
