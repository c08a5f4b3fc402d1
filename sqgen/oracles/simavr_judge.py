"""A kernel in simavr: values, cycles, stack, registers, memory around the buffers, interrupts."""

from __future__ import annotations

from collections.abc import Sequence

from sqgen.check import Report
from sqgen.contract import Contract
from sqgen.encode import DecodeError, Instr, decode
from sqgen.errors import Exit, UserError
from sqgen.interpret import operands
from sqgen.oracles import OracleFailed, OracleMissing, OracleTooSmall, simavr
from sqgen.table import Core, Isa
from sqgen.timing import framing

GUARD = 32  # bytes looked at on either side of every buffer; neighbours share them
Places = dict[str, tuple[int, int]]  # address and bytes of each buffer
SREG_I = 0x80  # the interrupt enable bit in SREG


def run(image: bytes, contract: Contract, core: Core, entry: int, runs: int, *, branches: bool) -> Report:
    """Run a kernel `runs` times plain and some times with an interrupt before every instruction.

    With `branches` the operands may decide on the path, but not on cycles.

    Raises UserError: the simulator is missing (TOOL), the part has no room for the code (LIMITS), or it saw something
    wrong (DISAGREES).
    """
    try:
        places = _places(contract, core)
        plain = _batch(image, contract, core, entry, runs, places=places, branches=branches, interrupts=False)
        _room_for_handler(core, places, min(run.low_sp for run in plain))
        some = max(4, runs // 10)
        _batch(image, contract, core, entry, some, places=places, branches=branches, interrupts=True)
    except OracleMissing as error:
        raise UserError(str(error), Exit.TOOL) from None
    except OracleTooSmall as error:
        raise UserError(f"the simulator cannot run this: {error}", Exit.LIMITS) from None
    except OracleFailed as error:
        raise UserError(f"the simulator cannot run this: {error}", Exit.DISAGREES) from None
    first = plain[0]
    path = [at for at in sorted(first.cycles_at) if entry <= at <= first.last]  # functions may stand behind
    instrs = [_known(contract.isa, image, at) for at in path]
    outside = sum(first.cycles_at[path[index]] for index in framing(instrs))
    stack = simavr.ram(core.name)[1] - min(run.low_sp for run in plain) - core.pc_limbs
    paths = len({run.path for run in plain})
    return Report("simavr", runs, some, first.cycles, first.cycles - outside, stack, paths)


def _known(isa: Isa, image: bytes, at: int) -> Instr:
    """The instruction there; NOP for one that the table does not know, and so no save, restore or return."""
    try:
        return decode(isa, image, at)
    except DecodeError:
        return decode(isa, bytes(isa.code_unit), 0)


def _batch(
    image: bytes,
    contract: Contract,
    core: Core,
    entry: int,
    runs: int,
    *,
    places: Places,
    branches: bool,
    interrupts: bool,
) -> Sequence[simavr.Outcome]:
    """Runs on structured and random operands, each checked."""
    stack_top = simavr.ram(core.name)[1]
    values = list(operands(contract, runs))
    requests = [_request(contract, places, value) for value in values]
    outcomes = simavr.call(core.name, image, requests, sp=stack_top, interrupts=interrupts, entry=entry)
    touched = {run.path: run.touched for run in outcomes}  # each arm of a branch may have addresses of its own
    for value, request, outcome in zip(values, requests, outcomes, strict=True):
        problem = _problem(contract, places, value, request, outcome)
        if not problem and outcome.sp != stack_top:
            problem = "the stack pointer is not restored"
        if not problem and not branches and outcome.path != outcomes[0].path:
            problem = "its path depends on the operands"
        if not problem and outcome.touched != touched[outcome.path]:
            problem = "the addresses that it reads or writes depend on the operands"
        if not problem and outcome.cycles != outcomes[0].cycles:
            problem = f"it takes {outcome.cycles} cycles, and {outcomes[0].cycles} with other operands"
        if problem:
            shown = ", ".join(f"{name} = 0x{number:x}" for name, number in zip("ab", value, strict=False))
            when = " with an interrupt before every instruction" if interrupts else ""
            raise UserError(f"in simavr{when}, {problem}; operands {shown}", Exit.DISAGREES)
    return outcomes


def _places(contract: Contract, core: Core) -> Places:
    """Where the buffers lie."""
    places: Places = {}
    at = simavr.ram(core.name)[0] + GUARD
    for name, limbs in contract.buffers.items():
        places[name] = (at, limbs)
        at += limbs + GUARD
    return places


def _room_for_handler(core: Core, places: Places, lowest: int) -> None:
    """Whether an interrupt's handler leaves the buffers alone, `lowest` being where the stack pointer came.

    Raises OracleTooSmall: the part has too little RAM.
    """
    first, last = simavr.ram(core.name)
    at, limbs = max(places.values())
    missing = at + limbs + GUARD - (lowest + 1 - simavr.HANDLER)
    if missing > 0:
        there = last + 1 - first
        raise OracleTooSmall(f"{core.name} has {there} bytes of RAM, {missing} fewer than it takes with an interrupt")


def _request(contract: Contract, places: Places, value: tuple[int, ...]) -> simavr.Request:
    registers: dict[int, int] = {}
    memory = []
    for index, (name, (at, limbs)) in enumerate(places.items()):
        for part, register in enumerate(contract.isa.abi.arguments[index]):
            registers[contract.isa.slots[register]] = at >> (8 * part) & 0xFF
        content = bytes([0xA5]) * limbs if name == "r" else value[index - 1].to_bytes(limbs, "little")
        before, after = (bytes((first + k) * 37 & 0xFF for k in range(GUARD)) for first in (at - GUARD, at + limbs))
        memory.append(simavr.Buffer(at - GUARD, before + content + after))
    for register in contract.isa.abi.zero_on_return:
        registers[contract.isa.slots[register]] = 0
    read = tuple((buffer.address, len(buffer.data)) for buffer in memory)
    return simavr.Request(registers, tuple(memory), read)


def _problem(
    contract: Contract,
    places: Places,
    value: tuple[int, ...],
    request: simavr.Request,
    outcome: simavr.Outcome,
) -> str:
    """What is wrong with one run, "" if nothing."""
    if outcome.stop != "returned":
        return f"it did not return: {outcome.fault or outcome.stop}"
    return _registers(contract, outcome) or _memory(places, value, request, outcome)


def _registers(contract: Contract, outcome: simavr.Outcome) -> str:
    """What the run did to registers that it should not have."""
    isa = contract.isa
    slots = [isa.slots[register] for register in isa.abi.callee_saved]
    changed = [slot for slot in slots if outcome.registers[slot] != outcome.registers_before[slot]]
    if changed:
        return f"{isa.registers[changed[0]]} is not kept"
    left = [register for register in isa.abi.zero_on_return if outcome.registers[isa.slots[register]]]
    if left:
        return f"{left[0]} is not zero on return"
    return "the interrupt flag is changed" if (outcome.sreg ^ outcome.sreg_before) & SREG_I else ""


def _memory(places: Places, value: tuple[int, ...], request: simavr.Request, outcome: simavr.Outcome) -> str:
    """What is wrong with the result, or changed beside it."""
    for (name, (_, limbs)), before, after in zip(places.items(), request.memory, outcome.memory, strict=True):
        inside = slice(GUARD, GUARD + limbs)
        if name == "r":
            if int.from_bytes(after[inside], "little") != value[0] * value[-1]:
                return "the result is wrong"
            if after[:GUARD] + after[inside.stop :] != before.data[:GUARD] + before.data[inside.stop :]:
                return "memory beside the result is changed"
        elif after != before.data:
            return f"operand {name} or memory beside it is changed"
    return ""
