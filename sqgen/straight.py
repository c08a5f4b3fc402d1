"""The product as straight-line code for compilers, in C and in LLVM IR: what one would hand them without sqgen.

Both follow the plan of product scanning: column by column, one product of limbs after the other is added to a sum of
four limbs, and the sum's lowest limb is stored.  In a square the cells that count twice are summed apart and doubled
once a column.  `restrict` and `noalias` say what the header of a kernel says too: the result is not the operand.

The sum cannot overflow: a column has at most n products below 2^(2w) for limbs of w bits, all together and with what
the columns below carry less than 2n * 2^(2w), and n < 2^(2w - 1) for every size there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import methods
from .contract import Contract
from .plan import Double, Product, Store


@dataclass(frozen=True)
class Column:
    """The cells of one column of the result: those that count twice, and those that count once."""

    index: int
    twice: tuple[Product, ...]
    once: tuple[Product, ...]


def columns(what: Contract) -> Iterator[Column]:
    """The columns of the result in order, each with its cells in the order of product scanning."""
    twice: list[Product] = []
    cells: list[Product] = []
    for step in methods.plan(what.op, what.limbs, "product-scanning", {}).steps:
        match step:
            case Product():
                cells.append(step)
            case Double():
                twice, cells = cells, []
            case Store(column):
                yield Column(column, tuple(twice), tuple(cells))
                twice, cells = [], []


def names(what: Contract) -> tuple[str, str]:
    """The buffers of the left and of the right operand."""
    operands = list(what.buffers)[1:]
    return operands[0], operands[-1]


def c(what: Contract, symbol: str) -> str:
    """A C99 function for the contract."""
    bits = what.isa.limb_bits
    limb, wide, whole = (f"uint{bits * factor}_t" for factor in (1, 2, 4))
    left, right = names(what)
    pointers = [f"{limb} *restrict r"] + [f"const {limb} *restrict {name}" for name in list(what.buffers)[1:]]
    sums = "sum = 0, twice" if what.op == "sqr" else "sum = 0"
    lines = ["#include <stdint.h>", "", f"void {symbol}({', '.join(pointers)})", "{", f"    {whole} {sums};"]

    def product(cell: Product) -> str:
        return f"({wide})(({wide}){left}[{cell.i}] * {right}[{cell.j}])"

    for column in columns(what):
        if column.twice:
            lines += ["    twice = 0;", *(f"    twice += {product(cell)};" for cell in column.twice)]
            lines.append("    sum += twice << 1;")
        lines += [f"    sum += {product(cell)};" for cell in column.once]
        lines.append(f"    r[{column.index}] = ({limb})sum; sum >>= {bits};")
    return "\n".join([*lines, "}"]) + "\n"


def llvm_ir(what: Contract, symbol: str) -> str:
    """The same function in LLVM IR; each limb of an operand is loaded once, before the first store."""
    return _Ir(what).text(symbol)


class _Ir:
    """LLVM IR line by line; every value has a number."""

    def __init__(self, what: Contract) -> None:
        self.what = what
        bits = what.isa.limb_bits
        self.bits = bits
        self.limb, self.wide, self.whole = (f"i{bits * factor}" for factor in (1, 2, 4))
        self.index = f"i{bits * what.isa.address_limbs}"
        self.lines: list[str] = []
        self.values = 0

    def text(self, symbol: str) -> str:
        left, right = names(self.what)
        limbs = {name: [self.load(name, k) for k in range(self.what.limbs)] for name in dict.fromkeys((left, right))}

        def added(total: str, cell: Product) -> str:
            return self.value(f"add {self.whole} {total}, {self.product(limbs[left][cell.i], limbs[right][cell.j])}")

        total = "0"
        for column in columns(self.what):
            if column.twice:
                twice = "0"
                for cell in column.twice:
                    twice = added(twice, cell)
                doubled = self.value(f"shl {self.whole} {twice}, 1")
                total = self.value(f"add {self.whole} {total}, {doubled}")
            for cell in column.once:
                total = added(total, cell)
            self.store(total, column.index)
            total = self.value(f"lshr {self.whole} {total}, {self.bits}")
        pointers = ", ".join(f"ptr noalias %{name}" for name in self.what.buffers)
        body = "\n".join(f"  {line}" for line in self.lines)
        return f"define void @{symbol}({pointers}) nounwind {{\n{body}\n  ret void\n}}\n"

    def value(self, instruction: str) -> str:
        self.values += 1
        self.lines.append(f"%v{self.values} = {instruction}")
        return f"%v{self.values}"

    def place(self, buffer: str, limb: int) -> str:
        return self.value(f"getelementptr {self.limb}, ptr %{buffer}, {self.index} {limb}")

    def load(self, buffer: str, limb: int) -> str:
        """A limb, widened to the size of a product."""
        loaded = self.value(f"load {self.limb}, ptr {self.place(buffer, limb)}")
        return self.value(f"zext {self.limb} {loaded} to {self.wide}")

    def product(self, left: str, right: str) -> str:
        """A product of two limbs, widened to the size of the sum."""
        both = self.value(f"mul nuw {self.wide} {left}, {right}")
        return self.value(f"zext {self.wide} {both} to {self.whole}")

    def store(self, total: str, limb: int) -> None:
        low = self.value(f"trunc {self.whole} {total} to {self.limb}")
        self.lines.append(f"store {self.limb} {low}, ptr {self.place('r', limb)}")
