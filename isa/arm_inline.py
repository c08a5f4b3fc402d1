"""Karatsuba's method in place, on cores without UMAAL: parts are products of limbs that registers hold.

With X = 2^(32 * half) a product is L + X (L + H - M) + X^2 H.  Its sums are shared: W = L_hi + H_lo, and V = H_hi with
the carry of that, which does not run over where it is half of a product; then the limbs above L_lo are

    (L_lo + W, W + V, V) - M.

|x - y| is formed by a mask of its borrow, and so is M's sign in a multiplication: M is subtracted as it is, or, its
bits turned over, added.

Sources: [HS15]; research/arm_kernels.md, M0 technique 2.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Builder, Flag, Memory, Virtual
from sqgen.errors import UserError
from sqgen.plan import Block, Difference, Part, Plan, Recombine, Slice

from .arm_chains import Leaf, Leave, less, mask_of, more, nothing, restored
from .arm_halves import Limb, Way

Number = list[Virtual]  # limbs, the lowest first


class Inline:
    """Forms a plan and its parts, one in the other."""

    def __init__(self, build: Builder, way: Way) -> None:
        self.build, self.way = build, way

    def outermost(self, plan: Plan, operands: dict[str, list[Limb]]) -> None:
        """The plan, its result to memory, each limb as soon as it is final."""
        self.form(plan, operands, lambda column, word: self.build.memory("store", word, Memory("r", column)))

    def form(self, plan: Plan, operands: dict[str, list[Limb]], leave: Leave) -> None:
        """A plan; `leave` takes the limbs of the result, from the lowest on."""
        if any(plan.parts()):
            if plan.op == "mul" and any(any(part.plan.parts()) for part in plan.parts() if part.into.name == "m"):
                raise UserError(f"{plan.method} multiplies by one level in place; choose levels=1 or another method")
            Level(self, plan, operands, leave).all()
        else:
            Leaf(plan, self.build, self.way, (operands["a"], operands[plan.operands[-1]]), leave).all()


class Level:
    """One level of Karatsuba's method."""

    def __init__(self, inline: Inline, plan: Plan, operands: dict[str, list[Limb]], leave: Leave) -> None:
        self.inline, self.build, self.plan, self.leave = inline, inline.build, plan, leave
        self.numbers: dict[str, dict[int, Limb]] = {name: dict(enumerate(limbs)) for name, limbs in operands.items()}
        self.signs: dict[str, Virtual] = {}
        self.left = 0  # limbs of the result that have left

    def all(self) -> None:
        """All steps, in order."""
        half = next(step.half for step in self.plan.steps if isinstance(step, Recombine))
        for step in self.plan.steps:
            match step:
                case Block(title):
                    self.build.heading(title)
                case Difference(sign, into, left, right):
                    self.difference(sign, into, left, right)
                case Part():
                    self.part(step)
                    if step.into == Slice("r", 0, 2 * half):
                        self.go(half)
                case Recombine():
                    self.recombine(step)
        self.go(2 * self.plan.limbs)

    def limbs(self, which: Slice) -> list[Limb]:
        """The limbs of a slice."""
        number = self.numbers[which.name]
        return [number[which.first + k] for k in range(which.count)]

    def words(self, which: Slice) -> Number:
        """The same as variables."""
        return [limb.whole for limb in self.limbs(which)]

    def set(self, name: str, index: int, word: Virtual) -> None:
        """Give a number a limb."""
        self.numbers.setdefault(name, {})[index] = Limb(self.build, word)

    def go(self, end: int) -> None:
        """Limbs of the result leave."""
        for column in range(self.left, end):
            self.leave(column, self.numbers["r"][column].whole)
        self.left = end

    def part(self, step: Part) -> None:
        """A product of slices, into another one."""
        into = step.into
        operands = {"a": self.limbs(step.left), "b": self.limbs(step.right)}
        self.inline.form(step.plan, operands, lambda column, word: self.set(into.name, into.first + column, word))

    def difference(self, sign: str, into: Slice, left: Slice, right: Slice) -> None:
        """into = |left - right|; the sign as a mask, all ones if left is smaller."""
        build, carry = self.build, None
        lower = self.words(right)
        found = [build.limb(f"{into.name}{k}") for k in range(left.count)]
        for k, word in enumerate(self.words(left)):
            carry = less(build, word, lower[k] if k < len(lower) else None, carry, found[k])
        mask = mask_of(build, carry, sign.replace(" ", ""), f"all ones if {sign}")
        for word in found:
            build.emit("eor_w", word, word, mask)
        carry = None
        for k, word in enumerate(found):
            carry = less(build, word, mask, carry)
            self.set(into.name, into.first + k, word)
        self.signs[sign] = mask

    def recombine(self, step: Recombine) -> None:
        """The middle of the result: (L_lo + W, W + V, V) - M, as above."""
        half, top = step.half, 2 * self.plan.limbs
        number = self.numbers["r"]
        lower = [number[k].whole for k in range(half)]
        w = [number[half + k].whole for k in range(half)]
        v = [number[column].whole for column in range(3 * half, top)]
        carry: Flag | None = None
        for k in range(half):
            other = number[2 * half + k].whole if 2 * half + k < top else None
            carry = more(self.build, w[k], other, carry)
        for word in v:
            carry = more(self.build, word, None, carry)
        if len(v) < half:  # the upper limbs of H without those below may be all ones
            v.append(nothing(self.build))
            more(self.build, v[-1], None, carry)
        sums = [self.build.limb(f"s{column}") for column in range(half, top)]
        terms: list[tuple[Virtual, Virtual | None]] = list(zip(lower, w, strict=True))
        terms += [(w[k], v[k] if k < len(v) else None) for k in range(half)]
        terms += [(word, None) for word in v]
        carry = None
        for into, (word, other) in zip(sums, terms[: len(sums)], strict=True):
            carry = more(self.build, word, other, carry, into)
        self.subtract(sums, self.words(step.middle), [self.signs[sign] for sign in step.signs])
        for column, word in enumerate(sums, half):
            self.set("r", column, word)

    def subtract(self, sums: Number, middle: Number, signs: Sequence[Virtual]) -> None:
        """Subtract M, or add it where the signs differ: x + M = x - (2^k - 1 - M) - 1, below 2^k."""
        build = self.build
        carry: Flag | None = None
        mask: Virtual | None = None
        if signs:
            mask = build.limb("mask")
            build.emit("eor_w", mask, *signs, comment="all ones where M is negative")
            for word in middle:
                build.emit("eor_w", word, word, mask)
            carry = restored(build, mask)
        for k, word in enumerate(sums):
            carry = less(build, word, middle[k] if k < len(middle) else mask, carry)
