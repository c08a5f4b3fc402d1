"""What a walk comes back to: stretches of code, and loops, which are then done at once.

Nothing is assumed of them: a stretch does what its instructions do.  Where it cannot be done as a whole, because a case
must be split or something is refused, its instructions are executed one by one.
"""

from __future__ import annotations

from . import bus
from .contract import Contract
from .encode import DecodeError
from .fusing import fused
from .held import Refused, Split
from .laps import Laps, laps
from .steps import Steps
from .stretch import Stretch, recorded
from .symbolic import State
from .table import Core

OFTEN = 3  # times that a walk comes back to where a stretch begins before it is recorded


class Hot(Steps):
    """Executes stretches that come back, if it is to do so `at_once`, and counts how often it does."""

    def __init__(self, image: bytes, contract: Contract, core: Core, entry: int, *, at_once: bool) -> None:
        super().__init__(image, contract, core, entry)
        self.at_once = at_once
        self.done_at_once = 0
        self.visits: dict[int, int] = {}
        self.stretches: dict[int, tuple[Stretch, Laps | None] | None] = {}

    def came_back(self, state: State, at: int) -> None:
        """A branch or jump has led back to an address."""
        if self.at_once and at not in self.stretches:
            self.visits[at] = self.visits.get(at, 0) + 1
            if self.visits[at] == OFTEN:
                self.record(state, at)

    def record(self, state: State, at: int) -> None:
        """Find out what a stretch does."""
        self.stretches[at] = None
        stretch = recorded(self.instructions, state, at, self.allowed)
        if stretch:
            fused(stretch)
            self.stretches[at] = stretch, self.loop(stretch)

    def loop(self, stretch: Stretch) -> Laps | None:
        """The loop whose turn the stretch is."""
        try:
            self.allowed(self.instructions.at(stretch.end))
            return laps(stretch, self.instructions)
        except (DecodeError, Refused):
            return None

    def executed(self, state: State, at: int, most: int, beyond: int | None) -> list[int]:
        """The addresses of the instructions that have been executed from one on, at most so many; none where nothing is
        done at once.  `beyond`: a place that must not be walked past."""
        stretch, loop = self.stretches[at] or (None, None)
        singly = state.bus or state.conditions or state.halfway or state.given is not None
        if stretch is None or singly or beyond in (*stretch.addresses, stretch.end) or not stretch.begins(state):
            return []
        enabled = self.interrupts(state)
        before = list(state.slots), dict(state.memory), len(state.events), list(state.pushed)
        state.stack_touched = False
        try:
            turns = loop.turns(state) if loop else 0
            addresses = [*stretch.addresses, stretch.end] * turns if turns > 1 else stretch.addresses
            if len(addresses) > most:
                return []
            if loop and turns > 1:
                loop.run(state, turns)
            else:
                stretch.run(state)
            if state.stack_touched:
                self.check_stack(state, enabled)
        except (Refused, Split, bus.Misuse):
            self.stretches[at] = None
            state.slots, state.memory, events, state.pushed = before
            del state.events[events:]
            return []
        self.done_at_once += 1
        return addresses
