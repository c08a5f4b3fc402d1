"""What can be seen from outside of a walk of the second proof, and what follows from that alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from .contract import Contract


class Touch(NamedTuple):
    """What an instruction does that may be seen from outside: it reads or writes a limb of a buffer, branches on the
    value of a flag, or leaves the end of the stack at an offset."""

    kind: str  # "read", "write", "flag", "end"
    where: str  # the buffer or the flag
    number: int


class Region(NamedTuple):
    """Where in a trace arms begin and end that were joined, what may be executed there, and in how many ways."""

    start: int
    end: int
    paths: Sequence[tuple[int, ...]]
    ways: int


Trace = list[tuple[int, list[Touch]]]  # for each instruction executed its offset in bytes and what it touches


def path_of(trace: Trace, entry: int) -> tuple[int, ...]:
    """Offsets of the instructions executed, in bytes from the entry."""
    return tuple(at - entry for at, _ in trace)


def paths(trace: Trace, regions: Sequence[Region], since: int = 0) -> list[tuple[int, ...]]:
    """The path of a trace from an instruction on; then it with each other arm in place of the one that it has."""
    own = path_of(trace[since:], 0)
    inside = [(each.start - since, each.end - since, each.paths) for each in regions if each.start >= since]
    others = [(*own[:start], *path, *own[end:]) for start, end, some in inside for path in some[1:]]
    return [own, *others]


def ways(regions: Sequence[Region], since: int = 0) -> int:
    """How many paths that stands for."""
    return prod(each.ways for each in regions if each.start >= since)


def touches(trace: Trace) -> Iterator[Touch]:
    """All of them, in order."""
    return (touch for _, touched in trace for touch in touched)


def accesses(trace: Trace) -> Iterator[Touch]:
    """What is read and written, in order."""
    return (touch for touch in touches(trace) if touch.kind in ("read", "write"))


def stack(trace: Trace, limb_bytes: int) -> int:
    """Bytes of stack in use at most."""
    return -min((touch.number for touch in touches(trace) if touch.kind == "end"), default=0) * limb_bytes


def safe(contract: Contract, trace: Trace, operand: str) -> Iterator[int]:
    """Displacements (address of the result less the operand's, in limbs) at which no limb of the operand is read that
    the result has been written over."""
    for distance in range(1 - contract.buffers["r"], contract.buffers[operand]):
        gone: set[int] = set()
        for kind, where, number in accesses(trace):
            if (kind, where) == ("write", "r"):
                gone.add(number + distance)
            elif (kind, where) == ("read", operand) and number in gone:
                break
        else:
            yield distance
