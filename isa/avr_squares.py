"""The end of a square's block on AVR: its limbs are doubled, and the squares of the diagonal added.

* doubling: LSL, ROL, ...; in plans of runs, where the block ends at an even column, the next square is formed before,
  and its low limb takes the bit that leaves the block, and the carry of the squares: it is at most 0xf9;
* else that bit waits in T (MUL does not touch T), or, where the block is one column and T still holds the bit that
  came in, as a mask made by SBC p, p and taken back by LSR p; a carry of the squares at an even column likewise;
* the squares: two are formed and added in one chain, then the next two; the upper one's high limb takes the carry (it
  is at most 0xfe) and waits for the next chain, or for the next block where that begins between its two limbs.

Limbs leave as soon as they are final.  Sources: [SBD13]; avr_kernels.md, section 3, patterns 6 to 9.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqgen.code import CodeError, Flag, Virtual
from sqgen.plan import Product, Run, Step

from .avr_runs import as_mask, clear

if TYPE_CHECKING:
    from .avr_leaf import Leaf


class Squares:
    """Finishes the blocks of a square for a leaf."""

    def __init__(self, leaf: Leaf) -> None:
        self.leaf, self.build = leaf, leaf.build
        self.top = 2 * leaf.plan.limbs - 1
        self.doubling_in_t: Flag | None = None  # the bit doubled out of the last block, in T
        self.doubling_mask: Virtual | None = None  # the same as a mask
        self.mask: Virtual | None = None  # carry of the squares, as a mask
        self.waiting: tuple[int, Virtual] | None = None  # high limb of a square, and its column
        self.roomy = any(isinstance(step, Run) for step in leaf.plan.steps)  # whether a pair may wait between blocks

    def finish_block(self, first: int, last: int, diagonal: Sequence[Product], rest: deque[Step]) -> None:
        """Double limbs first..last-1 of the sum, add the squares that begin in them, store what of the `rest` is final.

        The topmost square is formed before the doubling, since it takes the bit doubled out.
        """
        runs = self.leaf.runs
        if last > self.top and diagonal and diagonal[-1] not in runs.formed:
            runs.formed[diagonal[-1]] = runs.form(diagonal[-1])
        catcher = self.next_square(last)
        self.double(first, last, diagonal, catcher)
        parked = first == 0 or any(cell in runs.formed for cell in diagonal[:1])
        chains = in_chains(diagonal, head=3 if parked else 2, end_parked=last % 2 == 1 or last > self.top)
        for number, chain in enumerate(chains):
            end = chains[number + 1][0].column - 1 if number + 1 < len(chains) else last
            self.add_chain(first, end, chain, catcher)
            first = end
            self.leaf.store(self.leaf.stores(rest, end))

    def next_square(self, last: int) -> Virtual | None:
        """The low limb of the next block's first square, formed now, if it begins where this block ends.

        A square is 0, 1, 4 or 9 modulo 16, so this limb is at most 0xf9 and takes two carries: of doubling and squares.
        Not so in the narrow blocks of product scanning, which have no pair of registers for it (sbd of 256 bits: 40
        loads more): two masks.
        """
        if not self.roomy or last % 2 or last > self.top:
            return None
        square = Product(last // 2, last // 2)
        self.leaf.runs.formed[square] = self.leaf.runs.form(square)
        return self.leaf.runs.formed[square][0]

    def double(self, first: int, last: int, diagonal: Sequence[Product], catcher: Virtual | None) -> None:
        """Shift the block left by one bit, the bit from the block below coming in, the top one kept for the next."""
        columns = [column for column in range(first, last) if column in self.leaf.limbs]
        carry: Flag | None = None
        if self.doubling_mask:
            carry = self.build.emit("lsr", self.doubling_mask)
            self.doubling_mask = None
        incoming, self.doubling_in_t = self.doubling_in_t, None
        keep_in_t = len(columns) > 1 and last <= self.top and not catcher
        for index, column in enumerate(columns):
            limb = self.leaf.limbs[column]
            carry = self.build.emit("adc" if carry else "add", limb, limb, takes=carry)
            if index == 0 and incoming:
                self.build.emit("bld", limb, 0, takes=incoming, comment="the bit doubled out of the block below")
            if index == 0 and keep_in_t:
                self.doubling_in_t = self.build.emit("bst", self.leaf.limbs[columns[-1]], 7)
        if last > self.top:
            self.double_top(carry, incoming if not columns else None, diagonal)
        elif catcher:
            self.leaf.runs.take(catcher, carry, "at most 0xf9, it takes two carries")
        elif carry and not keep_in_t:
            self.doubling_mask = as_mask(self.build, "doubled", carry)

    def double_top(self, carry: Flag | None, incoming: Flag | None, diagonal: Sequence[Product]) -> None:
        """The topmost limb of a square has no cell off the diagonal: what is doubled into it goes to a[n-1]^2, or to
        the high limb of that which waits."""
        if diagonal:
            high = self.leaf.runs.formed[diagonal[-1]][1]
        elif self.waiting and self.waiting[0] == self.top:
            high = self.waiting[1]
        else:
            raise CodeError("the top limb is doubled before a[n-1]^2 is formed")
        comment = "the whole square is below 2^(bits of the result)"
        if incoming:  # at most one bit, and the limb's lowest bit is not free: add it
            bit = self.build.limb("bit")
            self.build.emit("eor", bit, bit, fresh=True)
            self.build.emit("bld", bit, 0, takes=incoming)
            self.build.emit("add", high, bit, comment=comment)
        elif carry:
            self.build.emit("adc", high, self.leaf.zero, takes=carry, comment=comment)

    def add_chain(self, first: int, end: int, chain: Sequence[Product], catcher: Virtual | None) -> None:
        """Add squares, and what waits from those below, to limbs first..end-1 in one carry run.

        The topmost high limb waits, with the carry, if it lies above; else the carry, if any, goes to the `catcher`.
        """
        last_waits = bool(chain) and chain[-1].column + 1 == end
        addends = dict(self.leaf.runs.addends(chain, last_waits=last_waits))
        if self.waiting:
            column, high = self.waiting
            addends[column], self.waiting = high, None
        carry: Flag | None = None
        if self.mask:
            carry = self.build.emit("lsr", self.mask)
            self.mask = None
        for column in range(first, end):
            carry = self.add_limb(column, addends.get(column), carry)
        high_limb = addends.get(end)
        if isinstance(high_limb, Virtual):
            self.leaf.runs.take(high_limb, carry)
            self.waiting = (end, high_limb)
        elif catcher:
            self.leaf.runs.take(catcher, carry, "at most 0xfa, it takes the other carry")
        elif carry and end <= self.top:
            self.mask = as_mask(self.build, "squared", carry)

    def add_limb(self, column: int, addend: Virtual | str | None, carry: Flag | None) -> Flag | None:
        """One limb of the run; the carry out."""
        leaf = self.leaf
        if column not in leaf.limbs:
            if isinstance(addend, Virtual):
                leaf.limbs[column] = addend
            elif addend:
                leaf.move(column, addend)
            elif carry:
                leaf.limbs[column] = clear(self.build, f"s{column}")
            else:
                raise CodeError(f"nothing to form limb {column} of the square from")
            addend = None
        if addend is None and not carry:
            return None
        return leaf.add(column, addend or leaf.zero, carry)


def in_chains(diagonal: Sequence[Product], *, head: int, end_parked: bool) -> list[Sequence[Product]]:
    """Squares in chains of two, the first one of `head` if there are as many.

    A chain costs no more than its squares do if one of them stays in r1:r0, which cannot be one that was formed
    before, nor one of which a limb is moved away: the lowest where limb 0 is empty, the last of a chain that is not
    the last one.  If `end_parked`, that holds for the last one too, and none is left alone at the end.
    """
    chains: list[Sequence[Product]] = []
    rest = diagonal
    while rest or not chains:
        size = 2 if chains else head
        if end_parked and len(rest) % 2 != size % 2 and (chains or len(rest) - size == 1):
            size += 1
        chains.append(rest[:size])
        rest = rest[size:]
    return chains
