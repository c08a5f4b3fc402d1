"""Blocks of rows in loops, on cores with UMAAL: code whose size does not hang on the number of limbs.

A block's rows are four limbs a0..a3 of the first operand, in registers, and as many words of the sum.  For each limb y
of the other operand, at column c, a limb m of the sum comes from memory, and with it

    m, w0 = m + w0 + a0 * y        m is the sum's limb of column c, and w0 belongs to column c + 1
    w1, w0 = w1 + w0 + a1 * y      w1 stays at column c + 1, and w0 belongs to column c + 2
    w2, w0 = ...                   until w0 belongs to column c + 4

so that after four columns every word is in its register again: a turn of the loop.  The sum begins with zeros; what
registers hold at the end of a block goes to memory behind it.  Of a square a block's own triangle comes first.
Registers are given out here by hand: in a turn all are in use, so what belongs to the loop around it is on the stack.

Sources: research/arm_kernels.md, M4 ideas 2 and 11.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.code import Builder, Code, Function, Label, Op
from sqgen.plan import Plan
from sqgen.table import Isa

ROWS = 4
LIMB = 4  # bytes
RESULT, WALKER, LIMB_Y, LIMB_M = "r0", "r1", "r2", "r3"
WORDS = ("r4", "r5", "r6", "r7")
FACTORS = ("r8", "r10", "r11", "r12")
COUNT = "lr"
LEFT = LIMB_Y  # blocks still to come, between blocks
# Places on the stack (bytes): where the result and the operand that walks by begin, where the result and the first
# operand are at the block, and blocks still to come.
BEGIN_RESULT, BEGIN_WALK, AT_RESULT, AT_ROWS, BLOCKS, FRAME = (LIMB * place for place in range(6))


def lower(plan: Plan, isa: Isa) -> Code:
    """The plan's blocks of rows as loops, in one function on registers."""
    loops = Loops(Builder(isa), plan.limbs)
    loops.square() if plan.op == "sqr" else loops.product()
    return Code((Function("", tuple(loops.build.ops), ()),))


class Loops:
    """The loops, outside in."""

    def __init__(self, build: Builder, limbs: int) -> None:
        self.build, self.limbs = build, limbs
        self.blocks, self.rest = divmod(limbs, ROWS)

    # ---- what loops are made of ------------------------------------------------------------------------------------

    def do(self, insn: str, *args: str | int | tuple[str, ...], comment: str = "") -> None:
        """An instruction as it is."""
        self.build.raw([Op(insn, args, comment=comment)])

    def load(self, register: str, offset: int, pointer: str = "sp") -> None:
        """A limb, from so many bytes behind a pointer."""
        self.access("ldr", register, offset, pointer)

    def store(self, register: str, offset: int, pointer: str = "sp") -> None:
        """A limb, to so many bytes behind a pointer."""
        self.access("str", register, offset, pointer)

    def access(self, name: str, register: str, offset: int, pointer: str) -> None:
        """In the short form where there is one."""
        low = register in (RESULT, WALKER, LIMB_Y, LIMB_M, *WORDS)
        if pointer == "sp":
            self.do(f"{name}_sp" if low else f"{name}_spw", register, offset)
        else:
            self.do(name if low else f"{name}_w", register, pointer, offset)

    def step(self, pointer: str, limbs: int) -> None:
        """Move a pointer."""
        self.do("adds_i", pointer, LIMB * limbs)

    def zero(self, registers: Sequence[str]) -> None:
        """Words that hold nothing yet."""
        for register in registers:
            self.do("movs_i", register, 0)

    def jump(self, insn: str, label: Label) -> None:
        """To a label."""
        self.build.mark(insn, label)

    # ---- a walk ----------------------------------------------------------------------------------------------------

    def column(self, place: int, rows: int) -> None:
        """The products of one limb of the operand that walks by, so many limbs behind its pointer."""
        first, *others = [WORDS[(place + row) % rows] for row in range(rows)]
        self.load(LIMB_Y, LIMB * place, WALKER)
        self.load(LIMB_M, LIMB * place, RESULT)
        self.do("umaal", LIMB_M, first, FACTORS[0], LIMB_Y, comment="row 0, with a limb of the sum")
        for row, word in enumerate(others, 1):
            self.do("umaal", word, first, FACTORS[row], LIMB_Y)
        self.store(LIMB_M, LIMB * place, RESULT)

    def turns(self, rows: int, *, may_be_none: bool) -> None:
        """Four columns in each turn, as many turns as `COUNT` says."""
        behind = self.build.label("walked")
        if may_be_none:
            self.do("subs_wi", COUNT, COUNT, 0, comment="how many turns?")
            self.jump("beq", behind)
        again = self.build.begin("walk")
        for place in range(ROWS):
            self.column(place, rows)
        self.step(RESULT, ROWS)
        self.step(WALKER, ROWS)
        self.do("subs_wi", COUNT, COUNT, 1)
        self.jump("bne", again)
        if may_be_none:
            self.build.mark("label", behind)

    def end_of_walk(self, rows: int) -> None:
        """The limbs that are no whole turn, and the words that are left."""
        for place in range(self.rest):
            self.column(place, rows)
        for row in range(rows):
            self.store(WORDS[(self.rest + row) % rows], LIMB * (self.rest + row), RESULT)

    # ---- both operations -------------------------------------------------------------------------------------------

    def enter(self, walker: str) -> None:
        """Room on the stack, where the pointer to what walks by is kept, and zeros for the lower half of the result."""
        self.build.heading("zeros for the sum to begin with")
        self.do("sub_sp", FRAME)
        self.store(walker, BEGIN_WALK)
        self.store(RESULT, BEGIN_RESULT)
        self.zero(WORDS)
        if self.blocks:
            self.do("mov_i", COUNT, self.blocks)
            again = self.build.begin("clear")
            self.do("stm", RESULT, WORDS)
            self.do("subs_wi", COUNT, COUNT, 1)
            self.jump("bne", again)
        for place in range(self.rest):
            self.store(WORDS[0], LIMB * place, RESULT)
        self.load(RESULT, BEGIN_RESULT)

    def product(self) -> None:
        """All rows of a product, four at a time, and then two, and one."""
        self.enter("r2")
        if self.blocks:
            self.build.heading("blocks of four rows")
            self.do("movs_i", LEFT, self.blocks)
            again = self.build.begin("block")
            self.store(LEFT, BLOCKS)
            self.rows(ROWS)
            self.load(LEFT, BLOCKS)
            self.do("subs_i", LEFT, 1)
            self.jump("bne", again)
        for rows in (2, 1):
            if self.rest & rows:
                self.build.heading(f"the last {rows} rows" if rows > 1 else "the last row")
                self.rows(rows)
        self.do("add_sp", FRAME)

    def rows(self, rows: int) -> None:
        """Some rows of a product."""
        self.store(RESULT, AT_RESULT)
        if rows > 1:
            self.do("ldm_w", WALKER, FACTORS[:rows])
        else:
            self.load(FACTORS[0], 0, WALKER)
        self.step(WALKER, rows)
        self.store(WALKER, AT_ROWS)
        self.load(WALKER, BEGIN_WALK)
        self.zero(WORDS[:rows])
        if self.blocks:
            self.do("mov_i", COUNT, self.blocks)
            self.turns(rows, may_be_none=False)
        self.end_of_walk(rows)
        self.load(RESULT, AT_RESULT)
        self.load(WALKER, AT_ROWS)
        self.step(RESULT, rows)

    # ---- a square --------------------------------------------------------------------------------------------------

    def square(self) -> None:
        """The cells off the diagonal, then all doubled, and the diagonal."""
        self.enter(WALKER)
        if self.blocks:
            self.build.heading("blocks of four rows: their own triangle, then the walk")
            self.do("movs_i", LEFT, self.blocks - 1)
            again = self.build.begin("block")
            self.store(LEFT, BLOCKS)
            self.do("mov", COUNT, LEFT)
            self.store(RESULT, AT_RESULT)
            self.store(WALKER, AT_ROWS)
            self.triangle()
            if self.blocks > 1:
                self.turns(ROWS, may_be_none=True)
            self.end_of_walk(ROWS)
            self.load(RESULT, AT_RESULT)
            self.load(WALKER, AT_ROWS)
            self.load(LEFT, BLOCKS)
            self.step(RESULT, 2 * ROWS)
            self.step(WALKER, ROWS)
            self.do("subs_i", LEFT, 1)
            self.jump("bcs", again)
        self.last_triangle()
        self.diagonal()
        self.do("add_sp", FRAME)

    def triangle(self) -> None:
        """The six cells of a block's own limbs; the words for its walk are left in order."""
        a, b, c, d = FACTORS
        first, second, third, fourth = WORDS
        self.do("ldm_w", WALKER, FACTORS)
        low, middle, high = LIMB_Y, LIMB_M, fourth
        for place, limb in enumerate((low, middle, high), 1):
            self.load(limb, LIMB * place, RESULT)
        self.zero([second])
        self.do("umaal", low, second, a, b, comment="column 1 of the block")
        self.store(low, LIMB, RESULT)
        self.do("umaal", middle, second, a, c)
        self.store(middle, 2 * LIMB, RESULT)
        self.zero([first])
        self.do("umaal", high, second, a, d)
        self.do("umaal", high, first, b, c)
        self.store(high, 3 * LIMB, RESULT)
        self.zero([third])
        self.do("umaal", first, second, b, d)
        self.do("umaal", second, third, c, d)
        self.zero([fourth])
        self.step(RESULT, ROWS)
        self.step(WALKER, ROWS)

    def last_triangle(self) -> None:
        """The cells of the limbs that are no block; the top limb of the sum is a zero."""
        if not self.rest:
            return
        self.build.heading("the last rows")
        for place in range(self.rest):
            self.load(FACTORS[place], LIMB * place, WALKER)
        low, middle = LIMB_Y, LIMB_M
        first, second, nothing = WORDS[:3]
        self.zero((first, second, nothing))
        left = []  # words of the columns below the top
        if self.rest > 1:
            self.load(low, LIMB, RESULT)
            self.do("umaal", low, first, FACTORS[0], FACTORS[1])
            self.store(low, LIMB, RESULT)
            left = [first]
        if self.rest > 2:
            self.load(middle, 2 * LIMB, RESULT)
            self.do("umaal", middle, first, FACTORS[0], FACTORS[2])
            self.store(middle, 2 * LIMB, RESULT)
            self.do("umaal", first, second, FACTORS[1], FACTORS[2])
            left = [first, second]
        top = 2 * self.rest - 1
        for place, word in enumerate([*left, nothing], top - len(left)):
            self.store(word, LIMB * place, RESULT)

    def diagonal(self) -> None:
        """Each limb squared, and two limbs of the sum doubled into it; a carry goes from each to the next."""
        self.build.heading("the sum doubled, and the diagonal")
        carry, two = "r10", "r11"
        self.load(RESULT, BEGIN_RESULT)
        self.load(WALKER, BEGIN_WALK)
        self.do("mov_i", carry, 0)
        self.do("mov_i", two, 2)
        if self.limbs % 2:
            self.pairs(1, carry, two)
        if self.limbs > 1:
            self.do("mov_i", COUNT, self.limbs // 2)
            again = self.build.begin("double")
            self.pairs(2, carry, two)
            self.do("subs_wi", COUNT, COUNT, 1)
            self.jump("bne", again)

    def pairs(self, count: int, carry: str, two: str) -> None:
        """So many limbs of the operand, and twice as many of the result."""
        low, high = "r8", "r12"
        for place in range(count):
            self.load((LIMB_Y, LIMB_M)[place], LIMB * place, WALKER)
        for place in range(2 * count):
            self.load(WORDS[place], LIMB * place, RESULT)
        for place in range(count):
            limb = (LIMB_Y, LIMB_M)[place]
            self.do("umull", low, high, limb, limb)
            for half, word in ((0, low), (1, high)):
                self.do("umaal", word, carry, WORDS[2 * place + half], two)
                self.store(word, LIMB * (2 * place + half), RESULT)
        self.step(RESULT, 2 * count)
        self.step(WALKER, count)
