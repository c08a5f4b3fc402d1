"""Karatsuba's last step around called products on AVR, written out: L + H - M in the middle.

With X = 2^(limb bits * half), L = (B:A), H = (D:C) and W = B + C, the result is

    A + X (A + W - M_lo) + X^2 (W + D - M_hi) + X^3 D

For each limb of a half, 25 cycles, and 9 more of the difference (`avr_difference`): four loads and two of M, which POP
takes from the stack and so frees it; three stores; and seven additions, those of W, A, M_lo, D, M_hi, and of carries to
W and D.

As many limbs of W as possible stay in registers, the upper ones; the others wait where C was and cost 4 cycles more.
The chains that add A and subtract M_lo take turns on small groups of limbs (`avr_tape`).  In r0 is what is added to a
limb; r1 is zero.

Source: research/avr_kernels.md, patterns 13 and 14.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from sqgen.code import Builder, Flag, Memory, Virtual

from .avr_groups import REACHED, budget, groups, reached, spare
from .avr_karatsuba import near, next_of_m
from .avr_leaf import store
from .avr_registers import HIGH, LOW
from .avr_runs import as_mask, clear
from .avr_tape import Tape

ZERO = HIGH
SECOND = "second"  # the result too, by a pointer of its own
SUM, MORE, LESS = 0, 1, 2  # chains: B + C and later W's carry, what else is added, M

ADD, SUBTRACT = ("add", "adc"), ("sub", "sbc")


class OfL(NamedTuple):
    """Limbs of L that are in registers, by index: of its upper half, B, which are nowhere else, and of its lower one,
    A, which are stored as well, and loaded again if no register was left for them."""

    upper: Mapping[int, Virtual] = MappingProxyType({})
    lower: Mapping[int, Virtual] = MappingProxyType({})


IN_MEMORY = OfL()


def load(build: Builder, limb: Virtual | str, base: str, offset: int) -> Virtual | str:
    """Load a limb and say where it is."""
    build.memory("load", limb, Memory(base, offset))
    return limb


@dataclass(frozen=True)
class Chain:
    """A carry chain: its first instruction and those after it, and what they add to a limb or subtract from it."""

    names: tuple[str, str]
    addend: Callable[[int], Virtual | str]  # of the limb with this index, in a register

    def run(
        self, build: Builder, limbs: Sequence[Virtual | str], indices: Sequence[int], carry: Flag | None
    ) -> Flag | None:
        """Go on by the limbs of these indices; the carry."""
        for limb, index in zip(limbs, indices, strict=True):
            addend = self.addend(index)
            carry = build.emit(self.names[carry is not None], limb, addend, takes=carry)
        return carry


class Unrolled:
    """r = L + X^2 H becomes L + X (L + H - M) + X^2 H; M's limbs are on the stack, the lowest on top.

    The pointer of "r" is where the result begins, that of SECOND as well if one does not reach all; `registers` are
    free for limbs.  `sign` is a mask, all ones if M is to be added, or in flag T: M is then complemented, and one is
    borrowed first and given back above.  Without a mask M is `added` or not, by the same instructions but for ADC in
    the place of SBC.  `lent` are the registers of SECOND's pointer if limbs may have them when it is not needed.  Where
    B would be M's lower half may be `stored` if limbs are there `of_l`.  `above` are the limbs of D, if they have names
    already.
    """

    def __init__(
        self,
        build: Builder,
        halves: tuple[int, int],
        registers: int,
        *,
        sign: Virtual | Flag | None,
        added: bool = False,
        lent: Sequence[str] = (),
        of_l: OfL = IN_MEMORY,
        above: Sequence[Virtual] = (),
        stored: bool = False,
    ) -> None:
        self.build, (self.half, self.rest) = build, halves
        self.lent, self.stored = lent, stored
        self.flag = sign if isinstance(sign, Flag) else None
        self.sign = None if isinstance(sign, Flag) else sign
        self.second = "r" if reached(self.half) else SECOND
        self.names = {SUM: ADD, MORE: ADD, LESS: ADD if added else SUBTRACT}
        self.free, self.aside, self.group = budget(halves, registers, masked=sign is not None)
        self.spare = [HIGH] if spare(halves) and not self.flag else []
        self.short = 2 * self.half <= REACHED  # one pointer reaches A and B, one C and D
        self.of_l = of_l
        self.low, self.far = (self.second, "r") if self.short else ("r", SECOND)  # to reach B, and C or D
        self.tape = Tape(build, MORE)
        self.begun: set[int] = set()  # chains
        self.lifted: Flag | None = None  # what W carries out, for D
        self.top: Virtual | None = None  # what goes into D
        self.borrowed: Flag | None = None  # for a negative M, when its mask is formed
        self.waiting: list[Virtual] = []  # W's upper limbs
        self.above = list(above) or [build.limb(f"r{at}", Memory(self.far, at)) for at in self.columns_above()]

    def highest(self) -> list[Virtual]:
        """The highest limbs of the result, as far as they are in registers at the end."""
        return self.above[self.aside :]

    def columns_above(self) -> range:
        """Of D."""
        return range(3 * self.half, 2 * (self.half + self.rest))

    def all_steps(self) -> None:
        if not self.spare:
            self.build.emit("eor", ZERO, ZERO)
        if self.short:
            near(self.build, "r", 0 if self.low == "r" else 2 * self.half, 2 * (self.half + self.rest) - 1)
        for group in groups(range(self.aside), self.free - len(self.of_l.upper)):
            self.lower_aside(group)
        self.lower_waiting(range(self.aside, self.half))
        if self.spare:
            self.build.emit("eor", ZERO, ZERO)
        lent = self.lent if self.short else ()
        if lent:
            self.build.mark("release", *lent)
        if not self.short:
            self.put_away()
        self.reach_upper(range(min(self.half, REACHED)))
        free = self.free + len(lent)
        for group in groups(range(self.aside), max(1, free - len(self.waiting))):
            self.upper_aside(group)
        self.upper_waiting(range(self.aside, self.half), free)
        if self.above:
            self.rise(self.end_top())

    # ---- columns half .. 2 half - 1 -------------------------------------------------------------------------------

    def lower_aside(self, group: Sequence[int]) -> None:
        """Limbs of W that are stored where C was, and become A + W - M_lo at once."""
        limbs = self.form_w(group)
        store(self.build, 2 * self.half + group[0], limbs[: max(0, 2 * self.rest - group[0])], self.far)
        apart = not (self.short or self.together(group))
        lowest = SECOND if apart else self.low
        if apart:
            self.put_away()
            near(self.build, SECOND, group[0], group[-1])
        self.turns({MORE: lambda index: load(self.build, LOW, lowest, index), LESS: self.lower_limb_of_m}, limbs, group)
        store(self.build, self.half + group[0], limbs, self.low)

    def lower_waiting(self, indices: Sequence[int]) -> None:
        """Limbs of W that stay in registers."""
        build = self.build
        self.waiting = self.form_w(indices)
        parts = groups(indices, self.group)
        first = LESS if len(parts) % 2 and not self.tape.register else MORE  # so that MORE is the last one
        if not self.aside and self.half + len(parts[0]) < self.free:
            assert not self.flag or first == LESS, "few limbs, all of which are done at a time"
            self.count_w(self.tape.begin(first))
        else:
            self.tape.move(first)
            assert self.tape.register
            self.lifted = build.emit("bst", self.tape.register, 0, comment="what W carries out, for D")
        if not self.short:
            self.put_away()
            near(build, SECOND, indices[0], indices[-1])
        for group in parts:
            limbs = self.limbs_of_a(group)
            self.turns({MORE: lambda index: self.waiting[index - self.aside], LESS: self.lower_limb_of_m}, limbs, group)
            store(build, self.half + group[0], limbs, self.low)

    def count_w(self, carry: Flag | None) -> None:
        """What W carries out goes into D; also what is borrowed for a negative M, if its sign was in flag T: NEG leaves
        that in the carry, where M's chain begins."""
        build = self.build
        if self.flag:
            self.sign = clear(build, "sign")
            build.emit("bld", self.sign, 0, takes=self.flag)
            self.top = build.limb("top")
            build.emit("mov", self.top, self.sign)
            build.emit("adc", self.top, ZERO, takes=carry, comment="and what W carries out, for D")
            self.borrowed = build.emit("neg", self.sign, comment="one is borrowed for a negative M")
        else:
            self.top = clear(build, "top")
            build.emit("adc", self.top, self.top, takes=carry, comment="what W carries out, for D")

    def limbs_of_a(self, group: Sequence[int]) -> list[Virtual | str]:
        """Limbs of A, to be written."""
        build, spare = self.build, [*self.spare]
        limbs: list[Virtual | str] = []
        for index in group:
            if there := self.of_l.lower.get(index):
                build.mark("own", there, reads=[there])
                limbs.append(there)
            else:
                limbs.append(spare.pop() if spare else build.limb(f"r{self.half + index}"))
                load(build, limbs[-1], self.second, index)
        return limbs

    def together(self, indices: Sequence[int]) -> bool:
        """Whether one pointer reaches limbs of A and of B."""
        return self.half + len(indices) <= REACHED

    def form_w(self, indices: Sequence[int]) -> list[Virtual]:
        """B + C."""
        build, half = self.build, self.half
        there = [index for index in indices if index < 2 * self.rest]
        if not self.short:
            self.put_away()
            near(build, "r", indices[0] + (0 if self.together(indices) else half), half + indices[-1])
            if there:
                near(build, SECOND, 2 * half + there[0], 2 * half + there[-1])
        limbs = [self.of_l.upper.get(index) or build.limb(f"w{index}") for index in indices]
        for limb, index in zip(limbs, indices, strict=True):
            if index not in self.of_l.upper:
                load(build, limb, self.low, half + index)
        self.turns(
            {SUM: lambda index: load(build, LOW, self.far, 2 * half + index) if index in there else ZERO},
            limbs,
            indices,
        )
        return limbs

    def lower_limb_of_m(self, index: int) -> Virtual | str:
        """One of the lower half, complemented if the sign is all ones."""
        if not self.stored:
            return self.limb_of_m(index)
        load(self.build, LOW, self.low, self.half + index)
        if self.sign:
            self.build.emit("eor", LOW, self.sign)
        return LOW

    def limb_of_m(self, index: int) -> str:
        return next_of_m(self.build, self.sign)

    # ---- columns 2 half .. 3 half - 1 -----------------------------------------------------------------------------

    def reach_upper(self, group: Sequence[int]) -> None:
        """Let the pointers reach these limbs of C and D."""
        first = 2 * self.half + group[0]
        last = first + len(group) - 1
        there = [column for column in self.columns_above() if group[0] <= column - 3 * self.half <= group[-1]]
        if self.short and there:
            last = there[-1]
        near(self.build, "r", first, min(last, 2 * (self.half + self.rest) - 1))
        if there and not self.short:
            near(self.build, SECOND, there[0], there[-1])

    def upper_aside(self, group: Sequence[int]) -> None:
        """Limbs of W that were stored."""
        if self.half > REACHED:
            self.put_away()
            self.reach_upper(group)
        limbs = [self.build.limb(f"w{index}") for index in group]
        for limb, index in zip(limbs, group, strict=True):
            load(self.build, limb, "r", 2 * self.half + index)
        self.turns({SUM: lambda index: ZERO, MORE: self.limb_of_d, LESS: self.limb_of_m}, limbs, group)
        self.store_upper(group, limbs)

    def upper_waiting(self, indices: Sequence[int], free: int) -> None:
        """Limbs of W that are in registers; with those so many are `free`."""
        if self.half > REACHED:
            self.put_away()
            self.reach_upper(indices)
        self.turns({SUM: lambda index: ZERO}, self.waiting, indices)
        if self.above:
            self.begin_top()
        for group in groups(indices, max(1, free - 1 - len(indices))):
            limbs = self.waiting[group[0] - self.aside : group[-1] + 1 - self.aside]
            ended = self.count_more if self.above and group[-1] == indices[-1] else None
            self.turns({MORE: self.kept_limb_of_d, LESS: self.limb_of_m}, limbs, group, more_ended=ended)
            self.store_upper(group, limbs)

    def store_upper(self, group: Sequence[int], limbs: Sequence[Virtual]) -> None:
        """What the result has room for; above that is nothing."""
        store(self.build, 2 * self.half + group[0], limbs[: max(0, 2 * self.rest - group[0])])

    def limb_of_d(self, index: int) -> Virtual | str:
        """One that is loaded for this alone."""
        return load(self.build, LOW, self.far, 3 * self.half + index) if index < len(self.above) else ZERO

    def kept_limb_of_d(self, index: int) -> Virtual | str:
        """One that stays in its register if there is one for it."""
        return self.above[index] if index < len(self.above) else ZERO

    # ---- chains ---------------------------------------------------------------------------------------------------

    def turns(
        self,
        chains: Mapping[int, Callable[[int], Virtual | str]],
        limbs: Sequence[Virtual | str],
        indices: Sequence[int],
        *,
        more_ended: Callable[[], None] | None = None,
    ) -> None:
        """These chains go on by some limbs, in the order in which the tape is moved least; what is done when MORE has
        come to its end."""
        for which in self.tape.nearest(chains):
            self.tape.move(which)
            carry = self.tape.carry if which in self.begun else self.first_carry(which)
            self.begun.add(which)
            self.tape.carry = Chain(self.names[which], chains[which]).run(self.build, limbs, indices, carry)
            if which == MORE and more_ended:
                more_ended()

    def first_carry(self, which: int) -> Flag | None:
        """What a chain begins with."""
        if which == LESS and self.borrowed:
            return self.borrowed
        if which == LESS and self.sign:
            return self.build.emit("asr", self.sign, comment="one is borrowed for a negative M; all ones stay so")
        return None

    def put_away(self) -> None:
        """Leave the carry flag to others."""
        while self.tape.carry:
            self.tape.move(self.tape.at + (1 if self.tape.at >= LESS else -1))

    # ---- columns 3 half and above ---------------------------------------------------------------------------------

    def begin_top(self) -> None:
        """What goes into D: what W carries out for the first time, and for the second if that cannot be ruled out.

        B is at most X - 2, so a W that has carried out takes one more; the proof sees that where W is in registers.
        """
        if not self.top:
            self.top = clear(self.build, "top")
            self.build.emit("bld", self.top, 0, takes=self.lifted)
        if self.aside:
            self.build.emit("adc", self.top, ZERO, takes=self.tape.carry)
        self.tape.carry = None

    def count_more(self) -> None:
        """What D's chain carries, and what was borrowed for a negative M."""
        assert self.top
        self.build.emit("adc", self.top, ZERO, takes=self.tape.carry)
        self.tape.carry = None
        if self.sign and not self.flag:
            self.build.emit("sub", self.top, self.sign)

    def end_top(self) -> Virtual:
        """What M's chain borrows; the sign as a mask: it never is below zero, but the proof need not know that."""
        assert self.top
        self.tape.move(LESS)
        borrow = self.build.emit(self.names[LESS][1], self.top, ZERO, takes=self.tape.carry)
        return as_mask(self.build, "sign", borrow)

    def rise(self, sign: Virtual) -> None:
        """It goes through D."""
        carry: Flag | None = None
        assert self.top
        for index, limb in enumerate(self.above):
            carry = self.build.emit("adc" if carry else "add", limb, sign if index else self.top, takes=carry)
            store(self.build, 3 * self.half + index, [limb], self.far)
