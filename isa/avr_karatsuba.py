"""Karatsuba's own steps on AVR: carry chains over many limbs, loops over them, and absolute differences.

A loop does a group of limbs in each turn.  Between two groups of a carry chain its carry waits in a register, as a mask
made by SBC p, p and taken back by LSR p.  A chain's first limb is loaded before its carry is taken back, since moving a
pointer destroys it; the loads after it reach by displacement.  A chain that has a loop to itself leaves its carry in
the flag: loads, stores, MOV, EOR, DEC and branches keep it.

Sources: research/avr_kernels.md, patterns 8 and 13.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqgen.code import ANY_FLAGS, Builder, Flag, Memory, Virtual
from sqgen.plan import Difference, Slice

from .avr_leaf import store
from .avr_registers import LOW
from .avr_runs import clear

GROUP = 8  # limbs at a time
COUNTER = "r25"  # of a loop
CARRY = ANY_FLAGS[0]  # as it is
SHORTER = 2  # so many times fewer limbs in a turn where its carry stays in the flag
NEAR = 4  # limbs in a turn that a branch reaches over

Source = Callable[[int], Virtual | None]  # a limb by its index, in a register; None for zero
Addend = Callable[[int], Virtual | str | None]


class Chain:
    """A carry chain over many limbs, in runs; its carry waits in `mask` between them."""

    def __init__(self, build: Builder, name: str, zero: Virtual | str, mask: Virtual | None = None) -> None:
        self.build, self.name, self.zero, self.mask = build, name, zero, mask
        self.carry: Flag | None = None

    def run(
        self, limbs: Sequence[Virtual], addends: Addend, indices: Sequence[int], buffers: Sequence[Buffer] = ()
    ) -> None:
        """Add addends(index) to each limb, or subtract it; the carry is live afterwards.  `buffers` are used on the
        way: their pointers must not move while a carry is."""
        for buffer in buffers:
            buffer.near(indices)
        first, following = ("sub", "sbc") if self.name == "borrow" else ("add", "adc")
        for limb, index in zip(limbs, indices, strict=True):
            addend = addends(index)
            if self.mask and not self.carry:
                self.carry = self.build.emit("lsr", self.mask)
            if addend or self.carry:
                name = following if self.carry else first
                self.carry = self.build.emit(name, limb, addend or self.zero, takes=self.carry)

    def onto(
        self,
        limbs: Sequence[Virtual],
        addends: Source,
        indices: Sequence[int],
        out: Callable[[int, list[Virtual]], None],
    ) -> None:
        """As `run`, with each limb given away at once with its index: one with a home there could be loaded again only
        as it was."""
        for limb, index in zip(limbs, indices, strict=True):
            self.run([limb], addends, [index])
            out(index, [limb])

    def park(self) -> None:
        """Let the carry wait."""
        if self.carry:
            self.mask = self.mask or self.build.limb(self.name)
            self.build.emit("sbc", self.mask, self.mask, takes=self.carry, fresh=True)
            self.carry = None


@dataclass(frozen=True)
class Loop:
    """How a step goes over groups of limbs, a `group` in each turn.

    `walks`: pointer registers and the buffers they walk over, `keep`: variables that live through all turns.
    """

    build: Builder
    group: int
    walks: Mapping[str, str]
    keep: Sequence[Virtual] = field(default=())

    def keeping(self, *variables: Virtual | None) -> Loop:
        """The same, with these alive through all turns."""
        return replace(self, keep=[variable for variable in variables if variable])

    def walking(self, base: str) -> Loop:
        """The same over one of its buffers."""
        return replace(self, walks={pointer: name for pointer, name in self.walks.items() if name == base})

    def chain(self, name: str, zero: Virtual | str) -> Chain:
        """A chain through all turns; the first takes a carry too, which is none."""
        return Chain(self.build, name, zero, clear(self.build, name))

    def over(
        self, count: int, starts: Mapping[str, int], body: Callable[[range], None], *, carrying: bool = False
    ) -> None:
        """body(limbs of the first turn) for `count` limbs; the pointers begin at `starts`.  If the body is `carrying`,
        the carry is none at first, and nothing else in a turn changes it."""
        build = self.build
        for base in self.walks.values():
            build.mark("walk", Memory(base, starts[base]))
        if carrying:
            build.emit("clc")
        build.emit("ldi", COUNTER, count // self.group)
        begin, end = build.begin("loop"), build.label("end")
        self.point(starts, 0)
        body(range(self.group))
        for base in self.walks.values():
            build.mark("walk", Memory(base, starts[base] + self.group))
        build.emit("dec", COUNTER)
        if self.group <= NEAR:
            build.mark("brne", begin, reads=self.keep)
        else:
            build.mark("breq", end)
            build.mark("rjmp", begin, reads=self.keep)
            build.mark("label", end)
        self.point(starts, count)

    def carrying(self, source: Slice, into: Slice, step: Callable[[Virtual, int], None]) -> None:
        """step(limb, index) for all limbs of a source, which are stored then, in turns of few limbs; what each leaves
        in the carry flag the next one finds there."""
        limb_of = Buffer.of(self.build, source)

        def turn(group: range) -> None:
            for index in group:
                (limb,) = limbs_of(limb_of, [index])
                step(limb, index)
                store(self.build, into.first + index, [limb], into.name)

        few = replace(self, group=max(1, self.group // SHORTER))
        few.over(source.count, {source.name: source.first, into.name: into.first}, turn, carrying=True)

    def point(self, starts: Mapping[str, int], further: int) -> None:
        for pointer, base in self.walks.items():
            self.build.mark("point", pointer, Memory(base, starts[base] + further))


@dataclass(frozen=True)
class Buffer:
    """A source of limbs in memory, from `first` of a buffer on; zero beyond `count`."""

    build: Builder
    base: str
    first: int
    count: int

    @classmethod
    def of(cls, build: Builder, limbs: Slice) -> Buffer:
        """Those of a slice."""
        return cls(build, limbs.name, limbs.first, limbs.count)

    def __call__(self, index: int) -> Virtual | None:
        if index >= self.count:
            return None
        limb = self.build.limb(f"{self.base}{self.first + index}")
        self.build.memory("load", limb, Memory(self.base, self.first + index))
        return limb

    def near(self, indices: Sequence[int]) -> None:
        """Let the pointer reach all of these from where it is."""
        there = [index for index in indices if index < self.count]
        if there:
            near(self.build, self.base, self.first + there[0], self.first + there[-1])


def near(build: Builder, base: str, first: int, last: int) -> None:
    """Let a pointer reach all limbs from the `first` to the `last`: it must not move while a carry is live."""
    build.mark("near", Memory(base, first), Memory(base, last))


def next_of_m(build: Builder, sign: Virtual | None) -> str:
    """A limb of M from the stack, complemented if the mask `sign` is all ones: they are taken in order."""
    build.emit("pop", LOW)
    if sign:
        build.emit("eor", LOW, sign)
    return LOW


def limbs_of(source: Source, indices: Sequence[int]) -> list[Virtual]:
    found = [source(index) for index in indices]
    return [limb for limb in found if limb]


def signed(top: Virtual, sign: Virtual) -> Source:
    """The limbs of a number of one limb, and of its sign above that."""
    return lambda index: sign if index else top


def resident_difference(
    build: Builder, low: Source, high: Sequence[Virtual], half: int, zero: Virtual
) -> list[Virtual]:
    """|low - high| in registers; `high` may be in registers already, and shorter.  The pointer reaches both halves, and
    need not move while a borrow is in the carry."""
    limbs: list[Virtual] = []
    chain = Chain(build, "borrow", zero)
    for first in range(0, half, GROUP):
        group = range(first, min(half, first + GROUP))
        part = limbs_of(low, group)
        chain.run(part, lambda index: high[index] if index < len(high) else None, group)
        limbs += part
    chain.park()
    assert chain.mask is not None
    negate(build, limbs, chain.mask, Chain(build, "borrow", zero), range(half))
    return limbs


def negate(build: Builder, limbs: Sequence[Virtual], mask: Virtual, chain: Chain, indices: Sequence[int]) -> None:
    """Negate a number if the mask is all ones."""
    for limb in limbs:
        build.emit("eor", limb, mask)
    chain.run(limbs, lambda index: mask, indices)


def looped_difference(loop: Loop, step: Difference) -> Virtual:
    """|low - high| of an operand's halves, stored where the step says and negated there; its sign as a mask."""
    build = loop.build
    high = Buffer.of(build, step.right)
    sign = build.limb("sign")

    def subtract(limb: Virtual, index: int) -> None:
        (subtrahend,) = limbs_of(high, [index])
        build.emit("sbc", limb, subtrahend, takes=CARRY)

    def negate_limb(limb: Virtual, index: int) -> None:
        build.emit("eor", limb, sign)
        build.emit("sbc", limb, sign, takes=CARRY)

    loop.carrying(step.left, step.into, subtract)
    build.emit("sbc", sign, sign, takes=CARRY, fresh=True)
    loop.walking(step.into.name).keeping(sign).carrying(step.into, step.into, negate_limb)
    return sign
