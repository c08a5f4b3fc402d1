"""Products of a few limbs on ARMv6-M, by vectors of halves.

With a = l + 2^16 h and b = l' + 2^16 h', limb by limb, a b = (l l' + 2^32 h h') + 2^16 (l h' + h l').  A product of two
halves is a limb, and lies in a limb of one of the two sums, so that both are sums of rows of limbs; the second one is
shifted once, at the end.  A product of halves is at most (2^16 - 1)^2, so it takes some carries along without one of
its own: where a row's carry goes, a product is put that is not in the sum yet.

Sources: research/arm_kernels.md, section M0, ideas 1 and 2 of the first generator.
"""

from __future__ import annotations

from collections.abc import Sequence

from .arm_values import Values

HALF = 16  # bits
NONE = -1
Limbs = Sequence[int]
Row = list[tuple[int, int, int]]  # the limb of the sum, and the two halves


def vector_product(values: Values, a: Limbs, b: Limbs) -> list[int]:
    """The limbs of a product of two numbers of as many limbs."""
    count = len(a)
    low, high = ([values.one("uxth", limb) for limb in a], [values.one("lsr", limb, number=HALF) for limb in a])
    lower, upper = ([values.one("uxth", limb) for limb in b], [values.one("lsr", limb, number=HALF) for limb in b])
    even, odd = [], []
    for i in range(count):
        even += [row(i, low[i], lower), row(i + 1, high[i], upper)]
        odd += [row(i, low[i], upper), row(i, high[i], lower)]
    whole = summed(values, even, 2 * count)
    between = summed(values, odd, 2 * count)
    ups = [values.one("lsl", limb, number=HALF) for limb in between]
    downs = [values.one("lsr", limb, number=HALF) for limb in between[:-1]]
    with values.chain():
        whole = [values.one("adc" if at else "add", *pair) for at, pair in enumerate(zip(whole, ups, strict=True))]
    with values.chain():
        found = [
            values.one("adc" if at else "add", *pair) for at, pair in enumerate(zip(whole[1:], downs, strict=True))
        ]
    return [whole[0], *found]


def row(first: int, one: int, others: Sequence[int]) -> Row:
    """The products of a half and some others, and where they lie."""
    return [(first + at, one, other) for at, other in enumerate(others)]


def summed(values: Values, rows: Sequence[Row], count: int) -> list[int]:
    """The sum of rows, of so many limbs.  No carry leaves a limb that holds one product and some carries."""
    left = [list(each) for each in rows]
    found: dict[int, int] = {}
    for number, each in enumerate(left):
        with values.chain():
            live = False
            for limb, *halves in each:
                product, have = values.one("mul", *halves), found.get(limb)
                if have is None:
                    found[limb] = values.one("adc", product, values.zero) if live else product
                else:
                    found[limb] = values.one("adc" if live else "add", product, have)
                live = have is not None
            above = each[-1][0] + 1
            if live:
                have = found.get(above, NONE)
                if have == NONE:
                    have = fresh(values, above, left[number + 1 :])
                found[above] = values.one("adc", have, values.zero)
    return [found[limb] for limb in range(count)]


def fresh(values: Values, limb: int, rows: Sequence[Row]) -> int:
    """A product at this limb, which is taken out of the rows to come, or zero."""
    for each in rows:
        if each and each[-1][0] == limb:
            _, *halves = each.pop()
            return values.one("mul", *halves)
    return values.zero
