"""Karatsuba's last step on AVR, written out (`avr_unrolled`): which limbs find a register, how many are done at a time.

A, B, C and D are the quarters of L + X^2 H, W is B + C.
"""

from __future__ import annotations

from collections.abc import Sequence

REACHED = 64  # limbs that a pointer reaches without being moved
ASIDE = 6  # cycles that a limb of W and of D cost more where they find no register
LOAD = STORE = 2  # cycles
TURN = 3  # cycles of chains that take turns, for each group; one where a pointer reaches B and C
GROUP = {True: 4, False: 11}  # of a group more with limbs that are put aside


def groups(indices: Sequence[int], size: int) -> list[Sequence[int]]:
    return [indices[first : first + size] for first in range(0, len(indices), size)]


def room(half: int, registers: int) -> tuple[int, int]:
    """(limbs that find no register for long, limbs done at a time) where so many registers are free: what is done at
    a time needs as many again."""
    sizes = range(1, max(2, min(registers, half + 1)))

    def cycles(way: tuple[int, int]) -> int:
        aside, size = way
        turns = len(groups(range(half), size)) if 2 * half <= REACHED else TURN * half // size
        return ASIDE * aside + turns

    return min(((max(0, half - registers + size), size) for size in sizes), key=cycles)


def spare(halves: tuple[int, int]) -> bool:
    """Whether no zero is needed while A is added: its register is free for a limb then."""
    half, rest = halves
    return 2 * rest >= half


def budget(halves: tuple[int, int], registers: int, *, masked: bool) -> tuple[int, int, int]:
    """(registers that limbs have beside the tape and a mask, limbs that find none for long, limbs done at a time)."""
    free = registers - 1 - masked
    return free, *room(halves[0], free + spare(halves))


def most_upper(halves: tuple[int, int], registers: int, there: int, *, masked: bool, saved: int) -> int:
    """How many of the limbs of B that are `there` in registers pay when they stay: so many cycles are `saved` for each,
    but it takes a register while others are done in groups."""
    free, aside, _ = budget(halves, registers, masked=masked)
    more = GROUP[2 * halves[0] <= REACHED]
    return max(range(min(there, free - 1) + 1), key=lambda count: saved * count + more * (-aside // (free - count)))


def reached(half: int) -> bool:
    """Whether one pointer reaches the whole result."""
    return 4 * half <= REACHED
