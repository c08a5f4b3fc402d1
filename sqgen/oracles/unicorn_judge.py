"""A kernel in Unicorn: values, registers, stack, memory around the buffers.  It counts no cycles.

The instructions executed and the addresses touched must be the same for all operands.
"""

from __future__ import annotations

import itertools

from sqgen.check import Report
from sqgen.contract import Contract
from sqgen.errors import Exit, UserError
from sqgen.interpret import operands
from sqgen.oracles import OracleFailed, OracleMissing, OracleTooSmall, unicorn_arm
from sqgen.table import Core

GUARD = 64  # bytes looked at on either side of every buffer
STACK = unicorn_arm.RAM + unicorn_arm.RAM_SIZE - GUARD  # a multiple of 8, as the ABI has it
JUNK = 0xA5A5_0000  # what registers hold, plus their number


def run(image: bytes, contract: Contract, core: Core, entry: int, runs: int, *, branches: bool) -> Report:
    """Run a kernel `runs` times.  With `branches` operands may decide on the path, but not on what is touched.

    Raises UserError: the emulator is missing (TOOL), or has no room for the code (LIMITS), or it saw something wrong
    (DISAGREES).
    """
    try:
        return _Judge(image, contract, core, entry).report(runs, branches=branches)
    except OracleMissing as error:
        raise UserError(str(error), Exit.TOOL) from None
    except OracleTooSmall as error:
        raise UserError(f"the emulator cannot run this: {error}", Exit.LIMITS) from None
    except OracleFailed as error:
        raise UserError(f"the emulator cannot run this: {error}", Exit.DISAGREES) from None


class _Judge:
    def __init__(self, image: bytes, contract: Contract, core: Core, entry: int) -> None:
        self.contract, self.entry = contract, entry
        self.cpu = unicorn_arm.Processor(core.name, image)
        self.places: dict[str, tuple[int, int]] = {}  # address and length in bytes of each buffer
        at = unicorn_arm.RAM + GUARD
        for name, limbs in contract.buffers.items():
            self.places[name] = (at, 4 * limbs)
            at += 4 * limbs + GUARD
        self.end = at

    def report(self, runs: int, *, branches: bool) -> Report:
        """What was seen on all runs."""
        paths: dict[tuple[int, ...], None] = {}
        touched: tuple[tuple[str, int], ...] | None = None
        lowest = STACK
        for value in operands(self.contract, runs):
            problem = self.one(value)
            paths.setdefault(tuple(self.cpu.path))
            accesses = tuple(self.cpu.accesses)
            lowest = min([lowest, *(at for _, at in accesses if at > self.end)])
            if not problem and len(paths) > 1 and not branches:
                problem = "its path depends on the operands"
            if not problem and touched not in (None, accesses):
                problem = "what it touches depends on the operands"
            if problem:
                shown = ", ".join(f"{name} = 0x{number:x}" for name, number in zip("ab", value, strict=False))
                raise UserError(f"in Unicorn, {problem}; operands {shown}", Exit.DISAGREES)
            touched = accesses
        return Report("Unicorn", runs, 0, 0, 0, STACK - lowest, len(paths))

    def one(self, value: tuple[int, ...]) -> str:
        """What is wrong with one run, "" if nothing."""
        registers = {name: JUNK + number for number, name in enumerate(unicorn_arm.REGISTERS)}
        registers["sp"] = STACK
        for (at, _), group in zip(self.places.values(), self.contract.isa.abi.arguments, strict=False):
            registers[group[0]] = at
        before = bytearray(k * 37 & 0xFF for k in range(self.end - unicorn_arm.RAM))
        for (at, length), number in zip(list(self.places.values())[1:], value, strict=True):
            start = at - unicorn_arm.RAM
            before[start : start + length] = number.to_bytes(length, "little")
        above = bytes(k * 53 & 0xFF for k in range(GUARD))
        unicorn_arm.call(self.cpu, self.entry, registers, [(unicorn_arm.RAM, bytes(before)), (STACK, above)])
        return self.registers(registers) or self.memory(value, bytes(before), above)

    def registers(self, before: dict[str, int]) -> str:
        """What the run did to registers that it should not have."""
        kept = (*self.contract.isa.abi.callee_saved, "sp")
        changed = [name for name in kept if self.cpu.get(name) != before[name]]
        return f"{changed[0]} is not kept" if changed else ""

    def memory(self, value: tuple[int, ...], before: bytes, above: bytes) -> str:
        """What is wrong with the result, or changed beside it."""
        after = bytes(self.cpu.uc.mem_read(unicorn_arm.RAM, len(before)))
        at, length = self.places["r"]
        first = at - unicorn_arm.RAM
        if int.from_bytes(after[first : first + length], "little") != value[0] * value[-1]:
            return "the result is wrong"
        if bytes(self.cpu.uc.mem_read(STACK, GUARD)) != above:
            return "the caller's stack is changed"
        outside = itertools.chain(range(first), range(first + length, len(before)))
        return "memory beside the result is changed" if any(before[k] != after[k] for k in outside) else ""
