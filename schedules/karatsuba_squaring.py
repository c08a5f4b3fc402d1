"""Karatsuba squaring: three squares of half the size, and no sign, since (a_lo - a_hi)^2 is never negative.

    columns  6 5 4 3 2 1 0        L = a_lo^2    H = a_hi^2    M = |a_lo - a_hi|^2
             H H . .
               H . .              what the dots would hold, twice, is L + H - M; it is added in the middle
                   L L
                     L

With levels > 1 the parts are squared in the same way.  The low part is as large as the high one, or one limb larger,
where `split` does not say otherwise.  The innermost level is formed in place, where limbs of H and M are used as they
leave their squares (`parts=inline`), and so may the next one be (`parts=nested`), the squares one function on registers
if there are few limbs (`parts=shared`), or it calls one leaf three times (`parts=calls`); the levels around it call it.
Whole pieces (`parts=whole`) of 3 or 6 limbs have three parts: their squares, and those of the differences of each two.

Cost: 3 S(n/2) and about 30 cycles for each limb of a half; called, 40.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqgen.errors import UserError
from sqgen.methods import REGISTERS, Parameter, Values
from sqgen.plan import Block, Difference, Part, Plan, Recombine, Slice, Step

from .karatsuba import enough, rolled

TITLE = "Karatsuba squaring, three squares"
REFERENCE = "HS15"
OPS = ("sqr",)
PARAMETERS = (
    Parameter("levels", "how often the operand is halved", enough),
    Parameter(
        "leaf",
        "the method of the innermost squares",
        "sweeps",
        choices=("sweeps", "streamed-karatsuba", "sbd", "product-scanning", "lazy-doubling", "row-blocks", "row-loops"),
    ),
    Parameter(
        "parts",
        "the innermost level in place, two levels, one with a function for the squares, or as calls; or whole pieces,"
        " with all levels down to single limbs in place",
        "calls",
        choices=("inline", "nested", "shared", "calls", "whole"),
    ),
    Parameter("piece", "limbs of a whole piece, at most", lambda n: str(min(8, 2 * n))),
    Parameter("recombine", "the last step of a level that calls", rolled, choices=("unrolled", "looped")),
    Parameter("turn", "limbs done in one turn of a loop", lambda n: "8"),
    Parameter("split", "limbs of the low part at the outermost level, at least half", lambda n: str(n - n // 2)),
    REGISTERS,
)

IN_ONE = {"calls": 0, "inline": 1, "nested": 2, "shared": 1}  # innermost levels that are in place
STREAMED = range(20, 45)  # limbs of a part that streamed-karatsuba may be the best for
SWEPT = 21  # limbs of a part, at most, that sweeps are likely to be better for
THIRDS = (3, 6)  # limbs of a whole piece that three parts are better for than two
LOOPED = 8  # limbs of a part in loops, at least
SHARED = 8  # limbs of a square that a function has in registers, operand and result


def points(n: int) -> list[dict[str, str]]:
    """Levels down to parts of some limbs, the innermost in place or called, or the best of its own kind called; the
    likely best ones first."""
    first = int(likely(n)["levels"])
    found = [
        {"levels": str(levels), "parts": parts, "recombine": "unrolled"}
        for levels in (first, first + 1)
        for parts, outer in (("inline", levels - 1), ("calls", levels))
        if n >> levels >= 4 and -(-n >> outer) < STREAMED.stop
    ]
    streamed = [
        {"leaf": "streamed-karatsuba", "levels": str(levels), "parts": "calls", "recombine": "unrolled"}
        for levels in (first, first + 1)
        if -(-n >> levels) in STREAMED
    ]
    return sorted([*found, *streamed], key=lambda point: point != likely(n)) or [{}]


def likely(n: int) -> dict[str, str]:
    """In place if that is one level; else as few levels as leave parts that a leaf is good for."""
    if n < STREAMED.stop:
        return {"levels": "1", "parts": "inline", "recombine": "unrolled"}
    levels = next(levels for levels in range(1, n) if -(-n >> levels) < STREAMED.stop)
    leaf = {"leaf": "streamed-karatsuba"} if -(-n >> levels) > SWEPT else {}
    return {**leaf, "levels": str(levels), "parts": "calls", "recombine": "unrolled"}


def compact(n: int) -> list[dict[str, str]]:
    """Loops, with all levels that leave parts of some size; as functions on registers where these suffice, or as loops
    themselves."""
    own = [
        {"levels": str(levels), "parts": parts, "recombine": "looped", "turn": turn}
        for levels in depths(n)
        for parts, turns in (("shared", "248" if -(-n >> levels) <= SHARED else ""), ("calls", "24"))
        for turn in turns
    ]
    called = [way for way in own if way["parts"] == "calls" and n >> int(way["levels"]) >= LOOPED]
    return own + [{"leaf": "row-loops", **way} for way in called]


def between(n: int) -> list[dict[str, str]]:
    """Parts as where they are the fastest, between loops of some limbs; and as functions on registers without loops."""
    looped = [{**point, "recombine": "looped", "turn": turn} for point in points(n) if point for turn in "248"]
    shared = [
        {"levels": str(levels), "parts": "shared", "recombine": "unrolled"}
        for levels in depths(n)
        if -(-n >> levels) <= SHARED
    ]
    return looped + shared


def depths(n: int) -> list[int]:
    """Levels that leave parts of some size."""
    return [levels for levels in range(1, 6) if n >> levels >= 4]


def steps(op: str, n: int, values: Values) -> Iterator[Step]:
    """The plan for n limbs.  Raises UserError for a single one."""
    if n < 2:
        raise UserError("karatsuba-squaring: a single limb has no halves; take another method")
    half = values.one("split")
    if values.word("leaf") == "streamed-karatsuba" and values.word("parts") != "calls":
        raise UserError("karatsuba-squaring: leaf=streamed-karatsuba, which has parts itself, needs parts=calls")
    if not n - n // 2 <= half < n:
        raise UserError(f"karatsuba-squaring: split runs from {n - n // 2} to {n - 1} at this size, not {half}")
    if values.word("parts") == "whole":
        yield from in_pieces(n, half, values)
    else:
        yield from level(n, half, values.one("levels"), values)


def in_pieces(n: int, half: int, values: Values) -> Iterator[Step]:
    """One level of all that there are down to single limbs; the parts of a piece are in place, those of more limbs
    called."""
    if n in THIRDS and half == n - n // 2:
        yield from in_thirds(n // 3, values)
        return
    a = Slice("a", 0, n)
    low, high = a.part(0, half), a.part(half, n - half)
    called = n > values.one("piece")
    d, middle = Slice("r" if called else "d", 0, half), Slice("m", 0, 2 * half)
    of_low, of_high = piece(half, values), piece(n - half, values)
    yield from (Block("M"), Difference("a_lo < a_hi", d, low, high), Part(of_low, middle, d, d, called))
    yield from (Block("L"), Part(of_low, Slice("r", 0, 2 * half), low, low, called))
    yield from (Block("H"), Part(of_high, Slice("r", 2 * half, 2 * (n - half)), high, high, called))
    yield Block("L + H - M")
    yield Recombine(half, middle, ())


def in_thirds(third: int, values: Values) -> Iterator[Step]:
    """Three parts and the differences of each two of them, all in place: six squares of a third of the limbs."""
    inner = piece(third, values)
    part = [Slice("a", third * i, third) for i in range(3)]
    pairs = [(0, 1), (0, 2), (1, 2)]
    for i in range(3):
        yield from (Block(f"a{i}^2"), Part(inner, Slice("r", 2 * third * i, 2 * third), part[i], part[i], False))
    for i, j in pairs:
        d, middle = Slice(f"d{i}{j}", 0, third), Slice(f"m{i}{j}", 0, 2 * third)
        yield from (Block(f"|a{i} - a{j}|^2"), Difference(f"a{i} < a{j}", d, part[i], part[j]))
        yield Part(inner, middle, d, d, False)
    yield Block("a_i^2 + a_j^2 - |a_i - a_j|^2, for each two of them")
    for i, j in pairs:
        yield Recombine(third, Slice(f"m{i}{j}", 0, 2 * third), (), low=i, high=j)


def piece(n: int, values: Values) -> Plan:
    """The plan of a part of n limbs where all levels are there."""
    if n == 1:
        return values.part("product-scanning", "sqr", 1, {})
    text = (("parts", "whole"), ("piece", values.text("piece")))
    return Plan("sqr", n, "karatsuba-squaring", text, tuple(in_pieces(n, n - n // 2, values)))


def level(n: int, half: int, levels: int, values: Values) -> Iterator[Step]:
    """One level, its low part `half` limbs."""
    a = Slice("a", 0, n)
    low, high = a.part(0, half), a.part(half, n - half)
    called = levels > IN_ONE[values.word("parts")]
    shared = not called and values.word("parts") == "shared"
    d = Slice("r" if called else "d", 0, half)  # when called it waits where the result will be
    middle = Slice("m", 0, 2 * half)
    inner, smaller = plan(half, levels - 1, values), plan(n - half, levels - 1, values)
    form_low = (Block("L"), Part(inner, Slice("r", 0, 2 * half), low, low, called, shared))
    form_high = (Block("H"), Part(smaller, Slice("r", 2 * half, 2 * (n - half)), high, high, called, shared))
    form_middle = (Block("M"), Difference("a_lo < a_hi", d, low, high), Part(inner, middle, d, d, called, shared))
    innermost = not called and levels == 1
    parts = (form_low, form_high, form_middle) if innermost else (form_middle, form_high, form_low)
    for part in parts:
        yield from part
    yield Block("L + H - M")
    turn = values.one("turn") if called and values.word("recombine") == "looped" else 0
    yield Recombine(half, middle, (), turn)


def plan(n: int, levels: int, values: Values) -> Plan:
    """The plan of a part of n limbs."""
    if not levels or n < 4:
        in_one = {"ends": str(max(1, 2 * n - 2)), "orders": "i", "stages": str(2 * n)}  # what registers hold whole
        whole = values.word("parts") == "shared" and values.word("leaf") == "sweeps"
        return values.leaf("sqr", n, in_one if whole else {})
    names = (name for name in values.names() if name != REGISTERS.name)  # they are looked for in the whole
    text = tuple((name, str(levels) if name == "levels" else values.text(name)) for name in names)
    return Plan("sqr", n, "karatsuba-squaring", text, tuple(level(n, n - n // 2, levels, values)))
