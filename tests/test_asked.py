"""Who asks for more, or names what `auto` takes anyway, gets nothing worse than who does not."""

from __future__ import annotations

from typing import Any

import pytest
from clock import quick

from sqgen import choosing, measure
from sqgen.compile import Compiled
from sqgen.errors import UserError
from sqgen.spec import Spec, spec

# Cores that have answers, those that have to do with another one's, and such as no method is searched for; sizes that
# have a front, and such that lie between.
ASKED = [
    ("avr", "atmega128", (64, 264)),
    ("avr", "atmega2560", (128,)),
    ("avr", "atxmega32a4u", (120,)),
    ("arm", "cortex-m4", (96, 224)),
    ("arm", "cortex-m3", (128, 192)),
    ("arm", "cortex-m0", (32, 64, 96, 160)),
    ("arm", "cortex-m33", (128,)),
    ("msp430", "msp430", (64, 144)),
    ("msp430", "msp430x", (32, 48, 128)),
    ("msp430", "msp430x-mpy32", (64, 208)),
]
LONG = [("avr", "atmega128", 272), ("arm", "cortex-m4", 320), ("arm", "cortex-m3", 288), ("msp430", "msp430", 272)]
CASES = [
    *((isa, core, op, bits) for isa, core, sizes in ASKED for op in ("sqr", "mul") for bits in sizes),
    *(pytest.param(isa, core, op, bits, marks=pytest.mark.sweep) for isa, core, bits in LONG for op in ("sqr", "mul")),
]


def cost(asked: Spec, made: Compiled) -> int:
    """What the goal wants small."""
    return choosing.rank(asked, made)[0]


@pytest.mark.many
@pytest.mark.parametrize(("isa", "core", "op", "bits"), CASES)
def test_what_is_taken_is_found_within_its_own_limits_by_its_name_and_for_each_goal(
    isa: str, core: str, op: str, bits: int
) -> None:
    plain = spec(isa, bits, op=op, core=core)
    taken = choosing.choose(plain)
    size, stack, name = len(taken.image), measure.stack(taken, plain.core), taken.plan.method
    wishes: list[dict[str, Any]] = [
        {"max_bytes": size},
        {"max_stack": stack},
        {"goal": "call"},
        {"goal": "call", "max_bytes": size},
        {"goal": "size"},
        {"goal": "balanced"},
        {"method": name},
        {"method": name, "max_bytes": size},
        {"method": name, "goal": "balanced"},
    ]
    for wish in wishes:
        asked = spec(isa, bits, op=op, core=core, **wish)
        assert cost(asked, choosing.choose(asked)) <= cost(asked, taken), wish


@pytest.mark.parametrize(("isa", "op", "bits", "limit"), [("avr", "mul", 512, 8000), ("msp430", "mul", 256, 2000)])
def test_a_method_that_is_named_is_known_as_well_as_if_it_were_not(isa: str, op: str, bits: int, limit: int) -> None:
    found = choosing.choose(spec(isa, bits, op=op, max_bytes=limit))
    assert found.plan.method == "karatsuba"
    assert choosing.choose(spec(isa, bits, op=op, max_bytes=limit, method="karatsuba")).image == found.image


@pytest.mark.parametrize("op", ["sqr", "mul"])
@pytest.mark.parametrize("bits", [288, 544, 1056])
def test_more_instructions_make_nothing_slower(op: str, bits: int) -> None:
    asked = spec("arm", bits, op=op, core="cortex-m3")
    freely = spec("arm", bits, op=op, core="cortex-m3", allow_variable_time=True)
    assert cost(freely, choosing.choose(freely)) < cost(asked, choosing.choose(asked))


def test_where_none_meets_the_limit_the_smallest_is_named() -> None:
    smallest = len(choosing.choose(spec("arm", 256, core="cortex-m0", goal="size")).image)
    with pytest.raises(UserError, match=f"the smallest known takes {smallest} bytes"):
        choosing.choose(spec("arm", 256, core="cortex-m0", max_bytes=smallest - 1))


@pytest.mark.clock
@pytest.mark.parametrize(
    ("where", "bits", "wish", "most"),
    [
        *(("arm cortex-m0 mul", 512, {"goal": goal}, 2) for goal in ("size", "balanced")),
        *(("arm cortex-m3 mul", 1024, {"goal": goal}, 2) for goal in ("size", "balanced")),
        *(("arm cortex-m4 sqr", 2048, {"goal": goal}, 2) for goal in ("size", "balanced")),
        ("arm cortex-m0 mul", 256, {"max_stack": 60}, 0.8),
        ("arm cortex-m3 sqr", 256, {"max_bytes": 1000}, 0.5),
        ("arm cortex-m33 mul", 224, {"goal": "size"}, 0.5),
        ("msp430 msp430x-mpy32 mul", 240, {"max_stack": 40}, 0.5),
    ],
)
def test_a_goal_or_a_limit_is_met_as_fast_as_none(where: str, bits: int, wish: dict[str, Any], most: float) -> None:
    """Up to 256 bits in less than a second, of which the proof and the files take some."""
    isa, core, op = where.split()
    asked = spec(isa, bits, op=op, core=core, **wish)
    assert quick(lambda: choosing.choose(asked), most)


def test_flash_is_a_limit_beside_those_that_are_asked_for() -> None:
    """The fastest meets the limit on the stack, and is longer than what the part can hold."""
    plain = spec("avr", 520, core="atmega8")
    taken = choosing.choose(plain)
    asked = spec("avr", 520, core="atmega8", max_stack=measure.stack(taken, plain.core))
    assert choosing.choose(asked).image == taken.image
