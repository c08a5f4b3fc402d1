"""The search for registers of pieces whose operations are in order, for `arm_anneal`: the seed of `arm_colour`, and for
a function that is called how many high registers it has, and how many states the beam follows.

A list of registers that is not in order is stored in several goes, a cycle more for each; one of some thousand seeds
breaks fewer lists than the best of the first forty, which are tried where no seed is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from . import arm_small
from .arm_colour import LOW, Job, tried
from .arm_fit import Fit, Fitted
from .arm_orders import Order, Registers
from .arm_piece import Piece
from .arm_values import flat

SEEDS = 8000  # choices of registers that are tried
WIDTHS = (1, 2, 4, 6, 8)  # states of the beam that are tried for a function that is called


def fitted(piece: Piece, numbers: tuple[int, ...], registers: Registers) -> Fitted | None:
    """What stays where when the operations are in that order, None if the registers do not suffice."""
    ops = flat(piece.values.units)
    fit = Fit([ops[at] for at in numbers], piece.values.constants, list(piece.entry), registers.low, registers.high)
    return fit.run(registers.width)


def price(found: Fitted, registers: Registers, called: bool) -> int:
    """Cycles of moves, and of saving and restoring registers, as far as it depends on them."""
    return found.cost + arm_small.saving(registers.low, arm_small.registers(registers.high, called), called)


def seeded(piece: Piece, order: Order, seeds: int = SEEDS) -> Order:
    """The same with the best choice of registers found, where the piece stands alone, if it does, and where it is
    called."""
    alone = order.alone
    if alone and (found := fitted(piece, order.numbers, alone)):
        made = job(piece, order.numbers, found, arm_small.registers(alone.high, called=False), alone.low)
        alone = replace(alone, seed=best(made, (alone.seed or 0, *range(seeds)))[1])
    return Order(order.numbers, alone, called(piece, order, seeds))


def called(piece: Piece, order: Order, seeds: int = SEEDS) -> Registers | None:
    """What is best where the piece is a function, None if its registers do not suffice."""
    ways: list[tuple[int, Registers, Job]] = []
    for (low, high), width in itertools.product(arm_small.Module(()).choices(piece.plan, "called"), WIDTHS):
        registers = Registers(low, len(high), width)
        if found := fitted(piece, order.numbers, registers):
            ways.append((price(found, registers, called=True), registers, job(piece, order.numbers, found, high)))
    least, chosen = 0, None
    first = () if order.called is None or order.called.seed is None else (order.called.seed,)
    for cost, registers, made in sorted(ways, key=lambda way: way[0]):
        if chosen and cost >= least:
            break
        broken, seed = best(made, (*first, *range(seeds)))
        if chosen is None or cost + broken < least:
            least, chosen = cost + broken, replace(registers, seed=seed)
    return chosen


def job(piece: Piece, numbers: tuple[int, ...], found: Fitted, high: Sequence[str], low: int = len(LOW)) -> Job:
    """What registers are chosen for."""
    ops = flat(piece.values.units)
    return Job([ops[at] for at in numbers], found, piece.values.constants, piece.entry, LOW[:low], high)


def best(made: Job, seeds: Iterable[int]) -> tuple[int, int]:
    """(cycles for lists that are not stored at once, the seed that has the fewest, of these)."""
    least: tuple[int, int] | None = None
    for seed in seeds:
        broken = tried(made, seed).broken
        if least is None or broken < least[0]:
            least = broken, seed
        if not broken:
            break
    assert least
    return least
