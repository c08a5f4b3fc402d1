"""The search for orders of the units of pieces on cores without long multiplication: simulated annealing.

    python -m sqgen.isa.arm_anneal --least 64 --most 256 --rounds 4 --steps 200000

A unit, or some neighbours, move to another place to which they may; the price is what `arm_fit` finds.  Rounds begin at
the order that is known, with the numbers of registers in turn, from hot to cool; each size is written when something
better is found, so the search may be broken off.  Seed, rounds, steps and the answers that are there decide what is
found.  With numba installed (`pip install sqgen[search]`) it is a hundred times as fast, and finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import click
import numpy as np

from sqgen import methods
from sqgen.contract import OPS
from sqgen.errors import UserError
from sqgen.files import write_all
from sqgen.kernel import make
from sqgen.places import folder
from sqgen.plan import Plan
from sqgen.progress import Bar
from sqgen.spec import spec

from . import arm_orders, arm_price, arm_small
from .arm_cells import LIMB_BITS
from .arm_fit import NEVER, Fit
from .arm_moves import annealed
from .arm_orders import Order
from .arm_piece import Piece
from .arm_values import before, cycles, in_order

ISA, CORE = "arm", "cortex-m0"
HEATS = (3.0, 3.0, 1.2, 0.6)  # cycles that a step may lose, at first, in rounds that take turns
COLD = 0.2
WIDTHS = (1, 2, 4)  # states of the beam; rounds follow the first two numbers, what they find is tried with all
REACH = 80  # units that a move passes over, at most
CHUNKS = 20  # of a round, between which the bar moves
TEXT = 120  # characters in a line of the answers' file
HEAD = "# Orders of the units of pieces on cores without long multiplication: isa/arm_anneal.py found them.\n"


@dataclass(frozen=True)
class Setting:
    """How many registers there are, how many states are followed, and where the round begins to cool."""

    low: int
    high: int
    width: int
    hot: float


class Problem:
    """A piece whose units are put in order."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.piece = plan, Piece(plan)
        values = self.piece.values
        self.table = arm_price.Table(values.units, values.constants, values.count)
        self.before = np.zeros((len(values.units),) * 2, np.bool_)
        for unit, others in enumerate(before(values.units)):
            self.before[unit, list(others)] = True
        self.own = sum(cycles(op) for unit in values.units for op in unit)

    def setting(self, number: int, best: Order) -> Setting:
        """Of a round: first all numbers of registers, then the best ones, with other heats and widths in turn."""
        choices = [(low, len(high)) for low, high in arm_small.Module(()).choices(self.plan, "")]
        if number < len(choices):
            return Setting(*choices[number], WIDTHS[0], HEATS[0])
        turn = number - len(choices)
        return Setting(best.low, best.high, WIDTHS[turn % 2], HEATS[turn % len(HEATS)])

    def cost(self, order: Order) -> int:
        """Cycles without the frame, NEVER if the registers do not suffice."""
        operations = list(in_order(self.piece.values.units, order.units))
        values = self.piece.values
        fitted = Fit(operations, values.constants, list(self.piece.entry), order.low, order.high).run(order.width)
        if fitted is None:
            return NEVER
        high = (*arm_small.FREE, *arm_small.SAVED)[: order.high]
        return self.own + fitted.cost + arm_small.saving(order.low, high)

    def known(self) -> Order:
        """The order to begin with, with the registers that are best for it."""
        units = tuple(arm_orders.order(self.piece))
        own = arm_orders.found(self.plan, self.piece)
        tried = [
            Order(units, low, len(high), width)
            for low, high in arm_small.Module(()).choices(self.plan, "")
            for width in WIDTHS
        ]
        return own or min(tried, key=self.cost)

    def round(self, start: Order, setting: Setting, steps: int, seed: int) -> Iterator[Order]:
        """The best order so far, each time that some steps are done."""
        table, state = self.table, np.array([1 + seed % 2147483646], np.int64)
        units = np.array(start.units, np.int64)
        best, entry = units.copy(), np.array(list(self.piece.entry), np.int64)
        least = NEVER
        for chunk in range(CHUNKS):
            heats = [setting.hot * (COLD / setting.hot) ** (at / CHUNKS) for at in (chunk, chunk + 1)]
            found = best.copy()
            _, cost = annealed(
                units, found, self.before, entry, table.spans, table.ops, table.constant, table.used, table.hashes,
                setting.low, setting.high, setting.width, steps // CHUNKS, heats[0], heats[1], REACH, state,
            )  # fmt: skip
            if cost < 0:
                return
            if cost < least:
                least, best = cost, found
            yield Order(tuple(best.tolist()), setting.low, setting.high, setting.width)


def search(
    plan: Plan, rounds: int, steps: int, seed: int, accepts: Callable[[Plan, Order], bool]
) -> Iterator[tuple[int, Order]]:
    """(cycles without the frame, order), the best so far of those that are accepted, many times in each round."""
    problem = Problem(plan)
    best = problem.known()
    least = problem.cost(best)
    yield least, best
    for number in range(rounds):
        tried: Order | None = None
        for order in problem.round(best, problem.setting(number, best), steps, seed * 1000003 + number * 7919):
            ways = [replace(order, width=width) for width in WIDTHS if order != tried]
            cheapest = min(ways, key=problem.cost, default=best)
            cost = problem.cost(cheapest)
            if cost < least and accepts(plan, cheapest):
                least, best = cost, cheapest
            tried = order
            yield least, best


def stored(key: str, order: Order) -> None:
    """Write an order to the answers."""
    rows = {**arm_orders.known(), key: order}
    text = [HEAD]
    for each in sorted(rows, key=lambda each: (each[:3], int(each[3:]))):
        row = rows[each]
        text.append(f"\n[{each}]\nlow = {row.low}\nhigh = {row.high}\nwidth = {row.width}\n")
        text.append(f'units = """\n{filled(row.units)}\n"""\n')
    write_all(folder("schedules") / "answers", {arm_orders.FILE: "".join(text)})
    arm_orders.known.cache_clear()


def filled(units: tuple[int, ...]) -> str:
    """Numbers in lines."""
    lines = [""]
    for unit in map(str, units):
        if len(lines[-1]) + len(unit) + 1 > TEXT:
            lines.append("")
        lines[-1] += f" {unit}" if lines[-1] else unit
    return "\n".join(lines)


@click.command()
@click.option("--op", type=click.Choice(["sqr", "mul"]), default=None, help="One operation; both if not given.")
@click.option("--least", type=int, default=64, show_default=True, help="Bits, at least.")
@click.option("--most", type=int, default=256, show_default=True, help="Bits, at most.")
@click.option("--rounds", type=click.IntRange(1), default=9, show_default=True, help="Rounds for each size.")
@click.option("--steps", type=click.IntRange(CHUNKS), default=200000, show_default=True, help="Moves in each round.")
@click.option("--seed", type=int, default=1, show_default=True, help="Of the chance.")
def main(**asked: Any) -> None:
    """Look for better orders of units for cores without long multiplication, and keep them."""
    for op in (asked["op"],) if asked["op"] else OPS:
        for limbs in range(max(2, -(-asked["least"] // LIMB_BITS)), asked["most"] // LIMB_BITS + 1):
            method, given = arm_small.preferred(op, limbs)[0]
            plan = methods.plan(op, limbs, method, given)
            if not arm_small.calls(plan):
                improve(plan, asked["rounds"], asked["steps"], asked["seed"])


def improve(plan: Plan, rounds: int, steps: int, seed: int) -> None:
    """Search for one piece; what is better, and proved, is written as it is found."""
    title, least = arm_orders.name(plan), NEVER
    with Bar(title, rounds * CHUNKS) as bar:
        for done, (cost, order) in enumerate(search(plan, rounds, steps, seed, proved)):
            bar.update(done, f"{title}: {cost} cycles without the frame")
            if done and cost < least:
                stored(title, order)
            least = cost
    click.echo(f"{title}: {least} cycles without the frame")


def proved(plan: Plan, order: Order) -> bool:
    """Whether the proof succeeds for this order, and where it is a function."""
    rows, title = arm_orders.known(), arm_orders.name(plan)
    before_it = dict(rows)
    rows[title] = order
    try:
        for limbs in (plan.limbs, 2 * plan.limbs) if plan.limbs > arm_small.IN_REGISTERS else (plan.limbs,):
            make(spec(ISA, LIMB_BITS * limbs, op=plan.op, core=CORE))
    except UserError:
        return False
    finally:
        rows.clear()
        rows.update(before_it)
    return True


if __name__ == "__main__":
    main()
