"""Places: which register each stay has, of those that are free when it is born.

Two things are wanted: mates, which are moved together if they lie in an aligned pair, and few registers that must be
saved.  A pair can only be placed where both of its registers are free, so a single limb goes where the time is shortest
in which just one register of a pair is in use.  `beam` follows several ways at once.
"""

from __future__ import annotations

import bisect
import operator
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

from . import beam
from .code import CodeError
from .looking import EVERYWHERE
from .residence import NEVER, Residence


def arrivals(found: Residence, chosen: Mapping[str, str]) -> dict[int, str]:
    """The registers in which a called function takes or leaves what has its place, by stay."""
    stays = enumerate(found.stays)
    return {number: chosen[stay.virtual.place] for number, stay in stays if stay.virtual.place is not None}


@dataclass(frozen=True)
class Task:
    """What is to be placed, as numbers: stays by birth, registers in order of preference."""

    births: tuple[int, ...]
    deaths: tuple[int, ...]
    mates: tuple[int, ...]  # of a low limb: the stay of the high one, else -1
    registers: tuple[str, ...]
    opening: tuple[int, ...]  # when a register is there
    gaps: Mapping[int, Sequence[tuple[int, int]]]  # register -> from when until when it is not
    neighbours: tuple[int, ...]  # the other register of the pair, else -1
    low: tuple[bool, ...]  # whether a register is the low one of its pair
    price: tuple[float, ...]  # of the use of a register
    fixed: Mapping[int, int]  # stay -> register, for those that have their place
    entry: Mapping[int, int] = field(default_factory=dict)  # of those with which another way begins
    still: frozenset[int] = frozenset()  # deaths of those that are not moved
    width: int = EVERYWHERE.width  # ways that are followed

    @staticmethod
    def of(
        found: Residence, prices: Mapping[str, float], pairs: Mapping[str, str], chosen: Mapping[str, str] | None = None
    ) -> Task:
        """The task that is left when it is known who stays when."""
        first: dict[int, int] = {}
        for number, stay in enumerate(found.stays):
            first.setdefault(stay.virtual.id, number)
        registers = tuple(found.opening)
        others = {**pairs, **{high: low for low, high in pairs.items()}}
        index = {register: number for number, register in enumerate(registers)}
        return Task(
            tuple(stay.birth for stay in found.stays),
            tuple(stay.death for stay in found.stays),
            tuple(
                first.get(stay.virtual.mate, -1)
                if stay.virtual.mate is not None and first[stay.virtual.id] == number
                else -1
                for number, stay in enumerate(found.stays)
            ),
            registers,
            tuple(found.opening.values()),
            {index[register]: gap for register, gap in found.gaps.items()},
            tuple(index.get(others.get(register, ""), -1) for register in registers),
            tuple(pairs.get(register) in index for register in registers),
            tuple(prices.get(register, 0) for register in registers),
            {
                number: index[register]
                for number, register in arrivals(found, chosen or {}).items()
                if found.opening.get(register, NEVER) <= (stay := found.stays[number]).birth
                and not beam.missing(stay.birth, stay.death, found.gaps.get(register, ()))
            },
        )

    def part(
        self,
        first: int,
        end: int,
        entry: Mapping[int, int] = MappingProxyType({}),
        fixed: Mapping[int, int] = MappingProxyType({}),
    ) -> Task:
        """Of some stays alone, which are counted from the `first` then, those of `entry` and those that are `fixed`
        beside others, too.  What is there at the start has no other place."""
        inside = range(first, end)
        places = {stay: self.fixed[stay] for stay in self.fixed if stay in inside and stay not in entry} | {**fixed}
        return replace(
            self,
            births=self.births[first:end],
            deaths=self.deaths[first:end],
            mates=tuple(mate - first if mate in inside else -1 for mate in self.mates[first:end]),
            fixed={stay - first: register for stay, register in places.items()},
            entry={stay - first: register for stay, register in entry.items()},
        )

    def gone(self, register: int, birth: int, death: int) -> bool:
        """Whether a register is not there all the time."""
        return register in self.gaps and beam.missing(birth, death, self.gaps[register])

    def clashes(self, register: int, stay: int) -> bool:
        """Whether the register is the place of another stay at that time."""
        birth, death = self.births[stay], self.deaths[stay]
        return any(
            register == where and self.births[other] < death and birth < self.deaths[other]
            for other, where in self.fixed.items()
            if other != stay
        )


class Placed(NamedTuple):
    """The register of each stay, by number, at its birth; how many mates are not side by side; what the registers used
    cost; and moves: (time, stay, register that it has from then on)."""

    where: list[int]
    broken: int
    saves: float
    moves: list[tuple[int, int, int]]

    @property
    def cost(self) -> float:
        """Cycles."""
        return self.broken + self.saves + len(self.moves)


def best_place(task: Task) -> Placed:
    """A place for each stay, with as many saved registers as pay.

    First come, first served says which registers may do; then a search of the task's width looks further, as
    long as it may gain something.
    """
    best = place(task)
    if task.fixed:
        return best
    saved = [register for register, price in enumerate(task.price) if price]
    least = max(0, at_once(task) - len(task.price) + len(saved))  # of these, or some would have none
    fewer = (attempt(task, frozenset(saved[count:])) for count in range(least, len(saved)))
    tried = [best, *filter(None, fewer)]
    best = min(tried, key=lambda placed: placed.cost)
    used = dict.fromkeys((each.saves, frozenset(each.where)) for each in tried)
    for saves, registers in sorted(used, key=operator.itemgetter(0)):
        if saves < best.cost and (found := beam.search(task, registers)):
            best = min(best, counted(task, *found), key=lambda placed: placed.cost)
    return best


def at_once(task: Task) -> int:
    """How many stays there are at one time at most."""
    deaths = sorted(task.deaths)
    return max((born + 1 - bisect.bisect(deaths, birth) for born, birth in enumerate(task.births)), default=0)


def counted(task: Task, where: list[int], moves: list[tuple[int, int, int]]) -> Placed:
    """What places and moves cost."""
    registers = {*where, *(to for _, _, to in moves)}
    broken = sum(mate >= 0 and task.neighbours[where[stay]] != where[mate] for stay, mate in enumerate(task.mates))
    return Placed(where, broken, sum(task.price[register] for register in registers), moves)


def place(task: Task) -> Placed:
    """A place for each stay in all registers there are."""
    placed = attempt(task, frozenset())
    assert placed, "residence has seen to it that there are enough"
    return placed


def attempt(task: Task, avoided: Set[int]) -> Placed | None:
    """A place for each stay, None if it takes the registers to be avoided."""
    births, deaths, mates, neighbours, low = task.births, task.deaths, task.mates, task.neighbours, task.low
    registers = range(len(task.registers))
    until = [NEVER if r in avoided else opening for r, opening in enumerate(task.opening)]  # when a register is free
    where = [-1] * len(births)
    used = [not price for price in task.price]
    broken = 0
    for stay, birth in enumerate(births):
        if where[stay] >= 0:
            continue
        if stay in task.entry:
            where[stay] = register = task.entry[stay]
            if until[register] > birth:
                return None
            until[register], used[register] = deaths[stay], True
            continue
        free = [register for register in registers if until[register] <= birth]
        if task.gaps:
            free = [register for register in free if not task.gone(register, birth, deaths[stay])]
        if task.fixed:
            free = reserved(task, stay, free)
        if not free:
            return None
        mate, death = mates[stay], deaths[stay]
        if mate >= 0:
            spans = [r for r in free if low[r] and until[neighbours[r]] <= birth]
            spans = [r for r in spans if not task.gone(neighbours[r], birth, deaths[mate])]
            if spans:
                register = max(spans, key=lambda r: used[r] and used[neighbours[r]])
                for one, limb in ((register, stay), (neighbours[register], mate)):
                    where[limb], until[one], used[one] = one, deaths[limb], True
                continue
            broken += 1
        # for how long just one of the pair is in use
        alone = {r: abs(max(until[neighbours[r]], birth) - death) if neighbours[r] >= 0 else 0 for r in free}
        register = min(free, key=lambda r: (not used[r], alone[r]))
        where[stay], until[register], used[register] = register, death, True
    return Placed(where, broken, sum(price for price, use in zip(task.price, used, strict=True) if use), [])


def reserved(task: Task, stay: int, free: Sequence[int]) -> list[int]:
    """The free registers that a stay may have where some have their place.  Raises CodeError if there is none."""
    own = [task.fixed[stay]] if stay in task.fixed else free
    found = [register for register in own if register in free and not task.clashes(register, stay)]
    if not found:
        raise CodeError(f"no register is free where {task.registers[own[0]]} has to be")
    return found
