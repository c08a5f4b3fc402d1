"""What the tests of longer operands share."""

from __future__ import annotations

from sqgen import answers, choosing, measure
from sqgen.answers import costs
from sqgen.spec import Spec


def as_fast_as_larger(asked: Spec, each: int) -> None:
    """The best within a limit on the bytes takes what any larger kernel takes that is shorter, and so many cycles for
    each limb that is copied."""
    limit, isa = asked.max_bytes, asked.contract.isa
    made = choosing.choose(asked)
    assert limit and len(made.image) <= limit
    body, compared = measure.price(made, asked.core).body, 0
    for larger, rows in answers.fronts(isa, asked.contract.op, asked.core).items():
        for row in rows if asked.bits < larger else []:
            if costs(row)[2] + 220 <= limit:
                assert body <= costs(row)[0] + 100 + each * 4 * asked.contract.limbs
                compared += 1
    assert compared
