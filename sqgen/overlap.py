"""Which overlaps of result and operand are safe, from the order of reads and writes."""

from __future__ import annotations

from .symbolic import State


def overlap(state: State) -> dict[str, tuple[int, ...]]:
    """Safe displacements of the result from each operand: no limb is read after the result has overwritten it."""
    safe: dict[str, tuple[int, ...]] = {}
    buffers = state.contract.buffers
    writes: dict[int, int] = {}
    for time, event in enumerate(state.events):
        if (event.kind, event.place) == ("write", "r"):
            writes.setdefault(event.number, time)
    for operand in list(buffers)[1:]:
        last_read = {
            event.number: time
            for time, event in enumerate(state.events)
            if (event.kind, event.place) == ("read", operand)
        }
        good = []
        for distance in range(1 - buffers["r"], buffers[operand]):
            if all(time > last_read.get(offset + distance, -1) for offset, time in writes.items()):
                good.append(distance)
        safe[operand] = tuple(good)
    return safe
