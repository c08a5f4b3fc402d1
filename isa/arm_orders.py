"""Orders of the units of a piece that keep what is needed in registers: found by search, or put together of such.

`schedules/answers/arm-orders.toml` has them as numbers of units, by operation and bits, as `arm_piece` numbers them,
with the registers and the width of `arm_fit`'s beam that they were found for.  A piece that has none of its own takes
those of its parts.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass

from sqgen.places import folder
from sqgen.plan import Plan

from .arm_cells import LIMB_BITS
from .arm_piece import Piece
from .arm_values import Operation, before, in_order

FILE = "arm-orders.toml"
SMALL = 2  # limbs of a product whose order is not taken for parts: the proof does not see through it there


@dataclass(frozen=True)
class Order:
    """Units in order; how many low and high registers are best for them, and how many states the beam follows."""

    units: tuple[int, ...]
    low: int
    high: int
    width: int


def name(plan: Plan) -> str:
    """What the answers call a piece."""
    return f"{plan.op}{LIMB_BITS * plan.limbs}"


@functools.cache
def known() -> dict[str, Order]:
    """The orders that were found, by name."""
    path = folder("schedules") / "answers" / FILE
    return {
        key: Order(tuple(int(number) for number in row["units"].split()), row["low"], row["high"], row["width"])
        for key, row in tomllib.loads(path.read_text(encoding="utf-8")).items()
    }


def found(plan: Plan, piece: Piece) -> Order | None:
    """The order of a piece with all levels in place, if one was found for these units."""
    if any(plan.parts()) and dict(plan.parameters).get("parts") != "whole":
        return None
    own = known().get(name(plan))
    return own if own and legal(piece, own.units) else None


def legal(piece: Piece, order: Sequence[int]) -> bool:
    """Whether each unit is there once, behind all that it needs."""
    places = {unit: place for place, unit in enumerate(order)}
    needs = before(piece.values.units)
    if len(order) != len(needs) or sorted(order) != list(range(len(needs))):
        return False
    return all(places[other] < places[unit] for unit, others in enumerate(needs) for other in others)


def operations(piece: Piece) -> list[Operation]:
    """The operations of a piece, in the best order known."""
    return list(in_order(piece.values.units, order(piece)))


def order(piece: Piece) -> list[int]:
    """The order of its units."""
    own = found(piece.plan, piece)
    if own:
        return list(own.units)
    whole = list(range(len(piece.values.units)))
    for part, first, last in piece.spans:
        inner = inside(part, last - first) if part.limbs > SMALL or part.op == "sqr" else ()
        if inner:
            whole[first:last] = [first + at for at in inner]
    return whole


def inside(part: Plan, count: int) -> Sequence[int]:
    """The order of the units of a part alone, without those that load and store where it is a piece of its own.

    () if it is not known.
    """
    alone = Piece(part)
    own = found(part, alone) if len(alone.spans) == 1 else None
    if not own:
        return ()
    ((_, first, last),) = alone.spans
    return [at - first for at in own.units if first <= at < last] if last - first == count else ()
