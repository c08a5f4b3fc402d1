"""Cells in any order on MSP430: each product is added to a sum of words, of which registers hold what they can.

    mov a, &MPY ; mov b, &OP2 ; add &RESLO, s[c] ; addc &RESHI, s[c + 1] ; adc s[c + 2]

A limb that is the left factor again stays in the multiplier.  An empty word of the sum takes a limb of the product by
MOV.  Carries run on as long as `bounds.Sum` cannot exclude them.  A square's cells off the diagonal have a sum of their
own, which is added twice to the squares, some complete columns at a time.  It is how methods run here that were made
for machines with other multipliers: nothing of it is faster than columns, or rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqgen.bounds import Sum
from sqgen.code import SPILLED, Builder, Code, Flag, Function, Memory, Op, Virtual
from sqgen.errors import Exit, UserError
from sqgen.plan import Block, Plan, Product, cells
from sqgen.table import Core, Isa

from .msp430_columns import FREE, SCAN
from .msp430_writer import FLASH, LEFT, LIMB, RESULT, RIGHT, Writer

POINTERS = {"r": RESULT, "a": LEFT, "b": RIGHT}
POOL = (SCAN, "r11", "r10", "r9", *FREE)
CHUNK = 4  # columns of a square that are doubled at a time
BITS = 16

Source = int | Virtual | None  # a limb of the product at its address, a word, or nothing but a carry


class Words:
    """A sum: a word for each column that holds something, and how large it can be."""

    def __init__(self, build: Builder, top: int) -> None:
        self.build, self.top = build, top  # nothing is carried to the column `top`
        self.words: dict[int, Virtual] = {}
        self.bounds = Sum(BITS)

    def put(self, column: int, source: Source, carry: Flag | None) -> Flag | None:
        """Add a limb and a carry; the carry that this gives, if any."""
        name, chained = ("addc" if carry else "add"), carry
        if column not in self.words:
            word = self.words[column] = self.build.limb(f"s{column}")
            if isinstance(source, int):
                self.build.emit("mov_a", word, source)
            else:
                self.build.emit("mov_r", word, source) if source else self.build.emit("clr", word)
            return self.build.emit("adc", word, takes=carry) if carry else None
        word = self.words[column]
        if isinstance(source, int):
            return self.build.emit(f"{name}_a", word, source, takes=chained)
        if source:
            return self.build.emit(f"{name}_r", word, source, takes=chained)
        return self.build.emit("adc", word, takes=carry)

    def ripple(self, at: int, carry: Flag | None) -> None:
        """Take a carry to a column and on, as far as it can go."""
        while carry and at < self.top and self.bounds.carries(at - 1):
            self.bounds.add_carry(at)
            carry = self.put(at, None, carry)
            at += 1

    def add_product(self, column: int, low: int, high: int) -> None:
        """Add what the multiplier holds."""
        self.bounds.add_product(column)
        carry = self.put(column, low, None)
        carry = self.put(column + 1, high, carry)
        self.ripple(column + 2, carry)

    def add_sum(self, other: Words, columns: Sequence[int]) -> None:
        """Add the words of another sum at some columns."""
        carry = None
        for column in columns:
            word = other.words.get(column)
            if word:
                self.bounds.add_limb(column)
                carry = self.put(column, word, carry)
            elif carry:
                self.ripple(column, carry)
                carry = None
        self.ripple(columns[-1] + 1, carry)

    def drop(self, column: int) -> Virtual | None:
        """The lowest word leaves."""
        self.bounds.drop(column)
        return self.words.pop(column, None)


class Cells:
    """A product or a square, in the order of its plan's cells."""

    def __init__(self, plan: Plan, isa: Isa, core: Core) -> None:
        self.plan, self.build, self.ports = plan, Builder(isa), Writer(isa, core).ports
        names = list(dict.fromkeys(("a", plan.operands[-1])))
        limbs = {name: [self.build.limb(f"{name}{i}", Memory(name, i)) for i in range(plan.limbs)] for name in names}
        self.left, self.right = limbs["a"], limbs[names[-1]]
        self.final = Words(self.build, 2 * plan.limbs)
        self.cross = Words(self.build, 2 * plan.limbs) if plan.triangle else self.final
        self.held: Virtual | None = None  # the left factor that the multiplier holds
        self.squared = self.done = 0  # squares in the sum, and columns that have left
        self.missing = [0] * (2 * plan.limbs)  # cells to come, by column

    def code(self) -> Code:
        """The function, on virtual registers."""
        pointers = [POINTERS[name] for name in ("r", *self.plan.operands)]
        for name in self.plan.operands:
            self.build.mark("lend_itself", name, POINTERS[name])
        self.build.mark("spill_early")
        steps = self.todo()
        for step in steps:
            if isinstance(step, Product):
                self.missing[step.column] += 1
        for step in steps:
            if isinstance(step, Product):
                self.multiply(self.cross, step)
                self.missing[step.column] -= 1
            else:
                self.finish()
                self.build.heading(step.title)
        self.finish()
        pool = tuple(name for name in (*POOL, RIGHT) if name not in pointers)
        return Code((Function("", tuple(self.build.ops), pool),))

    def todo(self) -> list[Product | Block]:
        """Headings, and the cells that are added one by one: of a triangle each off the diagonal once."""
        seen: set[tuple[int, int]] = set()
        found: list[Product | Block] = []
        for step in self.plan.steps:
            if isinstance(step, Block):
                found.append(step)
            for cell in cells(step):
                if not (self.plan.triangle and (cell.i == cell.j or (cell.i, cell.j) in seen)):
                    seen.add((cell.i, cell.j))
                    found.append(cell)
        return found

    def multiply(self, words: Words, cell: Product) -> None:
        """Form a product and add it."""
        left, right = self.left[cell.i], self.right[cell.j]
        comment = cell.text("a", "a" if self.plan.op == "sqr" else "b")
        if self.held is not left:
            self.build.emit("mov_ra", left, self.ports["MPY"])
        self.held = left
        self.build.emit("mov_ra", right, self.ports["OP2"], comment=comment)
        words.add_product(cell.column, self.ports["RESLO"], self.ports["RESHI"])

    def finish(self) -> None:
        """Let the columns go that are complete; an even number of a square's, in which diagonal cells are whole."""
        end = next((column for column, count in enumerate(self.missing) if count), len(self.missing))
        if not self.plan.triangle:
            self.go(end)
            return
        for first in range(self.done, end - end % 2, CHUNK):
            columns = range(first, min(first + CHUNK, end - end % 2))
            for i in range(self.squared, min(columns.stop // 2 + 1, self.plan.limbs)):
                self.multiply(self.final, Product(i, i))
                self.squared = i + 1
            for _ in range(2):
                self.final.add_sum(self.cross, columns)
            for column in columns:
                self.cross.drop(column)
            self.go(columns.stop)

    def go(self, end: int) -> None:
        """Words below a column leave."""
        for column in range(self.done, end):
            word = self.final.drop(column)
            if word is None:
                word = self.build.limb("zero")
                self.build.emit("clr", word)
            self.build.memory("store", word, Memory("r", column))
        self.done = max(self.done, end)


def any_cells(plan: Plan, isa: Isa, core: Core) -> Code:
    """The plan's cells in its order.

    Raises UserError where interrupts are to be off for a column at a time, and where, before any word is moved to where
    the next one needs its register, there is more code than fits anywhere.
    """
    if core.brief:
        raise UserError(f"method '{plan.method}' has no columns between which interrupts could come; leave guard=call")
    code = Cells(plan, isa, core).code()
    if sum(isa.insns[op.insn].size for op in code.functions[0].ops if op.insn in isa.insns) > len(FLASH):
        advice = "take --method auto, or a smaller size"
        raise UserError(f"method '{plan.method}' makes more code here than any part can hold; {advice}", Exit.LIMITS)
    return code


def addressed(ops: Sequence[Op], isa: Isa) -> list[Op]:
    """After allocation: limbs that were spilled lie at the stack pointer."""
    kept: list[Op] = []
    heading = ""
    for op in ops:
        heading = op.heading or heading
        if op.insn in ("load", "store") or op.insn in isa.insns or op.insn == "label":
            kept.append(replace(reached(op), heading=heading))
            heading = ""
    places = [arg.offset for op in ops for arg in op.args if isinstance(arg, Memory) and arg.base == SPILLED]
    if not places:
        return kept
    size = LIMB * (1 + max(places))
    down, up = (
        Op(f"{verb}_sp{size}" if size <= 4 * LIMB else f"{verb}_spi", () if size <= 4 * LIMB else (size,))
        for verb in ("sub", "add")
    )
    return [down, *kept, up]


def reached(op: Op) -> Op:
    """A load or a store as the instruction that it is."""
    if op.insn not in ("load", "store"):
        return op
    register, where = op.args[:2]
    assert isinstance(register, str) and isinstance(where, Memory)
    pointer, offset = "sp" if where.base == SPILLED else POINTERS[where.base], LIMB * where.offset
    if op.insn == "store":
        return replace(op, insn="mov_rx", args=(register, pointer, offset))
    if offset:
        return replace(op, insn="mov_x", args=(register, pointer, offset))
    return replace(op, insn="mov_m", args=(register, pointer))
