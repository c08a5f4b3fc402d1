"""How the steps of a plan without parts become AVR code on virtual registers.

One register is zero.  The idioms (c, c+1, ... are limbs of the sum):

* a product: MUL, ADD c, ADC c+1, and ADC c+2 where `bounds` cannot exclude the carry; an empty limb is moved into;
* a carry that a method catches: if it could run on beyond c+2, it is counted in a register of its own for that column;
* stored limbs that come back: loaded to r1:r0, neighbours in one carry run;
* a sum that is formed apart: LSL, ROL, ..., then the running sum is added to it, then the squares, each in a carry run;
* doubling a block: LSL, ROL, ...; the bit that leaves it waits in T (MUL does not touch T), or, where the block is one
  column and T still holds the bit that came in, as a mask made by SBC p, p and taken back by LSR p;
* the diagonal: all squares of a block are formed first, then added in one carry run; where the block ends between the
  two limbs of a square, its high limb waits and takes the run's carry (it is at most 0xfe).

Sources: research/avr.md and avr_kernels.md, patterns 3, 4, 6, 7, 8 and 9; [SBD13].
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from sqgen.bounds import Sum
from sqgen.code import Builder, CodeError, Flag, Memory, Virtual
from sqgen.plan import Apart, Block, Double, Gather, Join, Load, Plan, Product, Step, Store

from .avr_registers import HIGH, LOW


def operands(build: Builder, plan: Plan) -> tuple[list[Virtual], list[Virtual]]:
    """The limbs of both operands, which are one for a square; they can be loaded again at any time."""
    found = {base: [build.limb(f"{base}{i}", Memory(base, i)) for i in range(plan.limbs)] for base in plan.operands}
    return found["a"], found[plan.operands[-1]]


def clear(build: Builder, name: str) -> Virtual:
    """A new variable that is zero."""
    limb = build.limb(name)
    build.emit("eor", limb, limb, fresh=True)
    return limb


def store(build: Builder, column: int, limbs: Sequence[Virtual]) -> None:
    """Store limbs to the result, the first one to this column."""
    for position, limb in enumerate(limbs):
        build.memory("store", limb, Memory("r", column + position))


class Leaf:
    """The steps of a plan without parts: `left` and `right` are its operands, `out` takes the limbs of the result."""

    def __init__(
        self,
        plan: Plan,
        build: Builder,
        left: list[Virtual],
        right: list[Virtual],
        *,
        out: Callable[[int, list[Virtual]], None] | None = None,
        zero: Virtual | None = None,
    ) -> None:
        self.plan, self.build, self.left, self.right = plan, build, left, right
        self.out = out or (lambda column, limbs: store(build, column, limbs))
        self.sum = Sum(build.isa.limb_bits)
        self.limbs: dict[int, Virtual] = {}  # the sum, by column; an empty limb is missing
        self.running = (self.sum, self.limbs)  # where the sum waits while another is formed apart
        self.caught: dict[int, Virtual] = {}  # carries that wait, by column
        self.top = 2 * plan.limbs - 1
        self.doubling_in_t: Flag | None = None  # the bit doubled out of the last block, in T
        self.doubling_mask: Virtual | None = None  # the same as a mask
        self.square_high: tuple[int, Virtual] | None = None  # high limb of a square, and its column
        self.square_mask: Virtual | None = None  # carry of the diagonal's run, as a mask
        self.zero = zero or clear(build, "zero")

    def all_steps(self) -> None:
        """Step by step."""
        rest = deque(self.plan.steps)
        while rest:
            self.step(rest.popleft(), rest)

    def step(self, step: Step, rest: deque[Step]) -> None:
        """One step, with those of the `rest` that are done along with it."""
        match step:
            case Block(title):
                self.build.heading(title)
            case Product():
                self.product(step)
            case Double(first, last):
                self.finish_block(first, last, self.diagonal(rest))
            case Apart():
                self.running = (self.sum, self.limbs)
                self.sum, self.limbs = Sum(self.build.isa.limb_bits), {}
            case Join():
                self.join(self.diagonal(rest))
            case Gather(last):
                self.gather(last)
            case Load(column):
                columns = [column]
                while rest and isinstance(rest[0], Load):
                    columns.append(cast(Load, rest.popleft()).column)
                self.load(columns)
            case Store(column):
                columns = [column]
                while rest and isinstance(rest[0], Store):
                    columns.append(cast(Store, rest.popleft()).column)
                self.store(columns)

    def diagonal(self, rest: deque[Step]) -> list[Product]:
        """Take the cells on the diagonal that follow a doubling: they are added in one carry run."""
        cells: list[Product] = []
        while rest and isinstance(rest[0], Product) and rest[0].i == rest[0].j:
            cells.append(cast(Product, rest.popleft()))
        return cells

    def operand(self, cell: Product) -> tuple[Virtual, Virtual]:
        return self.left[cell.i], self.right[cell.j]

    def product(self, cell: Product) -> None:
        """Form one product and add it to the sum as often as it is there."""
        names = ("a", "a" if self.plan.op == "sqr" else "b")
        comment = f"{names[0]}[{cell.i}] * {names[1]}[{cell.j}] at column {cell.column}"
        self.build.emit("mul", *self.operand(cell), comment=comment)
        for _ in range(cell.times):
            self.add_product(cell.column, caught=cell.caught)

    def add_product(self, column: int, *, caught: bool) -> None:
        """Add r1:r0 to the sum."""
        empty_low, empty_high = column not in self.limbs, column + 1 not in self.limbs
        self.sum.add_product(column)
        if empty_low and empty_high:
            self.limbs[column], self.limbs[column + 1] = self.build.pair(f"s{column}", f"s{column + 1}")
            self.build.emit("mov", self.limbs[column], LOW)
            self.build.emit("mov", self.limbs[column + 1], HIGH)
            return
        carry = None
        if empty_low:
            self.move(column, LOW)
        else:
            carry = self.add(column, LOW, None)
        if empty_high:
            self.move(column + 1, HIGH)
            if carry and self.sum.carries(column):
                self.add(column + 1, self.zero, carry, "the high limb of a product is at most 0xfe and takes the carry")
            return
        comment = "" if self.sum.carries(column + 1) else self.bound(column + 1)
        carry = self.add(column + 1, HIGH, carry, comment)
        if caught:
            self.catch(column + 1, carry)
        else:
            self.ripple(column + 1, carry)

    def move(self, column: int, source: str) -> None:
        """Put `source` into the empty limb."""
        self.limbs[column] = self.build.limb(f"s{column}")
        self.build.emit("mov", self.limbs[column], source)

    def add(self, column: int, source: str | Virtual, carry: Flag | None, comment: str = "") -> Flag | None:
        """Add to a limb of the sum; the carry out."""
        name = "adc" if carry else "add"
        return self.build.emit(name, self.limbs[column], source, takes=carry, comment=comment)

    def ripple(self, column: int, carry: Flag | None) -> None:
        """Pass the carry out of `column` upwards as far as one can get."""
        while carry and self.sum.carries(column):
            column += 1
            if column not in self.limbs:
                self.limbs[column] = self.build.limb(f"s{column}")
                self.build.emit("eor", self.limbs[column], self.limbs[column], fresh=True)
            comment = "" if self.sum.carries(column) else self.bound(column)
            carry = self.add(column, self.zero, carry, comment)

    def catch(self, column: int, carry: Flag | None) -> None:
        """Let the carry out of `column` wait, if it could run on beyond the limb above."""
        above = column + 1
        if not (self.sum.carries(column) and above in self.limbs and self.sum.carries(above)):
            self.ripple(column, carry)
            return
        if above not in self.caught:
            self.caught[above] = self.build.limb(f"k{above}")
            self.build.emit("eor", self.caught[above], self.caught[above], fresh=True)
        self.build.emit("adc", self.caught[above], self.zero, takes=carry, comment="a carry waits")

    def gather(self, last: int) -> None:
        """Add the carries that wait below `last` to the sum, in one carry run."""
        waiting = {column: self.caught.pop(column) for column in sorted(self.caught) if column < last}
        if not waiting:
            return
        carry = self.run(range(min(waiting), last), waiting)
        self.catch(last - 1, carry)

    def run(self, columns: Sequence[int], addends: Mapping[int, Virtual | str]) -> Flag | None:
        """Add limbs to those of the sum at neighbouring columns; the carry out of the last one."""
        carry: Flag | None = None
        for column in columns:
            addend = addends.get(column)
            if column in self.limbs and (addend or carry):
                carry = self.add(column, addend or self.zero, carry)
            elif addend:
                self.limbs[column] = cast(Virtual, addend)
                carry = self.add(column, self.zero, carry) if carry else None
            elif carry:
                self.ripple(column - 1, carry)
                carry = None
        return carry

    def bound(self, column: int) -> str:
        """Why no carry leaves the limb at `column`."""
        return f"columns {column}:{column - 1} are at most 0x{self.sum.reach(column):x}, so no carry"

    def load(self, columns: Sequence[int]) -> None:
        """Add stored limbs of the result back, neighbours in one carry run.

        No product is waiting, so that two of them can be loaded to r1:r0; those that the sum lacks become its limbs.
        """
        free = [HIGH, LOW]
        stored: dict[int, Virtual | str] = {}
        for column in columns:
            stored[column] = free.pop() if column in self.limbs and free else self.build.limb(f"r{column}")
            self.sum.add_limb(column)
            self.build.memory("load", stored[column], Memory("r", column))
        carry = self.run(columns, stored)
        self.ripple(columns[-1], carry)

    def store(self, columns: Sequence[int]) -> None:
        """The lowest limbs leave the sum."""
        self.out(columns[0], [self.limbs.pop(column, self.zero) for column in columns])
        for column in columns:
            self.sum.drop(column)

    def join(self, diagonal: Sequence[Product]) -> None:
        """Double the sum that is apart, add the running one, then the squares."""
        carry: Flag | None = None
        apart, limbs = self.sum, self.limbs
        for column in sorted(limbs):
            carry = self.build.emit("adc" if carry else "add", limbs[column], limbs[column], takes=carry)
        self.sum, self.limbs = self.running
        self.sum.add_doubled(apart)
        if carry and self.sum.carries(max(limbs)):
            top = max(limbs) + 1
            limbs[top] = self.build.limb(f"s{top}")
            self.build.emit("eor", limbs[top], limbs[top], fresh=True)
            self.build.emit("adc", limbs[top], self.zero, takes=carry)
        carry = self.run(range(min(limbs), max(limbs) + 1), limbs)
        self.ripple(max(limbs), carry)
        if diagonal:
            squares = self.squares(diagonal, self.top + 1)
            for cell in diagonal:
                self.sum.add_product(cell.column)
            carry = self.run(range(min(squares), max(squares) + 1), squares)
            self.ripple(max(squares), carry)

    # ---- a square's block: double, add the diagonal ----------------------------------------------------------

    def finish_block(self, first: int, last: int, diagonal: Sequence[Product]) -> None:
        """Double limbs first..last-1 of the sum and add the squares of the diagonal that begin in them."""
        squares = self.squares(diagonal, last)
        self.double(first, last, squares)
        self.add_diagonal(first, last, squares)

    def squares(self, diagonal: Sequence[Product], last: int) -> dict[int, Virtual | str]:
        """Form the squares and return their limbs by column.

        A limb of the last square stays in r1:r0 if there is a limb of the sum in this block to add it to; all others
        are moved away.
        """
        limbs: dict[int, Virtual | str] = {}
        for cell in diagonal:
            column = cell.column
            self.build.emit("mul", *self.operand(cell), comment=f"a[{cell.i}] * a[{cell.i}] at column {column}")
            newest = cell is diagonal[-1]
            low_stays = newest and column in self.limbs
            high_stays = newest and column + 1 in self.limbs and column + 1 < last
            if not low_stays and not high_stays:
                limbs[column], limbs[column + 1] = self.build.pair(f"q{column}", f"q{column + 1}")
            else:
                limbs[column] = LOW if low_stays else self.build.limb(f"q{column}")
                limbs[column + 1] = HIGH if high_stays else self.build.limb(f"q{column + 1}")
            for place, source in ((column, LOW), (column + 1, HIGH)):
                if isinstance(limbs[place], Virtual):
                    self.build.emit("mov", limbs[place], source)
        return limbs

    def double(self, first: int, last: int, squares: dict[int, Virtual | str]) -> None:
        """Shift the block left by one bit, the bit from the block below coming in, the top one kept for the next."""
        columns = [column for column in range(first, last) if column in self.limbs]
        carry: Flag | None = None
        if self.doubling_mask:
            carry = self.build.emit("lsr", self.doubling_mask)
            self.doubling_mask = None
        incoming, self.doubling_in_t = self.doubling_in_t, None
        keep_in_t = len(columns) > 1 and last <= self.top
        for index, column in enumerate(columns):
            limb = self.limbs[column]
            carry = self.build.emit("adc" if carry else "add", limb, limb, takes=carry)
            if index == 0 and incoming:
                self.build.emit("bld", limb, 0, takes=incoming, comment="the bit doubled out of the block below")
            if index == 0 and keep_in_t:
                self.doubling_in_t = self.build.emit("bst", self.limbs[columns[-1]], 7)
        if last > self.top:
            self.double_top(carry, incoming if not columns else None, squares)
        elif carry and not keep_in_t:
            self.doubling_mask = self.mask("d", carry)

    def double_top(self, carry: Flag | None, incoming: Flag | None, squares: dict[int, Virtual | str]) -> None:
        """The topmost limb of a square has no cell off the diagonal: what is doubled into it goes to a[n-1]^2, or to
        the high limb of that which waits."""
        if self.top in squares:
            high = squares[self.top]
        elif self.square_high and self.square_high[0] == self.top:
            high = self.square_high[1]
        else:
            raise CodeError("the top limb is doubled before a[n-1]^2 is formed")
        comment = "the whole square is below 2^(bits of the result)"
        if incoming:  # at most one bit, and the limb's lowest bit is not free: add it
            bit = self.build.limb("bit")
            self.build.emit("eor", bit, bit, fresh=True)
            self.build.emit("bld", bit, 0, takes=incoming)
            self.build.emit("add", high, bit, comment=comment)
        elif carry:
            self.build.emit("adc", high, self.zero, takes=carry, comment=comment)

    def add_diagonal(self, first: int, last: int, squares: dict[int, Virtual | str]) -> None:
        """Add the squares, and what waits from the block below, in one carry run."""
        addends = dict(squares)
        if self.square_high:
            column, high = self.square_high
            addends[column] = high
            self.square_high = None
        carry: Flag | None = None
        if self.square_mask:
            carry = self.build.emit("lsr", self.square_mask)
            self.square_mask = None
        for column in range(first, last):
            carry = self.add_square_limb(column, addends.get(column), carry)
        waiting = addends.get(last)
        if isinstance(waiting, Virtual):
            if carry:
                self.build.emit(
                    "adc", waiting, self.zero, takes=carry, comment="the high limb of a square is at most 0xfe"
                )
            self.square_high = (last, waiting)
        elif carry and last <= self.top:
            self.square_mask = self.mask("q", carry)

    def add_square_limb(self, column: int, addend: Virtual | str | None, carry: Flag | None) -> Flag | None:
        """One limb of the run; the carry out."""
        if column in self.limbs:
            if addend is not None:
                return self.add(column, addend, carry)
            return self.add(column, self.zero, carry) if carry else None
        if isinstance(addend, Virtual):
            self.limbs[column] = addend
            return self.add(column, self.zero, carry) if carry else None
        if addend is not None or not carry:
            raise CodeError(f"nothing to form limb {column} of the square from")
        self.limbs[column] = self.build.limb(f"s{column}")
        self.build.emit("eor", self.limbs[column], self.limbs[column], fresh=True)
        return self.add(column, self.zero, carry)

    def mask(self, name: str, carry: Flag) -> Virtual:
        """Park a carry: all bits of a register equal to it."""
        mask = self.build.limb(f"{name}_mask")
        self.build.emit("sbc", mask, mask, takes=carry, fresh=True)
        return mask
