"""Where the sum waits that registers do not hold: in the result, or on the stack.

In the result a word waits in the limb of its own column, whatever it belongs to, as long as nothing else is there; so
the pointer to the result stays in its register.  On the stack, which needs no register to be reached, the pointer
becomes a limb like any other: it lies there too, and is loaded for those limbs of the result that are final.  That is
a register more for rows that walk, and a load for each time that some of the result is complete.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Protocol

from sqgen.code import Builder, Memory, Virtual

FRAME = "frame"  # the base of what waits on the stack by the plan
POINTERS = {"r": "r0", "a": "r1", "b": "r2"}


class Sums(Protocol):
    """Where words wait: what `Balance` tells of them."""

    def begin(self, rows: Sequence[int]) -> Mapping[int, Virtual]:
        """A block of these rows begins; the limbs of the first operand that are other variables from here on."""

    def enter(self, word: Virtual, column: int) -> None:
        """A word is in a column now, where it was in another one, or in none."""

    def leave(self, word: Virtual) -> None:
        """A word is needed no more."""

    def store(self, word: Virtual, column: int, *, final: bool) -> None:
        """The last word of a column leaves; `final`: for good."""

    def recall(self, column: int) -> Virtual:
        """What was stored of a column comes back."""


class InResult:
    """Who may wait in which limb of the result: a word in that of its own column, as long as nothing else is there."""

    def __init__(self, build: Builder) -> None:
        self.build = build
        self.taken: set[int] = set()  # columns
        self.column: dict[Virtual, int] = {}

    def begin(self, rows: Sequence[int]) -> Mapping[int, Virtual]:
        """They stay what they are, with a home in memory."""
        return {}

    def enter(self, word: Virtual, column: int) -> None:
        """It may wait in the limb of its column."""
        before = self.column.pop(word, None)
        if before is not None:
            self.taken.remove(before)
        if column not in self.taken:
            self.taken.add(column)
            self.column[word] = column
            self.build.mark("room", word, Memory("r", column))
        elif before is not None:
            self.build.mark("own", word)

    def leave(self, word: Virtual) -> None:
        """Its limb is free."""
        if word in self.column:
            self.taken.remove(self.column.pop(word))

    def store(self, word: Virtual, column: int, *, final: bool) -> None:
        """Who waits in that limb must come out before."""
        self.leave(word)
        for other in [other for other, where in self.column.items() if where == column]:
            self.leave(other)
            self.build.mark("own", other)
        self.build.memory("store", word, Memory("r", column))
        self.taken.add(column)

    def recall(self, column: int) -> Virtual:
        """It is another word, that begins in memory."""
        word = self.build.limb(f"r{column}", Memory("r", column))
        self.build.mark("own", word, reads=[word])
        self.taken.remove(column)
        self.enter(word, column)
        return word


class OnStack:
    """Sums that come back wait on the stack; words that find no register are left to the allocator.

    Of two operands only the one that walks by keeps its pointer: the limbs of a block's rows are loaded when it begins.
    """

    def __init__(self, build: Builder, operands: Sequence[str]) -> None:
        self.build, self.two = build, len(operands) > 1
        self.places: dict[int, int] = {}  # column -> place in the frame, where the pointers' come first
        self.pointers: dict[str, Virtual] = {}  # those that were put away

    def begin(self, rows: Sequence[int]) -> Mapping[int, Virtual]:
        """The first operand's limbs of these rows, in registers."""
        limbs = {row: self.build.limb(f"a{row}") for row in rows} if self.two else {}
        for row, limb in limbs.items():
            pointers = [self.pointers["a"]] if "a" in self.pointers else []
            self.build.mark("load", limb, Memory("a", row), *pointers, reads=pointers, writes=[limb])
        if self.two:
            self.put_away("a")
        return limbs

    def enter(self, word: Virtual, column: int) -> None:
        """The allocator gives it a place where it needs one."""

    def leave(self, word: Virtual) -> None:
        """The allocator knows."""

    def store(self, word: Virtual, column: int, *, final: bool) -> None:
        """To the stack, or to the result by a pointer in some register."""
        if not final:
            self.put_away("r")
            place = next(place for place in itertools.count(len(POINTERS)) if place not in self.places.values())
            self.places[column] = place
            self.build.memory("store", word, Memory(FRAME, place))
        else:
            pointers = [self.pointers["r"]] if "r" in self.pointers else []
            self.build.mark("store", word, Memory("r", column), *pointers, reads=[word, *pointers])

    def put_away(self, base: str) -> None:
        """From here on the pointer's register is one for limbs."""
        if base not in self.pointers:
            place = Memory(FRAME, [*POINTERS].index(base))
            self.build.memory("store", POINTERS[base], place)
            self.build.mark("release", POINTERS[base])
            self.pointers[base] = self.build.limb(f"to {base}", place)

    def recall(self, column: int) -> Virtual:
        """It is another word, that begins in memory."""
        word = self.build.limb(f"s{column}", Memory(FRAME, self.places.pop(column)))
        self.build.mark("own", word, reads=[word])
        return word
