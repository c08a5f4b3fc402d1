"""Subtractive Karatsuba multiplication [HS15]: three products of half the size instead of four.

    columns  6 5 4 3 2 1 0        L = a_lo * b_lo    H = a_hi * b_hi    M = |a_lo - a_hi| * |b_lo - b_hi|
             H H . .
               H H . .            what the dots would hold is L + H - M, or L + H + M if one difference is negative
                 . . L L          and the other is not; it is added in the middle, above a_lo's limbs
                   . . L L

With levels > 1 the parts are multiplied in the same way.  An odd number of limbs is split into a larger low half and a
smaller high one.  The innermost level is formed in place, by rows, its differences modulo a power of two with their
borrows and its limbs used as they leave, or calls one leaf three times (`parts=calls`).  In place, L of 8 limbs is a
level itself (`parts=inline`), which H and M are not: they begin with limbs in their sums, as rows can.  The levels
around it call it, but the next one may have three of them in place (`parts=nested`).  Where limbs are multiplied by
their halves (`parts=whole`), all levels down to single limbs stand in place, in pieces of some limbs.

No branch looks at a sign: M is combined with a mask, which holds all ones if M is to be added.  With `signs=branched`
one does, at the outermost level: M is added or subtracted in arms of their own, which take equally long; a level in
place, up to 18 limbs, does in such arms all that comes after b_lo - b_hi, and so do H and L of two levels in place: of
L, whose upper limbs both arms have to leave in registers, only where H comes before that difference.  With
`signs=everywhere` functions that are called branch too.

Cost: 3 M(n/2) and about 24 cycles for each limb of a half; 43 with three in place; called, 52.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqgen.errors import UserError
from sqgen.methods import REGISTERS, Parameter, Values
from sqgen.plan import Block, Difference, Part, Plan, Recombine, Slice, Step

TITLE = "subtractive Karatsuba"
REFERENCE = "HS15"
OPS = ("mul",)
FEWEST = 6  # limbs of a part that is worth a level in place
SCHOOLBOOK = (1, 3)  # limbs of a factor that is not halved in a whole piece
HALVED = 8  # limbs of an L in place that is a level: measured; others are by rows
EARLY = {*range(2, 11), 12}  # limbs where, in place, b_lo - b_hi is formed before H: measured
EARLY_IN_ARMS = EARLY | {11, 14}  # the same where code branches on its sign
STRIPS = {  # the best for L, H and M of some limbs, where not the rows' own: tried
    ("L", 11): "7,4",
    ("L", 12): "8,4",
    ("H", 8): "4,4",
    ("H", 10): "5,5",
    ("H", 11): "4,4,3",
    ("M", 9): "9",
    ("M", 11): "4,3,4",
}
OF_DIFFERENCES = {  # the same, by the limbs of its level, in M of two levels in place: tried
    11: {("L", 6): "3,3"},
    13: {("L", 7): "3,4"},
    14: {("L", 7): "3,4"},
    16: {("H", 8): "8"},
}
ROWS_IN_ARMS = {("H", 16)}  # parts of a level of so many limbs that are by rows where code branches: tried
IN_ONE = {"calls": 0, "inline": 1, "rows": 1, "nested": 2}  # innermost levels that are in place
LEAF = 16  # limbs of a part, at most, where nothing is said of levels
IN_PLACE = 24  # limbs of a part, at most, that is likely to be the best in place
IN_ARMS = 18  # limbs of a part, at most, that can be formed in place in arms
LOOPED = 8  # limbs of a part in loops, at least
NESTED = 32  # the same for two levels, and the most that registers and displacements allow


def enough(n: int) -> str:
    """As many levels as make the parts small."""
    return str(max(1, (-(-n // LEAF) - 1).bit_length()))


def rolled(n: int) -> str:
    """Loops where the code would be long."""
    return "looped" if n > 4 * LEAF else "unrolled"


PARAMETERS = (
    Parameter("levels", "how often the operands are halved", enough),
    Parameter(
        "leaf",
        "the method of the innermost products",
        "product-scanning",
        choices=("product-scanning", "hybrid", "operand-caching", "row-blocks", "row-loops"),
    ),
    Parameter(
        "parts",
        "the innermost level in place, by strips of rows or by whole rows, two levels in place, or as calls; or whole"
        " pieces, with all levels down to single limbs in place",
        "calls",
        choices=("inline", "rows", "nested", "calls", "whole"),
    ),
    Parameter("piece", "limbs of a whole piece, at most", lambda n: str(min(8, 2 * n))),
    Parameter("recombine", "the last step of a level that calls", rolled, choices=("unrolled", "looped")),
    Parameter("turn", "limbs done in one turn of a loop", lambda n: "8"),
    Parameter(
        "signs",
        "of the differences: in masks, or looked at, at the outermost level or also in functions that it calls",
        "branch-free",
        choices=("branch-free", "branched", "everywhere"),
    ),
    REGISTERS,
)


def compact(n: int) -> list[dict[str, str]]:
    """Calls and loops, with all levels that leave parts of some size; parts that are loops, too."""
    own = [
        {"levels": str(levels), "parts": "calls", "recombine": "looped", "turn": turn}
        for levels in range(1, 6)
        if n >> levels >= 4
        for turn in "248"
    ]
    return own + [{"leaf": "row-loops", **way} for way in own if n >> int(way["levels"]) >= LOOPED]


def points(n: int) -> list[dict[str, str]]:
    """First the likely best: levels down to parts of NESTED limbs, two levels of which are in place; then down to parts
    of IN_PLACE limbs with one in place; a level more; the parts called."""
    nested = (-(-n // NESTED) - 1).bit_length() + 2
    likely = (-(-n // IN_PLACE) - 1).bit_length() + 1
    ways = ((nested, "nested"), (likely, "inline"), (likely + 1, "inline"), (likely, "calls"))
    found = [
        {"levels": str(levels), "parts": parts, "recombine": "unrolled"} for levels, parts in ways if n >> levels >= 4
    ]
    return found or [{}]


def between(n: int) -> list[dict[str, str]]:
    """Parts as where they are the fastest, between loops of some limbs."""
    return [{**point, "recombine": "looped", "turn": turn} for point in points(n) if point for turn in "248"]


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs.  Raises UserError for a single one."""
    if n < 2:
        raise UserError("karatsuba: a single limb has no halves; take another method")
    a, b = Slice("a", 0, n), Slice("b", 0, n)
    if values.word("parts") == "whole":
        yield from in_pieces(a, b, values)
        return
    yield from level(a, b, values.one("levels"), values, values.word("signs"))


def level(
    a: Slice, b: Slice, levels: int, values: Values, signs: str, *, strips: Mapping[tuple[str, int], str] = STRIPS
) -> Iterator[Step]:
    """One level, for two operands of as many limbs, and what branches on signs there."""
    n = a.count
    half = n - n // 2
    called = levels > IN_ONE[values.word("parts")]
    streamed = not called and (levels == 1 or n // 2 < FEWEST)
    low, high = (a.part(0, half), b.part(0, half)), (a.part(half, n - half), b.part(half, n - half))
    if called:
        d, e = Slice("r", 0, half), Slice("r", half, half)
    else:
        d, e = Slice("d", 0, half), Slice("e", 0, half)
    middle = Slice("m", 0, 2 * half)
    differences = [Difference("a_lo < a_hi", d, low[0], high[0]), Difference("b_lo < b_hi", e, low[1], high[1])]
    names = tuple(each.sign for each in differences)
    early, rows = (EARLY, set()) if signs == "branch-free" else (EARLY_IN_ARMS, ROWS_IN_ARMS)
    inner = signs if called and signs == "everywhere" else "branch-free"
    in_place = "branched" if signs != "branch-free" and not called else inner
    in_low = inner if half in EARLY_IN_ARMS else in_place
    of_low, of_high, of_middle = (
        leaf(limbs, which, values, strips, rows=(which, n) in rows)
        if streamed
        else plan(limbs, levels - 1, values, looked, function=called, difference=which == "M" and not called)
        for limbs, which, looked in ((half, "L", in_low), (n - half, "H", in_place), (half, "M", inner))
    )
    form_low: tuple[Step, ...] = (Block("L"), Part(of_low, Slice("r", 0, 2 * half), *low, called))
    form_high: tuple[Step, ...] = (Block("H"), Part(of_high, Slice("r", 2 * half, 2 * (n - half)), *high, called))
    if streamed and n in early:
        form_high = (form_high[0], differences.pop(), form_high[1])
    form_middle: tuple[Step, ...] = (Block("M"), *differences, Part(of_middle, middle, d, e, called))
    parts = (form_low, form_high, form_middle) if streamed else (form_middle, form_high, form_low)
    for part in parts:
        yield from part
    yield Block("L + H - M")
    turn = values.one("turn") if called and values.word("recombine") == "looped" else 0
    yield Recombine(half, middle, names, turn, signs != "branch-free")


def in_pieces(a: Slice, b: Slice, values: Values) -> Iterator[Step]:
    """One level of all that there are down to single limbs; the parts of a piece are in place, those of more limbs
    called.

    Raises UserError for a single limb, and for what branches."""
    n = a.count
    if n < 2 or values.word("signs") != "branch-free":
        raise UserError("karatsuba: parts=whole needs two limbs, and does not branch; take another method")
    half = n - n // 2
    low, high = (a.part(0, half), b.part(0, half)), (a.part(half, n - half), b.part(half, n - half))
    called = n > values.one("piece")
    middle = Slice("m", 0, 2 * half)
    d, e = (Slice("r", 0, half), Slice("r", half, half)) if called else (Slice("d", 0, half), Slice("e", 0, half))
    differences = [Difference("a_lo < a_hi", d, low[0], high[0]), Difference("b_lo < b_hi", e, low[1], high[1])]
    of_low, of_high = piece(half, values), piece(n - half, values)
    yield Block("M")
    yield from differences
    yield Part(of_low, middle, d, e, called)
    yield from (Block("L"), Part(of_low, Slice("r", 0, 2 * half), *low, called))
    yield from (Block("H"), Part(of_high, Slice("r", 2 * half, 2 * (n - half)), *high, called))
    yield Block("L + H - M")
    yield Recombine(half, middle, tuple(each.sign for each in differences))


def piece(n: int, values: Values) -> Plan:
    """The plan of a part of n limbs where all levels are there, but none for few: more products cost less."""
    if n in SCHOOLBOOK:
        return values.part("product-scanning", "mul", n, {})
    text = (("parts", "whole"), ("piece", values.text("piece")))
    return Plan("mul", n, "karatsuba", text, tuple(in_pieces(Slice("a", 0, n), Slice("b", 0, n), values)))


def leaf(n: int, which: str, values: Values, strips: Mapping[tuple[str, int], str], *, rows: bool) -> Plan:
    """The plan of a part in place, L, H or M, by strips or by `rows`, which can begin with limbs in their sum; or of an
    L that is a level."""
    given = {"start": "empty" if which == "L" else "filled"}
    if rows or values.word("parts") == "rows":
        given["strips"] = str(n)
    elif (which, n) == ("L", HALVED):
        return plan(n, 1, values, "branch-free")
    elif (which, n) in strips:
        given["strips"] = strips[which, n]
    return values.part("rows", "mul", n, given)


def plan(n: int, levels: int, values: Values, signs: str, *, function: bool = False, difference: bool = False) -> Plan:
    """The plan of a part of n limbs, the product of two `difference`s or not, and what branches on signs there.  Raises
    UserError: too small for that, if it is no `function` that a branching level calls."""
    in_place = levels == 1 and values.word("parts") != "calls"
    if not levels or n < (FEWEST if in_place else 4):
        if signs != "branch-free" and not function:
            raise UserError(f"signs={signs} needs a level of Karatsuba, which {n} limbs do not have")
        return values.leaf("mul", n)
    if function and in_place and n > IN_ARMS:
        signs = "branch-free"
    own = {"levels": str(levels), "signs": signs}
    names = (name for name in values.names() if name != REGISTERS.name)  # they are looked for in the whole
    text = tuple((name, own.get(name) or values.text(name)) for name in names)
    strips = STRIPS | OF_DIFFERENCES.get(n, {}) if difference else STRIPS
    steps = level(Slice("a", 0, n), Slice("b", 0, n), levels, values, signs, strips=strips)
    return Plan("mul", n, "karatsuba", text, tuple(steps))
