"""The first half of register allocation: which variable is in a register when, but not yet in which one.

A variable with a home in memory is never written, so evicting it costs nothing and coming back costs one load.  For a
fixed order of uses, evicting the one with the farthest next use needs the fewest loads.  Where none can be evicted,
and the code has a place for it, a variable without a home is stored and loaded again.

Time runs in half operations: operation i reads at 2i and writes at 2i + 1, so that what dies in an operation makes
room for what is born there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from .code import SPILLED, CodeError, Function, Memory, Op, Virtual
from .errors import Exit, UserError


class PressureError(UserError):
    """More live limbs than registers at one point of the code."""


NEVER = 1 << 60  # a time


@dataclass
class Stay:
    """A variable's time in one register, from `birth` up to `death` (half operations); `saved`: the place in memory
    that it is stored to at its end."""

    virtual: Virtual
    birth: int
    death: int
    saved: Memory | None = None


@dataclass
class Residence:
    """All stays, by birth; those that hold the variables of each operation, and what happens before it."""

    stays: list[Stay] = field(default_factory=list)
    holds: list[dict[Virtual, int]] = field(default_factory=list)  # by operation: the stays it reads and writes
    loads: list[list[tuple[int, Memory]]] = field(default_factory=list)  # by operation: stays that begin with a load
    stores: list[list[tuple[int, Memory]]] = field(default_factory=list)
    opening: dict[str, int] = field(default_factory=dict)  # from when on a register is there


def residence(function: Function) -> Residence:
    """Who stays in a register when.  Raises PressureError.

    Registers that the function lends after the last load from a buffer are there for what comes after it.
    """
    lent = [op for op in function.ops if op.insn == "lend"]
    found = _Residence(function, {}).run()
    opening: dict[str, int] = {}
    for op in lent:
        base, *registers = op.args
        last = max((i for i, loads in enumerate(found.loads) if any(m.base == base for _, m in loads)), default=0)
        opening |= {str(register): 2 * last + 1 for register in registers}
    return _Residence(function, opening).run() if lent else found


class _Residence:
    def __init__(self, function: Function, opening: dict[str, int]) -> None:
        self.function = function
        self.found = Residence(opening=dict.fromkeys(function.pool, 0) | opening)
        self.capacity, self.growing = 0, 0  # registers, and the time when there are more
        self.uses: dict[Virtual, deque[int]] = {}
        for index, op in enumerate(function.ops):
            for virtual in dict.fromkeys((*op.reads, *op.writes)):
                self.uses.setdefault(virtual, deque()).append(index)
        self.here: dict[Virtual, int] = {}  # number of its stay
        self.used: dict[Virtual, int] = {}  # time of the last use
        self.spilling = False  # whether there is a place for spilled limbs
        self.slots: dict[Virtual, Memory] = {}  # where a spilled limb has its place
        self.current: set[Virtual] = set()  # variables whose value is in their place

    def run(self) -> Residence:
        for index, op in enumerate(self.function.ops):
            self.step(index, op)
        return self.found

    def step(self, index: int, op: Op) -> None:
        found = self.found
        found.holds.append({})
        found.loads.append([])
        found.stores.append([])
        if op.insn == "release":
            found.opening |= {str(register): 2 * index for register in op.args}
            self.growing = 2 * index
        if 2 * index >= self.growing:
            later = [opening for opening in found.opening.values() if opening > 2 * index]
            self.capacity, self.growing = len(found.opening) - len(later), min(later, default=NEVER)
        self.spilling = self.spilling or op.insn == "spill"
        pinned = (*op.reads, *op.writes)
        for virtual in op.reads:
            if virtual not in self.here:
                found.loads[index].append((self.enter(virtual, 2 * index, op, pinned), self.home(virtual, index, op)))
            found.holds[index][virtual] = self.here[virtual]
            self.used[virtual] = 2 * index
        for virtual in pinned:
            uses = self.uses[virtual]
            if uses and uses[0] == index:
                uses.popleft()
        for virtual in op.reads:
            if not self.uses[virtual] and virtual not in op.writes:
                self.leave(virtual)
        for virtual in op.writes:
            if virtual not in self.here:
                self.enter(virtual, 2 * index + 1, op, pinned)
            found.holds[index][virtual] = self.here[virtual]
            self.used[virtual] = 2 * index + 1
            self.current.discard(virtual)
            if not self.uses[virtual]:
                self.leave(virtual)

    def home(self, virtual: Virtual, index: int, op: Op) -> Memory:
        """Where a variable comes back from."""
        home = virtual.home or self.slots.get(virtual)
        if home is None:
            raise CodeError(f"operation {index}, {op.text().strip()}: {virtual} is read before it is written")
        return home

    def enter(self, virtual: Virtual, time: int, op: Op, pinned: Sequence[Virtual]) -> int:
        """Begin a stay, evicting if all registers are in use; its number."""
        if len(self.here) >= self.capacity:
            self.evict(time // 2, pinned)
        self.here[virtual] = len(self.found.stays)
        self.found.stays.append(Stay(virtual, time, time + 1))
        return self.here[virtual]

    def leave(self, virtual: Virtual) -> None:
        """End a stay after its last use."""
        self.found.stays[self.here.pop(virtual)].death = self.used[virtual] + 1

    def evict(self, index: int, pinned: Sequence[Virtual]) -> None:
        """End the stay of the variable whose next use is farthest away, of those that cost least to evict."""
        candidates = [v for v in self.here if v not in pinned]
        evictable = [v for v in candidates if v.home is not None]
        if not evictable and self.spilling:
            evictable = candidates
        if not evictable:
            raise PressureError(
                f"{len(self.here)} limbs are live in {self.capacity} registers at {self.place(index)}", Exit.LIMITS
            )
        farthest = max(evictable, key=lambda v: (self.uses[v][0], v.id))
        if farthest.home is None and farthest not in self.current:
            place = self.slots.setdefault(farthest, Memory(SPILLED, len(self.slots)))
            self.found.stores[index].append((self.here[farthest], place))
            self.current.add(farthest)
            self.used[farthest] = 2 * index - 1  # it is stored just before the operation
        self.leave(farthest)

    def place(self, index: int) -> str:
        """The last heading before an operation."""
        for op in reversed(self.function.ops[: index + 1]):
            if op.heading:
                return op.heading.splitlines()[-1]
        return "the start"
