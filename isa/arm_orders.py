"""Orders of the units of a piece that keep what is needed in registers: found by search, or put together of such.

`schedules/answers/arm-orders.toml` has them as numbers of units, by operation and bits, as `arm_piece` numbers them.  A
piece that has none of its own takes those of its parts.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Sequence

from sqgen.places import folder
from sqgen.plan import Plan

from .arm_cells import LIMB_BITS
from .arm_piece import Piece
from .arm_values import Operation, in_order

FILE = "arm-orders.toml"


@functools.cache
def known() -> dict[str, list[int]]:
    """The orders that were found, by name."""
    path = folder("schedules") / "answers" / FILE
    found = tomllib.loads(path.read_text())["orders"]
    return {name: [int(number) for number in text.split()] for name, text in found.items()}


def found(plan: Plan) -> Sequence[int]:
    """The order of a piece with all levels in place, () if none was found."""
    whole = dict(plan.parameters).get("parts") == "whole"
    return known().get(f"{plan.op}{LIMB_BITS * plan.limbs}", ()) if whole else ()


def operations(plan: Plan, piece: Piece) -> list[Operation]:
    """The operations of a piece, in the best order known."""
    return list(in_order(piece.values.units, order(plan, piece)))


def order(plan: Plan, piece: Piece) -> list[int]:
    """The order of its units."""
    whole = list(range(len(piece.values.units)))
    own = found(plan)
    if sorted(own) == whole:
        return list(own)
    for part, first, last in piece.spans:
        inner = inside(part, last - first)
        if inner:
            whole[first:last] = [first + at for at in inner]
    return whole


def inside(part: Plan, count: int) -> Sequence[int]:
    """The order of the units of a part alone, without those that load and store where it is a piece of its own.

    () if it is not known.
    """
    own = found(part)
    if not own:
        return ()
    ((_, first, last),) = Piece(part).spans
    return [at - first for at in own if first <= at < last] if last - first == count else ()
