"""Whether runs show that code is wrong, which is soon seen of most that is.

A proof looks closely at what may still vanish only while no run shows that it does not, and the longer it looks, the
more runs are made.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from .contract import Contract
from .encode import DecodeError
from .interpret import PLAIN, Crash, Endless, number, operands, run
from .table import Core

SEARCH = 60_000  # instructions executed in search of a counterexample, about a second
CALL = 200_000  # instructions of one of the calls that are made in any case; those of 1024 bits take a fifth
TRIES = 400  # operands tried at most


class Runs:
    """Runs of code on one tuple of operands after the other, until one is wrong: its `operands`, none of a run that
    crashed."""

    def __init__(self, image: bytes, contract: Contract, core: Core, entry: int = 0) -> None:
        self.image, self.contract, self.core, self.entry = image, contract, core, entry
        self.waiting = revealing(contract, TRIES)
        self.calls = self.steps = self.longest = 0  # so far: runs, instructions executed, and those of the longest run
        self.wrong = self.endless = False
        self.operands: tuple[int, ...] | None = None

    def show(self, steps: int, calls: int = 0) -> bool:
        """Whether the code is known to be wrong after runs of so many instructions in all, or so many `calls` if these
        take more."""
        while not (self.wrong or self.endless):
            left = steps - self.steps
            if self.calls >= calls and left < self.longest:  # the next run would not come to its end
                break
            values = next(self.waiting, None)
            if values is None:
                break
            self.next(values, max(left, 2 * self.longest, CALL if self.calls < calls else 0))
        return self.wrong

    def next(self, values: tuple[int, ...], limit: int) -> None:
        """One run of so many instructions at most."""
        self.calls += 1
        try:
            result, path = run(self.image, self.contract, self.core, values, self.entry, limit=limit)
        except Endless:
            self.endless = True
        except (Crash, DecodeError):
            self.wrong = True
        else:
            self.steps, self.longest = self.steps + len(path), max(self.longest, len(path))
            if result != values[0] * values[-1]:
                self.wrong, self.operands = True, values


def counterexample(
    image: bytes, contract: Contract, core: Core, entry: int = 0, steps: int = SEARCH
) -> tuple[int, ...] | None:
    """Operands for which the code leaves a wrong result, if some are found within so many instructions."""
    runs = Runs(image, contract, core, entry)
    runs.show(steps)
    return runs.operands


def revealing(contract: Contract, count: int) -> Iterator[tuple[int, ...]]:
    """Operand tuples in the order in which they find most, as changed kernels say: limbs at random, which find most
    of all, and limbs many of which are the greatest, both also with the complement of the last operand, with which
    differences of its limbs have the other sign; then `count` of `operands`, those of one limb last of the first ones.
    """
    rng = random.Random(0)
    width = contract.isa.limb_bits
    top = (1 << width) - 1
    for great in (0.0, 0.7):
        rows = [
            [top if rng.random() < great else rng.randint(0, top) for _ in range(contract.limbs)]
            for _ in range(len(contract.buffers) - 1)
        ]
        *others, last = (number(row, width) for row in rows)
        yield *others, last
        yield *others, (1 << (width * contract.limbs)) - 1 - last
    structured = operands(contract, count)
    first = list(itertools.islice(structured, 2 * PLAIN))
    yield from (*first[PLAIN:], *reversed(first[:PLAIN]))
    yield from structured
