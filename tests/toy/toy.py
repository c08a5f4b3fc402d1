"""The toy's idioms: columns of a product in the multiplier's accumulator, everything else limb by limb.

A square keeps two things from one block of columns for the next: the bit that its doubling carried out, and what its
diagonal sent above it, which must not be doubled.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import cast

from sqgen.bounds import Sum
from sqgen.code import Arg, Builder, Code, Flag, Function, Memory, Op, Virtual
from sqgen.plan import Apart, Block, Double, Join, Load, Plan, Product, Run, Store
from sqgen.table import Core, Isa

NEEDS = ("mul", "mac")
POINTERS = {"r": "g0", "a": "g1", "b": "g2"}


def lower(plan: Plan, isa: Isa, core: Core, reserve: Sequence[str] = ()) -> Code:
    """The plan as one straight-line function on virtual registers."""
    lowering = _Lowering(plan, isa)
    columns = [product.column for product in plan.products()]
    again = any(isinstance(step, Load) for step in plan.steps)
    if plan.op == "mul" and columns == sorted(columns) and not again:
        lowering.accumulate()
    else:
        lowering.limb_by_limb()
    pointers = [POINTERS[base] for base in lowering.operands] + [POINTERS["r"]]
    pool = tuple(register for register in isa.registers if register not in pointers)
    return Code((Function("", tuple(lowering.build.ops), pool),))


class _Lowering:
    def __init__(self, plan: Plan, isa: Isa) -> None:
        self.plan = plan
        self.build = Builder(isa)
        self.sum = Sum(isa.limb_bits)
        self.limbs: dict[int, Virtual] = {}  # the sum, by column; an empty limb is missing
        self.doubled: Virtual | None = None  # the bit doubled out of the last block
        self.above: Virtual | None = None  # what the diagonal sent out of the last block
        self.operands = {
            base: [self.build.limb(f"{base}{i}", Memory(base, i)) for i in range(plan.limbs)]
            for base in ("a" if plan.op == "sqr" else "ab")
        }

    def factors(self, cell: Product) -> tuple[Virtual, Virtual]:
        return self.operands["a"][cell.i], self.operands["a" if self.plan.op == "sqr" else "b"][cell.j]

    def new(self, name: str, insn: str, *args: Arg, takes: Flag | None = None) -> tuple[Virtual, Flag | None]:
        """A new variable, given by an instruction; and the carry."""
        virtual = self.build.limb(name)
        return virtual, self.build.emit(insn, virtual, *args, takes=takes)

    # ---- the multiplier's accumulator -----------------------------------------------------------------------------

    def accumulate(self) -> None:
        """Columns one after the other, in LO, HI and a register above them."""
        self.build.emit("clear")
        top, _ = self.new("top", "li", 0)
        for step in self.plan.steps:
            match step:
                case Block(title):
                    self.build.heading(title)
                case Product():
                    carry = self.build.emit("mac", *self.factors(step))
                    top, _ = self.new("top", "adci", top, 0, takes=carry)
                case Store(column):
                    limb, _ = self.new(f"s{column}", "take", top)
                    self.build.memory("store", limb, Memory("r", column))
                    top, _ = self.new("top", "li", 0)

    # ---- limb by limb ---------------------------------------------------------------------------------------------

    def limb_by_limb(self) -> None:
        """A carry runs through the sum at once, also if the plan would have it caught."""
        steps = self.plan.steps
        diagonal: list[Product] = []  # what the last doubling took along
        running = self.limbs, self.sum
        for index, step in enumerate(steps):
            match step:
                case Block(title):
                    self.build.heading(title)
                case Product() if step not in diagonal:
                    self.product(step)
                case Double(first, last):
                    following = itertools.takewhile(lambda other: isinstance(other, Product), steps[index + 1 :])
                    diagonal = cast(list[Product], list(following))
                    self.finish_block(first, last, diagonal)
                case Apart():
                    running = self.limbs, self.sum
                    self.limbs, self.sum = {}, Sum(self.sum.width)
                case Join():
                    self.join(*running)
                case Load(column):
                    limb = self.build.limb(f"r{column}")
                    self.build.memory("load", limb, Memory("r", column))
                    self.sum.add_limb(column)
                    self.ripple(column + 1, self.add(column, limb, None))
                case Store(column):
                    self.sum.drop(column)
                    self.build.memory("store", self.limb(column), Memory("r", column))
                    del self.limbs[column]

    def limb(self, column: int) -> Virtual:
        """The limb of the sum, zero if it was empty."""
        if column not in self.limbs:
            self.limbs[column], _ = self.new(f"s{column}", "li", 0)
        return self.limbs[column]

    def add(self, column: int, addend: Virtual | str, carry: Flag | None) -> Flag | None:
        """Add to one limb of the sum; the carry."""
        name = "addc" if carry else "add"
        self.limbs[column], carry = self.new(f"s{column}", name, self.limb(column), addend, takes=carry)
        return carry

    def ripple(self, column: int, carry: Flag | None) -> None:
        """Add the carry out of the limb below `column`, as far up as it can get."""
        while self.sum.carries(column - 1):
            self.limbs[column], carry = self.new(f"s{column}", "adci", self.limb(column), 0, takes=carry)
            column += 1

    def product(self, cell: Product) -> None:
        """Add a product.  The limbs above are made before MUL: no flag lives across that."""
        for column in (cell.column, cell.column + 1, cell.column + 2):
            self.limb(column)
        self.build.emit("mul", *self.factors(cell))
        for _ in range(cell.times):
            self.sum.add_product(cell.column)
            self.ripple(cell.column + 2, self.add(cell.column + 1, "HI", self.add(cell.column, "LO", None)))

    def join(self, limbs: dict[int, Virtual], running: Sum) -> None:
        """Add the sum that was kept apart to the running one, twice."""
        apart, self.limbs = self.limbs, limbs
        running.add_doubled(self.sum)
        self.sum = running
        for column in 2 * sorted(apart):
            self.ripple(column + 1, self.add(column, apart[column], None))

    def finish_block(self, first: int, last: int, diagonal: Sequence[Product]) -> None:
        """Double the limbs first..last-1, then add what the block below sent up and the squares."""
        last = min(last, 2 * self.plan.limbs)
        carry = None
        if self.doubled:
            _, carry = self.new("_", "shr", self.doubled)
        for column in range(first, last):
            carry = self.add(column, self.limb(column), carry)
        self.doubled, _ = self.new("d", "carry", takes=carry)
        below, self.above = self.above, None
        if below:
            self.run(first, last, self.add(first, below, None))
        for cell in diagonal:
            self.build.emit("mul", *self.factors(cell))
            carry = self.add(cell.column, "LO", None)
            if cell.column + 1 < last:
                self.run(cell.column + 1, last, self.add(cell.column + 1, "HI", carry))
            elif self.above:
                self.above, _ = self.new("q", "addc", self.above, "HI", takes=carry)
            else:
                self.above, _ = self.new("q", "adci", "HI", 0, takes=carry)

    def run(self, column: int, last: int, carry: Flag | None) -> None:
        """Add the carry out of `column` to the limbs above it in the block, then to what goes up."""
        for above in range(column + 1, last):
            self.limbs[above], carry = self.new(f"s{above}", "adci", self.limb(above), 0, takes=carry)
        if self.above:
            self.above, _ = self.new("q", "adci", self.above, 0, takes=carry)
        else:
            self.above, _ = self.new("q", "carry", takes=carry)


def address(ops: Sequence[Op], isa: Isa) -> list[Op]:
    """After allocation: `load` and `store` become instructions; every displacement reaches."""
    return [_address(op) for op in ops]


def _address(op: Op) -> Op:
    if op.insn not in ("load", "store"):
        return op
    limb, where = op.args
    assert isinstance(where, Memory)
    insn = {"load": "ld", "store": "st"}[op.insn]
    return Op(insn, (limb, POINTERS[where.base], where.offset), heading=op.heading, comment=op.comment)


def forms(plan: Plan, core: Core) -> bool:
    """Whether these idioms know all steps of a plan: no parts, for there is no stack and no call, no loops, no runs."""
    return not any(plan.parts()) and not plan.loops and not any(isinstance(step, Run) for step in plan.steps)


def preferred(op: str, limbs: int, core: Core) -> list[tuple[str, dict[str, str]]]:
    """Methods and parameters for cores on which the answers say nothing: none."""
    return []


def room(core: Core) -> int | None:
    """Bytes of code that any part can hold."""
    return None


def starts(method: str, op: str, limbs: int) -> list[dict[str, str]]:
    """Parameters to begin a search with, beside those that the method and the answers have: none."""
    return []


def frame(saved: Sequence[str], core: Core, *, alone: bool = False) -> tuple[list[Op], list[Op]]:
    """Nothing is saved: there is no stack, and no code of ours writes RA."""
    assert not saved
    return [], [Op("ret", ())]


def wipe(registers: Sequence[str], limbs: int, isa: Isa, core: Core) -> list[Op]:
    """Clear registers, the multiplier's among them, and the carry."""
    assert not limbs
    cleared = [Op("li", (register, 0)) for register in registers if register in isa.registers]
    return [Op("clear", ()), *cleared, Op("li", ("g0", 0)), Op("add", ("g0", "g0", "g0"))]
