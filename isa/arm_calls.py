"""Karatsuba's method by calls: parts are functions on memory, of which each is there once.

A function finds the address of its result in r0, of its operands in r1 and r2, and may change every register but r9 and
the stack pointer.  A level that calls keeps what it will need on the stack:

    sp:  M, 2 * half limbs   masks of the signs   r0   r1   (r2)   (lr)

The differences wait where the result will be, until M is formed of them; then come H and L.  W = L_hi + H_lo goes to
H_lo's place; the limbs above L_lo are (L_lo + W, W + V, V) - M, as in place, where V is H_hi with the carry of W.  Some
limbs are done at a time, and the carries of the two chains that take turns wait as masks.

Sources: [HS15]; research/arm_kernels.md, M0 techniques 2 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqgen.code import Builder, Code, Flag, Function, Label, Memory, Op, Virtual
from sqgen.errors import UserError
from sqgen.plan import Block, Difference, Load, Part, Plan, Recombine, Run, Slice, Step, Store
from sqgen.table import Isa

from .arm_chains import less, mask_of, more, nothing, restored
from .arm_padded import Padded
from .arm_stack import LIMB, moved

LEVEL = "level"  # the buffer at the stack pointer of a level that calls
ADDRESSES = {"r": "r0", "a": "r1", "b": "r2"}
ROWS = (Block, Run, Load, Store)  # what rows around a part are made of
TURN = {"sqr": 4, "mul": 3}  # limbs done at a time
KEPT = 6  # limbs of a difference that registers hold until it is known whether they are to be negated

Leaf = Callable[[Plan, str], Function]  # a function without calls that forms a plan, by its name
Term = tuple[Memory, Memory | Virtual | None]  # what is added at a column: two limbs, or one alone


class Calls:
    """The functions of a plan whose parts are called."""

    def __init__(self, isa: Isa, leaf: Leaf, pool: Sequence[str], best: Callable[[Plan], Plan] | None = None) -> None:
        self.isa, self.leaf, self.pool = isa, leaf, pool
        self.best = best or (lambda plan: plan)  # of a part, how it is formed
        self.names: dict[str, Label] = {}  # for each operation and size there is one function
        self.functions: list[Function] = []

    def code(self, plan: Plan) -> Code:
        """The entry, and behind it what it calls."""
        form = Padded(self.isa, plan, self.called) if plan.copies else Level(self, plan, "")
        entry = form.function()
        return Code((entry, *self.functions[::-1]))

    def called(self, plan: Plan) -> Label:
        """The function that forms a part."""
        plan = self.best(plan)
        text = f"{plan.op}{plan.limbs * self.isa.limb_bits}"
        if text not in self.names:
            name = self.names[text] = Label(text)
            calls = any(part.called for part in plan.parts())
            self.functions.append(Level(self, plan, name.name).function() if calls else self.leaf(plan, name.name))
        return self.names[text]


def inside(plan: Plan) -> Sequence[Step]:
    """The steps of a level up to the last one that calls or joins what was called; none of a plan without parts."""
    last = max((at for at, step in enumerate(plan.steps) if isinstance(step, Part | Recombine)), default=-1)
    return plan.steps[: last + 1]


def around(plan: Plan) -> Sequence[Step]:
    """The steps behind these: rows around a part."""
    return plan.steps[len(inside(plan)) :] if any(plan.parts()) else ()


def rows_of(plan: Plan) -> Plan:
    """These rows as a plan."""
    return replace(plan, steps=tuple(around(plan)))


def is_surrounded(plan: Plan) -> bool:
    """Whether a plan is a part that is called and rows around it, which are added to its limbs."""
    first = inside(plan)
    called = all(part.called and part.plan.op == plan.op for part in plan.parts())
    only = all(isinstance(step, Block | Part) for step in first) and len(list(plan.parts())) == 1
    return called and only and all(isinstance(step, ROWS) for step in around(plan))


class Level:
    """One function that calls others; the entry has no name, and its return address is saved by the frame."""

    def __init__(self, calls: Calls, plan: Plan, name: str) -> None:
        self.calls, self.plan, self.name = calls, plan, name
        self.build = Builder(calls.isa)
        self.half = next((step.half for step in plan.steps if isinstance(step, Recombine)), 0)
        self.signs = [step.sign for step in plan.steps if isinstance(step, Difference)]
        self.saved = [ADDRESSES[base] for base in ("r", *plan.operands)]
        self.room = 2 * self.half + len(self.signs)  # limbs below the addresses
        self.turn = TURN[plan.op]

    def function(self) -> Function:
        """All of it."""
        self.enter()
        for step in inside(self.plan):
            match step:
                case Block(title):
                    self.build.heading(title)
                case Difference():
                    self.difference(step)
                case Part():
                    self.call(step)
                case Recombine(turn=0):
                    self.recombine(step)
                case Recombine():
                    raise UserError(f"{self.plan.method} has no loops on Cortex-M; choose recombine=unrolled")
        if around(self.plan):
            self.surround()
        self.leave()
        pool = tuple(register for register in self.calls.pool if register not in self.saved)
        return Function(self.name, tuple(self.build.ops), pool)

    # ---- the frame and the calls --------------------------------------------------------------------------------

    def enter(self) -> None:
        """Save the addresses, and the return address, and make room."""
        kept = (*self.saved, *(("lr",) if self.name else ()))
        self.build.raw([Op("push", (kept,)), *moved("sub_sp", self.room)])

    def leave(self) -> None:
        """Give the frame back; a function returns."""
        gone = self.room + len(self.saved)
        if not self.name:
            self.build.raw(moved("add_sp", gone))
            return
        self.build.raw([*moved("add_sp", gone - 1), Op("pop_pc", ((self.saved[-1],),))])

    def call(self, step: Part) -> None:
        """Form a part, by addresses out of the frame."""
        factors = (step.left, step.right)[: len(step.plan.operands)]
        for register, which in zip(ADDRESSES.values(), (step.into, *factors), strict=False):
            self.point(register, which)
        self.build.mark("bl", self.calls.called(step.plan))

    def surround(self) -> None:
        """Add what stands around the part: a function of its own, which has all registers."""
        self.build.heading("rows around it")
        for base in ("r", *self.plan.operands):
            self.point(ADDRESSES[base], Slice(base, 0, 0))
        name = Label(f"rows{self.plan.limbs * self.calls.isa.limb_bits}")
        self.build.mark("bl", name)
        self.calls.functions.append(self.calls.leaf(rows_of(self.plan), name.name))

    def point(self, register: str, which: Slice) -> None:
        """Let a register point at a slice; what is made by steps lies at the stack pointer."""
        if which.name not in ADDRESSES:
            self.build.raw([Op("add_rsp", (register, LIMB * which.first))])
            return
        slot = self.room + self.saved.index(ADDRESSES[which.name])
        self.build.raw([Op("ldr_sp", (register, LIMB * slot))])
        if which.first:
            self.build.raw([Op("addw", (register, register, LIMB * which.first))])

    # ---- differences --------------------------------------------------------------------------------------------

    def difference(self, step: Difference) -> None:
        """into = |left - right|; its sign as a mask, all ones if left is smaller, to the frame."""
        build = self.build
        carry: Flag | None = None
        found = [build.limb(f"d{k}") for k in range(step.left.count)]
        for first in range(0, len(found), self.turn):
            turn = range(first, min(first + self.turn, len(found)))
            upper = [self.loaded(self.at(step.left, k)) for k in turn]
            lower = [self.loaded(self.at(step.right, k)) for k in turn if k < step.right.count]
            for k, word in zip(turn, upper, strict=True):
                carry = less(build, word, lower[k - first] if k - first < len(lower) else None, carry, found[k])
                if k < len(found) - KEPT:
                    build.memory("store", found[k], self.at(step.into, k))
        mask = mask_of(build, carry, comment=f"all ones if {step.sign}")
        if self.plan.op == "mul":
            build.memory("store", mask, self.sign(step.sign))
        carry = None
        for first in range(0, len(found), self.turn):
            turn = range(first, min(first + self.turn, len(found)))
            words = [self.loaded(self.at(step.into, k)) if k < len(found) - KEPT else found[k] for k in turn]
            for k, word in zip(turn, words, strict=True):
                build.emit("eor_w", word, word, mask)
                carry = less(build, word, mask, carry)
                build.memory("store", word, self.at(step.into, k))

    def at(self, which: Slice, index: int) -> Memory:
        """A limb of a slice."""
        return Memory(which.name if which.name in ADDRESSES else LEVEL, which.first + index)

    def sign(self, name: str) -> Memory:
        """Where a mask waits."""
        return Memory(LEVEL, 2 * self.half + self.signs.index(name))

    def loaded(self, where: Memory) -> Virtual:
        """A limb out of memory."""
        word = self.build.limb("w")
        self.build.memory("load", word, where)
        return word

    # ---- the last step ------------------------------------------------------------------------------------------

    def recombine(self, step: Recombine) -> None:
        """The limbs above L_lo: (L_lo + W, W + V, V) - M."""
        half, top = self.half, 2 * self.plan.limbs
        self.build.raw([Op("ldr_sp", (ADDRESSES["r"], LIMB * self.room))])
        self.build.heading("W = L_hi + H_lo, V = H_hi + the carry")
        terms = self.terms(self.shared_sums())
        self.build.heading("L_lo + W, W + V, V, and - M")
        mask = self.turned(step.signs)
        sums: Virtual | None = None
        middles = mask  # the carry into the second chain: none is borrowed, or one where M is added
        for first in range(0, len(terms), self.turn):
            turn = range(first, min(first + self.turn, len(terms)))
            words, carry = self.summed([terms[k] for k in turn], restored(self.build, sums) if sums else None)
            sums = mask_of(self.build, carry) if turn.stop < len(terms) else None
            carry = restored(self.build, middles) if middles else None
            middle = [self.loaded(Memory(LEVEL, k)) for k in turn if k < 2 * half]
            for k, word in enumerate(words):
                carry = self.subtracted(word, middle[k] if k < len(middle) else None, mask, carry)
            middles = mask_of(self.build, carry) if turn.stop < len(terms) else None
            for k, word in zip(turn, words, strict=True):
                self.build.memory("store", word, Memory("r", half + k))
        assert half + len(terms) == top

    def shared_sums(self) -> Virtual | None:
        """W in place of H_lo, V in that of H_hi; what runs over V, where it is not half of a product."""
        half, top = self.half, 2 * self.plan.limbs
        carry: Flag | None = None
        places = [*range(half, 2 * half), *range(3 * half, top)]
        for first in range(0, len(places), self.turn):
            turn = places[first : first + self.turn]
            words = [self.loaded(Memory("r", column)) for column in turn]
            others = {c: self.loaded(Memory("r", c + half)) for c in turn if c < 2 * half and c + half < top}
            for column, word in zip(turn, words, strict=True):
                carry = more(self.build, word, others.get(column), carry)
                self.build.memory("store", word, self.place(column))
        if top - 3 * half >= half:
            return None
        over = nothing(self.build)
        more(self.build, over, None, carry)
        return over

    def place(self, column: int) -> Memory:
        """Where W of a column below 2 * half waits, or V of one above.  W is wanted twice, where there are columns."""
        twice = column < 2 * self.half and column + self.half < 2 * self.plan.limbs
        return Memory("r", column + self.half if twice else column)

    def terms(self, over: Virtual | None) -> list[Term]:
        """What is added at each column from `half` on."""
        half, top = self.half, 2 * self.plan.limbs
        r = [Memory("r", column) for column in range(top)]
        found: list[Term] = [(r[k], self.place(half + k)) for k in range(half)]
        for k in range(min(half, top - 2 * half)):
            upper = r[3 * half + k] if 3 * half + k < top else None
            found.append((r[2 * half + k], over if over and 3 * half + k == max(top, 3 * half) else upper))
        return [*found, *((r[column], None) for column in range(3 * half, top))]

    def turned(self, signs: Sequence[str]) -> Virtual | None:
        """All ones where M is negative and so to be added, for a product that has signs."""
        if not signs:
            return None
        mask, other = (self.loaded(self.sign(sign)) for sign in signs)
        self.build.emit("eor_w", mask, mask, other, comment="all ones where M is negative")
        return mask

    def summed(self, terms: Sequence[Term], carry: Flag | None) -> tuple[list[Virtual], Flag | None]:
        """The sums at some columns, and their carry."""
        words = [self.loaded(first) for first, _ in terms]
        others = [self.loaded(other) if isinstance(other, Memory) else other for _, other in terms]
        for word, other in zip(words, others, strict=True):
            carry = more(self.build, word, other, carry)
        return words, carry

    def subtracted(
        self, word: Virtual, middle: Virtual | None, mask: Virtual | None, carry: Flag | None
    ) -> Flag | None:
        """word -= a limb of M; or, where that is to be added, its bits turned over."""
        if middle and mask:
            self.build.emit("eor_w", middle, middle, mask)
        return less(self.build, word, middle or mask, carry)
