"""Where an instruction set has no calls that can stand anywhere, parts share code in the turns of a loop.

A turn pops what it works on, and its last pop is one more than that, a count.  To the proof what lies between is like a
function that is called: see `products`, by whose guesses nothing is assumed.
"""

from __future__ import annotations

from .encode import DecodeError, decode
from .table import Isa


def bodies(image: bytes, isa: Isa, entry: int) -> dict[int, int]:
    """Where the code of a turn begins, behind the pops at the head of a loop, and where it ends, at the last pop before
    the jump back; none where there are calls."""
    if any(insn.control[:1] == ("call",) for insn in isa.insns.values()):
        return {}
    found: dict[int, int] = {}
    at, last = entry, entry
    while at < len(image):
        try:
            instr = decode(isa, image, at)
        except DecodeError:
            break
        following = at + instr.insn.size
        if instr.insn.frame == "restore":
            last = at
        if instr.insn.control[:1] in {("jump",), ("branch",)}:
            target = following + next(iter(instr.immediates.values()))
            if entry <= target < at and target < (body := behind_pops(image, isa, target)) < last:
                found[body] = last
        at = following
    return found


def behind_pops(image: bytes, isa: Isa, at: int) -> int:
    """The first instruction from `at` on that restores nothing from the stack, or what is no instruction."""
    try:
        while (insn := decode(isa, image, at).insn).frame == "restore":
            at += insn.size
    except DecodeError:
        pass
    return at
