"""Products added in one carry run on AVR: a sweep over columns two apart [avr_kernels.md, section 3, patterns 1 to 3].

A run is cut into chains of two or three products.  All but the lowest are formed first and parked in pairs of
registers, by MOVW; the lowest one stays in r1:r0 and the chain adds all limbs side by side.  The high limb of the
topmost one takes the carry, which it can since it is at most 0xfe, and waits as the first addend of the next chain.

    mul c+2; movw t, r0; mul c; add c, r0; adc c+1, r1; adc c+2, t.lo; adc t.hi, zero

Two products cost 10 cycles, each more 5: as many as one by one with a catch for each carry, but only the run's last
carry leaves its columns.  Where the limb c+3 is empty, t.hi becomes it; where both limbs of a product are, it is
moved there (3 cycles).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqgen.code import Builder, Flag, Virtual
from sqgen.plan import Product

from .avr_registers import HIGH, LOW

if TYPE_CHECKING:
    from .avr_leaf import Leaf

Addend = tuple[int, Virtual | str]  # a limb that is added, and its column


def clear(build: Builder, name: str) -> Virtual:
    """A new variable that is zero."""
    limb = build.limb(name)
    build.emit("eor", limb, limb, fresh=True)
    return limb


def as_mask(build: Builder, name: str, carry: Flag | None) -> Virtual:
    """A new variable all bits of which are equal to a carry."""
    mask = build.limb(name)
    build.emit("sbc", mask, mask, takes=carry, fresh=True)
    return mask


def to_flag(build: Builder, carry: Flag | None, comment: str = "") -> Flag | None:
    """Put a carry into flag T."""
    build.emit("sbc", LOW, LOW, takes=carry, fresh=True)
    return build.emit("bst", LOW, 0, comment=comment)


def mask_of_flag(build: Builder, flag: Flag | None) -> Virtual:
    """A new variable all bits of which are equal to flag T, a sign's."""
    sign = clear(build, "sign")
    build.emit("bld", sign, 0, takes=flag)
    build.emit("neg", sign)
    return sign


def side_by_side(build: Builder, name: str, count: int) -> list[Virtual]:
    """New limbs, each two of which had best be in neighbouring registers."""
    pairs = (build.pair(f"{name}{index}", f"{name}{index + 1}") for index in range(0, count - 1, 2))
    odd = [build.limb(f"{name}{count - 1}")] if count % 2 else []
    return [*(limb for pair in pairs for limb in pair), *odd]


class Runs:
    """Adds runs of products to the sum of a leaf."""

    def __init__(self, leaf: Leaf) -> None:
        self.leaf, self.build = leaf, leaf.build
        self.formed: dict[Product, tuple[Virtual, Virtual]] = {}  # products that wait, their high limbs with a carry

    def run(self, cells: Sequence[Product], following: Sequence[Product]) -> None:
        """Add the `cells`; `following` are the top products of runs after it, in one of which the carry may wait."""
        rest = deque(cells)
        waiting: list[Addend] = []
        while rest:
            if (
                not waiting
                and rest[0] not in self.formed
                and self.empty(rest[0].column)
                and self.empty(rest[0].column + 1)
            ):
                self.seed(rest.popleft())
            else:
                waiting = self.chain(self.next_chain(rest), waiting, last=not rest, following=following)

    def empty(self, column: int) -> bool:
        return column not in self.leaf.limbs

    def next_chain(self, rest: deque[Product]) -> list[Product]:
        """The cells of the next chain: two, but three or one where the number is odd.

        The last three make one chain if the topmost product is parked anyway: it was formed before, or its high limb
        becomes an empty limb.  Else a single one comes last, in r1:r0, and is not parked.
        """
        parked_end = rest[-1] in self.formed or self.empty(rest[-1].column + 1)
        size = 3 if len(rest) == 3 and parked_end else 2
        return [rest.popleft() for _ in range(min(size, len(rest)))]

    def seed(self, cell: Product) -> None:
        """Move a product to two empty limbs."""
        leaf, column = self.leaf, cell.column
        leaf.multiply(cell)
        leaf.sum.add_product(column)
        leaf.limbs[column], leaf.limbs[column + 1] = self.park(column)

    def park(self, column: int) -> tuple[Virtual, Virtual]:
        """Move r1:r0 to a pair of registers."""
        low, high = self.build.pair(f"t{column}", f"t{column + 1}")
        self.build.emit("mov", low, LOW)
        self.build.emit("mov", high, HIGH)
        return low, high

    def form(self, cell: Product) -> tuple[Virtual, Virtual]:
        """A product in a pair of registers."""
        self.leaf.multiply(cell)
        return self.park(cell.column)

    def chain(
        self, cells: Sequence[Product], waiting: list[Addend], *, last: bool, following: Sequence[Product]
    ) -> list[Addend]:
        """Add neighbouring products, and what was `waiting`; what waits for the next chain.

        If it is the `last` chain of its run, its carry goes to the sum or to one of the products `following`.
        """
        leaf = self.leaf
        for cell in cells:
            leaf.sum.add_product(cell.column)
        top = cells[-1].column + 1
        catcher = self.catcher(top, following) if last else None
        addends = [*waiting, *self.addends(cells, last_waits=not last)]
        return self.add(addends, last=last, catcher=catcher)

    def addends(self, cells: Sequence[Product], *, last_waits: bool) -> list[Addend]:
        """The limbs of neighbouring products, one of them in r1:r0, the others parked; if the last one's high limb
        `waits` it is in a register of its own."""
        kept = self.kept(cells, last_waits=last_waits)
        pairs: dict[Product, tuple[Virtual | str, Virtual | str]] = {}
        for cell in reversed(cells):
            if cell is not kept:
                pairs[cell] = self.formed.pop(cell) if cell in self.formed else self.form(cell)
        if kept:
            self.leaf.multiply(kept)
            pairs[kept] = (LOW, HIGH)
            if last_waits and kept is cells[-1]:
                pairs[kept] = (LOW, self.build.limb(f"t{kept.column + 1}"))
                self.build.emit("mov", pairs[kept][1], HIGH)
        return [(cell.column + place, limb) for cell in cells for place, limb in enumerate(pairs[cell])]

    def kept(self, cells: Sequence[Product], *, last_waits: bool) -> Product | None:
        """The product that need not be parked: the lowest one whose limbs are added to others, none if all are
        formed already."""
        candidates = [cell for cell in cells if cell not in self.formed]
        whole = [cell for cell in candidates if not (self.empty(cell.column) or self.empty(cell.column + 1))]
        inner = [cell for cell in whole if not (last_waits and cell is cells[-1])]
        return next(iter(inner or candidates), None)

    def catcher(self, top: int, following: Sequence[Product]) -> Virtual | None:
        """The high limb of the first product following that has it in the right column, formed now, if the carry out
        of limb `top` cannot be added to the limb above and end there.  Each takes one carry."""
        leaf = self.leaf
        ends_above = not self.empty(top + 1) and not leaf.sum.carries(top + 1)
        found = next((cell for cell in following if cell.column == top and cell not in self.formed), None)
        if not found or ends_above or not leaf.sum.carries(top):
            return None
        self.formed[found] = self.form(found)
        return self.formed[found][1]

    def add(self, addends: Sequence[Addend], *, last: bool, catcher: Virtual | None) -> list[Addend]:
        """Add neighbouring limbs to the sum; a high limb that waits in a register takes the carry unless it is the
        `last` one of the run."""
        leaf = self.leaf
        carry: Flag | None = None
        *others, (top, source) = addends
        for column, addend in others:
            carry = self.add_limb(column, addend, carry)
        if not last and isinstance(source, Virtual) and not self.empty(top):
            self.take(source, carry)
            return [(top, source)]
        carry = self.add_limb(top, source, carry)
        if catcher and carry and leaf.sum.carries(top):
            self.take(catcher, carry)
        else:
            leaf.ripple(top, carry)
        return []

    def take(self, limb: Virtual, carry: Flag | None, comment: str = "at most 0xfe, it takes the carry") -> None:
        """Let a limb that waits, the high one of a product if nothing else is said, take a carry."""
        if carry:
            self.build.emit("adc", limb, self.leaf.zero, takes=carry, comment=comment)

    def add_limb(self, column: int, addend: Virtual | str, carry: Flag | None) -> Flag | None:
        """Add a limb to the sum at `column`, with the carry from below; an empty limb is what is added."""
        leaf = self.leaf
        if carry and not leaf.sum.carries(column - 1):
            carry = None
        if leaf.begin and self.empty(column):
            leaf.limbs[column] = leaf.begin(column)
        if not self.empty(column):
            return leaf.add(column, addend, carry)
        if isinstance(addend, Virtual):
            leaf.limbs[column] = addend
        else:
            leaf.move(column, addend)
        return leaf.add(column, leaf.zero, carry) if carry else None
