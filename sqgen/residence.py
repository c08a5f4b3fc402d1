"""The first half of register allocation: which variable is in a register when, but not yet in which one.

A variable with a home in memory is never written, so evicting it costs nothing and coming back costs one load.  For a
fixed order of uses, evicting the one with the farthest next use needs the fewest loads.  A variable without a home can
be given `room`, a place in memory that is free as long as it lives: it is stored there if its value is not, and then
loaded again.  Where none can be evicted, and the code has a frame, any variable is put there.  Before all of these come
places `nearby`, such as registers of another kind: a load from there takes no longer than a store.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Sequence

from .code import Arg, Function, Op
from .evict import NEVER, Eviction, PressureError, Residence, Stay
from .looking import EVERYWHERE

__all__ = ["NEVER", "PressureError", "Residence", "Stay", "residence", "residences", "traffic"]


def residence(function: Function, *, grouped: bool = False) -> Residence:
    """Who stays in a register when, with few loads and stores.  Raises PressureError."""
    return residences(function, grouped=grouped)[0]


def residences(
    function: Function, *, grouped: bool = False, weights: Sequence[float] = EVERYWHERE.weights
) -> list[Residence]:
    """Ways with the fewest loads and stores that were found, by each of the `weights` (`looking`), or all there are if
    these find none; with loads in groups where registers are free, if `grouped`.  Raises PressureError.

    Registers that the function lends after, or at, the last load from a buffer are there from then on.  There is a
    frame only if the limbs do not fit without: its pointer is two registers for them then.
    """
    marks = {op.insn for op in function.ops}
    found = []
    for lodging in (False, True) if "nearby" in marks else (False,):
        if marks & {"spill", "spill_early"}:
            with contextlib.suppress(PressureError):
                found += _ways(function, weights, framed=False, grouped=grouped, lodging=lodging)
        if not found or "spill_early" in marks:
            found += _ways(function, weights, framed=True, grouped=grouped, lodging=lodging)
    found = [way for way in found if alike(function, way)] or found
    least = min(map(traffic, found))
    found = [way for way in found if traffic(way) == least]
    return [way for index, way in enumerate(found) if all(way.stays != other.stays for other in found[:index])]


def _ways(
    function: Function, weights: Sequence[float], *, framed: bool, grouped: bool, lodging: bool
) -> list[Residence]:
    """By each of the weights that finds registers enough; `lodging`: what has a home far away may wait nearby.  Raises
    PressureError if none does."""
    found: list[Residence] = []
    failures: list[PressureError] = []
    for saved in weights:
        try:
            found.append(_lending(function, saved, framed=framed, grouped=grouped, lodging=lodging))
        except PressureError as error:
            failures.append(error)
    if found:
        return found
    if set(weights) >= set(EVERYWHERE.weights):
        raise failures[0]
    return _ways(function, EVERYWHERE.weights, framed=framed, grouped=grouped, lodging=lodging)


def alike(function: Function, found: Residence) -> bool:
    """Whether both ways that code goes use memory alike, wherever it forks."""
    ways: list[list[tuple[str, Arg]]] = [[]]
    for op, loads, stores in zip(function.ops, found.loads, found.stores, strict=True):
        if op.insn in ("fork", "arm", "join"):
            ways.append([])
        ways[-1] += [*(("store", place) for _, place in stores), *(("load", place) for _, place in loads)]
        ways[-1] += [(op.insn, op.args[1])] if op.insn in ("load", "store") else []
    return ways[1::3] == ways[2::3]


def traffic(found: Residence) -> int:
    """Loads and stores, a load counted twice, for it takes longer; where there are places nearby, by how long it takes:
    a load from there as long as a store, others that follow each other as long as that and one."""
    stores = sum(map(len, found.stores))
    if not found.nearby:
        return 2 * sum(map(len, found.loads)) + stores
    far = sum(any(place.base != found.nearby for _, place in loads) for loads in found.loads)
    return sum(map(len, found.loads)) + far + stores


def group(found: Residence, ops: Sequence[Op]) -> None:
    """Move loads to the nearest ones before them, where a register is free all the time in between, and nothing is
    stored to their place."""
    ends = sorted(found.opening.values())
    taken = found.in_use()
    stored: dict[Arg, int] = {}  # the operation that stored to a place
    group = None  # the operation that the latest loads stand before
    for index, loads in enumerate(found.loads):
        for entry in list(loads):
            number, home = entry
            stay = found.stays[number]
            between = range(0 if group is None else 2 * group, stay.birth)
            free = all(taken[time] < bisect.bisect_right(ends, time) for time in between)
            if group is None or not free or home != stay.virtual.home or stored.get(home, -1) >= group:
                continue
            loads.remove(entry)
            found.loads[group].append(entry)
            stay.birth = between.start
            for time in between:
                taken[time] += 1
        group = index if loads else group
        if ops[index].insn == "store":
            stored[ops[index].args[1]] = index
    order = sorted(range(len(found.stays)), key=lambda number: found.stays[number].birth)
    renumber(found, order)


def renumber(found: Residence, order: Sequence[int]) -> None:
    """Put the stays into another order."""
    new = {number: place for place, number in enumerate(order)}
    found.stays = [found.stays[number] for number in order]
    found.holds = [{virtual: new[number] for virtual, number in holds.items()} for holds in found.holds]
    for fork in found.forks:
        fork.twins, fork.meets, fork.lasting = (
            {new[number]: new[old] for number, old in each.items()} for each in (fork.twins, fork.meets, fork.lasting)
        )
    found.loads = [[(new[number], place) for number, place in loads] for loads in found.loads]
    found.stores = [[(new[number], place) for number, place in stores] for stores in found.stores]


def _lending(function: Function, saved: float, *, framed: bool, grouped: bool, lodging: bool) -> Residence:
    """The way where registers that are lent are there from the last load on.

    With them other limbs wait nearby, so that a load may come later: then they come later, too.
    """
    lent = [op for op in function.ops if op.insn in ("lend", "lend_itself")]
    found = Eviction(function, {}, framed, saved, lodging).run()
    openings = [_openings(lent, found)]
    if grouped:  # they may be there earlier, if loads that are brought together then stay together
        group(found, function.ops)
        openings.insert(0, _openings(lent, found))
    while lent:
        opening = openings.pop(0)
        found = Eviction(function, opening, framed, saved, lodging).run()
        if grouped:
            group(found, function.ops)
        needed = _openings(lent, found)
        if all(time <= opening[register] for register, time in needed.items()):
            break
        if not openings:
            openings.append({register: max(time, needed[register]) for register, time in opening.items()})
    return found


def _openings(lent: Sequence[Op], found: Residence) -> dict[str, int]:
    """When the registers that a function lends are there.

    Only one pointer at a time takes its own last limb, lest two are loaded each from the other's place.
    """
    opening: dict[str, int] = {}
    for op in lent:
        base, *registers = op.args
        last = max((i for i, loads in enumerate(found.loads) if any(m.base == base for _, m in loads)), default=0)
        later = op.insn == "lend" or 2 * last in opening.values()
        opening |= {str(register): 2 * last + later for register in registers}
    return opening
