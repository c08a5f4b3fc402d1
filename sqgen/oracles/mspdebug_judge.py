"""A kernel in mspdebug's simulator: values, registers, interrupt flag, stack, memory around the buffers.

The instructions executed and the cycles must be as many for all operands.  Its cycles are not reported: see `mspdebug`.
"""

from __future__ import annotations

import itertools

from sqgen.check import Report
from sqgen.contract import Contract
from sqgen.encode import DecodeError
from sqgen.errors import Exit, UserError
from sqgen.interpret import Crash, Run, follow, operands
from sqgen.oracles import OracleFailed, OracleMissing, interpreter_judge, mspdebug
from sqgen.table import Core

GUARD = 64  # bytes looked at on either side of every buffer, and above the stack
STACK = 1024  # bytes; operands copied once more and a product take 700
HERE = 0x130  # where the simulator has the multiplier
JUNK = 0xA500  # what registers hold, plus their number
FEW, PER_PRODUCT = 10_000, 100  # instructions of a call at most, beside products of limbs and for each
ALLOWED = 8  # the bit of the status register that allows interrupts


def run(image: bytes, contract: Contract, core: Core, entry: int, runs: int, *, branches: bool) -> Report:
    """Run a kernel `runs` times; in the interpreter where the multiplier is not at the simulator's place.

    Raises UserError: the simulator is missing (TOOL), or has no room for the code (LIMITS), or it saw something wrong
    (DISAGREES).
    """
    if HERE not in core.devices.values():
        return interpreter_judge.run(image, contract, core, entry, runs, branches=branches)
    room = mspdebug.END - mspdebug.CODE
    if len(image) > room:
        raise UserError(f"mspdebug cannot run this: {len(image)} bytes of code, it has room for {room}", Exit.LIMITS)
    if not _ends(image, contract, core, entry):
        raise UserError("mspdebug is not asked: the code does not return in the table's interpreter", Exit.DISAGREES)
    try:
        return _Judge(image, contract, entry).report(runs)
    except OracleMissing as error:
        raise UserError(str(error), Exit.TOOL) from None
    except OracleFailed as error:
        raise UserError(f"mspdebug cannot run this: {error}", Exit.DISAGREES) from None


def _ends(image: bytes, contract: Contract, core: Core, entry: int) -> bool:
    """Whether a call comes to some end, where the simulator would run on and on until it is stopped."""
    longest = FEW + PER_PRODUCT * contract.limbs**2
    call = Run(contract, core)
    call.start(next(operands(contract, 1)))
    try:
        return sum(1 for _ in itertools.islice(follow(call.machine, image, entry), longest)) < longest
    except (Crash, DecodeError):
        return True


class _Judge:
    def __init__(self, image: bytes, contract: Contract, entry: int) -> None:
        self.image, self.contract, self.entry = image, contract, entry
        self.places: dict[str, tuple[int, int]] = {}  # offset in memory and length in bytes of each buffer
        at = GUARD
        for name, limbs in contract.buffers.items():
            self.places[name] = (at, 2 * limbs)
            at += 2 * limbs + GUARD
        self.stack = at + STACK  # where the return address lies

    def report(self, runs: int) -> Report:
        """What was seen on all runs."""
        given = list(operands(self.contract, runs))
        calls = [self.call(values) for values in given]
        lowest = self.stack
        seen: set[tuple[int, int]] = set()
        for values, before, after in zip(given, calls, mspdebug.run(self.image, self.entry, calls), strict=True):
            seen.add((after.instructions, after.cycles))
            problem = self.problem(values, before, after)
            if not problem and len(seen) > 1:
                problem = "its time depends on the operands"
            if problem:
                shown = ", ".join(f"{name} = 0x{number:x}" for name, number in zip("ab", values, strict=False))
                raise UserError(f"in mspdebug, {problem}; operands {shown}", Exit.DISAGREES)
            below = range(self.stack - STACK + GUARD, self.stack)
            lowest = min([lowest, *(k & ~1 for k in below if before.memory[k] != after.memory[k])])
        return Report("mspdebug", runs, 0, 0, 0, self.stack - lowest, 1)

    def call(self, values: tuple[int, ...]) -> mspdebug.Call:
        """Junk everywhere, the operands in their buffers, the arguments in their registers."""
        registers = {name: JUNK + number for number, name in enumerate(mspdebug.REGISTERS)}
        registers["sp"] = mspdebug.RAM + self.stack
        for (at, _), group in zip(self.places.values(), self.contract.isa.abi.arguments, strict=False):
            registers[group[0]] = mspdebug.RAM + at
        memory = bytearray((k * 37 + sum(values)) & 0xFF for k in range(self.stack + 2 + GUARD))
        memory[self.stack : self.stack + 2] = mspdebug.HALT.to_bytes(2, "little")
        for (at, length), number in zip(list(self.places.values())[1:], values, strict=True):
            memory[at : at + length] = number.to_bytes(length, "little")
        return mspdebug.Call(registers, bytes(memory))

    def problem(self, values: tuple[int, ...], before: mspdebug.Call, after: mspdebug.After) -> str:
        """What is wrong with one run, "" if nothing."""
        at, length = self.places["r"]
        if int.from_bytes(after.memory[at : at + length], "little") != values[0] * values[-1]:
            return "the result is wrong"
        kept = [name for name in self.contract.isa.abi.callee_saved if name in before.registers]
        changed = [name for name in kept if after.registers[name] != before.registers[name]]
        if changed:
            return f"{changed[0]} is not kept"
        if after.registers["sp"] != before.registers["sp"] + 2:
            return "the stack pointer is not kept"
        if not after.status & ALLOWED:
            return "interrupts are not allowed again"
        changed_at = [k for k in range(len(before.memory)) if before.memory[k] != after.memory[k]]
        beside = [k for k in changed_at if not at <= k < at + length and not self.stack - STACK <= k < self.stack]
        if beside:
            return "memory beside the result is changed"
        deep = any(self.stack - STACK <= k < self.stack - STACK + GUARD for k in changed_at)
        return f"more than {STACK - GUARD} bytes of stack are written" if deep else ""
