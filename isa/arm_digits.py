"""Squares and products of limbs on ARMv6-M, whose only multiplication gives the low 32 bits: by halves of limbs, and by
Karatsuba's method above them, with one recombination at all levels.

With W = L^2, H = H^2, D = |L - H|^2, of w limbs each half, and X = W_hi + H_lo, V = H_hi + the carry of X, the limbs of
the result from w up are (W_lo + X, X + V, V) - D.  V does not run over: the high half of a square is at most
2^(32 w) - 2.  D is subtracted first, from (W_lo, V); what it borrows is a mask m, and the rest is (X, X, V + m).
A product has (l - h)(h' - l') in place of -D, whose sign is that of the two differences.

Sources: research/arm_kernels.md, section M0, ideas 1, 2 and 3; [HS15].
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from sqgen.plan import Difference, Part, Plan, Product, Recombine, Slice, Store

from .arm_cells import Cells
from .arm_values import Values
from .arm_vectors import vector_product

Limbs = Sequence[int]
VECTORS = (3,)  # limbs of factors that are multiplied by rows of halves


def form(values: Values, plan: Plan, operands: Mapping[str, Limbs]) -> list[int]:
    """The limbs of what a plan forms of operands in registers: Karatsuba's levels, and below them cells."""
    if not any(plan.parts()):
        if plan.op == "mul" and plan.limbs in VECTORS:
            return vector_product(values, operands["a"], operands["b"])
        return by_cells(values, plan, operands["a"], operands[plan.operands[-1]])
    numbers = {name: list(limbs) for name, limbs in operands.items()}
    found: dict[tuple[str, int], list[int]] = {}
    masks: dict[str, int] = {}
    for step in plan.steps:
        match step:
            case Difference():
                numbers[step.into.name], masks[step.sign] = difference(values, step, numbers)
            case Part(inner, into, left, right):
                given = {"a": limbs_of(numbers, left), "b": limbs_of(numbers, right)}
                found[into.name, into.first] = form(values, inner, given)
            case Recombine(half, low=1, high=2):
                return thirds(values, [found["r", 2 * half * i] for i in range(3)], middles(found, plan))
            case Recombine(half, middle, signs) if (1, 2) not in pairs(plan):
                sign = values.one("eor", *(masks[name] for name in signs)) if signs else None
                low, high, d = found["r", 0], found["r", 2 * half], found[middle.name, middle.first]
                return [*low[:half], *recombined(values, low, high, d, sign)]
    raise AssertionError("a plan of parts ends with putting them together")


def pairs(plan: Plan) -> dict[tuple[int, int], Recombine]:
    """The last steps of a plan by the two parts that they are about."""
    return {(step.low, step.high): step for step in plan.steps if isinstance(step, Recombine)}


def middles(found: Mapping[tuple[str, int], list[int]], plan: Plan) -> list[list[int]]:
    """The squares of the differences of parts 0 and 1, 0 and 2, 1 and 2."""
    return [found[step.middle.name, step.middle.first] for _, step in sorted(pairs(plan).items())]


def by_cells(values: Values, plan: Plan, a: Limbs, b: Limbs) -> list[int]:
    """The limbs that a plan of cells gives, in the order in which it stores them."""
    cells, found = Cells(values), []
    for step in plan.steps:
        match step:
            case Product(i, j) if plan.op == "sqr" and i == j:
                cells.add(2 * i, square_limb(values, a[i]))
            case Product(i, j):
                cells.add(i + j, product_limb(values, a[i], b[j]))
            case Store(column):
                found.append(cells.leave(column))
    return found


def limbs_of(numbers: Mapping[str, Limbs], where: Slice) -> Limbs:
    """Some limbs of a number."""
    return numbers[where.name][where.first : where.first + where.count]


def difference(values: Values, step: Difference, numbers: Mapping[str, Limbs]) -> tuple[list[int], int]:
    """An absolute difference and its sign, that of b turned round: so the product of two of them is to be added."""
    left, right = limbs_of(numbers, step.left), limbs_of(numbers, step.right)
    return absolute(values, *((right, left) if step.left.name == "b" else (left, right)))


def square_limb(values: Values, a: int) -> tuple[int, int]:
    """The square of a limb, in ten instructions with the copy that MULS asks for: the halves' product is shifted by 17
    where it is added, which doubles it."""
    low, high = values.one("uxth", a), values.one("lsr", a, number=16)
    cross = values.one("mul", low, high)
    first, second = values.one("mul", low, low), values.one("mul", high, high)
    up, down = values.one("lsl", cross, number=17), values.one("lsr", cross, number=15)
    with values.chain():
        return values.one("add", first, up), values.one("adc", second, down)


def product_limb(values: Values, a: int, b: int) -> tuple[int, int]:
    """The product of two limbs, in seventeen instructions and the copies that MULS asks for."""
    low, high = values.one("uxth", a), values.one("lsr", a, number=16)
    lower, upper = values.one("uxth", b), values.one("lsr", b, number=16)
    first, second = values.one("mul", low, lower), values.one("mul", high, upper)
    for cross in (values.one("mul", low, upper), values.one("mul", high, lower)):
        up, down = values.one("lsl", cross, number=16), values.one("lsr", cross, number=16)
        with values.chain():
            first, second = values.one("add", first, up), values.one("adc", second, down)
    return first, second


def absolute(values: Values, low: Limbs, high: Limbs) -> tuple[list[int], int]:
    """(|low - high|, its sign as a mask); one of the two may be a limb shorter."""
    count = max(len(low), len(high))
    minuend, subtrahend = (list(part) + [values.zero] * (count - len(part)) for part in (low, high))
    with values.chain():
        found = [
            values.one("sbc" if at else "sub", *pair) for at, pair in enumerate(zip(minuend, subtrahend, strict=True))
        ]
        mask = values.one("mask")
    turned = [values.one("eor", limb, mask) for limb in found]
    with values.chain():
        return [values.one("sbc" if at else "sub", limb, mask) for at, limb in enumerate(turned)], mask


def recombined(values: Values, w: Limbs, h: Limbs, d: Limbs, sign: int | None) -> list[int]:
    """The limbs of the result above the `half` lowest of W.  Where there is a sign, a mask, D is to be added and that
    is its sign; without one it is subtracted.

    H may be shorter than W.  V is then shorter than the half too, and the carry may be a limb of its own above it.
    """
    half = len(w) // 2
    above = len(h) - half  # limbs of the result above the recombined ones
    with values.chain():
        x = [values.one("adc" if at else "add", w[half + at], h[at]) for at in range(half)]
        v = [values.one("adc", limb, values.zero) for limb in h[half:]]
        if above < half:
            v.append(values.one("adc", values.zero, values.zero))
    v += [values.zero] * (half - len(v))
    if sign is None:
        return less(values, [*w[:half], *v], x, d, above)
    with values.chain():
        whole = [values.one("adc" if at else "add", limb, x[at % half]) for at, limb in enumerate([*w[:half], *v])]
        whole += [values.one("adc", limb, values.zero) for limb in v[:above]]
    signed = [values.one("eor", limb, sign) for limb in d]
    with values.chain():
        values.one("lsr", sign, number=1, comment="the carry is the sign")
        return [values.one("adc", limb, each) for limb, each in zip(whole, [*signed, *[sign] * above], strict=True)]


def thirds(values: Values, squares: Sequence[Limbs], middle: Sequence[Limbs]) -> list[int]:
    """The limbs of a square of three parts.

    With P = S0 + x S1 + x^2 S2, where x is a part's limbs up, and E of D01, D02 and D12 in the same way, it is
    P + x^2 P + x (P - E).  P and E do not run over four parts: S0 + x S1 + x^2 S2 <= (x - 1)^2 (1 + x + x^2) < x^4.
    """
    p, e = overlaid(values, squares), overlaid(values, middle)
    third = len(p) // 4
    with values.chain():
        sums = [
            values.one("adc" if at else "add", *pair) for at, pair in enumerate(zip(p[2 * third :], p, strict=False))
        ]
        sums += [values.one("adc", limb, values.zero) for limb in p[2 * third :]]
    with values.chain():
        q = [values.one("sbc" if at else "sub", *pair) for at, pair in enumerate(zip(p, e, strict=True))]
        q += [values.one("mask")] * third
    with values.chain():
        return [
            *p[:third],
            *(
                values.one("adc" if at else "add", *pair)
                for at, pair in enumerate(zip([*p[third : 2 * third], *sums], q, strict=True))
            ),
        ]


def overlaid(values: Values, numbers: Sequence[Limbs]) -> list[int]:
    """The sum of numbers that each begin half their limbs above the one before."""
    third = len(numbers[0]) // 2
    found = [*numbers[0][:third]]
    with values.chain():
        for below, above in itertools.pairwise(numbers):
            for low, high in zip(below[third:], above[:third], strict=True):
                found.append(values.one("adc" if len(found) > third else "add", low, high))
        found += [values.one("adc", limb, values.zero) for limb in numbers[-1][third:]]
    return found


def less(values: Values, middle: Limbs, x: Limbs, d: Limbs, above: int) -> list[int]:
    """The same of a square: first D is subtracted, from (W_lo, V), then X is added."""
    half = len(x)
    with values.chain():
        u = [
            values.one("sbc" if at else "sub", limb, each)
            for at, (limb, each) in enumerate(zip(middle, d, strict=True))
        ]
        borrow = values.one("mask") if above else values.zero
    with values.chain():
        return [
            *(values.one("adc" if at else "add", limb, x[at % half]) for at, limb in enumerate(u)),
            *(values.one("adc", limb, borrow) for limb in middle[half : half + above]),
        ]
