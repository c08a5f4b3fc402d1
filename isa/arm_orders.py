"""Orders of the operations of pieces that keep what is needed in registers: found by search, or put together of such.

`schedules/answers/arm-orders.toml` has them as numbers of operations, by what is computed and bits, as `arm_piece`
numbers them, with the registers and the width of `arm_fit`'s beam that are best where the piece stands `alone`, and
where it is `called`.  A piece that has none of its own takes those of its parts.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqgen.places import folder
from sqgen.plan import Plan

from .arm_cells import LIMB_BITS
from .arm_chains import there
from .arm_piece import Piece
from .arm_values import Operation, before, chains, flat, touches

FILE = "arm-orders.toml"


@dataclass(frozen=True)
class Registers:
    """How many low and high registers there are, how many states the beam follows, and the seed that gives the best
    registers, if it is known."""

    low: int
    high: int
    width: int
    seed: int | None = None


@dataclass(frozen=True)
class Order:
    """Operations in order, and the registers that are best for them: where they stand alone, and where they are a
    function that is called."""

    numbers: tuple[int, ...]
    alone: Registers | None = None
    called: Registers | None = None


def name(plan: Plan) -> str:
    """What the answers call a piece, or rows around one."""
    return f"{'rows' if there(plan) else plan.op}{LIMB_BITS * plan.limbs}"


@functools.cache
def known() -> dict[str, Order]:
    """The orders that were found, by name."""
    path = folder("schedules") / "answers" / FILE
    return {key: read(row) for key, row in tomllib.loads(path.read_text(encoding="utf-8")).items()}


def read(row: Mapping[str, Any]) -> Order:
    """An order, as the file has it."""
    alone, called = (Registers(**row[where]) if where in row else None for where in ("alone", "called"))
    return Order(tuple(map(int, row["numbers"].split())), alone, called)


def found(plan: Plan, piece: Piece) -> Order | None:
    """The order of a piece with all levels in place, if one was found for these operations."""
    if any(plan.parts()) and dict(plan.parameters).get("parts") != "whole":
        return None
    own = known().get(name(plan))
    return own if own and legal(piece, own.numbers) else None


def legal(piece: Piece, order: Sequence[int]) -> bool:
    """Whether each operation is there once, behind all that it needs, and no carry is lost on its way."""
    units = piece.values.units
    ops, needs = flat(units), before(units)
    if sorted(order) != list(range(len(ops))):
        return False
    places = {number: place for place, number in enumerate(order)}
    if not all(places[other] < places[number] for number, others in enumerate(needs) for other in others):
        return False
    return all(
        number in chain or not touches(ops[number])
        for chain in chains(units)
        for number in order[places[chain[0]] : places[chain[-1]]]
    )


def operations(piece: Piece) -> list[Operation]:
    """The operations of a piece, in the best order known."""
    ops = flat(piece.values.units)
    return [ops[number] for number in order(piece)]


def order(piece: Piece) -> list[int]:
    """The order of its operations."""
    own = found(piece.plan, piece)
    if own:
        return list(own.numbers)
    whole = list(range(len(flat(piece.values.units))))
    for part, first, last in piece.spans:
        inner = inside(part, last - first)
        if inner:
            whole[first:last] = [first + at for at in inner]
    return whole


def inside(part: Plan, count: int) -> Sequence[int]:
    """The order of the operations of a part alone, without those that load and store where it is a piece of its own.

    () if it is not known.
    """
    alone = Piece(part)
    own = found(part, alone) if len(alone.spans) == 1 else None
    if not own:
        return ()
    ((_, first, last),) = alone.spans
    return [at - first for at in own.numbers if first <= at < last] if last - first == count else ()
