"""Which limbs of operands stay in registers, on cores with UMAAL, where all words of the sums do.

A limb that leaves its register is loaded again for two cycles, but for one right behind another load; the constant two
is made again for one.  When the last limb is loaded its pointer becomes a register.  So it is not the limb with the
farthest next use that should leave: what follows each operation is looked through from the first one to the last, and
of the ways to get there that leave the same limbs in registers the cheapest is kept, of all of them the best few.

What is found are marks for the allocator: `forget` before an operation, and `release` of a pointer.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sqgen.code import SPILLED, Function, Memory, Op, Virtual
from sqgen.residence import residence

from .arm_balance import CONSTANT
from .arm_sums import POINTERS

WIDTH = 48  # ways that are followed
LIKELY = 5  # limbs with the farthest next uses, one of which leaves
AHEAD = 4  # limbs that are loaded before they are wanted, at most
LARGEST = 400  # operations of a function, above which words do not stay
FRAME = 2  # cycles of making one and giving it back
NEVER = 1 << 30


def settled(function: Function, pointers: Mapping[str, str]) -> Function:
    """The function with such marks, if that takes less time; `pointers`: the registers by operand.  All registers of
    the function must be there: a limb that left for want of one could not come back by a pointer that is none."""
    if len(function.ops) > LARGEST:
        return function
    ops = Stays(function.ops, pointers, len(function.pool)).marked()
    return min(function, replace(function, ops=tuple(ops)), key=cycles) if ops else function


def cycles(function: Function) -> int:
    """What loads, and words that wait in memory, take where the allocator decides on them; `NEVER` if it loads a limb
    by a pointer that is none any more."""
    found = residence(function, grouped=True)
    released = {str(op.args[0]): at for at, op in enumerate(function.ops) if op.insn == "release"}
    for at, loads in enumerate(found.loads):
        if any(at > released.get(POINTERS.get(place.base, ""), at) + 1 for _, place in loads):
            return NEVER
    frame = FRAME if any(place.base == SPILLED for stores in found.stores for _, place in stores) else 0
    far = [[place for _, place in loads if place.base not in (CONSTANT, found.nearby)] for loads in found.loads]
    return frame + sum(map(len, found.loads)) + sum(map(bool, far)) + sum(map(len, found.stores))


class Way(NamedTuple):
    """How far one may come: cycles of loads, what is in registers, the pointers that became registers; what was done
    before the latest operation, and the way there."""

    cycles: int
    here: frozenset[Virtual]
    gone: frozenset[str]
    marks: tuple[Op, ...] = ()
    before: Way | None = None


@dataclass
class Uses:
    """When limbs are wanted, and how many words there are before and behind each operation."""

    ops: Sequence[Op]
    bases: frozenset[str]
    wanted: dict[Virtual, list[int]] = field(default_factory=dict)
    words: list[tuple[int, int]] = field(default_factory=list)
    alone: bool = True  # whether all that comes from memory are limbs of operands
    # for each operation, and the end, the limbs that are wanted by it or later, the next one first, and when
    upcoming: list[dict[Virtual, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        spans: dict[Virtual, list[int]] = {}
        for at, op in enumerate(self.ops):
            for each in (*op.reads, *op.writes):
                if isinstance(each.home, Memory):
                    self.alone &= each.home.base in self.bases or each.home.base == CONSTANT
                    self.wanted.setdefault(each, []).append(at)
                else:
                    spans.setdefault(each, []).append(at)
        ends = [(places[0], places[-1]) for places in spans.values()]
        for at in range(len(self.ops)):
            before = sum(first < at <= last for first, last in ends)
            self.words.append((before, sum(first <= at and (at < last or at == first) for first, last in ends)))
        for at in range(len(self.ops) + 1):
            uses = {
                limb: places[bisect.bisect_left(places, at)] for limb, places in self.wanted.items() if places[-1] >= at
            }
            self.upcoming.append(dict(sorted(uses.items(), key=lambda use: (use[1], use[0].id))))


class Stays:
    """Looks for the ways; `registers` are there beside the pointers."""

    def __init__(self, ops: Sequence[Op], pointers: Mapping[str, str], registers: int) -> None:
        self.ops, self.pointers, self.registers = ops, pointers, registers
        self.uses = Uses(ops, frozenset(pointers))

    def marked(self) -> Sequence[Op] | None:
        """The operations with marks; None where words would have to leave their registers."""
        ways = [Way(0, frozenset(), frozenset())]
        for at, op in enumerate(self.ops if self.uses.alone else ()):
            if op.reads or op.writes:
                ways = self.best(at, [after for way in ways for after in self.after(way, at, op)])
        if not ways or not self.uses.alone:
            return None
        way: Way | None = min(ways, key=lambda each: each.cycles)
        done: list[Op] = []
        places = [at for at, op in enumerate(self.ops) if op.reads or op.writes]
        marks: dict[int, tuple[Op, ...]] = {}
        while way and way.before:
            marks[places.pop()] = way.marks
            way = way.before
        for at, op in enumerate(self.ops):
            done += [*marks.get(at, ()), op]
        return done

    def best(self, at: int, ways: Sequence[Way]) -> list[Way]:
        """The cheapest way to each state, of all states the best."""
        found: dict[tuple[frozenset[Virtual], frozenset[str]], Way] = {}
        for way in ways:
            known = found.get((way.here, way.gone))
            if known is None or way.cycles < known.cycles:
                found[way.here, way.gone] = way

        def rank(way: Way) -> tuple[int, int, int]:
            missing = len(self.missing(way, at + 1))
            return way.cycles + missing + bool(missing), -len(way.gone), -len(way.here)

        return sorted(found.values(), key=rank)[:WIDTH]

    def missing(self, way: Way, at: int) -> list[Virtual]:
        """Limbs of operands that are wanted from an operation on and not there, in that order."""
        return [limb for limb in self.uses.upcoming[at] if limb not in way.here and base(limb) != CONSTANT]

    def after(self, way: Way, at: int, op: Op) -> Iterator[Way]:
        """What may be behind an operation."""
        wanted = {limb for limb in op.reads if limb in self.uses.wanted}
        missing = self.missing(way, at)
        loaded = [limb for limb in missing if limb in wanted]
        made = len(wanted - way.here) - len(loaded)
        if any(base(limb) in way.gone for limb in loaded):
            return
        further = [limb for limb in missing if limb not in wanted and base(limb) not in way.gone]
        for many in range(1 + min(AHEAD, len(further)) if loaded else 1):
            group = [*loaded, *further[:many]]
            cycles = way.cycles + made + len(group) + bool(group)
            left = {base(limb) for limb in missing if limb not in group}
            lent = sorted({base(limb) for limb in group} - left)
            for gone in [frozenset[str](), *(frozenset([each]) for each in lent)]:
                yield from self.fitting(way, at, wanted | set(group), gone, cycles)

    def fitting(self, way: Way, at: int, came: set[Virtual], gone: frozenset[str], cycles: int) -> Iterator[Way]:
        """The ways on which enough limbs leave before an operation."""
        all_gone = way.gone | gone
        room = self.registers + len(all_gone)
        before, behind = self.uses.words[at]
        here, later = way.here | came, self.uses.upcoming[at + 1]
        staying = [limb for limb in here if limb in later]
        over = max(len(here) + before, len(staying) + behind) - room
        able = [limb for limb in here if limb not in came and base(limb) not in all_gone]
        able.sort(key=lambda limb: (-later.get(limb, NEVER), limb.id))
        for leaving in itertools.combinations(able[:LIKELY], max(0, over)):
            marks = [Op("forget", leaving)] if leaving else []
            marks += [Op("release", (self.pointers[each],)) for each in sorted(gone)]
            yield Way(cycles, frozenset(staying) - set(leaving), all_gone, tuple(marks), way)


def base(limb: Virtual) -> str:
    """Where it comes from."""
    assert isinstance(limb.home, Memory)
    return limb.home.base
