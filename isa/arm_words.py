# ruff: noqa: PLR0917  (what numba compiles are functions on arrays, without objects)
"""Word balance on numbers: an order of cells and doublings becomes multiplications, as `free_order` and `arm_balance`
make them, written once more so that numba, where it is installed, makes machine code of it.

Only the search for such orders uses this.  Variables are numbers: the limbs of the operands, the constant two, then
the words.  An operation is a row: what it is, what it reads or writes, and where its words may wait afterwards.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .arm_price import compiled

UMULL, UMAAL, UMLAL, ZERO, STORE, OWN = range(6)
# Columns of an operation; ROOM is where its low word may wait afterwards, the last one that of the high word.
KIND, LOW, HIGH, LEFT, RIGHT, ROOM, WIDE = 0, 1, 2, 3, 4, 5, 7
CROSS, FINAL = 0, 1  # the sum off the diagonal, the result
# What `tally` counts: operations, variables, columns that are doubled, limbs that are stored, cells that are late.
OPS, VARIABLES, DOUBLED, STORED, LATE, COUNTED = range(6)
# Of a sum's column: products that are still to be added, words, products that wait, factors of these, the words.
LEFTOVER, COUNT, WAITS, FACTORS, WORDS, FULL = 0, 1, 2, 3, 63, 127
DEEP, IDLE = FULL - WORDS, (WORDS - FACTORS) // 2  # words of a column, and products that wait there, at most
# Of a column: whether somebody waits in that limb of the result, or it is stored; cells that are still to come; those
# that are to be doubled; whether the sum off the diagonal holds something there; whether it may be doubled.
TAKEN, CELLS, OFF, REACH, ASKED, FIELDS = range(6)
NONE = -1


class Sheet(NamedTuple):
    """The cells of an operation on n limbs, as an order has them by number; doublings of columns come behind them."""

    square: bool
    n: int
    rows: Any
    columns: Any


class Board(NamedTuple):
    """What `expand` fills.  Few arrays, for each is handed from function to function as a dozen numbers."""

    sums: Any  # [kind, column, what]: words and products that wait, and how many
    fields: Any  # [column, what]
    room: Any  # [variable]: the column of the result where it may wait
    late: Any  # cells that wait until their column is doubled
    ops: Any
    tally: Any


def sheet(op: str, n: int) -> Sheet:
    """The cells of a square or product."""
    cells = [(i, j) for i in range(n) for j in range(i if op == "sqr" else 0, n)]
    return Sheet(op == "sqr", n, np.array([i for i, _ in cells]), np.array([j for _, j in cells]))


def board(n: int) -> Board:
    """Room enough for n limbs."""
    columns, most = 2 * n + 2, 8 * n * n + 16 * n
    shapes = ((2, columns, FULL), (columns, FIELDS), (most,), (n * n,), (most, WIDE), (COUNTED,))
    return Board(*(np.zeros(shape, np.int64) for shape in shapes))


@compiled
def emit(ops: Any, tally: Any, kind: int, low: int, high: int, left: int, right: int) -> int:
    """One more operation; its number."""
    at: int = tally[OPS]
    ops[at, KIND], ops[at, LOW], ops[at, HIGH], ops[at, LEFT], ops[at, RIGHT] = kind, low, high, left, right
    ops[at, ROOM], ops[at, ROOM + 1] = NONE, NONE
    tally[OPS] += 1
    return at


@compiled
def leave(fields: Any, room: Any, word: int) -> None:
    """Its limb of the result is free."""
    if room[word] != NONE:
        fields[room[word], TAKEN] = 0
        room[word] = NONE


@compiled
def enter(fields: Any, room: Any, word: int, column: int) -> int:
    """A word is in that column now; where it may wait."""
    leave(fields, room, word)
    if not fields[column, TAKEN]:
        fields[column, TAKEN] = 1
        room[word] = column
    where: int = room[word]
    return where


@compiled
def push(sums: Any, kind: int, column: int, word: int) -> None:
    """One more word of a column."""
    sums[kind, column, WORDS + sums[kind, column, COUNT]] = word
    sums[kind, column, COUNT] += 1


@compiled
def new(sums: Any, room: Any, tally: Any, kind: int, column: int) -> int:
    """A new word of a column."""
    word: int = tally[VARIABLES]
    tally[VARIABLES] += 1
    room[word] = NONE
    push(sums, kind, column, word)
    return word


@compiled
def zero(sums: Any, fields: Any, room: Any, ops: Any, tally: Any, kind: int, column: int) -> None:
    """A zero as a word."""
    word = new(sums, room, tally, kind, column)
    at = emit(ops, tally, ZERO, word, 0, 0, 0)
    ops[at, ROOM] = enter(fields, room, word, column)


@compiled
def multiply(
    sums: Any, fields: Any, room: Any, ops: Any, tally: Any, name: int, kind: int, column: int, left: int, right: int
) -> None:
    """UMULL, or UMAAL, which takes two words along."""
    if name == UMULL:
        low, high = new(sums, room, tally, kind, column), new(sums, room, tally, kind, column + 1)
    else:
        low, high = sums[kind, column, WORDS], sums[kind, column, WORDS + 1]
        sums[kind, column, COUNT] -= 2
        for place in range(WORDS, WORDS + sums[kind, column, COUNT]):
            sums[kind, column, place] = sums[kind, column, place + 2]
        push(sums, kind, column, low)
        push(sums, kind, column + 1, high)
    leave(fields, room, left)
    at = emit(ops, tally, name, low, high, left, right)
    ops[at, ROOM] = enter(fields, room, low, column)
    ops[at, ROOM + 1] = enter(fields, room, high, column + 1)


@compiled
def multiply_top(sums: Any, fields: Any, room: Any, ops: Any, tally: Any, column: int, left: int, right: int) -> None:
    """The last column but one: UMLAL, if there is a word above."""
    above = sums[FINAL, column + 1, COUNT]
    while sums[FINAL, column, COUNT] < (1 if above else 2):
        zero(sums, fields, room, ops, tally, FINAL, column)
    if not above:
        multiply(sums, fields, room, ops, tally, UMAAL, FINAL, column, left, right)
        return
    low, high = sums[FINAL, column, WORDS], sums[FINAL, column + 1, WORDS]
    leave(fields, room, left)
    at = emit(ops, tally, UMLAL, low, high, left, right)
    ops[at, ROOM], ops[at, ROOM + 1] = room[low], room[high]


@compiled
def put(
    sums: Any, fields: Any, room: Any, ops: Any, tally: Any, n: int, kind: int, column: int, left: int, right: int
) -> bool:
    """Add a product, or let it wait for words.  False if there are too many."""
    words, more = sums[kind, column, COUNT], sums[kind, column, LEFTOVER]
    wanted = 1 + more - words - (sums[kind, column - 1, LEFTOVER] if column else 0)
    if max(words, sums[kind, column + 1, COUNT]) + 2 > DEEP or sums[kind, column, WAITS] >= IDLE:
        return False
    if words < 2 and wanted <= 0:
        at = FACTORS + 2 * sums[kind, column, WAITS]
        sums[kind, column, at], sums[kind, column, at + 1] = left, right
        sums[kind, column, WAITS] += 1
        return True
    if kind == FINAL and column == 2 * n - 2:
        multiply_top(sums, fields, room, ops, tally, column, left, right)
    elif words >= 2 and more > wanted // 2:
        multiply(sums, fields, room, ops, tally, UMAAL, kind, column, left, right)
    elif wanted >= 2 or not words:
        multiply(sums, fields, room, ops, tally, UMULL, kind, column, left, right)
    else:
        zero(sums, fields, room, ops, tally, kind, column)
        multiply(sums, fields, room, ops, tally, UMAAL, kind, column, left, right)
    sums[kind, column, LEFTOVER] -= 1
    return True


@compiled
def waited(sums: Any, kind: int, column: int) -> tuple[int, int]:
    """The factors of the product that waited last; it waits no more."""
    sums[kind, column, WAITS] -= 1
    at = FACTORS + 2 * sums[kind, column, WAITS]
    return sums[kind, column, at], sums[kind, column, at + 1]


@compiled
def add(
    sums: Any, fields: Any, room: Any, ops: Any, tally: Any, n: int, kind: int, column: int, left: int, right: int
) -> bool:
    """Add a product, then those that waited for its words, and for theirs."""
    at, fits = column, put(sums, fields, room, ops, tally, n, kind, column, left, right)
    while fits and at >= column:
        if sums[kind, at + 1, WAITS] and sums[kind, at + 1, COUNT] >= 2:
            at += 1
            left, right = waited(sums, kind, at)
            fits = put(sums, fields, room, ops, tally, n, kind, at, left, right)
        else:
            at -= 1
    return fits


@compiled
def close(sums: Any, fields: Any, room: Any, ops: Any, tally: Any, n: int, kind: int, column: int) -> int:
    """The last word of a column, NONE if it has more than one."""
    while sums[kind, column, WAITS]:
        before = sums[kind, column, WAITS]
        left, right = waited(sums, kind, column)
        if not add(sums, fields, room, ops, tally, n, kind, column, left, right) or sums[kind, column, WAITS] >= before:
            return NONE
    if sums[kind, column, COUNT] > 1:
        return NONE
    if not sums[kind, column, COUNT]:
        zero(sums, fields, room, ops, tally, kind, column)
    sums[kind, column, COUNT] = 0
    word: int = sums[kind, column, WORDS]
    return word


@compiled
def begin(
    sums: Any, fields: Any, room: Any, tally: Any, square: bool, n: int, rows: Any, cols: Any, twice: Any
) -> None:
    """What is to come; columns that hold nothing off the diagonal may be doubled."""
    sums[:, :, :FACTORS] = 0
    fields[:] = 0
    tally[:] = 0
    tally[VARIABLES] = (1 if square else 2) * n + 1
    tally[DOUBLED] = 0 if square else 2 * n
    room[: tally[VARIABLES]] = NONE
    for cell in range(len(rows)):
        column = rows[cell] + cols[cell]
        fields[column, CELLS] += 1
        if not square or rows[cell] == cols[cell]:
            sums[FINAL, column, LEFTOVER] += 1
        elif twice[cell]:
            sums[FINAL, column, LEFTOVER] += 2
        else:
            sums[CROSS, column, LEFTOVER] += 1
            fields[column, OFF] += 1
            fields[column, REACH] = fields[column + 1, REACH] = 1
    for column in range(2 * n):
        sums[FINAL, column, LEFTOVER] += fields[column, REACH]
    fields[2 * n - 1, ASKED] = 1
    for column in range(2 * n):
        if fields[column, OFF]:
            break
        fields[column, ASKED] = 1


@compiled
def visit(
    sums: Any,
    fields: Any,
    room: Any,
    ops: Any,
    tally: Any,
    square: bool,
    n: int,
    rows: Any,
    cols: Any,
    twice: Any,
    cell: int,
) -> bool:
    """A cell is added, once or twice."""
    i, j = rows[cell], cols[cell]
    off = square and i != j and not twice[cell]
    fields[i + j, CELLS] -= 1
    fields[i + j, OFF] -= off
    for _ in range(2 if square and twice[cell] else 1):
        if not add(sums, fields, room, ops, tally, n, CROSS if off else FINAL, i + j, i, j if square else n + j):
            return False
    return True


@compiled
def expand(b: Board, cells: Sheet, order: Any, twice: Any) -> bool:
    """Fill the board with the operations of an order, in which each cell comes once, those of a square that are added
    `twice` at once.  False where two words are left in a column, or too many wait."""
    square, n, rows, cols = cells
    sums, fields, room, late, ops, tally = b
    begin(sums, fields, room, tally, square, n, rows, cols, twice)
    fits = finish(sums, fields, room, ops, tally, late, square, n, rows, cols, twice)
    for word in order:
        if word >= len(rows):
            fields[word - len(rows), ASKED] = 1
        elif waits(tally, square, rows, cols, twice, word):
            late[tally[LATE]] = word
            tally[LATE] += 1
        else:
            fits = fits and visit(sums, fields, room, ops, tally, square, n, rows, cols, twice, word)
        fits = fits and finish(sums, fields, room, ops, tally, late, square, n, rows, cols, twice)
        if not fits:
            break
    return fits


@compiled
def waits(tally: Any, square: bool, rows: Any, cols: Any, twice: Any, cell: int) -> bool:
    """Whether a cell that is not doubled has to wait until its column is."""
    i, j = rows[cell], cols[cell]
    late: bool = square and (i == j or twice[cell]) and i + j >= tally[DOUBLED]
    return late


@compiled
def finish(
    sums: Any,
    fields: Any,
    room: Any,
    ops: Any,
    tally: Any,
    late: Any,
    square: bool,
    n: int,
    rows: Any,
    cols: Any,
    twice: Any,
) -> bool:
    """What can be done now: doublings that were asked for, cells that waited for them, limbs that are final."""
    while tally[DOUBLED] < 2 * n:
        column = tally[DOUBLED]
        if not fields[column, ASKED] or fields[column, OFF] > 0:
            break
        if fields[column, REACH]:
            word = close(sums, fields, room, ops, tally, n, CROSS, column)
            if word == NONE or not add(sums, fields, room, ops, tally, n, FINAL, column, word, n):
                return False
        tally[DOUBLED] += 1
    many = tally[LATE]
    tally[LATE] = 0
    for at in range(many):
        cell = late[at]
        if waits(tally, square, rows, cols, twice, cell):
            late[tally[LATE]] = cell
            tally[LATE] += 1
        elif not visit(sums, fields, room, ops, tally, square, n, rows, cols, twice, cell):
            return False
    while tally[STORED] < min(tally[DOUBLED], 2 * n) and not fields[tally[STORED], CELLS]:
        word = close(sums, fields, room, ops, tally, n, FINAL, tally[STORED])
        if word == NONE:
            return False
        store(sums, fields, room, ops, tally, square, n, word, tally[STORED])
        tally[STORED] += 1
    return True


@compiled
def store(
    sums: Any, fields: Any, room: Any, ops: Any, tally: Any, square: bool, n: int, word: int, column: int
) -> None:
    """A limb of the result is final; who waits there comes out before."""
    leave(fields, room, word)
    if fields[column, TAKEN]:
        for other in range(1 + (1 if square else 2) * n, tally[VARIABLES]):
            if room[other] == column:
                leave(fields, room, other)
                emit(ops, tally, OWN, other, 0, 0, 0)
    fields[column, TAKEN] = 1
    emit(ops, tally, STORE, word, 0, 0, 0)
