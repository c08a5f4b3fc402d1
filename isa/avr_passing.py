"""What goes in registers from one function on AVR to another, beside pointers: the highest limbs of a product; and
limbs of an operand that the function would load first of all, though they are in memory, too.

Karatsuba's middle M is called right after a difference was formed, many limbs of which are in registers still.  For L
and H the caller loads what the function would have loaded, so that these calls take as long as if it did.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from sqgen.allocate import meeting
from sqgen.code import Builder, Label, Memory, Virtual
from sqgen.plan import Difference, Part, Plan, Recombine, Slice

from .avr_address import SCRATCH
from .avr_registers import POINTERS, pointers


class Given(NamedTuple):
    """The highest limbs of its product that a function leaves in registers: how many, and whether they are `stored`."""

    limbs: int
    stored: bool


ALL_STORED = Given(0, stored=True)


class Taken(NamedTuple):
    """The limbs of an operand, in ascending order, that a function wants in registers."""

    base: str
    limbs: Sequence[int]


class Functions(NamedTuple):
    """Those of a kernel: the one that is `called` for a part, which may have to store all of it; by its name, what it
    leaves in registers, and what it takes there, if anything."""

    called: Callable[[Plan, bool], Label]
    given: Mapping[str, Given]
    taken: Mapping[str, Taken]


@contextlib.contextmanager
def accepted(build: Builder, limbs: Sequence[Virtual]) -> Iterator[None]:
    """A function begins, with these limbs in registers: not in those by which it reserves a frame, which is done
    within."""
    if limbs:
        build.mark("retake", *SCRATCH)
        build.mark("accept", *limbs, writes=limbs)
    yield
    if limbs:
        build.mark("release", *SCRATCH)


class Passing:
    """What a level has in registers for itself at the beginning, which is its `own`, and for the functions that it
    calls."""

    def __init__(self, build: Builder, plan: Plan, functions: Functions, own: Taken | None) -> None:
        self.build, self.functions, self.own = build, functions, own
        (self.last,) = (step for step in plan.steps if isinstance(step, Recombine))
        self.first_difference, *_ = differences = [step for step in plan.steps if isinstance(step, Difference)]
        self.last_difference = differences[-1]
        self.middle = next(part for part in plan.parts() if part.into.name == "m")
        self.there: dict[int, Virtual] = {}  # limbs of the operand, or of the last difference

    def accepted(self) -> contextlib.AbstractContextManager[None]:
        """A level begins; limbs of the upper half of its first difference's operand may be there."""
        if self.own:
            places = self.places(self.first_difference)
            self.there = {i: self.build.limb(f"a{i}", place=places.get(i - self.last.half)) for i in self.own.limbs}
        return accepted(self.build, list(self.there.values()))

    def label(self, step: Part) -> Label:
        """The function that forms a part."""
        # all levels of a kernel have it alike whether all is stored, for they may share parts
        return self.functions.called(step.plan, self.last.turn > 0)

    def taken(self, step: Part) -> Taken | None:
        """What that function takes."""
        return self.functions.taken.get(self.label(step).name)

    def places(self, step: Difference) -> dict[int, str]:
        """Where M's function takes limbs of the last difference, by index; not of one that is loaded while all others
        are there, for which just the registers may be left in which no function takes anything."""
        taken, name = self.taken(self.middle), self.label(self.middle).name
        if not taken or step is not self.last_difference:
            return {}
        found = {limb: meeting(name, "accept", at) for at, limb in enumerate(taken.limbs)}
        if not self.own or step is not self.first_difference:
            return found
        return {limb: found[limb] for limb in found if limb + self.last.half in self.own.limbs}

    def factors(self) -> dict[str, Slice]:
        """M's operands by the names that its function has for them; that of which it takes limbs is the last
        difference."""
        factors, taken = {"a": self.middle.left, "b": self.middle.right}, self.taken(self.middle)
        if taken and factors[taken.base] != self.last_difference.into:
            return {"a": self.middle.right, "b": self.middle.left}
        return factors

    def of_middle(self) -> list[Virtual]:
        """What M's function takes: limbs of the last difference, where they are there already or from there, or loaded
        again."""
        limbs = self.arriving(self.middle)
        for index, limb in limbs.items():
            there = self.there.get(index)
            if there and there.place:
                limbs[index] = there
            elif there:
                self.build.emit("mov", limb, there)
            else:
                self.build.memory("load", limb, Memory("r", self.last_difference.into.first + index))
        return list(limbs.values())

    def by_x(self, step: Part) -> bool:
        """Whether the function takes limbs of an operand for which it is given X, which has no displacements."""
        taken = self.taken(step)
        return taken is not None and pointers(step.plan)[taken.base] == "X"

    def fetched(self, step: Part, instead: str = "") -> list[Virtual]:
        """What the function for H or L takes, loaded by its own pointer or by one that is used `instead`."""
        build, taken = self.build, self.taken(step)
        if not taken:
            return []
        pointer = pointers(step.plan)[taken.base]
        if instead:
            build.emit("movw", POINTERS[instead][0], POINTERS[pointer][0])
        whole = step.left if taken.base == "a" else step.right
        build.mark("point", instead or pointer, Memory(whole.name, whole.first))
        limbs = self.arriving(step)
        for index, limb in limbs.items():
            build.memory("load", limb, Memory(whole.name, whole.first + index))
        build.mark("walk", Memory(whole.name, whole.first))
        return list(limbs.values())

    def arriving(self, step: Part) -> dict[int, Virtual]:
        """New limbs, by index, where a function takes them."""
        label, taken = self.label(step), self.taken(step)
        return (
            {
                limb: self.build.limb(f"{taken.base}{limb}", place=meeting(label.name, "accept", at))
                for at, limb in enumerate(taken.limbs)
            }
            if taken
            else {}
        )
