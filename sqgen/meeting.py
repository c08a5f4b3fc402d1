"""Where both ways of a branch meet again: the first place that every run goes by, whichever way it took.

To both proofs that is a guess: where the cases are found to be, and whether they can be joined there, they see for
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .encode import DecodeError, Instr

AHEAD = ("branch", "call")  # what must follow for it to pay: else what remains is soon walked in each case
LOOKED = 200_000  # instructions looked at in one proof at most: a tenth of a second
NESTED = 50  # branches that are looked at for one, at most


class Meetings:
    """Of the branches of an image; `decoded` gives the instruction at an offset in bytes, and raises DecodeError."""

    def __init__(self, decoded: Callable[[int], Instr]) -> None:
        self.decoded = decoded
        self.known: dict[int, int | None] = {}  # of a branch: where both ways meet
        self.left, self.nested = LOOKED, 0
        self.joined = 0  # how often a proof has joined cases at one

    def after(self, at: int) -> int | None:
        """Where both ways of the branch at an offset meet, if branches or calls may follow; None if not, or if there is
        no branch."""
        place = self.place(at) if self.control(at) == "branch" else None
        ahead = () if place is None else self.onward(place)
        return place if any(self.control(each) in AHEAD for each in ahead) else None

    def place(self, at: int) -> int | None:
        """Where both ways of a branch meet, whatever follows; None if that is not found."""
        if at not in self.known and self.nested < NESTED:
            self.nested += 1
            first = set(self.onward(self.following(at)))
            self.known[at] = next((place for place in self.onward(self.target(at)) if place in first), None)
            self.nested -= 1
        return self.known.get(at)

    def control(self, at: int) -> str:
        """What an instruction does to the order of execution, "" for nothing; a return where there is none."""
        try:
            return next(iter(self.decoded(at).insn.control), "")
        except DecodeError:
            return "return"

    def following(self, at: int) -> int:
        """The offset behind an instruction."""
        return at + self.decoded(at).insn.size

    def target(self, at: int) -> int:
        """Where a jump or branch leads."""
        return self.following(at) + next(iter(self.decoded(at).immediates.values()))

    def onward(self, at: int | None) -> Iterator[int]:
        """The offsets that every run from this one goes by, up to a return or the way back in a loop."""
        while at is not None and self.left:
            self.left -= 1
            yield at
            kind = self.control(at)
            if kind == "return" or (kind in ("branch", "jump") and self.target(at) <= at):
                return
            onward = {"branch": self.place, "jump": self.target}.get(kind, self.following)
            at = onward(at)
