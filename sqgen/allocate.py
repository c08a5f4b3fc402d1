"""Virtual registers to registers: one pass over straight-line code, evicting the farthest next use.

A variable with a home in memory is never written, so evicting it costs nothing and coming back costs one load.  For a
fixed order of uses the farthest-next-use rule needs the fewest loads.  Where none can be evicted, and the code has a
place for it, a variable without a home is stored and loaded again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from .code import SPILLED, Arg, CodeError, Function, Memory, Op, Virtual
from .errors import Exit, UserError


class PressureError(UserError):
    """More live limbs than registers at one point of the code."""


def allocate(
    function: Function, saved: Sequence[str], pairs: Mapping[str, str], chosen: Mapping[str, str] | None = None
) -> Function:
    """The function with a register in place of each variable, loads inserted for what has a home in memory.

    `saved` are registers whose use costs a save and a restore; others are preferred.  `pairs` maps the low register
    of each aligned pair to the high one, `chosen` the places of other functions' limbs to registers.  Raises
    PressureError.
    """
    return _Allocator(function, saved, pairs, chosen or {}).run()


def allocate_all(functions: Sequence[Function], saved: Sequence[str], pairs: Mapping[str, str]) -> list[Function]:
    """All functions of a kernel: what is called stands after its callers, and chooses the registers between them."""
    chosen: dict[str, str] = {}
    done: list[Function] = []
    for function in reversed(functions):
        done.append(allocate(function, saved, pairs, chosen))
        chosen |= places(done[-1])
    return done[::-1]


def places(function: Function) -> dict[str, str]:
    """The registers of what an allocated function accepts and gives, by `place`."""
    return {
        place(function.name, op.insn, index): str(register)
        for op in function.ops
        if op.insn in ("accept", "give")
        for index, register in enumerate(op.args)
    }


def place(function: str, way: str, index: int) -> str:
    """The name of the register in which a function accepts or gives a limb."""
    return f"{function} {way} {index}"


def verify(before: Function, after: Function) -> None:
    """Replay both and raise CodeError unless each register holds the variable that `before` means there."""
    homes = {virtual.home: virtual for op in before.ops for virtual in op.reads if virtual.home}
    holds: dict[str, Virtual] = {}
    spilled: dict[Arg, Virtual] = {}
    rest = deque(before.ops)
    for op in after.ops:
        if rest and _matches(op, rest[0], holds):
            original = rest.popleft()
            for virtual, register in zip(original.args, op.args, strict=True):
                if isinstance(virtual, Virtual) and virtual in original.writes:
                    holds[str(register)] = virtual
        elif op.insn == "store" and _spilled(op):
            spilled[op.args[1]] = holds[str(op.args[0])]
        elif op.insn == "load" and op.args[1] in spilled:
            holds[str(op.args[0])] = spilled[op.args[1]]
        elif op.insn == "load" and op.args[1] in homes:
            holds[str(op.args[0])] = homes[op.args[1]]
        else:
            raise CodeError(f"{op.text().strip()} does not follow from the code before allocation")
    if rest:
        raise CodeError("allocation lost operations")


def _spilled(op: Op) -> bool:
    return isinstance(op.args[1], Memory) and op.args[1].base == SPILLED


def _matches(op: Op, original: Op, holds: Mapping[str, Virtual]) -> bool:
    """Whether `op` is `original` with each variable read from the register that holds it."""
    if op.insn != original.insn or len(op.args) != len(original.args):
        return False
    for mine, its in zip(op.args, original.args, strict=True):
        if not isinstance(its, Virtual):
            if mine != its:
                return False
        elif its in original.reads and holds.get(str(mine)) != its:
            return False
    return True


class _Allocator:
    def __init__(
        self, function: Function, saved: Sequence[str], pairs: Mapping[str, str], chosen: Mapping[str, str]
    ) -> None:
        self.function = function
        self.chosen = chosen
        self.pairs = pairs
        self.low_of = {high: low for low, high in pairs.items()}
        self.saved = frozenset(saved)
        self.order = {register: index for index, register in enumerate(function.pool)}
        self.uses: dict[Virtual, deque[int]] = {}
        for index, op in enumerate(function.ops):
            for virtual in dict.fromkeys((*op.reads, *op.writes)):
                self.uses.setdefault(virtual, deque()).append(index)
        self.wanted = {
            chosen[virtual.place] for virtual in self.uses if virtual.place
        }  # others had better go elsewhere
        self.where: dict[Virtual, str] = {}
        self.holder: dict[str, Virtual] = {}
        self.promised: dict[int, str] = {}  # id of a mate -> the register kept for it
        self.touched: set[str] = set()
        self.pool = list(function.pool)
        self.spilling = False  # whether there is a place for spilled limbs
        self.slots: dict[Virtual, Memory] = {}  # where a spilled limb has its place
        self.current: set[Virtual] = set()  # variables whose value is in their place
        self.out: list[Op] = []

    def run(self) -> Function:
        for index, op in enumerate(self.function.ops):
            self.step(index, op)
        return replace(self.function, ops=tuple(self.out))

    def step(self, index: int, op: Op) -> None:
        if op.insn == "release":
            self.pool += [str(register) for register in op.args]
            self.order |= {register: index for index, register in enumerate(self.pool)}
        self.spilling = self.spilling or op.insn == "spill"
        pinned = (*op.reads, *op.writes)
        loads = [self.load(virtual, op, index, pinned) for virtual in op.reads if virtual not in self.where]
        registers = {virtual: self.where[virtual] for virtual in op.reads}
        for virtual in pinned:
            uses = self.uses[virtual]
            if uses and uses[0] == index:
                uses.popleft()
        for virtual in op.reads:  # what dies here makes room for what is born here
            if not self.uses[virtual] and virtual not in op.writes:
                self.release(virtual)
        for virtual in op.writes:
            if virtual not in self.where:
                self.take(virtual, op, index, pinned)
            registers[virtual] = self.where[virtual]
            self.current.discard(virtual)
            if not self.uses[virtual]:
                self.release(virtual)
        args = tuple(registers[arg] if isinstance(arg, Virtual) else arg for arg in op.args)
        heading = op.heading
        for load in loads:
            self.out.append(replace(load, heading=heading))
            heading = ""
        self.out.append(replace(op, args=args, reads=(), writes=(), heading=heading))

    def load(self, virtual: Virtual, op: Op, index: int, pinned: tuple[Virtual, ...]) -> Op:
        """Bring a variable in from its home."""
        home = virtual.home or self.slots.get(virtual)
        if home is None:
            raise CodeError(f"operation {index}, {op.text().strip()}: {virtual} is read before it is written")
        return Op("load", (self.take(virtual, op, index, pinned), home))

    def release(self, virtual: Virtual) -> None:
        del self.holder[self.where.pop(virtual)]

    def take(self, virtual: Virtual, op: Op, index: int, pinned: tuple[Virtual, ...]) -> str:
        """Give `virtual` a register, evicting if none is free."""
        register = self.promised.pop(virtual.id, None)
        if virtual.place is not None:
            register = self.chosen[virtual.place]
            if register in self.holder:
                raise CodeError(f"operation {index}, {op.text().strip()}: {register} is in use")
        if register is None and virtual.mate is not None:
            register = self.free_pair(virtual.mate)
        if register is None:
            register = self.free_single()
        if register is None:
            register = self.evict(op, index, pinned)
        self.where[virtual] = register
        self.holder[register] = virtual
        self.touched.add(register)
        return register

    def free(self) -> list[str]:
        """Free registers, those that cost nothing to use first."""
        kept = set(self.promised.values())
        free = [register for register in self.pool if register not in self.holder and register not in kept]
        return sorted(
            free, key=lambda register: (register in self.saved and register not in self.touched, self.order[register])
        )

    def neighbour(self, register: str) -> str | None:
        """The other register of the aligned pair."""
        return self.pairs.get(register) or self.low_of.get(register)

    def free_pair(self, mate: int) -> str | None:
        """The low register of a free aligned pair; the high one is kept for the mate."""
        free = self.free()
        for register in free:
            high = self.pairs.get(register)
            if high in free:
                self.promised[mate] = str(high)
                return register
        return None

    def free_single(self) -> str | None:
        """A free register, rather one whose neighbour is in use: pairs are worth more together."""
        free = self.free()
        free = [register for register in free if register not in self.wanted] or free
        unsaved = [r for r in free if r in self.touched or r not in self.saved]
        candidates = unsaved or free
        alone = [register for register in candidates if self.neighbour(register) not in free]
        return next(iter(alone or candidates), None)

    def evict(self, op: Op, index: int, pinned: tuple[Virtual, ...]) -> str:
        """Free the register of the variable whose next use is farthest away, of those that cost least to evict."""
        candidates = [v for v in self.where if v not in pinned]
        evictable = [v for v in candidates if v.home is not None]
        if not evictable and self.spilling:
            evictable = candidates
        if not evictable:
            raise PressureError(
                f"{len(self.where)} limbs are live in {len(self.pool)} registers at {self.place(index)}", Exit.LIMITS
            )
        farthest = max(evictable, key=lambda v: (self.uses[v][0], v.id))
        register = self.where[farthest]
        if farthest.home is None and farthest not in self.current:
            place = self.slots.setdefault(farthest, Memory(SPILLED, len(self.slots)))
            self.out.append(Op("store", (register, place)))
            self.current.add(farthest)
        self.release(farthest)
        return register

    def place(self, index: int) -> str:
        """The last heading before an operation."""
        for op in reversed(self.function.ops[: index + 1]):
            if op.heading:
                return op.heading.splitlines()[-1]
        return "the start"
