"""Product scanning on MSP430X with the 32-bit multiplier: columns, and operands, of two limbs.

    mov @a+, t0 ; mov @a+, t1 ; mov t0, &MAC32L ; mov t1, &MAC32H ; add @p, e ; mov @b+, &OP2L ; mov @b+, &OP2H
    clr c3 ; sub #8, q ; add @q+, c0 ; addc @q+, c1 ; addc @q+, c2 ; addc @q+, c3 ; addc @p, e

Operands wait in two registers on their way to the multiplier, which is busy for six cycles with the product before;
the first of a column need not.  p stands at SUMEXT, q at RES0 for the end of a column.  All registers are in use, so no
operand stays in one.  Words on the stack lie the highest first, the limbs of each the lowest first.

Of an odd number of limbs the highest word has only one; zero stands for the other, and for the carry of a doubled one.

Sources: research/msp430.md, section 5.5.
"""

from __future__ import annotations

from abc import abstractmethod

from sqgen.plan import Plan
from sqgen.table import Core, Isa

from .msp430_columns import SCAN, Walk
from .msp430_pointers import Pointer
from .msp430_writer import LEFT, LIMB, RESULT, RIGHT

RESULTS = "r11"  # q
LOW, HIGH = "r5", "r4"  # t0 and t1


class Wide(Walk):
    """The code of a product by words of two limbs."""

    WORD, SUMS = 2, ("r10", "r9", "r8", "r7", "r6")  # c0 to c3 and e

    @abstractmethod
    def load(self) -> tuple[Pointer, Pointer]:
        """What comes before the first column; pointers to the left operand, and to what it is multiplied by."""

    @abstractmethod
    def cells(self, column: int) -> list[tuple[int, int]]:
        """The cells of a column."""

    def prepare(self, column: int) -> None:
        """What else is added to a column: nothing."""

    @property
    def odd(self) -> bool:
        """Whether the highest word has one limb."""
        return self.n % 2 == 1

    def run(self) -> None:
        self.left, self.right = self.load()
        for column in range(self.top):
            self.enter(column)
            self.prepare(column)
            self.hold()
            self.multiply(column)
            self.finish(column)
            self.let_go()
        if not self.odd:
            self.store(self.top)
        self.leave()

    def word(self, pointer: Pointer, word: int) -> None:
        """Read a word of two limbs."""
        for register, limb in ((LOW, 2 * word), (HIGH, 2 * word + 1)):
            if limb == self.n:
                self.emit("clr", register)
                continue
            read = pointer.read(limb)
            self.emit(f"mov_{read.way}", register, *read.args)

    def multiply(self, column: int) -> None:
        """All products of a column; the carries of all but the last are in e."""
        for index, (i, j) in enumerate(self.cells(column)):
            ports = ("MAC32L", "MAC32H") if index else ("MPY32L", "MPY32H")
            square = self.plan.op == "sqr" and i == j
            comment = f"a[{2 * i}..] * {'a' if self.plan.op == 'sqr' else 'b'}[{2 * j}..]"
            if index or square or 2 * i + 1 == self.n:
                self.word(self.left, i)
                self.put(LOW, ports[0], comment)
                self.put(HIGH, ports[1])
            else:
                self.put(self.left.read(2 * i), ports[0], comment)
                self.put(self.left.read(2 * i + 1), ports[1])
            if index > 1:
                self.emit("mov_m" if index == 2 else "add_m", self.sums[4], SCAN, comment="carry of the product before")
            if square:
                self.put(LOW, "OP2L")
                self.put(HIGH, "OP2H")
            else:
                self.other(i, j)

    def other(self, i: int, j: int) -> None:
        """Write the second operand of a cell."""
        place = 2 * (self.words - 1 - j)
        self.put(self.right.read(place), "OP2L")
        self.put(self.right.read(place + 1), "OP2H")

    def finish(self, column: int) -> None:
        """Add the products of a column to the running sum, and store its lowest two limbs."""
        *sums, carry = self.sums
        if column == self.top - 1 and self.odd:
            sums = sums[:2]  # the result has no more
        if column == 0:
            self.emit("mov_i", RESULTS, self.ports["RES0"])
            for limb in sums:
                self.emit("mov_p", limb, RESULTS)
            self.emit("mov_i", SCAN, self.ports["SUMEXT"])
            self.emit("clr", carry)
        else:
            several, last = len(self.cells(column)), column == self.top - 1
            if len(sums) == 4:
                self.emit("clr", sums[3])
            if several <= 2 and not last:
                self.emit("clr", carry)
            self.emit("sub_8", RESULTS)
            for index, limb in enumerate(sums):
                self.emit("addc_p" if index else "add_p", limb, RESULTS)
            if not last:
                self.emit("adc", carry) if several == 1 else self.emit("addc_m", carry, SCAN)
        self.store(column)

    def store(self, column: int) -> None:
        """The two lowest limbs of the sum are final."""
        for limb in (2 * column, 2 * column + 1):
            self.emit("mov_rx", self.sums[0], RESULT, LIMB * limb)
            self.sums.append(self.sums.pop(0))


class WideSquare(Wide):
    """A square, as in `msp430_square`: all doubled words but the lowest are pushed, then the mask of the last carry."""

    def load(self) -> tuple[Pointer, Pointer]:
        self.emit("mov_r", SCAN, LEFT)
        for word in range(self.words):
            for register, limb in ((LOW, 2 * word), (HIGH, 2 * word + 1)):
                self.emit("clr", register) if limb == self.n else self.emit("mov_p", register, SCAN)
                self.emit("addc_r" if limb else "add_r", register, register)
            if word:
                self.emit("push", HIGH, comment=f"of 2 * a[{2 * word}..]")
                self.emit("push", LOW)
        if not self.odd:
            self.emit("subc_r", LOW, LOW, comment="all ones if the highest bit is not set")
            self.emit("inv", LOW)
            self.emit("push", LOW)
        self.emit("mov_sp", RIGHT)
        return self.pointer(LEFT, 0), self.pointer(RIGHT, int(self.odd) - 1)

    def pushed(self) -> int:
        return self.n - 1

    def cells(self, column: int) -> list[tuple[int, int]]:
        return [(i, column - i) for i in range(max(0, column - self.words + 1), column // 2 + 1)]

    def prepare(self, column: int) -> None:
        """The word whose product with the lost bit belongs to the column."""
        word = column - self.words
        if word < 0 or self.odd:
            return
        self.emit("mov_m", LOW, "sp")
        self.emit("mov_r", HIGH, LOW)
        for register, limb in ((LOW, 2 * word), (HIGH, 2 * word + 1)):
            read = self.left.read(limb)
            self.emit(f"and_{read.way}", register, *read.args, comment=f"a[{limb}], if the highest bit is set")
        self.emit("add_r", self.sums[0], LOW)
        self.emit("addc_r", self.sums[1], HIGH)
        self.emit("adc", self.sums[2])

    def other(self, i: int, j: int) -> None:
        if j != i + 1:
            super().other(i, j)
            return
        place = 2 * (self.words - 1 - j)
        read = self.right.read(place)
        self.emit(f"mov_{read.way}", LOW, *read.args)
        self.emit("bic_1", LOW, comment="without the bit from below")
        self.put(LOW, "OP2L")
        self.put(self.right.read(place + 1), "OP2H")


class WideMultiplication(Wide):
    """A product: the right operand is pushed."""

    def load(self) -> tuple[Pointer, Pointer]:
        for word in range(self.words):
            self.emit("mov_p", LOW, RIGHT)
            self.emit("clr", HIGH) if 2 * word + 1 == self.n else self.emit("mov_p", HIGH, RIGHT)
            self.emit("push", HIGH, comment=f"b[{2 * word}..]")
            self.emit("push", LOW)
        self.emit("mov_sp", RIGHT)
        return self.pointer(LEFT, 0), self.pointer(RIGHT, 0, (0, 0))

    def pushed(self) -> int:
        return 2 * self.words

    def cells(self, column: int) -> list[tuple[int, int]]:
        first = max(0, column - self.words + 1)
        return [(i, column - i) for i in range(first, min(column, self.words - 1) + 1)]


def wide(plan: Plan, isa: Isa, core: Core) -> list[Wide]:
    """The way to square or multiply."""
    return [(WideSquare if plan.op == "sqr" else WideMultiplication)(plan, isa, core)]
