"""Carries of several chains that run side by side on AVR, on a tape.

The chains have places on the tape, side by side; the carry flag is its head, one register the rest of it.  ROL and ROR
move the head to the next chain: they put the carry of the one away and bring that of the other, in one cycle where
SBC p, p and LSR p take two.  Chains that take turns there and back, 0 1 2, 2 1 0, 0 1 2, pay one move for each change.

Source: research/avr_kernels.md, pattern 7, where two chains exchange their carries.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqgen.code import Builder, Flag, Virtual

from .avr_runs import as_mask


class Tape:
    """The carries of chains 0, 1, 2, ...; what lies on places that no chain has is never looked at."""

    def __init__(self, build: Builder, at: int) -> None:
        self.build = build
        self.at = at  # the chain whose carry is in the flag, or was
        self.carry: Flag | None = None  # as it is in the flag
        self.register: Virtual | None = None
        self.kept: set[int] = set()  # chains whose carry is on the tape

    def move(self, to: int) -> None:
        """Bring the carry of a chain to the flag, and put away that of the one before.

        The first time the head goes to any chain at once: nothing is on the tape, and a mask of a carry is that carry
        at all places."""
        if self.register is None and self.at != to:
            self.begin(to)
        while self.at != to:
            step = 1 if to > self.at else -1
            if self.carry:
                self.kept.add(self.at)
            self.shift(step)
            self.at += step
            if self.at not in self.kept:
                self.carry = None
            self.kept.discard(self.at)

    def begin(self, to: int) -> Flag | None:
        """Put the first carry away, if there is one, for any other chain; it is in the flag still."""
        carry = None
        if self.carry:
            self.kept.add(self.at)
            self.register = self.build.limb("tape")
            carry = self.build.emit("sbc", self.register, self.register, takes=self.carry, fresh=True)
        self.at, self.carry = to, None
        return carry

    def shift(self, step: int) -> None:
        """Move the head by one place."""
        build, register = self.build, self.register
        assert register
        if step > 0:
            name = "adc" if self.carry else "add"
            self.carry = build.emit(name, register, register, takes=self.carry)
        else:
            self.carry = build.emit("ror" if self.carry else "lsr", register, takes=self.carry)

    def nearest(self, chains: Iterable[int]) -> list[int]:
        """Neighbouring chains in the order that begins nearest to the head."""
        found = sorted(chains)
        return found if abs(found[0] - self.at) <= abs(found[-1] - self.at) else found[::-1]


class Waiting:
    """Carries that wait, the last one to be taken first: each as a mask in a register of its own or, `together`, in one
    register that they enter from below.  ASR takes one from there, and leaves the others as they were before: the first
    one fills all bits above, and is a mask when it is alone."""

    def __init__(self, build: Builder, together: bool) -> None:
        self.build, self.together = build, together
        self.masks: list[Virtual] = []
        self.count = 0

    def put(self, carry: Flag | None) -> None:
        """Let a carry wait."""
        if self.together and self.masks:
            self.build.emit("adc", self.masks[0], self.masks[0], takes=carry)
        else:
            self.masks.append(as_mask(self.build, "waiting", carry))
        self.count += 1

    def carry(self) -> Flag | None:
        """Take the last one, which is not the first."""
        self.count -= 1
        if self.together:
            return self.build.emit("asr", self.masks[0])
        return self.build.emit("lsr", self.masks.pop())

    def mask(self) -> Virtual:
        """Take the last one as a mask; none can be taken after it."""
        mask = self.masks.pop()
        if self.count > 1 and self.together:
            carry = self.build.emit("asr", mask)
            self.build.emit("sbc", mask, mask, takes=carry, fresh=True)
        return mask

    def first(self) -> Virtual:
        """The first one as a mask; it stays."""
        if not self.together:
            return self.masks[0]
        mask = self.build.limb("mask")
        self.build.emit("mov", mask, self.masks[0])
        self.build.emit("sbc", mask, mask, takes=self.build.emit("add", mask, mask), fresh=True)
        return mask
