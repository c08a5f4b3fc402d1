"""A level of Karatsuba's method on ARMv6-M whose parts are formed one after the other, between which limbs wait in
memory.

The middle product waits on the stack, of the low one the lower half in the result, where it belongs, and the upper one
on the stack; they come back two limbs at a time where the high one, which is in registers, is put together with them.
A level inside another one leaves the lower half on the stack, too.  Operands are loaded anew for each part, so that
what one part does not need is in no register meanwhile.

Sources: research/arm_kernels.md, section M0, idea 5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqgen.plan import Difference, Part, Plan, Recombine

from .arm_digits import Limbs, limbs_of
from .arm_values import Walk

if TYPE_CHECKING:
    from .arm_piece import Piece

AT_ONCE = 4  # limbs that are stored or pushed at a time, at most
TOGETHER = 2  # limbs that are loaded at a time


class Held:
    """An operand whose limbs are values already; `place` is the number of the next one."""

    def __init__(self, limbs: Limbs) -> None:
        self.limbs, self.place = limbs, 0

    def load(self, count: int) -> list[int]:
        """The next limbs."""
        first, self.place = self.place, self.place + count
        return list(self.limbs[first : self.place])


Sources = Mapping[str, Walk | Held]


def shared_out(limbs: Limbs) -> list[Limbs]:
    """Limbs in groups of at most four, as equal as can be."""
    count = -(-len(limbs) // AT_ONCE)
    return [limbs[at * len(limbs) // count : (at + 1) * len(limbs) // count] for at in range(count)]


class Staged:
    """One level whose parts are formed one after the other: M, L, H.

    The outermost level stores its limbs; of one `inside` another level they are values.
    """

    def __init__(self, piece: Piece, plan: Plan, sources: Sources, *, inside: bool = False) -> None:
        self.piece, self.plan, self.values, self.sources = piece, plan, piece.values, sources
        self.inside = inside
        self.starts = {name: source.place for name, source in sources.items()}
        self.last = next(step for step in self.plan.steps if isinstance(step, Recombine))
        self.half = self.last.half
        self.masks: list[int] = []
        self.differences: dict[str, list[int]] = {}
        self.r = piece.r
        self.found: list[int] = []

    def all(self) -> list[int]:
        """All steps; the limbs of the result, unless they are stored."""
        for step in self.plan.steps:
            match step:
                case Difference():
                    self.difference(step)
                case Part(into=into):
                    self.part(step, "M" if into.name != "r" else "H" if into.first else "L")
        return self.found

    def difference(self, step: Difference) -> None:
        """The halves are loaded, the high one some limbs at a time."""
        values, name, zero = self.values, step.left.name, self.values.zero
        low = self.sources[name].load(self.half)
        turned = name == "b"
        found: list[int] = []
        with values.chain():
            for at in range(0, self.half, TOGETHER):
                count = min(TOGETHER, step.right.count - at)
                high = self.sources[name].load(count) if count > 0 else []
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
            held = {name: limbs_of(self.differences, where) for name, where in (("a", step.left), ("b", step.right))}
            d = self.formed(step.plan, {name: Held(limbs) for name, limbs in held.items()})
            self.push(d[self.half :])
            self.push(d[: self.half])
            return
        if which == "L":
            for name, source in self.sources.items():
                source.place = self.starts[name]
        found = self.formed(step.plan, self.sources)
        if which == "H":
            self.recombine(found)
        elif self.inside:
            self.push(found[: self.half])
            self.push(found[self.half :])
        else:
            self.push(found[self.half :])
            self.leave(found[: self.half])

    def formed(self, plan: Plan, sources: Sources) -> list[int]:
        """The limbs of a part."""
        if self.piece.staged(plan):
            return Staged(self.piece, plan, sources, inside=True).all()
        given = {name: source.load(plan.limbs) for name, source in sources.items()}
        return self.piece.form(plan, {"b": given["a"], **given})

    def leave(self, limbs: Limbs) -> None:
        """Some limbs of the result are complete."""
        if self.inside:
            self.found += limbs
        else:
            self.piece.store(limbs)

    def lower(self) -> Iterator[list[int]]:
        """The lower half of L, from where it waits, some limbs at a time."""
        if self.inside:
            for limbs in self.back(self.half):
                self.found += limbs
                yield limbs
            return
        pointer = self.r
        for count in self.counts(self.half):
            pointer, limbs = self.values.load(pointer, count)
            yield limbs

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
        with values.chain():
            for low in self.lower():
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
                    self.leave(u[len(u) - len(limbs) :])
            borrow = values.one("mask") if above else zero
        with values.chain():
            values.one("lsr", carry, number=1)
            upper = [values.one("adc", limb, each) for limb, each in zip(u[half:], x, strict=True)]
            upper += [values.one("adc", limb, borrow) for limb in whole[half : half + above]]
        self.leave(upper)

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
                self.leave(found[len(found) - len(limbs) :])
            top = [values.one("adc", limb, sign) for limb in whole[2 * half :]]
        self.leave(top)

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
