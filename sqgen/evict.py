"""One way to decide which variable is in a register when (`residence`): operation by operation, and where there is no
register left, who is evicted.

Time runs in half operations: operation i reads at 2i and writes at 2i + 1, so that what dies in an operation makes
room for what is born there.
"""

from __future__ import annotations

import copy
from collections import defaultdict, deque
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from .code import SPILLED, Arg, CodeError, Function, Memory, Op, Virtual
from .errors import Exit, UserError


class PressureError(UserError):
    """More live limbs than registers at one point of the code."""


NEVER = 1 << 60  # a time
FORKED = ("here", "rooms", "free_from", "own", "current", "guests", "vacant", "spare")  # what both ways begin with


@dataclass
class Stay:
    """A variable's time in one register, from `birth` up to `death` (half operations); `saved`: the place in memory
    that it is stored to at its end."""

    virtual: Virtual
    birth: int
    death: int
    saved: Memory | None = None


@dataclass
class Fork:
    """Where code goes two ways: the operations at which they begin and the other one ends; the stays with which that
    begins, and those that outlive it, each with that of its variable at the fork or at the end of the first way:
    `meets` are those that begin on the way, `lasting` the others."""

    at: int
    other: int = 0
    end: int = 0
    twins: dict[int, int] = field(default_factory=dict)
    meets: dict[int, int] = field(default_factory=dict)
    lasting: dict[int, int] = field(default_factory=dict)


@dataclass
class Residence:
    """All stays, by birth; those that hold the variables of each operation, and what happens before it."""

    stays: list[Stay] = field(default_factory=list)
    holds: list[dict[Virtual, int]] = field(default_factory=list)  # by operation: the stays it reads and writes
    loads: list[list[tuple[int, Memory]]] = field(default_factory=list)  # by operation: stays that begin with a load
    stores: list[list[tuple[int, Memory]]] = field(default_factory=list)
    opening: dict[str, int] = field(default_factory=dict)  # from when on a register is there
    gaps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # from when until when it is not, for a while
    nearby: str = ""  # the buffer of places that are nearer than memory
    forks: list[Fork] = field(default_factory=list)

    def in_use(self) -> list[int]:
        """How many registers are in use at each time."""
        counts = [0] * (2 * len(self.holds) + 2)
        for stay in self.stays:
            for time in range(stay.birth, stay.death):
                counts[time] += 1
        return counts


class Eviction:
    """Goes through a function's operations."""

    def __init__(self, function: Function, opening: dict[str, int], framed: bool, saved: float, lodging: bool) -> None:
        self.function, self.framed, self.saved, self.lodging = function, framed, saved, lodging
        self.found = Residence(opening=dict.fromkeys(function.pool, 0) | opening)
        self.capacity, self.growing = 0, 0  # registers, and the time when there are more
        self.uses = self.coming(0)
        self.forked: dict[str, Any] = {}
        self.ended: dict[Virtual, int] = {}  # what outlives the first of two ways
        self.here: dict[Virtual, int] = {}  # number of its stay
        self.used: dict[Virtual, int] = {}  # time of the last use
        self.spilling = False  # whether there is a place for spilled limbs
        self.early = False  # whether that is as good as another home
        self.rooms: dict[Virtual, Memory] = {}  # where a variable without a home has its place
        self.free_from: dict[Virtual, int] = {}  # the operation from which on that place is free
        self.frame_from = 0
        self.own: set[Virtual] = set()  # variables that have left their home or room for good
        self.spilled = 0  # places in the frame
        self.spare = 0  # registers to leave free where that needs no frame
        self.current: set[Virtual] = set()  # variables whose value is in their place
        self.vacant: list[tuple[int, int]] = []  # places nearby, as (operation from which on it is free, offset)
        self.far: tuple[Arg, ...] = ()  # bases of homes that are farther
        self.guests: dict[Virtual, Memory] = {}  # variables whose value is in a place nearby

    def coming(self, first: int) -> dict[Virtual, deque[int]]:
        """When each variable is used from an operation on, not in other ways that begin later."""
        uses: dict[Virtual, deque[int]] = defaultdict(deque)
        elsewhere = False
        for index, op in enumerate(self.function.ops[first:], first):
            elsewhere = (elsewhere and op.insn != "join") or (op.insn == "arm" and index > first)
            for virtual in () if elsewhere else dict.fromkeys((*op.reads, *op.writes)):
                uses[virtual].append(index)
        return uses

    def run(self) -> Residence:
        for index, op in enumerate(self.function.ops):
            self.step(index, op)
        return self.found

    def step(self, index: int, op: Op) -> None:
        found = self.found
        found.holds.append({})
        found.loads.append([])
        found.stores.append([])
        if op.insn == "fork":
            self.remember(index)
        elif op.insn == "arm":
            self.begin_other(index)
        elif op.insn == "join":
            self.meet(index)
        self.grow(index, op)
        reads = op.reads or self.moving_out(op)
        pinned = (*reads, *op.writes)
        for virtual in reads:
            if virtual not in self.here:
                found.loads[index].append((self.enter(virtual, 2 * index, op, pinned), self.source(virtual, index, op)))
            found.holds[index][virtual] = self.here[virtual]
            self.used[virtual] = 2 * index
        for virtual in pinned:
            uses = self.uses[virtual]
            if uses and uses[0] == index:
                uses.popleft()
        self.mark(index, op)
        for virtual in reads:
            if not self.uses[virtual] and virtual not in op.writes:
                self.vacate(virtual, index)
                self.leave(virtual)
        for virtual in op.writes:
            self.vacate(virtual, index)
            if virtual not in self.here:
                self.enter(virtual, 2 * index + 1, op, pinned)
            found.holds[index][virtual] = self.here[virtual]
            self.used[virtual] = 2 * index + 1
            self.current.discard(virtual)
            if not self.uses[virtual]:
                self.leave(virtual)

    def remember(self, index: int) -> None:
        """A fork: what is in a register is wanted there."""
        self.found.forks.append(Fork(index))
        self.used.update(dict.fromkeys(self.here, 2 * index))
        self.forked = {name: copy.copy(getattr(self, name)) for name in FORKED} | {"there": self.there()}

    def there(self) -> Set[str]:
        """Registers that are there now, or will be in time."""
        gaps = self.found.gaps
        return {each for each in self.found.opening if each not in gaps or gaps[each][-1][1] < NEVER}

    def begin_other(self, index: int) -> None:
        """The other way: all is as it was at the fork, and each variable where it was."""
        fork = self.found.forks[-1]
        fork.other = index
        self.ended = self.kept()
        for virtual in self.ended:
            self.used[virtual] = 2 * index - 1
            self.leave(virtual)
        there = self.forked.pop("there")
        for name, value in self.forked.items():
            setattr(self, name, value)
        self.uses = self.coming(index)
        here, self.here = self.here, {}
        for virtual, number in here.items():
            if not self.uses[virtual]:
                continue
            self.here[virtual] = new = len(self.found.stays)
            self.found.stays.append(Stay(virtual, 2 * index, 2 * index + 1))
            fork.twins[new] = number
            self.used[virtual] = 2 * index
        for register in self.there() - there:
            self.found.gaps.setdefault(register, []).append((2 * index, NEVER))
        self.growing = 2 * index

    def kept(self) -> dict[Virtual, int]:
        """The end of one of two ways: what is not in memory must be in the same register in both."""
        for virtual in [each for each in self.here if not self.unsaved(each)]:
            self.leave(virtual)
        return dict(self.here)

    def meet(self, index: int) -> None:
        """Both ways end here.  Raises PressureError where one of them alone had no register for what outlives both."""
        fork = self.found.forks[-1]
        fork.end = index
        for virtual, number in self.kept().items():
            if virtual not in self.ended:
                raise PressureError(f"{virtual.name} is in memory after one of two ways alone", Exit.LIMITS)
            (fork.lasting if number in fork.twins else fork.meets)[number] = self.ended[virtual]

    def grow(self, index: int, op: Op) -> None:
        """Registers or a frame that are there from an operation on, or registers that are not there for a while."""
        opening, gaps = self.found.opening, self.found.gaps
        if op.insn == "spill_early" and self.framed:
            self.spilling, self.early = True, True
        elif op.insn == "spill" and self.framed:
            self.spilling, self.frame_from = True, index
        elif op.insn in ("release", "spill"):
            for register in map(str, op.args):  # some may be there already
                opening.setdefault(register, 2 * index)
                if register in gaps and gaps[register][-1][1] == NEVER:
                    gaps[register][-1] = (gaps[register][-1][0], 2 * index)
            self.growing = 2 * index
        elif op.insn == "retake":
            for register in map(str, op.args):
                if register in opening:
                    gaps.setdefault(register, []).append((2 * index, NEVER))
            self.growing = 2 * index
        if 2 * index >= self.growing:
            later = [time for time in opening.values() if time > 2 * index]
            gone = [each for each in gaps.values() if each[-1][1] > 2 * index]
            self.capacity, self.growing = len(opening) - len(later) - len(gone), min(later, default=NEVER)
            while len(self.here) > self.capacity:
                self.evict(index, ())

    def mark(self, index: int, op: Op) -> None:
        """What an operation says of the places of variables."""
        match op.insn, op.args:
            case "room", (Virtual() as virtual, Memory() as where):
                self.rooms[virtual] = where
                self.free_from[virtual] = index
            case "own", (Virtual() as virtual,):
                self.own.add(virtual)
                self.rooms.pop(virtual, None)
                self.current.discard(virtual)
            case "forget", _:
                for each in op.args:
                    if isinstance(each, Virtual) and each in self.here:
                        if self.uses[each] and self.unsaved(each):
                            self.put_away(each, index)
                        self.leave(each)
            case "nearby", (str() as buffer, int() as count, *far):
                self.far = tuple(far) if self.lodging else ()
                self.found.nearby = buffer
                self.vacant = [(index, offset) for offset in range(count)]
            case "spare", (int() as count,):
                self.spare = count
            case "store", (Virtual() as virtual, where) if self.rooms.get(virtual) == where:
                self.current.add(virtual)

    def moving_out(self, op: Op) -> tuple[Virtual, ...]:
        """The limb that loses its place in memory, if it is still needed."""
        limbs = (arg for arg in op.args if op.insn == "own" and isinstance(arg, Virtual) and arg not in self.guests)
        return tuple(limb for limb in limbs if self.uses.get(limb))

    def home(self, virtual: Virtual) -> Memory | None:
        """A variable's home, unless it has left it."""
        return None if virtual in self.own else virtual.home

    def source(self, virtual: Virtual, index: int, op: Op) -> Memory:
        """Where a variable comes back from."""
        home = self.guests.get(virtual) or self.home(virtual) or self.rooms.get(virtual)
        if home is None:
            raise CodeError(f"operation {index}, {op.text().strip()}: {virtual} is read before it is written")
        return home

    def enter(self, virtual: Virtual, time: int, op: Op, pinned: Sequence[Virtual]) -> int:
        """Begin a stay, evicting if all registers are in use; its number."""
        while len(self.here) >= self.capacity - self.spare and (
            len(self.here) >= self.capacity or self.evictable(pinned, time // 2)
        ):
            self.evict(time // 2, pinned)
        self.here[virtual] = len(self.found.stays)
        self.found.stays.append(Stay(virtual, time, time + 1))
        return self.here[virtual]

    def leave(self, virtual: Virtual) -> None:
        """End a stay after its last use."""
        self.found.stays[self.here.pop(virtual)].death = self.used[virtual] + 1

    def evict(self, index: int, pinned: Sequence[Virtual]) -> None:
        """End the stay of the variable whose next use is farthest away; `saved` times less far will do where it need
        not be stored first, which costs half."""
        evictable = self.evictable(pinned, index)
        if not evictable and self.spilling:
            evictable = [v for v in self.here if v not in pinned]
        if not evictable:
            raise PressureError(
                f"{len(self.here)} limbs are live in {self.capacity} registers at {self.place(index)}", Exit.LIMITS
            )
        farthest = max(
            evictable, key=lambda v: ((self.uses[v][0] - index) * (1 if self.unsaved(v) else self.saved), v.id)
        )
        home = self.home(farthest)
        distant = home is not None and home.base in self.far and farthest not in self.guests
        if (self.unsaved(farthest) or distant) and self.vacancies(index):
            self.lodge(farthest, index)
        elif self.unsaved(farthest):
            if farthest not in self.rooms:
                self.rooms[farthest] = Memory(SPILLED, self.spilled)
                self.spilled += 1
            self.put_away(farthest, index)
        self.leave(farthest)

    def unsaved(self, virtual: Virtual) -> bool:
        """Whether its value is nowhere in memory."""
        return self.home(virtual) is None and virtual not in self.current and virtual not in self.guests

    def lodge(self, virtual: Virtual, index: int) -> None:
        """Put a variable nearby before an operation, or earlier, in the place that is free for the longest time."""
        free, offset = min(self.vacancies(index))
        self.vacant.remove((free, offset))
        self.guests[virtual] = Memory(self.found.nearby, offset)
        self.save(virtual, self.guests[virtual], min(max(self.used[virtual] // 2, free) + 1, index))

    def vacancies(self, index: int) -> list[tuple[int, int]]:
        """The places nearby that are free before an operation: one may be loaded from there for it at the latest."""
        return [place for place in self.vacant if place[0] < index]

    def vacate(self, virtual: Virtual, index: int) -> None:
        """A variable is written or needed no more: its place nearby is free."""
        if virtual in self.guests:
            self.vacant.append((index, self.guests.pop(virtual).offset))

    def put_away(self, virtual: Virtual, index: int) -> None:
        """Store a variable to its room before an operation, or before an earlier one if it is not used in between: so
        its register is free as early as can be."""
        after = max(self.used[virtual] // 2, self.free_from.get(virtual, self.frame_from)) + 1
        self.save(virtual, self.rooms[virtual], min(after, index))
        self.current.add(virtual)

    def save(self, virtual: Virtual, place: Memory, at: int) -> None:
        """Store a variable before an operation, where it may leave its register then."""
        self.found.stores[at].append((self.here[virtual], place))
        self.used[virtual] = max(self.used[virtual], 2 * at - 1)

    def evictable(self, pinned: Sequence[Virtual], index: int) -> list[Virtual]:
        """Variables in registers that have a place in memory, or find one nearby."""
        if self.early or self.vacancies(index):
            return [v for v in self.here if v not in pinned]
        return [v for v in self.here if v not in pinned and (self.home(v) or v in self.rooms or v in self.guests)]

    def place(self, index: int) -> str:
        """The last heading before an operation."""
        for op in reversed(self.function.ops[: index + 1]):
            if op.heading:
                return op.heading.splitlines()[-1]
        return "the start"
