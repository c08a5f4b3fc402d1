"""What a method is: an order in which to visit the cells, and when the sums are doubled, kept and stored.

A product of n by n limbs is a rhombus of n*n cells (i, j), cell (i, j) in column i+j; a square is the triangle
i <= j of it, where the cells off the diagonal count twice, or the whole rhombus if the method is one for products.
A plan is a list of steps over these; it knows limbs and columns, and neither an instruction set nor a register.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Product:
    """Add a[i] * b[j] (in a square: a[i] * a[j]) to the sum, at column i + j, `times` times one after the other.

    If `caught`, the carries out of column i + j + 1 wait beside the sum, at column i + j + 2, until they are gathered.
    """

    i: int
    j: int
    times: int = 1
    caught: bool = False

    @property
    def column(self) -> int:
        return self.i + self.j

    def text(self, left: str, right: str) -> str:
        """The product, of operands of these names."""
        times = f"{self.times} * " if self.times > 1 else ""
        return f"{times}{left}{self.i} * {right}{self.j}{', carry caught' if self.caught else ''}"


@dataclass(frozen=True)
class Run:
    """Add these products, whose columns ascend by two, in one carry run: each is two limbs long, so they touch.

    The carry out of the run goes to the limb above it, or waits in a product of the next run that ends there.
    """

    cells: tuple[Product, ...]


@dataclass(frozen=True)
class Strip:
    """The rows to come use limbs `first` to `last` - 1 of b, each of them all these: the strip of the rhombus there."""

    first: int
    last: int


@dataclass(frozen=True)
class Double:
    """Double the sum's limbs `first` to `last` - 1: all off-diagonal cells of columns below `last` are in it."""

    first: int
    last: int


@dataclass(frozen=True)
class Apart:
    """The products up to the next `Join` form a sum of their own."""


@dataclass(frozen=True)
class Join:
    """Double the sum that was kept apart, and add it to the running one."""


@dataclass(frozen=True)
class Gather:
    """Add the carries that wait at the columns below `last` to the sum; the carry out of that waits at `last`."""

    last: int


@dataclass(frozen=True)
class Load:
    """Add the limb stored earlier at this column of the result back to the sum."""

    column: int


@dataclass(frozen=True)
class Store:
    """Move the sum's lowest limb, which is this column's, to the result."""

    column: int


@dataclass(frozen=True)
class Block:
    """A heading: the steps up to the next one belong together (one row, one block of columns).

    `turn`: limbs that are done in each turn of a loop over them, 0 for no loop.
    """

    title: str
    turn: int = 0


@dataclass(frozen=True)
class Slice:
    """`count` limbs of a number, from limb `first`: "a", "b" the operands, "r" the result, others are made by steps."""

    name: str
    first: int
    count: int

    def __str__(self) -> str:
        return f"{self.name}[{self.first}..{self.first + self.count})"

    def part(self, first: int, count: int) -> Slice:
        """`count` limbs of these, from `first` on."""
        return Slice(self.name, self.first + first, count)


@dataclass(frozen=True)
class Difference:
    """into = |left - right|, the sign kept under the name `sign`.  `right` may be shorter than the other two.

    A name of its own (not "r") means that the limbs stay in registers; they may then be kept modulo a power of two,
    with the borrow, instead of the absolute value with its sign.
    """

    sign: str
    into: Slice
    left: Slice
    right: Slice


@dataclass(frozen=True)
class Part:
    """into = left * right by another plan: in place, or as a function that is `called`.

    What is `shared` stands in place but for the products themselves: a function on registers forms them.
    """

    plan: Plan
    into: Slice
    left: Slice
    right: Slice
    called: bool
    shared: bool = False


@dataclass(frozen=True)
class Copy:
    """into = limbs of an operand, and zeros above them; or the result = the lowest limbs of a product."""

    into: Slice
    limbs: Slice


@dataclass(frozen=True)
class Recombine:
    """Karatsuba's last step: the result holds L, 2 * `half` limbs, and H above; add L + H - M at column `half`.

    `middle` is |M|; it is negative if one of the two `signs` is and the other is not.  A square has no signs.
    `turn`: columns done in each turn of a loop, 0 for no loop; `branched`: a branch looks at the sign.  With more than
    two parts of `half` limbs there is such a step for each two of them, by their numbers `low` and `high`: it adds at
    column (low + high) * half, and all of them speak of the squares as they were formed.
    """

    half: int
    middle: Slice
    signs: tuple[str, ...]
    turn: int = 0
    branched: bool = False
    low: int = 0
    high: int = 1

    @property
    def column(self) -> int:
        """Where it adds."""
        return (self.low + self.high) * self.half


Sums = Product | Run | Strip | Double | Apart | Join | Gather | Load | Store
Step = Sums | Block | Difference | Part | Copy | Recombine


@dataclass(frozen=True)
class Plan:
    """A method applied to one size.  `op` is "sqr" or "mul", `limbs` the length n of each operand."""

    op: str
    limbs: int
    method: str
    parameters: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]

    @functools.cached_property
    def triangle(self) -> bool:
        """Whether it visits one cell of (i, j) and (j, i): a square, unless it has cells on either side."""
        sides = {cell.i < cell.j for cell in self.products() if cell.i != cell.j}
        return self.op == "sqr" and len(sides) < 2

    @functools.cached_property
    def loops(self) -> bool:
        """Whether its blocks, or those of a part, are formed in loops."""
        own = any(isinstance(step, Block) and step.turn for step in self.steps)
        return own or any(part.plan.loops for part in self.parts())

    @functools.cached_property
    def by_columns(self) -> bool:
        """Whether it finishes one column after the other: adds its cells, doubles them if need be, stores its limb."""
        column = 0
        for step in self.steps:
            match step:
                case Store(at) if at == column:
                    column += 1
                case Product(times=1, caught=False) if step.column == column:
                    pass
                case Double(first, last) if (first, last) == (column, column + 1):
                    pass
                case Block():
                    pass
                case _:
                    return False
        return True

    @property
    def key(self) -> tuple[object, ...]:
        """What two plans of the same steps have in common."""
        return self.op, self.limbs, self.method, self.parameters

    @functools.cached_property
    def operands(self) -> tuple[str, ...]:
        """Names of the operands that its steps speak of; a square formed from parts as a product has both, equal."""
        steps = [step for step in self.steps if isinstance(step, Part | Difference)]
        two = any(step.right.name == "b" for step in steps) if steps and not self.copies else self.op == "mul"
        return ("a", "b") if two else ("a",)

    @functools.cached_property
    def copies(self) -> bool:
        """Whether it is a product of longer operands."""
        return any(isinstance(step, Copy) for step in self.steps)

    def parts(self) -> Iterator[Part]:
        """The products that other plans form."""
        return (step for step in self.steps if isinstance(step, Part))

    @functools.cached_property
    def branches(self) -> bool:
        """Whether it, or a part of it, branches on the sign of a difference."""
        own = any(isinstance(step, Recombine) and step.branched for step in self.steps)
        return own or any(part.plan.branches for part in self.parts())

    def products(self) -> Iterator[Product]:
        """The cells in the order of their visits."""
        for step in self.steps:
            yield from cells(step)

    def blocks(self) -> list[tuple[str, list[Product]]]:
        """The cells of each block, blocks without cells left out."""
        groups: list[tuple[str, list[Product]]] = [("", [])]
        for step in self.steps:
            if isinstance(step, Block):
                groups.append((step.title, []))
            else:
                groups[-1][1].extend(cells(step))
        return [group for group in groups if group[1]]

    def text(self) -> str:
        """One step a line, for `--dump plan`."""
        lines = [f"{self.method} {self.op} of {self.limbs} limbs {dict(self.parameters) or ''}".rstrip()]
        names = ("a", "a") if self.op == "sqr" else ("a", "b")
        for step in self.steps:
            match step:
                case Block(title, turn):
                    lines.append(f"{title}{f', in loops, {turn} limbs a turn' if turn else ''}:")
                case Product() | Run():
                    columns = ", ".join(str(cell.column) for cell in cells(step))
                    factors = ", ".join(cell.text(*names) for cell in cells(step))
                    lines.append(
                        f"  {'run over columns' if isinstance(step, Run) else 'column'} {columns}: + {factors}"
                    )
                case Strip(first, last):
                    lines.append(f"  {names[1]}{first}..{names[1]}{last - 1}:")
                case Apart():
                    lines.append("  apart:")
                case Join():
                    lines.append("  double what is apart, + it")
                case Gather(last):
                    lines.append(f"  + carries caught below column {last}")
                case Double(first, last):
                    lines.append(f"  double columns {first}..{last - 1}")
                case Load(column):
                    lines.append(f"  column {column}: + r{column}")
                case Store(column):
                    lines.append(f"  r{column} = column {column}")
                case Difference() | Part() | Copy() | Recombine():
                    lines += _of_parts(step)
        return "\n".join(lines) + "\n"


def _of_parts(step: Difference | Part | Copy | Recombine) -> list[str]:
    """A step that makes a part's operand, a part, or one that puts parts together, as lines of text."""
    match step:
        case Difference(sign, into, left, right):
            return [f"  {into} = |{left} - {right}|, negative if {sign}"]
        case Part(plan, into, left, right, called, shared):
            how = ", called" if called else ", by a function on registers" if shared else ""
            return [f"  {into} = {left} * {right}{how}:", *(f"  {line}" for line in plan.text().splitlines())]
        case Copy(into, limbs):
            return [f"  {into} = {limbs}{', zeros above' if into.count > limbs.count else ''}"]
        case Recombine(half, middle, signs, branched=branched):
            sign = f", its sign that of {' * '.join(signs)}" if signs else ""
            low, high = ("L", "H") if step.column == half else (f"r[{2 * half * at}]" for at in (step.low, step.high))
            return [f"  column {step.column}: + {low} + {high} - {middle}{sign}{', by a branch' if branched else ''}"]


def cells(step: Step) -> tuple[Product, ...]:
    """The cells that a step visits, in order."""
    return (step,) if isinstance(step, Product) else step.cells if isinstance(step, Run) else ()


def blocks(n: int, widths: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """[first, last) of each block of columns of a square.  The first one is a column wider, so that even
    widths end at odd columns, where the
    low limb of a diagonal cell falls into one block and its high limb into the next and takes the carry between them.
    """
    first, last, index = 0, 1, 0
    while first < 2 * n:
        last = min(2 * n, last + widths[min(index, len(widths) - 1)])
        if last == 2 * n - 1:  # nothing is left for a block of the top limb alone
            last = 2 * n
        yield first, last
        first, index = last, index + 1


def double_stored(n: int, widths: tuple[int, ...]) -> Iterator[Step]:
    """The end of a square whose cells off the diagonal are all summed and stored: block by block the sums come back,
    are doubled, the diagonal is added, and the limbs are stored.  Nothing off the diagonal reaches columns 0 and 2n-1.
    """
    for first, last in blocks(n, widths):
        yield Block(f"doubling of columns {first}..{last - 1}")
        for column in range(max(1, first), min(last, 2 * n - 1)):
            yield Load(column)
        yield Double(first, last)
        for i in range((first + 1) // 2, (last + 1) // 2):
            yield Product(i, i)
        for column in range(first, last):
            yield Store(column)
