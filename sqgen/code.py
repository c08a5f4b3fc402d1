"""The code between plan and bytes: functions of operations on virtual registers and flags.

Virtual registers are variables of one limb; the allocator gives each a register, or several in turn if it has a
home in memory to be loaded from again.  Flags are values: each is given by one operation and taken by later ones,
and `check_flags` refuses code in which anything stands between that destroys it.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from .statements import Equation, Zero
from .table import Insn, Isa, OperandValue


@dataclass(frozen=True)
class Memory:
    """The limb at `offset` (in limbs) of a buffer: "r" the result, "a" and "b" the operands."""

    base: str
    offset: int

    def __str__(self) -> str:
        return f"{self.base}[{self.offset}]"


@dataclass(frozen=True, eq=False)  # each is one of its own, and quickly found
class Virtual:
    """A variable of one limb.  `home`: where it can always be loaded from; `mate`: the id of the variable that
    wants the next higher register, so that both can be moved at once.  `place`: the register that another function
    has chosen for it, by the name that `allocate.places` gives it."""

    id: int
    name: str
    home: Memory | None = None
    mate: int | None = None
    place: str | None = None

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True)
class Flag:
    """One value of a flag."""

    id: int
    flag: str


@dataclass(frozen=True)
class Label:
    """A place in a kernel's code: a function's first operation, or where an operation `label` stands."""

    name: str

    def __str__(self) -> str:
        return self.name


ANY_FLAGS = (Flag(0, "any"),)  # taken by an operation that takes the flags as they are

Arg = Virtual | Memory | Label | OperandValue


@dataclass(frozen=True)
class Op:
    """One operation: an instruction of the table with its operands in table order, or one of these.

    * `load`, `store` (limb, memory): the instruction set's `address` chooses the addressing
    * `point` (pointer, memory): from here on the pointer register points there
    * `walk` (memory): move the pointer there; `near` (memory, memory): let it reach all limbs from one to the other
    * `label` (label): a place to jump to
    * `functions`: the functions that this one calls stand here, jumped over, and not behind it
    * `need`: what it reads must be in registers here
    * `release` (registers ...): from here on the allocator may use them
    * `retake` (registers ...): from here on it may not, until they are released again
    * `lend` (buffer, registers ...): the allocator may use them after the last load from the buffer
    * `lend_itself` (buffer, register): the same of its pointer, which that last load may be to
    * `accept`, `give` (limbs): what a function on registers finds there, and what it leaves there
    * `room` (limb, memory): this place is free for the limb's value, and holds it already if it was `store`d there
    * `own` (limb): it is to be written, or its place to be used: it has no home or room from here on, and is in a
      register if it is read here or later
    * `forget` (limbs): their registers are free until they are read again
    * `spare` (count): leave so many registers free where that needs no frame
    * `move` (register, register): what the allocator adds where a limb is in the way of a pair
    * `look`: from here on the limbs that were stored to `PUSHED` can be loaded; `unwind`: in the opposite order, and
      for the last time
    * `spill` (registers ...): from here on the allocator may use them, or else there is a place in memory, `SPILLED`,
      for limbs that registers do not hold, which is reached by them
    * `spill_early`: there is such a place from here on, reached by no register, and any limb may wait there as soon as
      that makes fewer loads
    * `nearby` (buffer, count, bases ...): from here on so many places of this buffer, that are nearer than memory, are
      there for limbs without a home, and for those with a home at one of these bases where that is faster

    * `fork` (cycles): the code goes on in two ways, the one that stands here and, from `arm` on, another that finds all
      limbs as they are here, so many cycles later; at `join`, where both end, none is needed any more
    * `wait` (cycles): nothing for so long

    `heading` opens a part of the listing, `comment` says why.
    """

    insn: str
    args: tuple[Arg, ...]
    reads: tuple[Virtual, ...] = ()
    writes: tuple[Virtual, ...] = ()
    takes: tuple[Flag, ...] = ()
    gives: tuple[Flag, ...] = ()
    heading: str = ""
    comment: str = ""

    def text(self) -> str:
        flags = "".join(f" <{flag.flag}{flag.id}" for flag in self.takes)
        flags += "".join(f" >{flag.flag}{flag.id}" for flag in self.gives)
        head = f"; {self.heading}\n" if self.heading else ""
        return f"{head}    {self.insn} {', '.join(map(str, self.args))}{flags}".rstrip()


@dataclass(frozen=True)
class Function:
    """Straight-line operations; `pool` are the registers the allocator may use, in order of preference."""

    name: str
    ops: tuple[Op, ...]
    pool: tuple[str, ...]


@dataclass(frozen=True)
class Code:
    """Functions of one kernel, the entry first."""

    functions: tuple[Function, ...]

    def text(self) -> str:
        """For `--dump code` and `--dump registers`."""
        return "".join(
            f"{function.name}:\n" + "".join(f"{op.text()}\n" for op in function.ops) for function in self.functions
        )


SPILLED = "spilled"  # the buffer of limbs that found no register
PUSHED = "pushed"  # the stack: the limb stored n-th lies at offset n


class CodeError(ValueError):
    """Code that would not do what it says; a fault of the compiler, not of the user."""


@functools.cache
def flags_read(insn: Insn, isa: Isa) -> tuple[str, ...]:
    """Tracked flags whose old value the instruction uses."""
    names: list[str] = []
    for statement in insn.statements:
        if isinstance(statement, Equation):
            names += [name for term in statement.terms for name in term.names]
        elif isinstance(statement, Zero) and statement.also:
            names.append(statement.also)
    if insn.control[:1] in {("branch",), ("when",)}:
        names.append(insn.control[1])
    return tuple(dict.fromkeys(name for name in names if name in isa.flags and name not in isa.opaque))


@functools.cache
def flags_written(insn: Insn, isa: Isa) -> tuple[str, ...]:
    """Tracked flags that have another value afterwards, known or not."""
    names = [f"{name}'" for name in insn.clobbers]
    for statement in insn.statements:
        if isinstance(statement, Equation):
            names += [digit.name for digit in statement.digits]
        elif isinstance(statement, Zero):
            names.append(statement.out)
    bare = [name[:-1] for name in names if name.endswith("'")]
    return tuple(dict.fromkeys(name for name in bare if name in isa.flags and name not in isa.opaque))


@functools.cache
def _flags_valued(insn: Insn, isa: Isa) -> tuple[str, ...]:
    """Tracked flags that an equation of the instruction gives a value."""
    equations = [statement for statement in insn.statements if isinstance(statement, Equation)]
    digits = {digit.name[:-1] for equation in equations for digit in equation.digits}
    return tuple(flag for flag in flags_written(insn, isa) if flag in digits)


class Builder:
    """Collects operations, gives out ids, and takes roles of operands and flags from the table."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.ops: list[Op] = []
        self.virtuals: list[Virtual] = []
        self._flags = 0
        self._labels = 0
        self._heading = ""

    def limb(self, name: str, home: Memory | None = None, place: str | None = None) -> Virtual:
        """A new variable."""
        virtual = Virtual(len(self.virtuals), name, home, place=place)
        self.virtuals.append(virtual)
        return virtual

    def pair(self, low: str, high: str) -> tuple[Virtual, Virtual]:
        """Two new variables that want neighbouring registers."""
        index = len(self.virtuals)
        self.virtuals += [Virtual(index, low, mate=index + 1), Virtual(index + 1, high)]
        return self.virtuals[index], self.virtuals[index + 1]

    def heading(self, text: str) -> None:
        """A line of its own above the next operation."""
        self._heading = f"{self._heading}\n{text}" if self._heading else text

    def emit(
        self, name: str, *args: Arg, takes: Flag | None = None, fresh: bool = False, comment: str = ""
    ) -> Flag | None:
        """Append an instruction and return its carry-like flag value, if it gives one that is not a zero flag.

        `fresh` marks an in-out operand whose old value does not matter (a register cleared by EOR with itself).
        """
        insn = self.isa.insns[name]
        reads: list[Virtual] = []
        writes: list[Virtual] = []
        for operand, arg in zip(insn.operands, args, strict=True):
            if isinstance(arg, Virtual):
                if operand.role != "out" and not fresh:
                    reads.append(arg)
                if operand.role != "in":
                    writes.append(arg)
        gives = tuple(self._flag(flag) for flag in _flags_valued(insn, self.isa))
        self._append(
            Op(name, args, tuple(dict.fromkeys(reads)), tuple(writes), (takes,) if takes else (), gives, "", comment)
        )
        return gives[0] if gives else None

    def chained(self, carry: Flag | None, name: str, *args: Arg, comment: str = "") -> Flag | None:
        """The same, on a carry that was given before, which it takes if it takes one; the latest carry."""
        takes = carry and carry.flag in flags_read(self.isa.insns[name], self.isa)
        return self.emit(name, *args, takes=carry if takes else None, comment=comment) or carry

    def label(self, name: str) -> Label:
        """A new place in this function, whose name no other place has."""
        self._labels += 1
        return Label(f"{name}{self._labels}")

    def begin(self, name: str) -> Label:
        """A new place, which is here: where a loop comes back to."""
        label = self.label(name)
        self.mark("label", label)
        return label

    def raw(self, ops: Sequence[Op]) -> None:
        """Append operations on registers as they are."""
        for op in ops:
            self._append(op)

    def mark(self, name: str, *args: Arg, reads: Sequence[Virtual] = (), writes: Sequence[Virtual] = ()) -> None:
        """Append an operation that is no instruction, or one with a label; `reads`: variables that live until here,
        `writes`: those that begin here."""
        self._append(Op(name, args, tuple(dict.fromkeys(reads)), tuple(writes)))

    def memory(self, name: str, limb: Virtual | str, where: Memory) -> None:
        """Append a `load` of `limb` from, or a `store` of it to, memory."""
        mine = (limb,) if isinstance(limb, Virtual) else ()
        reads, writes = (mine, ()) if name == "store" else ((), mine)
        self._append(Op(name, (limb, where), reads, writes))

    def _append(self, op: Op) -> None:
        if self._heading:
            op = Op(op.insn, op.args, op.reads, op.writes, op.takes, op.gives, self._heading, op.comment)
            self._heading = ""
        self.ops.append(op)

    def _flag(self, flag: str) -> Flag:
        self._flags += 1
        return Flag(self._flags, flag)


def check_flags(ops: Sequence[Op], isa: Isa) -> None:
    """Raise CodeError where an operation takes a flag value that is no longer in the flag."""
    current: dict[str, int | None] = {}
    for index, op in enumerate(ops):
        if op.insn not in isa.insns:  # none of these touches a flag, but a label is reached with any
            current = {} if op.insn == "label" else current
            continue
        insn = isa.insns[op.insn]
        if insn.control or op.takes == ANY_FLAGS:
            continue
        taken = {flag.flag: flag.id for flag in op.takes}
        for flag in flags_read(insn, isa):
            if flag in isa.opaque or _is_zero_chain(insn, flag):
                continue
            if flag not in taken:
                raise CodeError(f"operation {index}, {op.text().strip()}: reads {flag} without saying which")
            if current.get(flag) != taken[flag]:
                raise CodeError(f"operation {index}, {op.text().strip()}: {flag}{taken[flag]} was overwritten")
        given = {flag.flag: flag.id for flag in op.gives}
        for flag in flags_written(insn, isa):
            current[flag] = given.get(flag)


def _is_zero_chain(insn: Insn, flag: str) -> bool:
    """Whether the flag is read only to chain a zero test, which straight-line code does not look at."""
    return any(isinstance(statement, Zero) and statement.also == flag for statement in insn.statements)
