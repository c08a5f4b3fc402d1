"""A kernel in the interpreter that is made from the table: for cores that no outside simulator knows.

It says whether bytes, manifest and table go together: values, kept registers, memory, stack, cycles by the table.  That
the table is true it cannot say.
"""

from __future__ import annotations

from sqgen import timing
from sqgen.check import Report
from sqgen.contract import Contract
from sqgen.encode import DecodeError
from sqgen.errors import Exit, UserError
from sqgen.interpret import Before, Crash, Machine, Run, follow, harm, operands
from sqgen.table import Core

NAME = "the interpreter of the table"
LONGEST = 3_000_000  # instructions of a call


def run(image: bytes, contract: Contract, core: Core, entry: int, runs: int, *, branches: bool) -> Report:
    """Run a kernel `runs` times.  Raises UserError where something is wrong (DISAGREES)."""
    paths: dict[tuple[int, ...], timing.Price] = {}
    stack = 0
    for values in operands(contract, runs):
        problem, path, used = once(image, contract, core, entry, values)
        stack = max(stack, used)
        if not problem and path not in paths:
            paths[path] = timing.price(contract.isa, core, image, path)
            costs = {(price.call, price.body) for price in paths.values()}
            if len(costs) > 1 or (len(paths) > 1 and not branches):
                problem = "its time depends on the operands"
        if problem:
            shown = ", ".join(f"{name} = 0x{number:x}" for name, number in zip("ab", values, strict=False))
            raise UserError(f"in {NAME}, {problem}; operands {shown}", Exit.DISAGREES)
    price = next(iter(paths.values()))
    return Report(NAME, runs, 0, price.call, price.body, stack, len(paths))


def once(
    image: bytes, contract: Contract, core: Core, entry: int, values: tuple[int, ...]
) -> tuple[str, tuple[int, ...], int]:
    """(what is wrong, "" if nothing; the instructions executed; bytes of stack) of one run."""
    run = Run(contract, core)
    run.start(values)
    machine, isa = run.machine, contract.isa
    if isa.interrupt_enable:
        machine.slots[isa.slots[isa.interrupt_enable]] = 1
    before = Before.of(run)
    problem, path = followed(machine, image, entry)
    if problem:
        return problem, path, 0
    buffers = max(at + run.lengths[name] for name, at in run.places.items())
    below = (k for k in range(buffers, before.top) if machine.memory[k] != before.memory[k])
    limb = isa.limb_bits // 8
    return harm(run, before, values), path, before.top - next(below, before.top) // limb * limb


def followed(machine: Machine, image: bytes, entry: int) -> tuple[str, tuple[int, ...]]:
    """(why a call did not come to its end, "" if it did; the instructions executed)."""
    path: list[int] = []
    try:
        for at in follow(machine, image, entry, LONGEST):
            path.append(at)
    except (Crash, DecodeError) as error:
        return f"{error} at 0x{path[-1]:04x}", tuple(path)
    return "", tuple(path)
