"""Squaring on MSP430: the cells off the diagonal take one operand doubled.

With D = 2x as a string of words, cell (i, j) off the diagonal is x_i * D_j. In cell (j-1, j) the bit that D_j got
from x_(j-1) must not count: `bic #1`. The bit that the string lost at its end counts for x_i in column n + i, but for
the highest: a masked addition. In product scanning each word is at first only a larger index, then on the diagonal,
then only a smaller one; so a word in a register is doubled from the beginning, and halved before its column on the
diagonal, by the bit that the word above it has got. Words that find no register are pushed doubled; undoubled they
are read where the operand is.

Sources: research/msp430.md, section 5.2.
"""

from __future__ import annotations

from sqgen.plan import Plan
from sqgen.table import Core, Isa

from .msp430_columns import FREE, SCAN, Columns, Source
from .msp430_pointers import Pointer, Read
from .msp430_writer import LEFT, LIMB, RIGHT


class Square(Columns):
    """`kept`: the operand's pointer stays; `stream`: a pointer walks through the doubled words on the stack."""

    def __init__(self, plan: Plan, isa: Isa, core: Core, *, kept: bool, stream: bool) -> None:
        self.kept, self.stream = kept, stream
        beside = ([] if stream else [RIGHT]) + ([] if kept else [LEFT])
        self.registers = (*beside, *FREE)
        super().__init__(plan, isa, core)

    def start(self) -> None:
        super().start()
        self.where = dict(enumerate(self.registers[: self.n]))  # word -> its register
        self.free = list(self.registers[self.n :])
        self.waiting = list(range(len(self.where), self.n))  # words that have none, from the lowest on
        self.doubled = set(range(1, self.n))  # words whose register holds D
        self.mask = self.free.pop(0) if self.free else ""  # its register, "" while it lies on the stack
        self.masked = not self.mask
        self.operand: Pointer | None = None
        self.doubles: Pointer | None = None

    def load(self) -> None:
        """All words, doubled; the mask of the last carry."""
        spare = self.sums[0]
        self.emit("mov_r", SCAN, LEFT)
        for word in range(self.n):
            register = self.where.get(word, spare)
            self.emit("mov_p", register, SCAN, comment=f"a[{word}]")
            if word == 0:
                self.emit("mov_r", spare, register)
                self.emit("add_r", spare, spare)
                continue
            self.emit("addc_r", register, register)
            if word not in self.where:
                self.emit("push", register)
        mask = self.mask or spare
        self.emit("subc_r", mask, mask, comment="all ones if the highest bit is not set")
        self.emit("inv", mask)
        if not self.mask:
            self.emit("push", mask)
        if self.kept:
            self.operand = self.pointer(LEFT, 0)
        if self.stream:
            self.emit("mov_sp", RIGHT)
            self.doubles = self.pointer(RIGHT, -int(self.masked), (0, self.n + 1))

    def pushed(self) -> int:
        return self.n - len(self.registers[: self.n])

    def on_stack(self, word: int) -> Read:
        """A doubled word that was pushed."""
        offset = LIMB * (self.n - 1 - word + self.masked + self.held)
        return Read("x", "sp", offset) if offset else Read("m", "sp")

    def prepare(self, column: int) -> None:
        if self.n <= column < self.top:
            self.add_masked(column)
            self.take_in(column)
        word = (column + 1) // 2
        if column % 2 and word in self.where and word in self.doubled:
            self.emit("bic_1", self.where[word], comment="without the bit from below")
        if column and column % 2 == 0 and word in self.where and word in self.doubled:
            self.halve(word)

    def add_masked(self, column: int) -> None:
        """The word whose product with the lost bit belongs to the column; its register is free then."""
        word = column - self.n
        low, high, spare = self.sums
        register = self.where.pop(word, "")
        if register:
            self.emit("and_m" if self.masked else "and_r", register, "sp" if self.masked else self.mask)
            self.free.append(register)
        else:
            assert self.operand and not self.masked, "it was loaded in time"
            if word in self.waiting:
                self.waiting.remove(word)
            register = spare
            self.emit("mov_r", spare, self.mask)
            read = self.operand.read(word)
            self.emit(f"and_{read.way}", spare, *read.args)
        self.emit("add_r", low, register, comment=f"a[{word}], if the highest bit is set")
        self.emit("adc", high)
        if self.masked:
            self.mask, self.masked = self.free.pop(), False
            self.emit("pop", self.mask)

    def take_in(self, column: int) -> None:
        """Words that wait come to registers that are free, those first that have the longest way to go; without the
        operand's pointer the lowest, which are to be halved first."""
        while self.free and self.waiting:
            word = self.waiting[-1 if self.kept else 0]
            if word + self.n - column < 2:
                return
            self.waiting.remove(word)
            self.where[word] = self.free.pop()
            if column > 2 * word:
                assert self.operand, "it was loaded in time"
                read = self.operand.read(word)
                self.doubled.discard(word)
            else:
                read = self.on_stack(word)
            self.emit(f"mov_{read.way}", self.where[word], *read.args)

    def halve(self, word: int) -> None:
        """A word in a register comes to the diagonal: its highest bit is the one that the word above got."""
        above = word + 1
        if above == self.n:
            self.emit("bit_1", self.mask)
        elif above in self.where:
            self.emit("bit_1", self.where[above])
        else:
            read = self.on_stack(above)
            self.emit("bit_1x", read.register, read.offset)
        self.emit("rrc", self.where[word], comment=f"a[{word}] again")
        self.doubled.discard(word)

    def cells(self, column: int) -> list[tuple[int, int]]:
        found = [(i, column - i) for i in range(max(0, column - self.n + 1), column // 2 + 1)]
        if column % 2 and found[-1][1] not in self.where:  # it needs e, which the others need later
            found.insert(0, found.pop())
        return found

    def factors(self, column: int, cell: tuple[int, int]) -> tuple[Source, Source]:
        i, j = cell
        if i == j:
            return self.single(i, again=True), self.single(i)
        if j in self.where:
            return self.single(i), self.where[j]
        if j == i + 1:
            spare, read = self.sums[2], self.on_stack(j)
            self.emit(f"mov_{read.way}", spare, *read.args)
            self.emit("bic_1", spare, comment="without the bit from below")
            return self.single(i), spare
        return self.single(i), self.doubles.read(self.n - 1 - j) if self.doubles else self.on_stack(j)

    def single(self, word: int, *, again: bool = False) -> Source:
        """A word as it is."""
        if word in self.where:
            return self.where[word]
        assert self.operand, "it was loaded in time"
        return self.operand.read(word, again=again)


def squares(plan: Plan, isa: Isa, core: Core) -> list[Square]:
    """The ways to square that may be the fastest."""
    least = len(FREE) + 2  # registers for words, if the operand's pointer does not stay
    found = [Square(plan, isa, core, kept=False, stream=False)] if plan.limbs < 2 * least else []
    if plan.limbs >= least:
        found += [Square(plan, isa, core, kept=True, stream=stream) for stream in (False, True)]
    return found
