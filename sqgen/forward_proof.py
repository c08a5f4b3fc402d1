"""The second proof, whole: all cases of a walk (`forward`), and what is true of all of them.

Every case must leave the product.  All must execute the same instructions and touch the same places, or a branch or an
address hangs on a secret; where branches on secrets are allowed, they must touch the same places in the same order, use
as much stack, and take the same cycles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .bus import Misuse
from .contract import Contract
from .encode import DecodeError
from .forward import Machine, Refused
from .forward_joined import joined
from .forward_numbers import Budget, Fork, Impossible, TooMuch
from .forward_trace import Trace, accesses, paths, safe, stack, ways
from .forward_wiped import Contents, remains
from .table import Core
from .timing import price

MOST_CASES = 1 << 12
Meeting = tuple[int, int, int]  # offset in bytes, and calls that have not returned


class Unproved(Exception):
    """Why a case cannot be proved: one line."""


@dataclass(frozen=True)
class ForwardVerdict:
    """The outcome: if not `proved`, `why` is one line; `cases` counts the walks that reached their end.

    Where it is proved: `paths`, offsets in bytes of the instructions executed, more than one only with branches on
    secrets: some of as many `ways`, with each instruction that is in any; `stack`, bytes below the return address at
    most; `overlap`, for each operand the displacements in limbs (address of the result less its own) at which the two
    overlap and the result is right all the same; `written`, registers that are written on the way.
    """

    proved: bool
    why: str
    cases: int
    paths: tuple[tuple[int, ...], ...] = ()
    ways: int = 0
    stack: int = 0
    overlap: Mapping[str, tuple[int, ...]] | None = None
    written: tuple[str, ...] = ()


def prove_forward(
    image: bytes, contract: Contract, core: Core, entry: int = 0, *, branches: bool = False
) -> ForwardVerdict:
    """Whether the code at `entry` (in bytes) keeps the contract, for all operands, on that core.

    `branches`: its path may depend on operands.
    """
    machine = Machine(image, contract, core, entry, Budget(), branches=branches)
    found = _walked(machine)
    if not found.proved and machine.meetings and machine.meetings.joined:  # more is known where arms are not joined
        found = _walked(Machine(image, contract, core, entry, Budget(), branches=branches, joins=False))
    return found


def _walked(start: Machine) -> ForwardVerdict:
    """The outcome for all cases of a machine at its start."""
    entry, isa = start.at, start.isa
    found: dict[tuple[int, ...], int] = {}  # a path, and how many it stands for
    others: dict[tuple[int, ...], None] = {}  # those that it stands for, as far as each arm is in one
    first: Trace | None = None
    left: Contents = {}
    written: set[int] = set()
    ended = 0
    try:
        for machine in _ends(start, None):
            ended += 1
            first = first or machine.trace
            own, *more = paths(machine.trace, machine.regions)
            found[own] = ways(machine.regions)
            others.update(dict.fromkeys(more))
            written |= machine.written
            if difference := _seen_apart(machine, first, [next(iter(found)), own, *more]) or _left(machine, left):
                return ForwardVerdict(False, difference, ended)
    except Unproved as unproved:
        return ForwardVerdict(False, str(unproved), ended)
    if first is None:
        return ForwardVerdict(False, "no case ever occurs", 0)
    return ForwardVerdict(
        True,
        "",
        ended,
        tuple(tuple(at - entry for at in path) for path in {**found, **others}),
        sum(found.values()),
        stack(first, machine.limb_bytes),
        {name: tuple(safe(machine.contract, first, name)) for name in machine.contract.buffers if name != "r"},
        tuple(name for name in isa.registers if isa.slots[name] in written),
    )


def _ends(start: Machine, meeting: Meeting | None) -> Iterator[Machine]:
    """All cases of a machine at their end, or where arms meet.  Raises Unproved."""
    waiting, ended = [start], 0
    while waiting:
        machine = waiting.pop()
        try:
            cases = _followed(machine, meeting)
        except Impossible:
            if not machine.numbers.decided:
                raise Unproved(f"0x{machine.at:04x}: ranges contradict each other") from None
            continue
        except (Refused, DecodeError, Misuse, TooMuch) as error:
            why = error.args[0] if error.args else "more terms than this proof can hold"
            raise Unproved(f"0x{machine.at:04x}: {why}") from None
        if cases is None:
            ended += 1
            yield machine
        else:
            waiting += cases
        if len(waiting) + ended > MOST_CASES:
            raise Unproved("too many cases")


def _followed(machine: Machine, meeting: Meeting | None) -> list[Machine] | None:
    """Walk on to the end, or to where arms meet; the cases that are to be walked instead where a bit must be known."""
    try:
        while (machine.at, len(machine.returns), len(machine.links)) != meeting:
            if not machine.step():
                break
        else:
            return None
    except Fork as fork:
        return _forked(machine, fork.args[0], meeting)
    if meeting:
        raise Refused("returns before the arms of a branch meet")
    return None


def _forked(machine: Machine, bit: int, outer: Meeting | None) -> list[Machine]:
    """The cases of a bit; where the arms of a branch meet, as one if they can be, with those of a branch around it if
    these meet there, too."""
    cases = list(machine.cases(bit))
    meetings = machine.meetings
    place = meetings.after(machine.at) if meetings else None
    last = place is None and len(machine.entered) > 1
    if meetings and last and meetings.control(machine.at) == "branch":
        place = meetings.place(machine.at)
    if meetings is None or place is None:
        return cases
    meeting = place, len(machine.returns), len(machine.links)
    if meeting == outer:
        return cases
    ends = [end for case in cases for end in _ends(case, meeting)]
    one = joined(machine, ends, last=last) if ends else None
    meetings.joined += one is not None
    return [one] if one else ends


def _seen_apart(machine: Machine, first: Trace, executed: Sequence[tuple[int, ...]]) -> str:
    """How a case can be told from the first one by what it accesses, or by the time of what is `executed`; "" for not
    at all."""
    if not machine.branches:
        return "" if machine.trace == first else "what is executed or touched depends on the operands"
    size = machine.limb_bytes
    if list(accesses(machine.trace)) != list(accesses(first)) or stack(machine.trace, size) != stack(first, size):
        return "what is touched depends on the operands"
    costs = dict.fromkeys(price(machine.isa, machine.core, machine.image, path).cycles for path in executed)
    times = " or ".join(str(call) for call, _ in costs)
    return "" if len(costs) == 1 else f"takes {times} cycles, depending on the operands"


def _left(machine: Machine, first: Contents) -> str:
    """Where a case leaves what may be made from operands, if nothing of them is to be left; "" for nowhere.  `first` is
    what the first one leaves, and is filled by that."""
    found = remains(machine) if machine.contract.wiped else {}
    if isinstance(found, str):
        return f"what was made from operands may be left {found}"
    where = next((name for name in found if first.setdefault(name, found[name]) != found[name]), "")
    return f"what is left {where} depends on the operands" if where else ""
