"""Allocated code replayed beside the code before: each register must hold the variable that is meant there."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from .code import SPILLED, Arg, CodeError, Function, Memory, Op, Virtual

Held = tuple[Virtual | Memory, ...]  # a variable; or of one that was loaded, its home, and who was stored there


@dataclass
class World:
    """What is where at one operation."""

    holds: dict[str, Held] = field(default_factory=dict)  # registers
    stored: dict[Arg, Held] = field(default_factory=dict)  # variables in memory
    copies: dict[Arg, list[Arg]] = field(default_factory=lambda: defaultdict(list))  # where a variable has been stored
    spoiled: set[Arg] = field(default_factory=set)  # homes that another limb waits in

    def copy(self) -> World:
        """Another one, in which the same is where it is."""
        copies = defaultdict(list, {each: list(places) for each, places in self.copies.items()})
        return World(dict(self.holds), dict(self.stored), copies, set(self.spoiled))

    def meet(self, other: World) -> None:
        """Two ways meet: only what is so after both is known."""
        self.holds = {register: held for register, held in self.holds.items() if other.holds.get(register) == held}
        self.stored = {place: held for place, held in self.stored.items() if other.stored.get(place) == held}
        self.spoiled |= other.spoiled

    def operation(self, original: Op, op: Op) -> None:
        """What an operation writes, as the code before has it."""
        for virtual, register in zip(original.args, op.args, strict=True):
            if isinstance(virtual, Virtual) and virtual in original.writes:
                self.holds[str(register)] = (virtual,)
                outdated = [place for place in self.copies.pop(virtual, ()) if virtual in self.stored.get(place, ())]
                for place in outdated:
                    del self.stored[place]
        if op.insn == "store" and isinstance(original.args[0], Virtual):
            self.stored[original.args[1]] = (original.args[0],)
            self.copies[original.args[0]].append(original.args[1])
            self.spoiled.discard(original.args[1])

    def put_away(self, register: str, place: Arg) -> None:
        """What the allocator stores."""
        self.stored[place] = held = self.holds[register]
        for each in held:
            self.copies[each].append(place)
        self.spoiled.add(place)

    def load(self, register: str, place: Memory, homes: set[Memory | None]) -> None:
        """What the allocator loads, from the home of a variable or from where it was stored."""
        home = (place,) if place in homes and place not in self.spoiled else ()
        self.holds[register] = (*home, *self.stored.get(place, ()))


def verify(before: Function, after: Function) -> None:
    """Replay both and raise CodeError unless each register holds the variable that `before` means there."""
    homes = {virtual.home for op in before.ops for virtual in op.reads}
    rooms = {op.args[1] for op in before.ops if op.insn == "room"}
    anyone = {SPILLED, *(op.args[0] for op in before.ops if op.insn == "nearby")}  # buffers where any limb may wait
    world = forked = ended = World()
    rest = deque(before.ops)
    for op in after.ops:
        place = op.args[-1] if op.args else None
        if rest and _matches(op, rest[0], world.holds):
            if op.insn == "fork":
                forked = world.copy()
            elif op.insn == "arm":
                world, ended = forked, world
            elif op.insn == "join":
                world.meet(ended)
            world.operation(rest.popleft(), op)
        elif op.insn == "store" and place and (place in rooms or buffer_of(op) in anyone):
            world.put_away(str(op.args[0]), place)
        elif op.insn == "move":
            world.holds[str(op.args[0])] = world.holds[str(op.args[1])]
        elif op.insn == "load" and isinstance(place, Memory) and (place in homes or place in world.stored):
            world.load(str(op.args[0]), place, homes)
        else:
            raise CodeError(f"{op.text().strip()} does not follow from the code before allocation")
    if rest:
        raise CodeError("allocation lost operations")


def buffer_of(op: Op) -> str:
    """The buffer of a load or store."""
    return op.args[1].base if isinstance(op.args[1], Memory) else ""


def _matches(op: Op, original: Op, holds: Mapping[str, Held]) -> bool:
    """Whether `op` is `original` with each variable read from the register that holds it."""
    if op.insn != original.insn or len(op.args) != len(original.args):
        return False
    for mine, its in zip(op.args, original.args, strict=True):
        if not isinstance(its, Virtual):
            if mine != its:
                return False
        elif its in original.reads and not {its, its.home or its} & {*holds.get(str(mine), ())}:
            return False
    return True
