"""Products of limbs, two words long, on a core without UMAAL.

`Halves` forms one of MUL alone, for cores whose UMULL takes a time that depends on its operands.  With a = l + 2^16 h,

    a * b = l l' + 2^16 (l h' + h l') + 2^32 h h',        a^2 = l^2 + 2^17 l h + 2^32 h^2,

each product of halves is one word, and the two in the middle are added by instructions that shift their operand for
nothing: four multiplications and four additions, three and two for a square.  No addition carries out of the upper
word, since the product is no longer than two.  MLA is not used: it takes two cycles.

`Whole` forms it of UMULL, for who lets time depend on operands.

Sources: research/arm_kernels.md, M3, and research/arm.md, technique 12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sqgen.code import Builder, Memory, Virtual

HALF = 16  # bits
Pair = tuple[Virtual, Virtual]  # low word, high word


@dataclass(frozen=True)
class Half(Memory):
    """One half of the limb at `offset`: 0 the low one, 1 the high one."""

    part: int

    def __str__(self) -> str:
        return f"{self.base}[{self.offset}].{'high' if self.part else 'low'}"


class Limb:
    """A limb of an operand, and its halves: loaded where it lies in memory, else taken from it once."""

    def __init__(self, build: Builder, whole: Virtual) -> None:
        self.build, self.whole = build, whole
        self.known: tuple[Virtual, Virtual] | None = None

    @staticmethod
    def at(build: Builder, base: str, offset: int) -> Limb:
        """The limb of a buffer."""
        limb = Limb(build, build.limb(f"{base}{offset}", Memory(base, offset)))
        low, high = (
            build.limb(f"{base}{offset}.{name}", Half(base, offset, part)) for part, name in enumerate(("low", "high"))
        )
        limb.known = low, high
        return limb

    @property
    def halves(self) -> tuple[Virtual, Virtual]:
        """Low and high half."""
        if self.known is None:
            low, high = (self.build.limb(f"{self.whole.name}.{name}") for name in ("low", "high"))
            self.build.emit("uxth_w", low, self.whole)
            self.build.emit("lsr_wi", high, self.whole, HALF)
            self.known = low, high
        return self.known


class Way(Protocol):
    """How two limbs are multiplied."""

    def product(self, left: Limb, right: Limb, comment: str) -> Pair: ...
    def square(self, limb: Limb, comment: str) -> Pair: ...


class Halves:
    """By MUL, which takes a cycle whatever it multiplies."""

    def __init__(self, build: Builder) -> None:
        self.build = build

    def product(self, left: Limb, right: Limb, comment: str) -> Pair:
        """The product of two limbs."""
        (a_low, a_high), (b_low, b_high) = left.halves, right.halves
        words = self.times(a_low, b_low, comment), self.times(a_high, b_high, "")
        for middle in (self.times(a_low, b_high, ""), self.times(a_high, b_low, "")):
            self.add_middle(words, middle, HALF)
        return words

    def square(self, limb: Limb, comment: str) -> Pair:
        """The square of a limb."""
        low, high = limb.halves
        words = self.times(low, low, comment), self.times(high, high, "")
        self.add_middle(words, self.times(low, high, ""), HALF + 1)
        return words

    def times(self, left: Virtual, right: Virtual, comment: str) -> Virtual:
        """A product of halves, a word."""
        word = self.build.limb("p")
        self.build.emit("mul", word, left, right, comment=comment)
        return word

    def add_middle(self, words: Pair, middle: Virtual, shift: int) -> None:
        """Add a word times 2^shift to two words, which do not run over."""
        low, high = words
        carry = self.build.emit("adds_wl", low, low, middle, shift)
        self.build.emit("adcs_wr", high, high, middle, 2 * HALF - shift, takes=carry)


class Whole:
    """By UMULL."""

    def __init__(self, build: Builder) -> None:
        self.build = build

    def product(self, left: Limb, right: Limb, comment: str) -> Pair:
        """The product of two limbs."""
        low, high = self.build.limb("low"), self.build.limb("high")
        self.build.emit("umull", low, high, left.whole, right.whole, comment=comment)
        return low, high

    def square(self, limb: Limb, comment: str) -> Pair:
        """The square of a limb."""
        return self.product(limb, limb, comment)
