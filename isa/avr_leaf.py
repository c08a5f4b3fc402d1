"""How the steps of a plan without parts become AVR code on virtual registers.

One register is zero.  The idioms (c, c+1, ... are limbs of the sum):

* a product: MUL, ADD c, ADC c+1, and ADC c+2 where `bounds` cannot exclude the carry; an empty limb is moved into;
* a carry that a method catches: if it could run on beyond c+2, it is counted in a register of its own for that column;
* stored limbs that come back: loaded to r1:r0, neighbours in one carry run;
* a sum that is formed apart: LSL, ROL, ..., then the running sum is added to it, then the squares, each in a carry run;

`avr_runs` has products that are added in one carry run, `avr_squares` the doubling of a block and its diagonal.

Sources: research/avr.md and avr_kernels.md, patterns 3, 4, 6, 7, 8 and 9; [SBD13].
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from sqgen.bounds import Sum
from sqgen.code import Builder, Flag, Memory, Virtual
from sqgen.plan import Apart, Block, Double, Gather, Join, Load, Plan, Product, Run, Step, Store, Strip

from .avr_registers import HIGH, LOW
from .avr_runs import Runs, clear
from .avr_squares import Squares

AHEAD = 5  # steps to the end of the next row of a rhombus


def operands(build: Builder, plan: Plan) -> tuple[list[Virtual], list[Virtual]]:
    """The limbs of both operands, which are one for a square; they can be loaded again at any time."""
    found = {base: [build.limb(f"{base}{i}", Memory(base, i)) for i in range(plan.limbs)] for base in plan.operands}
    return found["a"], found[plan.operands[-1]]


def store(build: Builder, column: int, limbs: Sequence[Virtual | str], base: str = "r") -> None:
    """Store limbs to the result, the first one to this column."""
    for offset, limb in enumerate(limbs, column):
        build.memory("store", limb, Memory(base, offset))


class Leaf:
    """The steps of a plan without parts: `left` and `right` are its operands, `out` takes the limbs of the result.

    Where `begin` is given products are subtracted from a sum in registers; it forms what an empty limb begins with,
    enough that nothing is borrowed from the limb above."""

    def __init__(
        self,
        plan: Plan,
        build: Builder,
        left: list[Virtual],
        right: list[Virtual],
        *,
        out: Callable[[int, list[Virtual]], None] | None = None,
        zero: Virtual | None = None,
        begin: Callable[[int], Virtual] | None = None,
    ) -> None:
        self.plan, self.build, self.left, self.right = plan, build, left, right
        self.out = out or (lambda column, limbs: store(build, column, limbs))
        self.sum = Sum(build.isa.limb_bits)
        self.limbs: dict[int, Virtual] = {}  # the sum, by column; an empty limb is missing
        self.running = (self.sum, self.limbs)  # where the sum waits while another is formed apart
        self.caught: dict[int, Virtual] = {}  # carries that wait, by column
        self.top = 2 * plan.limbs - 1
        self.highest: list[Virtual] = []  # limbs of the product that are stored last, which are in registers too
        self.zero = zero or clear(build, "zero")
        self.begin = begin
        self.runs, self.squares = Runs(self), Squares(self)

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
                self.highest = []
                self.product(step)
            case Run(cells):
                self.highest = []
                self.runs.run(cells, self.following(rest))
            case Strip(first, last):
                self.build.mark("need", reads=[limb for limb in self.right[first:last] if limb.home])
            case Double(first, last):
                self.squares.finish_block(first, last, self.diagonal(rest), rest)
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
                self.store([column, *self.stores(rest)])

    def diagonal(self, rest: deque[Step]) -> list[Product]:
        """Take the cells on the diagonal that follow a doubling: they are added in one carry run."""
        cells: list[Product] = []
        while rest and isinstance(rest[0], Product) and rest[0].i == rest[0].j:
            cells.append(cast(Product, rest.popleft()))
        return cells

    def following(self, rest: deque[Step]) -> list[Product]:
        """The top products of the runs in which a carry of this one may wait: of the next one; where rows are cut into
        strips, the next row's too, for limbs above a row are in the sum already."""
        strips = self.plan.op == "mul"
        runs: list[Product] = []
        for step in itertools.islice(rest, AHEAD if strips else 1):
            if isinstance(step, Run):
                runs.append(step.cells[-1])
            elif not isinstance(step, Store | Block):
                break
        return runs

    def operand(self, cell: Product) -> tuple[Virtual, Virtual]:
        return self.left[cell.i], self.right[cell.j]

    def product(self, cell: Product) -> None:
        """Form one product and add it to the sum as often as it is there."""
        self.multiply(cell)
        for _ in range(cell.times):
            self.add_product(cell.column, caught=cell.caught)

    def multiply(self, cell: Product) -> None:
        """r1:r0 = the product of a cell."""
        names = ("a", "a" if self.plan.op == "sqr" else "b")
        comment = f"{names[0]}[{cell.i}] * {names[1]}[{cell.j}] at column {cell.column}"
        self.build.emit("mul", *self.operand(cell), comment=comment)

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
        """Add to a limb of the sum, or subtract; the carry out."""
        first, following = ("sub", "sbc") if self.begin else ("add", "adc")
        name = following if carry else first
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
        if self.begin:
            return "began with enough, so no borrow"
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

    def stores(self, rest: deque[Step], end: int | None = None) -> list[int]:
        """Take the columns that are to be stored next, those below `end` if it is given."""
        columns: list[int] = []
        while rest and isinstance(rest[0], Store) and (end is None or rest[0].column < end):
            columns.append(cast(Store, rest.popleft()).column)
        return columns

    def store(self, columns: Sequence[int]) -> None:
        """The lowest limbs leave the sum."""
        if columns:
            limbs = [self.limbs.pop(column, self.zero) for column in columns]
            self.highest += limbs
            self.out(columns[0], limbs)
        for column in columns:
            self.sum.drop(column)

    def waiting_square(self, column: int) -> Virtual | None:
        """The low limb of the square that begins at this column, if it is formed and waits with its two carries."""
        pair = self.runs.formed.get(Product(column // 2, column // 2)) if column % 2 == 0 else None
        return pair[0] if pair else None

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
            squares = dict(self.runs.addends(diagonal, last_waits=False))
            for cell in diagonal:
                self.sum.add_product(cell.column)
            carry = self.run(range(min(squares), max(squares) + 1), squares)
            self.ripple(max(squares), carry)
