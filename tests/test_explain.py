"""Where cycles go: every instruction is counted once, and the law holds where all is known."""

from __future__ import annotations

import pytest
from commandline import Call
from conftest import kernel

from sqgen.explain import GROUPS, explain
from sqgen.timing import body_counts

SOME = [
    ("sqr", 64, "sweeps"),
    ("sqr", 96, "sbd"),
    ("sqr", 256, "streamed-karatsuba"),
    ("sqr", 256, "karatsuba-squaring"),
    ("sqr", 96, "lazy-doubling"),
    ("mul", 64, "rows"),
    ("mul", 96, "operand-caching"),
    ("mul", 128, "karatsuba"),
    ("mul", 160, "karatsuba"),
]


@pytest.mark.parametrize(("op", "bits", "method"), SOME)
def test_the_roles_are_all_of_the_body_and_so_are_the_parts(op: str, bits: int, method: str) -> None:
    made = kernel(op, bits, method)
    found = explain(made)
    assert sum(share.cycles for share in found.roles.values()) == made.price.body
    assert sum(part.cycles for part in found.parts) == made.price.body
    assert set(found.roles) <= {role for roles in GROUPS.values() for role in roles}
    assert sum(found.group(name).cycles for name in GROUPS) == made.price.body


@pytest.mark.parametrize(("op", "bits", "method"), SOME)
def test_products_loads_and_stores_are_those_of_the_plan(op: str, bits: int, method: str) -> None:
    made = kernel(op, bits, method)
    found = explain(made).roles
    counted = body_counts(made.compiled.isa, made.compiled.image, made.verdict.path)
    assert found["multiplications"].count == counted["mul"] == sum(part.products for part in explain(made).parts)
    limbs = bits // 8
    assert found["first loads"].count == limbs * (2 if op == "mul" else 1)
    assert found["last stores"].count == 2 * limbs


@pytest.mark.parametrize("bits", [64, 128])
def test_schoolbook_never_goes_below_the_floor_and_additions_are_two_a_product_less_seeds(bits: int) -> None:
    for op, method in (("sqr", "sweeps"), ("sqr", "sbd"), ("mul", "rows"), ("mul", "product-scanning")):
        found = explain(kernel(op, bits, method))
        for name, floor in found.floor.items():
            assert found.group(name).cycles >= floor, (method, name)
        products = found.roles["multiplications"].count
        assert found.roles["additions of products"].count <= 2 * products


def test_doublings_are_one_for_each_limb_between_the_ends() -> None:
    assert explain(kernel("sqr", 128, "sweeps")).roles["doublings"].count == 2 * 16 - 2


def test_a_mask_that_is_formed_where_a_pointer_was_is_none() -> None:
    """Masks of Karatsuba's differences are formed by SBC of a register from itself: they are no addresses."""
    made = kernel("mul", 192, "karatsuba")
    counted = body_counts(made.compiled.isa, made.compiled.image, made.verdict.path)
    found = explain(made).roles
    assert counted["logic"] == found["signs and masks"].count + found["limbs cleared"].count
    assert found["pointers"].count < 20


def test_the_command_says_floor_and_body(sqgen: Call) -> None:
    made, said = kernel("sqr", 128, "sweeps"), sqgen("explain --isa avr --bits 128 --method sweeps")
    floor = sum(explain(made).floor.values())
    assert said.code == 0
    (line,) = (line for line in said.out.splitlines() if line.startswith(" body "))
    assert line.split() == ["body", str(made.price.body), str(floor), f"{made.price.body - floor:+}"]


def test_the_floor_is_the_law_of_the_survey() -> None:
    """M(n) = 5n^2 - 2n and S(n) = 2.5n^2 + 2.5n - 1, loads and stores apart: the prototype study's section 2."""
    for bits, sums in ((64, 179), (96, 389), (128, 679)):  # S(8), S(12), S(16)
        n = bits // 8
        assert sum(explain(kernel("sqr", bits, "sweeps")).floor.values()) == sums + 6 * n
    assert sum(explain(kernel("mul", 64, "rows")).floor.values()) == 304 + 8 * 8
