"""Longer operands where limbs are of 16 and 32 bits."""

from __future__ import annotations

import itertools

import pytest
from longer import as_fast_as_larger

from sqgen import answers, check, choosing, kernel, measure, padding
from sqgen.answers import costs
from sqgen.forward_proof import prove_forward
from sqgen.interpret import broken_promise
from sqgen.spec import spec

CORES = [
    *(("msp430", core) for core in ("msp430", "msp430x", "msp430x-mpy32")),
    *(("arm", core) for core in ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m33")),
]
MADE = [  # limbs, and parameters
    ("mul", 1, {}),
    ("sqr", 3, {"limbs": "5"}),
    ("mul", 7, {"limbs": "11", "inner": "product-scanning"}),
    ("mul", 5, {}),
    ("sqr", 7, {"limbs": "8", "inner": "karatsuba-squaring"}),
    ("mul", 7, {"limbs": "8", "inner": "karatsuba"}),
    pytest.param("mul", 8, {}, marks=pytest.mark.sweep),
    pytest.param("sqr", 13, {"limbs": "16", "inner": "karatsuba-squaring"}, marks=pytest.mark.sweep),
    pytest.param("mul", 13, {"limbs": "16", "inner": "karatsuba"}, marks=pytest.mark.sweep),
]
PARTS = {"cortex-m0": ",parts=whole"}  # as it wants them; others call them
HOMES = [("msp430", "msp430"), ("msp430", "msp430x-mpy32"), ("arm", "cortex-m0"), ("arm", "cortex-m3")]
SIZES = [("mul", 224), ("sqr", 288), ("mul", 512), ("sqr", 512), ("sqr", 1024)]  # of which there are fronts


@pytest.mark.many
@pytest.mark.simulator
@pytest.mark.parametrize(("isa", "core"), CORES)
@pytest.mark.parametrize(("op", "limbs", "given"), MADE)
def test_both_proofs_runs_and_the_simulator_agree_that_it_is_the_product(
    isa: str, core: str, op: str, limbs: int, given: dict[str, str]
) -> None:
    bits = limbs * (16 if isa == "msp430" else 32)
    if given.get("inner", "").startswith("karatsuba"):
        parts = PARTS.get(core, ",parts=calls,levels=1,leaf=product-scanning,recombine=unrolled")
        given = given | {"inner": given["inner"] + parts}
    made = kernel.make(spec(isa, bits, op=op, core=core, method="padded", parameters=given))
    code = made.compiled.image, made.spec.contract, made.spec.core
    again = prove_forward(*code)
    assert again.proved and again.paths == (made.verdict.path,) and again.stack == made.verdict.stack
    assert not broken_promise(*code, runs=40)
    if made.spec.contract.isa.timings[made.spec.core.timing].judge:
        assert check.run(*code, runs=20).stack == made.verdict.stack
    assert {*range(1 - 2 * limbs, limbs)} <= {*made.verdict.overlap["a"]}


@pytest.mark.simulator
@pytest.mark.parametrize("isa", ["msp430", "arm"])
def test_the_simulator_has_room_for_the_copies_of_large_operands(isa: str) -> None:
    made = kernel.make(spec(isa, 1024, op="mul", method="padded"))
    code = made.compiled.image, made.spec.contract, made.spec.core
    assert check.run(*code, runs=4).stack == made.verdict.stack > 512  # msp430: 698 bytes


@pytest.mark.parametrize("isa", ["msp430", "arm"])
def test_what_was_copied_is_cleared_where_that_is_asked_for(isa: str) -> None:
    made = kernel.make(spec(isa, 96, op="mul", method="padded", parameters={"wipe": "1"}))
    assert made.residue.nothing
    assert not kernel.make(spec(isa, 96, op="mul", method="padded")).residue.nothing


@pytest.mark.many
@pytest.mark.parametrize(("isa", "core"), HOMES)
@pytest.mark.parametrize(("op", "bits"), SIZES)
def test_what_it_costs_is_known_and_never_more(isa: str, core: str, op: str, bits: int) -> None:
    same = spec(isa, bits, op=op, core=core)
    which, limbs = same.contract.isa, same.contract.limbs
    rows = answers.fronts(which, op, same.core)[bits]
    tried = [row for row in rows if padding.particular(str(row[answers.METHOD]), limbs)]
    assert tried
    for row, less in itertools.product(tried[:4], (1, 3)):
        asked = spec(isa, bits - which.limb_bits * less, op=op, core=core)
        longer = padding.longer(asked, row, limbs)
        (made,), _ = choosing.tried(asked, [(padding.NAME, longer)])
        body, call, size, stack = costs(longer)
        price, most = measure.price(made, asked.core), 2 * padding.CYCLES + padding.EACH * 4 * limbs
        assert 0 <= call - price.call <= most and 0 <= body - price.body <= most
        assert 0 <= size - len(made.image) <= padding.BYTES
        saved = len(which.abi.callee_saved) if which.abi.link else 0
        assert 0 <= stack - measure.stack(made, asked.core) <= (saved + 1) * 4


@pytest.mark.parametrize(
    ("isa", "core", "op", "bits", "limit"),
    [
        ("msp430", "msp430", "mul", 208, 1500),
        ("msp430", "msp430", "mul", 1008, 5400),
        ("msp430", "msp430x-mpy32", "sqr", 528, 3800),
        ("arm", "cortex-m0", "mul", 992, 4300),
        ("arm", "cortex-m0", "sqr", 672, 2700),
        ("arm", "cortex-m3", "mul", 992, 5500),
    ],
)
def test_within_limits_a_size_is_about_as_fast_as_the_next_larger_ones(
    isa: str, core: str, op: str, bits: int, limit: int
) -> None:
    as_fast_as_larger(spec(isa, bits, op=op, core=core, max_bytes=limit), padding.EACH)
