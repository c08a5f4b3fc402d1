"""A product in one piece on ARMv6-M: its operands loaded, formed in registers, its limbs stored.

What has up to four limbs is formed as it stands.  Of more, one level is in memory: the middle product waits on the
stack, of the low one the lower half in the result, where it belongs, and the upper one on the stack; they come back two
limbs at a time where the high one, which is in registers, is put together with them.

Sources: research/arm_kernels.md, section M0, idea 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqgen.plan import Difference, Part, Plan, Recombine

from .arm_digits import VECTORS, Limbs, form, limbs_of, pairs
from .arm_scan import Scan
from .arm_thirds import Thirds
from .arm_values import Values, flat

IN_REGISTERS = 4  # limbs of an operand
AT_ONCE = 4  # limbs that are stored or pushed at a time, at most
TOGETHER = 2  # limbs that are loaded at a time
ARGUMENTS = ("r0", "r1", "r2")  # pointers to r, a and b


class Piece:
    """The values of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.values = plan, Values()
        self.spans: list[
            tuple[Plan, int, int]
        ] = []  # parts formed in registers, and their operations from one to another
        self.r = self.values.new()
        self.pointers = {name: self.values.new() for name in plan.operands}
        self.entry = dict(zip((self.r, *self.pointers.values()), ARGUMENTS, strict=False))  # their registers
        rows = plan.op == "mul" and plan.limbs in VECTORS and plan.by_columns
        if not any(plan.parts()) and not rows:
            Scan(plan, self.values, dict(self.pointers), self.r).all()
        elif plan.limbs <= IN_REGISTERS:
            self.formed()
        elif len(pairs(plan)) > 1:
            Thirds(self).all()
        else:
            Staged(self).all()

    def form(self, plan: Plan, operands: Mapping[str, Limbs]) -> list[int]:
        """The limbs of a part, or of all, whose operations are remembered."""
        first = len(flat(self.values.units))
        found = form(self.values, plan, operands)
        self.spans.append((plan, first, len(flat(self.values.units))))
        return found

    def load(self, name: str, count: int) -> list[int]:
        """Limbs of an operand, where its pointer points, which goes on."""
        self.pointers[name], limbs = self.values.load(self.pointers[name], count)
        return limbs

    def store(self, limbs: Sequence[int]) -> None:
        """Limbs of the result, where its pointer points, which goes on."""
        for some in shared_out(limbs):
            self.r = self.values.store(self.r, some)

    def formed(self) -> None:
        """All in registers."""
        operands = {name: self.load(name, self.plan.limbs) for name in self.plan.operands}
        found = self.form(self.plan, operands)
        early = (self.plan.limbs + 1) // 2  # which are there before all others
        self.store(found[:early])
        self.store(found[early:])


def shared_out(limbs: Limbs) -> list[Limbs]:
    """Limbs in groups of at most four, as equal as can be."""
    count = -(-len(limbs) // AT_ONCE)
    return [limbs[at * len(limbs) // count : (at + 1) * len(limbs) // count] for at in range(count)]


class Staged:
    """One level whose parts are formed one after the other: M, L, H."""

    def __init__(self, piece: Piece) -> None:
        self.piece, self.plan, self.values = piece, piece.plan, piece.values
        self.starts = dict(piece.pointers)  # where the operands begin
        self.last = next(step for step in self.plan.steps if isinstance(step, Recombine))
        self.half = self.last.half
        self.masks: list[int] = []
        self.differences: dict[str, list[int]] = {}
        self.r = piece.r

    def all(self) -> None:
        """All steps."""
        for step in self.plan.steps:
            match step:
                case Difference():
                    self.difference(step)
                case Part(into=into):
                    self.part(step, "M" if into.name != "r" else "H" if into.first else "L")

    def difference(self, step: Difference) -> None:
        """The halves are loaded, the high one some limbs at a time."""
        values, name, zero = self.values, step.left.name, self.values.zero
        low = self.piece.load(name, self.half)
        turned = name == "b"
        found: list[int] = []
        with values.chain():
            for at in range(0, self.half, TOGETHER):
                count = min(TOGETHER, step.right.count - at)
                high = self.piece.load(name, count) if count > 0 else []
                high += [zero] * (min(TOGETHER, self.half - at) - len(high))
                for one, other in zip(low[at:], high, strict=False):
                    found.append(values.one("sbc" if found else "sub", *((other, one) if turned else (one, other))))
            mask = values.one("mask")
        limbs = [values.one("eor", limb, mask) for limb in found]
        with values.chain():
            self.differences[step.into.name] = [
                values.one("sbc" if at else "sub", limb, mask) for at, limb in enumerate(limbs)
            ]
        self.masks.append(mask)

    def part(self, step: Part, which: str) -> None:
        """A product, and what becomes of its limbs."""
        values = self.values
        if which == "M":
            self.sign = values.one("eor", *self.masks) if len(self.masks) > 1 else None
            given = {name: limbs_of(self.differences, where) for name, where in (("a", step.left), ("b", step.right))}
            d = self.piece.form(step.plan, given)
            self.push(d[self.half :])
            self.push(d[: self.half])
            return
        given = {}
        for name in self.plan.operands:
            if which == "L":
                self.piece.pointers[name] = self.starts[name]
            given[name] = self.piece.load(name, step.plan.limbs)
        given.setdefault("b", given["a"])
        found = self.piece.form(step.plan, given)
        if which == "L":
            self.w = found[self.half :]
            self.push(self.w)
            self.piece.store(found[: self.half])
        else:
            self.recombine(found)

    def recombine(self, h: Limbs) -> None:
        """What `arm_digits.recombined` says, its sums begun as the limbs come back."""
        values, zero, half = self.values, self.values.zero, self.half
        above = len(h) - half
        with values.chain():
            x: list[int] = []
            for limbs in self.back(half):
                for limb in limbs:
                    x.append(values.one("adc" if x else "add", limb, h[len(x)]))
            v = [values.one("adc", limb, zero) for limb in h[half:]]
            if above < half:
                v.append(values.one("adc", zero, zero))
        v += [zero] * (half - len(v))
        t: list[int] = []
        pointer = self.r
        with values.chain():
            for count in self.counts(half):
                pointer, low = values.load(pointer, count)
                for limb in low:
                    t.append(values.one("adc" if t else "add", limb, x[len(t)]))
            if self.sign is None:
                carry = values.one("adc", zero, zero)
            else:
                t += [values.one("adc", limb, each) for limb, each in zip(v, x, strict=True)]
                t += [values.one("adc", limb, zero) for limb in v[:above]]
        if self.sign is None:
            self.less(x, [*t, *v], above, carry)
        else:
            self.signed(t, self.sign)

    def less(self, x: Limbs, whole: Limbs, above: int, carry: int) -> None:
        """D is subtracted; the lower half is stored, the upper one takes X and the carry along."""
        values, zero, half = self.values, self.values.zero, self.half
        u: list[int] = []
        with values.chain():
            for limbs in self.back(half, half):
                for limb in limbs:
                    u.append(values.one("sbc" if u else "sub", whole[len(u)], limb))
                if len(u) <= half:
                    self.piece.store(u[len(u) - len(limbs) :])
            borrow = values.one("mask") if above else zero
        with values.chain():
            values.one("lsr", carry, number=1)
            upper = [values.one("adc", limb, each) for limb, each in zip(u[half:], x, strict=True)]
            upper += [values.one("adc", limb, borrow) for limb in whole[half : half + above]]
        self.piece.store(upper)

    def signed(self, whole: Limbs, sign: int) -> None:
        """D is added with its sign, and all are stored."""
        values, half = self.values, self.half
        found: list[int] = []
        with values.chain():
            values.one("lsr", sign, number=1)
            for limbs in self.back(half, half):
                found += [
                    values.one("adc", whole[len(found) + at], values.one("eor", limb, sign))
                    for at, limb in enumerate(limbs)
                ]
                self.piece.store(found[len(found) - len(limbs) :])
            top = [values.one("adc", limb, sign) for limb in whole[2 * half :]]
        self.piece.store(top)

    def push(self, limbs: Limbs) -> None:
        """Put limbs on the stack, some at a time, the highest first."""
        for some in reversed(shared_out(limbs)):
            self.values.push(some)

    def back(self, *limbs: int) -> Iterator[list[int]]:
        """So many limbs back from the stack, some at a time."""
        for each in limbs:
            for count in self.counts(each):
                yield self.values.pop(count)

    def counts(self, limbs: int) -> list[int]:
        """How many limbs go together, of so many."""
        return [min(TOGETHER, limbs - at) for at in range(0, limbs, TOGETHER)]
