"""What can be seen from outside of a walk of the second proof, and what follows from that alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .contract import Contract


class Touch(NamedTuple):
    """What an instruction does that may be seen from outside: it reads or writes a limb of a buffer, branches on the
    value of a flag, or leaves the end of the stack at an offset."""

    kind: str  # "read", "write", "flag", "end"
    where: str  # the buffer or the flag
    number: int


Trace = list[tuple[int, list[Touch]]]  # for each instruction executed its offset in bytes and what it touches


def path_of(trace: Trace, entry: int) -> tuple[int, ...]:
    """Offsets of the instructions executed, in bytes from the entry."""
    return tuple(at - entry for at, _ in trace)


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
