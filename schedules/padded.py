"""A product of longer operands: these are copied, with zeros above them, and of its limbs the lowest are the result.

    a  . . . 0    n = 3, padded to 4: what is good for 4 limbs is good for 3, and may be far better than what there is
    b  . . . 0    for 3
    r  . . . . . . 0 0

Karatsuba's halves are alike all the way down where the number of limbs can be halved as often, so that one function
forms them all, and loops do as many limbs in each turn.  An odd number of limbs wants a function for each of two sizes,
at each level: of 127 limbs these are ten times the code.  As the operands are copied before anything is stored, the
result may lie anywhere on them.

Cost: that of the longer product, and a load and a store for each limb of the operands and of the result.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.errors import UserError
from sqgen.methods import Parameter, Values
from sqgen.plan import Block, Copy, Part, Slice, Step

TITLE = "a product of operands with zeros above them"
REFERENCE = "MOV96"
OPS = ("sqr", "mul")
WHOLE = 4  # limbs of which the longer operands have a multiple, if nothing is said
PARAMETERS = (
    Parameter("limbs", "how many the longer operands have", lambda n: str(n // WHOLE * WHOLE + WHOLE)),
    Parameter(
        "inner",
        "the method of their product and its parameters, as in karatsuba,levels=2,parts=calls",
        "product-scanning",
        text=True,
    ),
)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs.  Raises UserError for operands that would be no longer, or parameters without a value."""
    longer = values.one("limbs")
    if longer <= n:
        raise UserError(f"padded: limbs is {longer}, which is no more than the {n} that there are")
    method, *given = values.text("inner").split(",")
    parameters = dict(each.split("=", 1) for each in given if "=" in each)
    if len(parameters) < len(given):
        raise UserError("padded: inner is a method, and behind it NAME=VALUE for each parameter, all between commas")
    copies = {name: Slice(f"long_{name}", 0, longer) for name in ("a", "b")[: 1 if op == "sqr" else 2]}
    product = Slice("long_r", 0, 2 * longer)
    yield Block("operands with zeros above")
    for name, into in copies.items():
        yield Copy(into, Slice(name, 0, n))
    yield Block("product")
    factors = [*copies.values()]
    yield Part(values.part(method, op, longer, parameters), product, factors[0], factors[-1], called=True)
    yield Block("result")
    yield Copy(Slice("r", 0, 2 * n), product.part(0, 2 * n))
