"""The second proof, whole: all cases of a walk (`forward`), and what is true of all of them.

Every case must leave the product.  All must execute the same instructions and touch the same places, or a branch or an
address hangs on a secret; where branches on secrets are allowed, they must touch the same places in the same order, use
as much stack, and take the same cycles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .bus import Misuse
from .contract import Contract
from .encode import DecodeError
from .forward import Machine, Refused
from .forward_numbers import Budget, Fork, Impossible, TooMuch
from .forward_trace import Trace, accesses, path_of, safe, stack
from .forward_wiped import Contents, remains
from .table import Core
from .timing import price

MOST_CASES = 1 << 12


@dataclass(frozen=True)
class ForwardVerdict:
    """The outcome: if not `proved`, `why` is one line; `cases` counts the walks that reached their end.

    Where it is proved: `paths`, offsets in bytes of the instructions executed, more than one only with branches on
    secrets; `stack`, bytes below the return address at most; `overlap`, for each operand the displacements in limbs
    (address of the result less its own) at which the two overlap and the result is right all the same; `written`,
    registers that are written on the way.
    """

    proved: bool
    why: str
    cases: int
    paths: tuple[tuple[int, ...], ...] = ()
    stack: int = 0
    overlap: Mapping[str, tuple[int, ...]] | None = None
    written: tuple[str, ...] = ()


def prove_forward(
    image: bytes, contract: Contract, core: Core, entry: int = 0, *, branches: bool = False
) -> ForwardVerdict:
    """Whether the code at `entry` (in bytes) keeps the contract, for all operands, on that core.

    `branches`: its path may depend on operands.
    """
    return _walked(Machine(image, contract, core, entry, Budget(), branches=branches))


def _walked(machine: Machine) -> ForwardVerdict:
    """The outcome for all cases of a machine at the start."""
    waiting, paths, entry = [machine], dict[tuple[int, ...], None](), machine.at
    first: Trace | None = None
    left: Contents = {}
    written: set[int] = set()
    ended = 0
    while waiting:
        machine = waiting.pop()
        try:
            cases = _followed(machine)
        except Impossible:
            if not machine.numbers.decided:
                return ForwardVerdict(False, f"0x{machine.at:04x}: ranges contradict each other", ended)
            continue
        except (Refused, DecodeError, Misuse, TooMuch) as error:
            why = error.args[0] if error.args else "more terms than this proof can hold"
            return ForwardVerdict(False, f"0x{machine.at:04x}: {why}", ended)
        if cases is not None:
            waiting += cases
            if len(waiting) + ended > MOST_CASES:
                return ForwardVerdict(False, "too many cases", ended)
            continue
        ended += 1
        first = first or machine.trace
        paths[path_of(machine.trace, entry)] = None
        written |= machine.written
        if difference := _seen_apart(machine, first, entry) or _left(machine, left):
            return ForwardVerdict(False, difference, ended)
    if first is None:
        return ForwardVerdict(False, "no case ever occurs", 0)
    isa = machine.isa
    return ForwardVerdict(
        True,
        "",
        ended,
        tuple(paths),
        stack(first, machine.limb_bytes),
        {name: tuple(safe(machine.contract, first, name)) for name in machine.contract.buffers if name != "r"},
        tuple(name for name in isa.registers if isa.slots[name] in written),
    )


def _followed(machine: Machine) -> list[Machine] | None:
    """Walk on to the end; the cases that are to be walked instead where a bit must be known."""
    try:
        while machine.step():
            pass
    except Fork as fork:
        return list(machine.cases(*fork.args))
    return None


def _seen_apart(machine: Machine, first: Trace, entry: int) -> str:
    """How a case can be told from the first one by its time or by what it accesses; "" if it cannot."""
    if not machine.branches:
        return "" if machine.trace == first else "what is executed or touched depends on the operands"
    size = machine.limb_bytes
    if list(accesses(machine.trace)) != list(accesses(first)) or stack(machine.trace, size) != stack(first, size):
        return "what is touched depends on the operands"
    paths = (path_of(trace, entry) for trace in (machine.trace, first))
    mine, its = (price(machine.isa, machine.core, machine.image, path, entry) for path in paths)
    return "" if mine.cycles == its.cycles else f"takes {mine.call} or {its.call} cycles, depending on the operands"


def _left(machine: Machine, first: Contents) -> str:
    """Where a case leaves what may be made from operands, if nothing of them is to be left; "" for nowhere.  `first` is
    what the first one leaves, and is filled by that."""
    found = remains(machine) if machine.contract.wiped else {}
    if isinstance(found, str):
        return f"what was made from operands may be left {found}"
    where = next((name for name in found if first.setdefault(name, found[name]) != found[name]), "")
    return f"what is left {where} depends on the operands" if where else ""
