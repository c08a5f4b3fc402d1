"""The last step of Karatsuba's method on MSP430, when L and H are in their places and M lies at the stack pointer.

W = L_hi + H_lo goes to H_lo's place, and its carry w belongs to H_hi: with V = H_hi + w the limbs above L_lo are
L_lo + W - M_lo, W + V - M_hi and V.  In a product M is subtracted or added, by a mask: all of its limbs
are turned over where it is to be subtracted, and added with a carry, as if it were added, and less 1 at V.

Of an odd number of limbs H has two fewer than L and M, and V with it: carries run on where it has none.

M is popped as it is used.  Carries wait, while chains of others run, side by side in one register, which is shifted for
each; how far from the end one stands is known, and BIT brings it back.
"""

from __future__ import annotations

from collections.abc import Sequence

from .msp430_columns import FREE
from .msp430_writer import LEFT, LIMB, RESULT, RIGHT, Writer

WORDS = ("r11", "r10", "r9", *FREE[:-1])
MASK = FREE[-1]  # all ones if M is to be subtracted; a limb more where that is known
TAPE = "r15"
FAR = 3  # a carry on the tape that lies further back is brought nearer


def recombine(writer: Writer, limbs: int, *, signed: bool) -> None:
    """The step, of operands of so many limbs; the result's address is in its register.  `signed`: behind M lies a mask
    that says what is to become of it; else it is subtracted."""
    (Signed if signed else Sums)(writer, limbs).all()


class Sums:
    """Of a square."""

    CHAINS = ("more", "sums", "middle", "shared")  # whose carries come to V
    WORDS: Sequence[str] = (*WORDS, MASK)
    LAST = False  # whether the last carry waits, too

    def __init__(self, writer: Writer, limbs: int) -> None:
        self.writer, self.emit = writer, writer.emit
        self.half = limbs - limbs // 2
        self.highest = 2 * limbs - 3 * self.half  # limbs of H_hi
        self.tape: list[str] = []  # whose carries wait, the latest first

    def all(self) -> None:
        """All of it."""
        self.shared()
        self.lower()
        self.upper()
        self.top()

    # ---- carries ---------------------------------------------------------------------------------------------------

    def wait(self, chain: str) -> None:
        """The carry of a chain goes to the tape."""
        self.emit("addc_r", TAPE, TAPE)
        self.tape.insert(0, chain)

    def restore(self, chain: str) -> None:
        """It comes back; nothing does before the chain has begun."""
        self.emit(f"bit_{1 << self.tape.index(chain)}", TAPE)

    def chain(self, name: str, words: Sequence[str], *pointer: str, whose: str, count: int | None = None) -> None:
        """Add to some words, or subtract from them, what a pointer walks over, or the stack pointer; with a `count` to
        so many of them, and the carry to the others."""
        way, begun = "p" if pointer else "pop", whose in self.tape
        if begun:
            self.restore(whose)
        for index, word in enumerate(words):
            if count is None or index < count:
                self.emit(f"{name}{'c' if begun or index else ''}_{way}", word, *pointer)
            else:
                self.emit("adc", word)
        self.wait(whose)

    def turns(self) -> list[range]:
        """The limbs of a half, as many at a time as there are registers, about the same number each time."""
        count = -(-self.half // len(self.WORDS))
        return [range(self.half * k // count, self.half * (k + 1) // count) for k in range(count)]

    # ---- the parts -------------------------------------------------------------------------------------------------

    def shared(self) -> None:
        """W and its carry."""
        half = self.half
        self.writer.build.heading("W = L_hi + H_lo")
        self.emit("mov_r", LEFT, RESULT)
        self.writer.shift(LEFT, half)
        for k in range(half):
            self.emit("addc_px" if k else "add_px", LEFT, RESULT, LIMB * (2 * half + k))
        self.wait("shared")

    def lower(self) -> None:
        """L_lo + W, and M_lo."""
        self.writer.build.heading("L_lo + W - M_lo")
        self.emit("mov_r", LEFT, RESULT)
        self.emit("mov_r", RIGHT, RESULT)
        self.writer.shift(RIGHT, 2 * self.half)
        self.limbs(self.half, twice=False)

    def upper(self) -> None:
        """W + V, and M_hi."""
        self.writer.build.heading("W + V - M_hi")
        self.writer.shift(LEFT, self.half)
        self.limbs(2 * self.half, twice=True)

    def limbs(self, first: int, *, twice: bool) -> None:
        """What the pointers walk over, and M, to the result; with W's carry, as in all places where W is not the first
        time."""
        for turn in self.turns():
            words = self.WORDS[: len(turn)]
            self.added(words, max(0, self.highest - turn.start) if twice else len(turn))
            last = twice and turn.stop == self.half
            if twice:
                self.restore("more" if turn.start else "shared")
                for word in words:
                    self.emit("adc", word)
                if not last or self.LAST:
                    self.wait("more")
            if not last and self.tape.index("shared") > FAR:
                self.restore("shared")
                self.wait("shared")
            for index, word in enumerate(words):
                self.emit("mov_rx", word, RESULT, LIMB * (first + turn.start + index))

    def added(self, words: Sequence[str], count: int) -> None:
        """Some of these limbs; the right pointer has a `count` of them."""
        for word in words:
            self.emit("mov_p", word, LEFT)
        self.chain("add", words, RIGHT, whose="sums", count=count)
        self.chain("sub", words, whose="middle")

    def carries(self, register: str) -> None:
        """All carries into V, and one more."""
        self.emit("clr", register)
        self.emit("adc", register, comment="the carry of the last addition")
        self.collect(register, self.CHAINS[1:])

    def collect(self, register: str, chains: Sequence[str]) -> None:
        """Add carries."""
        for chain in chains:
            self.restore(chain)
            self.emit("adc", register)

    def top(self) -> None:
        """H_hi and the carries."""
        carries, sign = LEFT, RIGHT
        self.writer.build.heading("H_hi and the carries")
        self.carries(carries)
        self.emit("sub_1", carries)
        self.emit("subc_r", sign, sign, comment="nothing, or all ones below zero")
        for k in range(self.highest):
            name, word = ("addc_rx", sign) if k else ("add_rx", carries)
            self.emit(name, word, RESULT, LIMB * (3 * self.half + k))


class Signed(Sums):
    """Of a product."""

    WORDS = WORDS
    LAST = True

    def all(self) -> None:
        self.writer.read("mov", MASK, "sp", 2 * self.half)
        super().all()

    def added(self, words: Sequence[str], count: int) -> None:
        for word in words:
            self.emit("pop", word)
        for word in words:
            self.emit("xor_r", word, MASK)
        self.restore("middle") if "middle" in self.tape else self.emit("bit_1", MASK)
        for word in words:
            self.emit("addc_p", word, LEFT)
        self.wait("middle")
        self.chain("add", words, RIGHT, whose="sums", count=count)

    def carries(self, register: str) -> None:
        self.emit("mov_1", register)
        self.emit("add_r", register, MASK)
        self.collect(register, self.CHAINS)
