"""Virtual registers to registers: `residence` says who is in a register when, this which one it is.

Stays are placed in the order of their births, by `placing`, or by `forked` where code goes two ways.  What goes to a
function on registers, or comes from one, has its place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from .code import Function, Op, Virtual
from .forked import best_places
from .looking import EVERYWHERE, Looking
from .placing import Placed, Task, arrivals
from .replay import buffer_of
from .residence import Residence, residences


def allocate_all(
    functions: Sequence[Function],
    prices: Mapping[str, float],
    pairs: Mapping[str, str],
    *,
    grouped: bool = False,
    far: Looking = EVERYWHERE,
) -> list[Function]:
    """All functions of a kernel: what is called stands after its callers, and chooses the registers between them.

    `grouped`: loads that follow each other take less time than loads that do not.  `far`: how far is looked.
    """
    chosen: dict[str, str] = {}
    done: list[Function] = []
    for function in reversed(functions):
        done.append(allocate(function, prices, pairs, chosen, grouped=grouped, far=far))
        chosen |= places(done[-1])
    return done[::-1]


def places(function: Function) -> dict[str, str]:
    """The registers of what an allocated function accepts and gives, by `place`."""
    return {
        meeting(function.name, op.insn, index): str(register)
        for op in function.ops
        if op.insn in ("accept", "give")
        for index, register in enumerate(op.args)
    }


def meeting(function: str, way: str, index: int) -> str:
    """The name of the register in which a function accepts or gives a limb."""
    return f"{function} {way} {index}"


def allocate(
    function: Function,
    prices: Mapping[str, float],
    pairs: Mapping[str, str],
    chosen: Mapping[str, str] | None = None,
    *,
    grouped: bool = False,
    far: Looking = EVERYWHERE,
) -> Function:
    """The function with a register in place of each variable, loads inserted for what has a home in memory.

    `prices` are the cycles that the use of a register costs, if any.  `pairs` maps the low register of each aligned
    pair to the high one, `chosen` the places of other functions' limbs to registers.  Raises
    PressureError.
    """
    placed = [
        (best_places(replace(Task.of(way, prices, pairs, chosen or {}), width=far.width), way), way)
        for way in residences(function, grouped=grouped, weights=far.weights)
    ]
    best, found = min(placed, key=lambda each: each[0].cost)
    return emit(function, found, best, arrivals(found, chosen or {}))


def emit(
    function: Function, found: Residence, placed: Placed, arrive: Mapping[int, str] = MappingProxyType({})
) -> Function:
    """The operations with registers, and with the loads, stores and moves between them.

    What arrives in a register that is not there for limbs is moved at once.
    """
    registers = list(found.opening)
    pointers = [op.args[1] for op in function.ops if op.insn == "lend_itself"]
    where = list(placed.where)
    waiting = deque(placed.moves)
    out: list[Op] = []
    for index, op in enumerate(function.ops):
        stores = [Op("store", (registers[where[stay]], place)) for stay, place in found.stores[index]]
        shifts = []
        while waiting and waiting[0][0] == index:
            _, stay, to = waiting.popleft()
            shifts.append(Op("move", (registers[to], registers[where[stay]])))
            where[stay] = to
        names = {virtual: registers[where[stay]] for virtual, stay in found.holds[index].items()}
        moved = [
            (virtual, Op("move", (names[virtual], arrive[stay])))
            for virtual, stay in found.holds[index].items()
            if found.stays[stay].birth == 2 * index + 1 and arrive.get(stay, names[virtual]) != names[virtual]
        ]
        names |= {virtual: str(each.args[1]) for virtual, each in moved}
        args = tuple(names.get(arg, arg) if isinstance(arg, Virtual) else arg for arg in op.args)
        loads = [Op("load", (registers[where[stay]], home)) for stay, home in found.loads[index]]
        # what is loaded to a pointer is the last that it loads; those from nearby first, for others belong together
        loads.sort(key=lambda op: (op.args[0] in pointers, buffer_of(op) != found.nearby))
        moves = [*stores, *shifts, *loads]
        heading = "" if moves else op.heading
        moves.append(Op(op.insn, args, takes=op.takes, gives=op.gives, heading=heading, comment=op.comment))
        if op.heading != heading:
            moves[0] = replace(moves[0], heading=op.heading)
        out += [*moves, *(each for _, each in moved)]
    return replace(function, ops=tuple(out))
