"""Straight-line code for ARMv6-M in which each value is written once: what is computed, but neither in which order nor
in which registers.

Operations belong to *units*: those of one that hand on the carry keep their order, and nothing comes between them that
touches it.  An order is good if it keeps the values that it needs in the eight low registers; `arm_orders` has orders
that were found by search, `arm_fit` says what stays where.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Operations: the instruction, whether its first input's register takes the output, whether the second's may as well.
SHAPES = {
    "uxth": ("uxth", False, False),
    "lsl": ("lsls_i", False, False),
    "lsr": ("lsrs_i", False, False),
    "mul": ("muls", True, True),
    "add": ("adds", False, True),
    "adc": ("adcs", True, True),
    "sub": ("subs", False, False),
    "sbc": ("sbcs", True, False),
    "eor": ("eors", True, True),
    "neg": ("rsbs", False, False),
    "mask": ("sbcs", False, False),  # of any register from itself: all ones if there is a borrow, else zero
    "step": ("adds_i", True, False),  # a pointer, by some bytes
    "at": ("ldr", False, False),  # the limb at a distance from a pointer
    "stack": ("add_rsp", False, False),  # the address of a limb of the caller's frame
    "slot": ("ldr_sp", False, False),  # a limb of the caller's frame, and its number
    "keep": ("str_sp", False, False),
    "ldm": ("ldm", True, False),
    "stm": ("stm", True, False),
    "push": ("push", False, False),
    "pop": ("pop", False, False),
}
LIMB = 4  # bytes
FARTHEST = 63  # limbs that a pointer goes in one step
FRAME = frozenset(("pop", "stack", "slot", "keep"))  # what reaches the stack, beside PUSH
CARRY_IN = frozenset(("adc", "sbc", "mask"))
CARRY_OUT = frozenset(("add", "adc", "sub", "sbc", "mask", "lsl", "lsr", "neg", "step"))


@dataclass(frozen=True)
class Operation:
    """`reads` and `writes` are values by number; `number`: the shift, the bytes of a step, the limb of the frame or
    from a pointer."""

    kind: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    number: int = 0
    comment: str = ""

    @property
    def tied(self) -> tuple[int, ...]:
        """The places in `reads` of what may lose its register to the first output, one of which must."""
        _, tied, either = SHAPES[self.kind]
        return () if not tied else (0, 1) if either else (0,)


def cycles(op: Operation) -> int:
    """Those of an operation, whatever registers it finds."""
    if op.kind in ("push", "pop"):
        return 1 + len(op.reads) + len(op.writes)
    if op.kind in ("ldm", "stm"):
        return len(op.reads) + len(op.writes) - 1  # the pointer is read and written
    return 2 if op.kind in ("slot", "keep", "at") else 1


class Values:
    """Collects operations; values are numbers, from 0 up.  `zero` is one that is always there."""

    def __init__(self) -> None:
        self.units: list[list[Operation]] = []
        self.constants: dict[int, int] = {}  # values that are known numbers
        self.count = 0
        self.zero = self.constant(0)
        self._open = False

    def new(self) -> int:
        """A new value."""
        self.count += 1
        return self.count - 1

    def constant(self, number: int) -> int:
        """A value that is a number, below 256."""
        value = self.new()
        self.constants[value] = number
        return value

    def chain(self) -> Chain:
        """The operations inside are one unit."""
        return Chain(self)

    def do(self, kind: str, *reads: int, number: int = 0, writes: int = 1, comment: str = "") -> tuple[int, ...]:
        """Append an operation; the values that it gives."""
        out = tuple(self.new() for _ in range(writes))
        operation = Operation(kind, reads, out, number, comment)
        if self._open and self.units and self.units[-1] is not self._before:
            self.units[-1].append(operation)
        else:
            self.units.append([operation])
        return out

    def one(self, kind: str, *reads: int, number: int = 0, comment: str = "") -> int:
        """The same for one that gives one value."""
        (out,) = self.do(kind, *reads, number=number, comment=comment)
        return out

    def load(self, pointer: int, count: int) -> tuple[int, list[int]]:
        """(the pointer behind them, so many limbs from where it points)."""
        after, *limbs = self.do("ldm", pointer, writes=1 + count)
        return after, limbs

    def store(self, pointer: int, limbs: Sequence[int]) -> int:
        """The pointer behind the limbs that it has stored."""
        (after,) = self.do("stm", pointer, *limbs)
        return after

    def push(self, limbs: Sequence[int]) -> None:
        """Put limbs on the stack, the first one lowest."""
        self.do("push", *limbs, writes=0)

    def pop(self, count: int) -> list[int]:
        """Take back what lies on top of the stack."""
        return list(self.do("pop", writes=count))

    def step(self, pointer: int, limbs: int) -> int:
        """The pointer so many limbs further on."""
        for at in range(0, limbs, FARTHEST):
            pointer = self.one("step", pointer, number=LIMB * min(FARTHEST, limbs - at))
        return pointer

    _before: list[Operation] | None = None


class Walk:
    """A pointer that loads or stores limbs one after the other; `place` is where it points."""

    def __init__(self, values: Values, place: int) -> None:
        self.values, self.place = values, place

    def load(self, count: int) -> list[int]:
        """The next limbs."""
        self.place, limbs = self.values.load(self.place, count)
        return limbs

    def store(self, limbs: Sequence[int]) -> None:
        """Store limbs to the next places."""
        self.place = self.values.store(self.place, limbs)


class Chain:
    """Operations that hand on the carry: what is done while it is open is one unit."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def __enter__(self) -> None:
        self.values._before = self.values.units[-1] if self.values.units else None
        self.values._open = True

    def __exit__(self, *_: object) -> None:
        self.values._open = False


def flat(units: Sequence[Sequence[Operation]]) -> list[Operation]:
    """The operations of all units; they are known by their places here."""
    return [op for unit in units for op in unit]


def touches(op: Operation) -> bool:
    """Whether it reads or changes the carry."""
    return op.kind in CARRY_IN or op.kind in CARRY_OUT


def chains(units: Sequence[Sequence[Operation]]) -> list[list[int]]:
    """Operations that hand on the carry to each other: no other one that touches it may come between."""
    found, at = [], 0
    for unit in units:
        chain = [at + place for place, op in enumerate(unit) if touches(op)]
        if len(chain) > 1:
            found.append(chain)
        at += len(unit)
    return found


def before(units: Sequence[Sequence[Operation]]) -> list[set[int]]:
    """For each operation those that must stand before it: that make what it reads, use the stack before it does, or
    hand the carry on to it."""
    ops = flat(units)
    maker = {value: at for at, op in enumerate(ops) for value in op.writes}
    found = [{maker[value] for value in op.reads if value in maker} for op in ops]
    stack = [at for at, op in enumerate(ops) if op.kind in FRAME or op.kind == "push"]
    for chain in (stack, *chains(units)):
        for first, second in itertools.pairwise(chain):
            found[second].add(first)
    for at, others in in_memory(ops):
        found[at] |= others
    return found


def in_memory(ops: Sequence[Operation]) -> Iterator[tuple[int, set[int]]]:
    """(operation, those whose accesses to the same number must come before its own): none passes over a store."""
    begins: dict[int, int] = {}  # of a pointer, where it began
    stores: dict[int, int] = {}
    loads: dict[int, set[int]] = {}
    for at, op in enumerate(ops):
        if op.kind not in ("ldm", "stm", "step", "at"):
            continue
        number = begins.get(op.reads[0], op.reads[0])
        if op.kind != "at":
            begins[op.writes[0]] = number
        if op.kind == "stm":
            yield at, loads.pop(number, set())
        if op.kind != "step" and number in stores:
            yield at, {stores[number]}
        if op.kind == "stm":
            stores[number] = at
        elif op.kind in ("ldm", "at"):
            loads.setdefault(number, set()).add(at)
