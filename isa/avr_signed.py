"""One level of Karatsuba multiplication on AVR in one piece: signed differences, limbs used as they leave a product.

With X = 2^(limb bits * half), L = L_lo + X L_hi, V = H + L_hi = W + X H', d = a_lo - a_hi, e = b_hi - b_lo:

    a * b = L_lo + X (L_lo + W + d e) + X^2 (W + H') + X^3 H'

The product H begins on L_hi, d e on U = L_lo + W, so both sums cost one addition at most.  No absolute value is taken,
nothing is negated: d and e are kept modulo X, with masks of their borrows, and
d e = d' e' - X (e_mask & d') - X (d_mask & e') + X^2 where both are negative.  Two ways to do that: `avr_middle`.

What goes into H' at the end is a sum of five carries from -1 to 2: it changes sign, where the carry out of H + L_hi was
lent to H' too early.

Sources: research/avr_kernels.md, section 7, patterns 1 to 6.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqgen.code import Builder, Flag, Memory, Virtual
from sqgen.plan import Block, Difference, Part, Plan, Recombine, Step, Strip

from .avr_karatsuba import Chain, signed
from .avr_leaf import Leaf
from .avr_registers import POINTERS
from .avr_runs import as_mask, clear
from .avr_tape import Waiting

BOTH = 5  # limbs of a half where both differences wait while H is formed, d in memory, and no operand is read again
ROOMY = 4  # limbs of a half where there are registers for all
SPARE = 4  # registers left free when the middle begins: fewer moves than where every limb waits in a register


@dataclass(frozen=True)
class Site:
    """Where a product stands: its factors, the buffer and the column where it begins, and a limb that is zero; the
    `name` of one that is a part, or that it is `whole`, and no limb above it counts.

    `kept`: the upper half of the product is not stored.  `columns`: so many columns of the buffer are there for limbs
    that wait, if not all of the product's.  `free`: pointer registers that limbs may have as soon as the
    last limb of b, or of a, is loaded; they are pushed before that if they are `needed` again.  `again`: the upper half
    of b is needed again, and keeps its places in memory.
    """

    factors: tuple[list[Virtual], list[Virtual]]
    base: str
    first: int
    zero: Virtual
    free: Mapping[str, str]
    name: str = ""
    kept: bool = False
    needed: bool = False
    again: bool = False
    columns: int | None = None
    whole: bool = False


class Signed(abc.ABC):
    """Forms the plan's product: parts L, H and M = d e, in this order; what is not said here is how e enters M."""

    waiting: Waiting  # carries of d and U
    of_e: Waiting  # that of e
    both = BOTH

    def __init__(self, build: Builder, plan: Plan, site: Site) -> None:
        self.build, self.plan, self.site = build, plan, site
        (last,) = (step for step in plan.steps if isinstance(step, Recombine))
        self.half, self.top = last.half, 2 * plan.limbs
        self.early = False  # whether e is formed before H
        (self.a, self.b), self.zero = site.factors, site.zero
        self.upper: list[Virtual] = []  # limbs of the product that are kept
        self.below: dict[int, Virtual] = {}  # limbs below those that may be in registers, too, by column
        self.low: list[Virtual] = []  # L_lo, later U
        self.sum: list[Virtual] = []  # the upper half of the product that was formed last
        self.v: list[Virtual] = []  # W, then H'
        self.d: list[Virtual] = []  # d'
        self.e: list[Virtual] = []  # e'
        self.first_of_last = 0  # the column where the last strip of M's rows begins
        self.middle: dict[int, Virtual] = {}  # limbs of the middle that no product is added to any more

    def all_steps(self) -> None:
        """Step by step."""
        for step in self.plan.steps:
            self.step(step)

    def step(self, step: Step) -> None:
        """One step."""
        match step:
            case Block(title):
                self.build.heading(f"{title} of {self.site.name}" if self.site.name else title)
            case Part(plan) if step.into.name == "m":
                self.form_middle(plan)
            case Part(plan) if step.into.first:
                self.form_high(plan)
            case Part(plan):
                self.form_low(plan)
            case Difference() if step.left.name == "b":
                self.form_e()
            case Recombine():
                self.finish()

    # ---- L and H --------------------------------------------------------------------------------------------------

    def form_low(self, plan: Plan) -> None:
        """L."""
        a, b = self.a[: self.half], self.b[: self.half]
        Leaf(plan, self.build, a, b, out=self.take_low, zero=self.zero).all_steps()

    def take_low(self, first: int, limbs: list[Virtual]) -> None:
        """Limbs of L: the lower half is final."""
        for index, limb in enumerate(self.variables(limbs), first):
            if index < self.half:
                self.room(limb, index)
                self.build.memory("store", limb, self.place(index))
                self.low.append(limb)
            else:
                self.sum.append(limb)

    def place(self, column: int) -> Memory:
        """Where a limb of the product is stored."""
        return Memory(self.site.base, self.site.first + column)

    def room(self, limb: Virtual, column: int) -> None:
        """A limb may wait in the place of a column, if there is one."""
        if self.site.columns is None or column < self.site.columns:
            self.build.mark("room", limb, self.place(column))

    def final(self, column: int, limbs: Sequence[Virtual]) -> None:
        """Limbs of the product from a column on."""
        for at, limb in enumerate(limbs, column):
            if self.site.kept and at >= self.plan.limbs:
                self.upper.append(limb)
            else:
                self.build.memory("store", limb, self.place(at))

    def variables(self, limbs: Sequence[Virtual]) -> list[Virtual]:
        """Limbs that can be written."""
        return [clear(self.build, "s") if limb is self.zero else limb for limb in limbs]

    def form_high(self, plan: Plan) -> None:
        """V = H + L_hi; its limbs may wait where those of the result will be that need them."""
        half = self.half
        if not self.early:
            old = [] if half <= ROOMY else [*self.a[:half], *self.low]
            crowded = [limb for limb in old if limb not in self.sum]  # a level has put its own into limbs of a
            self.build.mark("forget", *self.b[:half], *crowded)
        leaf = self.started(Leaf(plan, self.build, self.a[half:], self.b[half:], out=self.take_high, zero=self.zero))
        leaf.all_steps()
        self.take_high(len(self.v), [leaf.limbs[column] for column in sorted(leaf.limbs)])

    def started(self, leaf: Leaf) -> Leaf:
        """The leaf with what is in `sum` at its lowest columns."""
        for column, limb in enumerate(self.sum):
            leaf.limbs[column] = limb
            leaf.sum.add_limb(column)
        self.sum = []
        return leaf

    def take_high(self, first: int, limbs: Sequence[Virtual]) -> None:
        """Limbs of V."""
        for index, limb in enumerate(self.variables(limbs), 2 * self.half + first):
            if index < self.top:
                self.room(limb, index)
                if index < 3 * self.half - 1:
                    self.put_aside(limb, index)
            self.v.append(limb)

    @abc.abstractmethod
    def put_aside(self, limb: Virtual, column: int) -> None:
        """A limb of V has its place in the result's `column`, which is there as long as it is needed."""

    # ---- d and e --------------------------------------------------------------------------------------------------

    def form_e(self) -> None:
        """e', and d' if it is formed early, too."""
        self.of_e.put(self.b_subtracted())
        self.e_formed()
        self.form_d_early()

    def form_d_early(self) -> None:
        """d' beside e', if H is to come and there are registers for both."""
        if self.early and self.half <= self.both:
            self.form_d()

    def b_subtracted(self) -> Flag | None:
        """e', in the registers of what is on the left; its borrow.  No operand but a is loaded any more."""
        self.early = not self.v
        low, high = self.b[: self.half], self.b[self.half :]
        if self.site.again:
            self.build.mark("need", reads=high)
        else:
            for limb in high:  # as long as H needs them; and no pointer moves while a borrow is in the carry
                self.own(limb)
        homes = [limb.home for limb in low if limb.home]
        if homes and not self.early:
            self.build.mark("near", homes[0], homes[-1])
        self.e, carry = self.difference(*self.order(low, high))
        self.release("b")
        return carry

    def form_d(self) -> None:
        """d' = a_lo - a_hi, in the registers of a_lo."""
        self.d = self.a[: self.half]
        _, carry = self.difference(self.d, self.a[self.half :], self.place_of_d())
        self.d_borrowed(carry)
        self.d_formed()

    def d_borrowed(self, carry: Flag | None) -> None:
        """What becomes of the borrow of d'."""
        self.waiting.put(carry)

    @abc.abstractmethod
    def order(self, low: list[Virtual], high: list[Virtual]) -> tuple[list[Virtual], list[Virtual]]:
        """The halves of b: what e' is, the first less the second."""

    @abc.abstractmethod
    def place_of_d(self) -> Callable[[int, Virtual], None] | None:
        """What says where a limb of d' with an index may wait, None if there is no place."""

    @abc.abstractmethod
    def e_formed(self) -> None:
        """What becomes of e' and its borrow."""

    @abc.abstractmethod
    def d_formed(self) -> None:
        """What becomes of d'."""

    def difference(
        self,
        left: Sequence[Virtual],
        right: Sequence[Virtual],
        placed: Callable[[int, Virtual], None] | None = None,
    ) -> tuple[list[Virtual], Flag | None]:
        """left - right, in the registers of `left`, and the borrow.  If each limb is `placed` where it may wait, then
        `right` stays in registers as long as it is needed."""
        borrow = Chain(self.build, "borrow", self.zero)
        limbs = [*left, *(clear(self.build, "d") for _ in range(self.half - len(left)))]
        for index, limb in enumerate(limbs):
            if index < len(left):
                self.own(limb)
            if index < len(right) and placed:
                self.own(right[index])
            borrow.run([limb], lambda index: right[index] if index < len(right) else None, [index])
            if placed:
                placed(index, limb)
        return limbs, borrow.carry

    def release(self, base: str) -> None:
        """The last limb of an operand is loaded: its pointer becomes two registers for limbs."""
        if base not in self.site.free:
            return
        registers = POINTERS[self.site.free[base]]
        for register in reversed(registers) if self.site.needed else ():
            self.build.emit("push", register)
        self.build.mark("release", *registers)

    def own(self, limb: Virtual) -> None:
        """The limb is to be written, or its place in memory is."""
        self.build.mark("own", limb, reads=[limb])

    # ---- the middle -----------------------------------------------------------------------------------------------

    def form_middle(self, plan: Plan) -> None:
        """The lower half of U + d e to the result, and the upper one, but for e' where d is negative."""
        self.first_of_last = [step.first for step in plan.steps if isinstance(step, Strip)][-1]
        if not self.d:
            self.form_d()
        self.before_middle()
        self.begin_middle()
        self.leaf = self.started(self.leaf_of_middle(plan))
        self.leaf.all_steps()
        self.sum = [self.middle[column] for column in range(self.half, 2 * self.half)]

    @abc.abstractmethod
    def before_middle(self) -> None:
        """What is to be done when d' is there."""

    @abc.abstractmethod
    def leaf_of_middle(self, plan: Plan) -> Leaf:
        """The product of d' and e'."""

    def begin_middle(self) -> None:
        """U = L_lo + W; its carry waits."""
        lifted = Chain(self.build, "lifted", self.zero)
        self.build.mark("spare", SPARE)
        for index, limb in enumerate(self.low):
            self.own(limb)
            lifted.run([limb], lambda i: self.v[i], [index])
        self.waiting.put(lifted.carry)
        self.sum = self.low
        self.build.mark("spare", 0)

    def take_middle(self, first: int, limbs: list[Virtual]) -> None:
        """The lowest limb after a row, after the last one with all limbs above it; those of the upper half stay."""
        for column, limb in enumerate(self.variables(limbs), first):
            self.middle[column] = limb
        if first < self.half:
            self.leave(self.half + first, self.middle[first])
        self.after_row(first - self.first_of_last)

    def leave(self, column: int, limb: Virtual) -> None:
        """A limb of the product goes to its place; where the upper half is kept, it may stay in its register, too."""
        if self.site.kept:
            self.room(limb, column)
            self.below[column] = limb
        self.final(column, [limb])

    @abc.abstractmethod
    def after_row(self, row: int) -> None:
        """A row is done; those before the last strip have numbers below 0."""

    # ---- the end --------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """The upper half of the middle, and what is carried from there into H'."""
        self.before_end()
        top = self.with_w()
        more = Chain(self.build, "more", self.zero)
        more.carry = self.too_much()
        more.run(self.sum, self.limb_of_high, range(self.half))
        self.count(top, more.carry)
        self.rise(top, self.complete(top, self.sign_of_d()))

    def sign_of_d(self) -> Virtual:
        """The borrow of d' as a mask, for the last time."""
        return self.waiting.mask()

    def with_w(self) -> Virtual:
        """W is added to the upper half of the middle; the carry as a number."""
        lifted = Chain(self.build, "lifted", self.zero)
        lifted.carry = self.waiting.carry()
        lifted.run(self.sum, lambda index: self.v[index], range(self.half))
        return self.counted("top", lifted.carry)

    def limb_of_high(self, index: int) -> Virtual | None:
        """A limb of H', if there is one."""
        high = self.v[self.half :]
        return high[index] if index < len(high) else None

    def lowered(self, top: Virtual, mask: Virtual, carry: Flag | None) -> Virtual:
        """A carry is added to a number, one is taken from it if the mask is all ones; a mask of its sign.

        That is the same one, two cycles less, where no limb above the product counts: else the proof would have to see
        that no carry is lost.
        """
        build = self.build
        if self.site.whole:
            carry = build.emit("adc", top, mask, takes=carry, comment="from -1 to 2")
            build.emit("adc", mask, self.zero, takes=carry, comment="all ones if below zero")
            return mask
        self.count(top, carry)
        less = build.emit("sbc", top, self.zero, takes=build.emit("lsr", mask), comment="from -1 to 2")
        return as_mask(build, "sign", less)

    def rise(self, top: Virtual, sign: Virtual) -> None:
        """What is carried, with a mask of its sign, goes into H'."""
        above = self.v[self.half :][: max(0, self.top - 3 * self.half)]
        Chain(self.build, "rise", self.zero).onto(
            above, signed(top, sign), range(len(above)), lambda index, limbs: self.final(3 * self.half + index, limbs)
        )

    @abc.abstractmethod
    def before_end(self) -> None:
        """What the carry holds when M is done."""

    @abc.abstractmethod
    def too_much(self) -> Flag | None:
        """A carry for the lowest limb of the upper half."""

    @abc.abstractmethod
    def complete(self, top: Virtual, of_d: Virtual) -> Virtual:
        """Subtract X^2 (d_mask & e') from M, and from the top what e has left for it; a mask of the top's sign."""

    def corrected(self, name: str, of_d: Virtual) -> Flag | None:
        """The upper half of the middle to the result, with e' where d is negative; the chain's last carry."""
        chain = Chain(self.build, name, self.zero)
        chain.onto(
            self.sum,
            lambda index: self.masked(self.e[index], of_d),
            range(self.half),
            lambda index, limbs: self.final(2 * self.half + index, limbs),
        )
        return chain.carry

    def masked(self, limb: Virtual, mask: Virtual) -> Virtual:
        """The limb, or zero; AND and POP leave the carry as it is."""
        self.take_back(limb)
        self.build.emit("and", limb, mask)
        return limb

    @abc.abstractmethod
    def take_back(self, limb: Virtual) -> None:
        """The limb, of d' or e', is to be used for the last time, and written."""

    def counted(self, name: str, carry: Flag | None) -> Virtual:
        """A carry as a number."""
        limb = clear(self.build, name)
        self.count(limb, carry)
        return limb

    def count(self, limb: Virtual, carry: Flag | None) -> None:
        assert carry
        self.build.emit("adc", limb, self.zero, takes=carry)
