"""Streamed Karatsuba: any number of groups of M, any blocks, halves that differ; answers faster than the prototypes."""

from __future__ import annotations

import random

import pytest
from conftest import avr

from sqgen import kernel
from sqgen.contract import Contract
from sqgen.interpret import call
from sqgen.kernel import Kernel
from sqgen.spec import spec

LIMBS = (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF)
BODY = {192: 1712, 224: 2231, 256: 2811}  # cycles of the prototypes


def made(bits: int, **parameters: str) -> Kernel:
    given = {name.replace("_", "-"): value for name, value in parameters.items()}
    return kernel.make(spec("avr", bits, op="sqr", method="streamed-karatsuba", parameters=given))


def squares(proved: Kernel) -> None:
    """Run it on operands of limbs that carries are lost at, with halves that are alike among them."""
    contract, rng = Contract("sqr", proved.spec.contract.limbs, avr()), random.Random(1)
    for run in range(30):
        half = [rng.choice(LIMBS) for _ in range(contract.limbs // 2)]
        other = [rng.choice(LIMBS) for _ in range(contract.limbs - len(half))]
        if run % 3 == 0:
            other[: len(half)] = half
        a = int.from_bytes(bytes(half + other), "little")
        assert call(proved.compiled.image, contract, proved.spec.core, (a,)) == a * a


@pytest.mark.parametrize("stages", ["22", "5,22", "5,9,22", "6,12,18,22", "2,4,6,8,10,12,14,16,18,20,22"])
@pytest.mark.parametrize("bits", [88, 96])
def test_carries_wait_together_through_any_number_of_groups(bits: int, stages: str) -> None:
    proved = made(bits, middle_ends=stages, middle_stages=stages)
    assert proved.verdict.proved
    squares(proved)


@pytest.mark.parametrize("stages", ["1,24", "3,6,24", "11,24", "12,24", "13,24"])
def test_the_limbs_of_h_may_leave_at_any_column(stages: str) -> None:
    proved = made(96, high_ends=stages, high_stages=stages)
    assert proved.verdict.proved
    squares(proved)


@pytest.mark.parametrize("bits", BODY)
def test_the_answers_are_faster_than_the_prototypes(bits: int) -> None:
    proved = made(bits)
    assert proved.verdict.proved and proved.price.body < BODY[bits]
    squares(proved)


def test_no_frame_is_made_where_the_operand_of_m_finds_room_in_the_result() -> None:
    assert made(256).verdict.stack == 18, "saved registers alone"
    assert made(256, middle_ends="30", middle_stages="32").verdict.stack > 18
