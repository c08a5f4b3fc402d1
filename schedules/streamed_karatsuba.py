"""Karatsuba squaring, one level in one piece: limbs are used as they leave their squares, which are all sweeps.

    columns  6 5 4 3 2 1 0        L = a_lo^2    H = a_hi^2    M = |a_lo - a_hi|^2
             H H . .
               H . .
                   L L            what the dots would hold, twice, is L + H - M
                     L

L is stored, and its upper half is added to H as that is stored in turn.  Each limb of M goes into L + H - M as it
leaves its square, and with that into the result.  It is `karatsuba-squaring -p levels=1 -p parts=inline` with the
sweeps' blocks, or runs, as parameters: `ends`, `orders`, `stages`, `ahead` and `runs` for L, others for H, which needs
more registers, and others for M, whose operand is in registers and leaves few for its columns.

Cost: 3 S(n/2) and about 30 cycles for each limb of a half.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random

from sqgen.methods import REGISTERS, Parameter, Values
from sqgen.plan import Block, Difference, Part, Plan, Recombine, Slice, Step

from . import sweeps

TITLE = "Karatsuba squaring, streamed sweeps"
REFERENCE = "HS15"
OPS = ("sqr",)
OF_H, OF_M = "high-", "middle-"  # before the name of a parameter
PARTS = ("", OF_H, OF_M)
BOTH = 0.5  # share of the mixtures that keep something of the square's own blocks


def larger(n: int) -> int:
    """Limbs of the low half, which is the larger one where they differ."""
    return n - n // 2


def of_half(parameter: Parameter, prefix: str, whose: str) -> Parameter:
    """A parameter of sweeps as one of this method."""

    def default(n: int) -> str:
        return parameter.standard(larger(n))

    return replace(parameter, name=prefix + parameter.name, help=f"{whose}: {parameter.help}", default=default)


PARAMETERS = (
    *(of_half(parameter, "", "L") for parameter in sweeps.PARAMETERS),
    *(of_half(parameter, OF_H, "H") for parameter in sweeps.PARAMETERS),
    *(of_half(parameter, OF_M, "M") for parameter in sweeps.PARAMETERS),
    REGISTERS,
)


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs."""
    half = larger(n)
    a, d, middle = Slice("a", 0, n), Slice("d", 0, half), Slice("m", 0, 2 * half)
    low, high = a.part(0, half), a.part(half, n - half)
    yield Block("L")
    yield Part(square(half, "", values), Slice("r", 0, 2 * half), low, low, False)
    yield Block("H")
    yield Part(square(n - half, OF_H, values, half), Slice("r", 2 * half, 2 * (n - half)), high, high, False)
    yield Block("M")
    yield Difference("a_lo < a_hi", d, low, high)
    yield Part(square(half, OF_M, values), middle, d, d, False)
    yield Block("L + H - M")
    yield Recombine(half, middle, ())


def square(n: int, prefix: str, values: Values, stage: int | None = None) -> Plan:
    """The plan of a part of n limbs; one of its stages ends at the column `stage`."""
    given = {parameter.name: values.text(prefix + parameter.name) for parameter in sweeps.PARAMETERS}
    if stage:
        given["stages"] += f",{stage}"
    kept = {name: text for name, text in given.items() if name == "runs" and text}  # no cell may be left out unsaid
    return values.part("sweeps", "sqr", n, sweeps.fitted(n, given) | kept)


# ---- for the search ------------------------------------------------------------------------------------------------


def fitted(n: int, given: Mapping[str, str]) -> dict[str, str]:
    """Parameters found for another size, made to fit this one."""
    return whole({prefix: sweeps.fitted(larger(n), part(given, prefix)) for prefix in PARTS})


def changed(n: int, given: Mapping[str, str], rng: Random) -> dict[str, str]:
    """One random change of the blocks of one square, those of M twice as often."""
    parts = {prefix: part(given, prefix) for prefix in PARTS}
    one = rng.choice((*PARTS, OF_M))
    return whole(parts | {one: sweeps.changed(larger(n), parts[one], rng)})


def mixed(n: int, given: Mapping[str, str], other: Mapping[str, str], rng: Random) -> dict[str, str]:
    """The blocks of one square as another one has them, of the same half or not, or mixed with those."""
    parts = {prefix: part(given, prefix) for prefix in PARTS}
    one, taken = rng.choice(PARTS), part(other, rng.choice(PARTS))
    both = rng.random() < BOTH
    return whole(parts | {one: sweeps.mixed(larger(n), parts[one], taken, rng) if both else taken})


def part(given: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The parameters of the sweeps of L, H or M."""
    names = [parameter.name for parameter in sweeps.PARAMETERS]
    return {name: given[prefix + name] for name in names if prefix + name in given}


def whole(parts: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """All of them as parameters of this method."""
    return {prefix + name: value for prefix, given in parts.items() for name, value in given.items()}
