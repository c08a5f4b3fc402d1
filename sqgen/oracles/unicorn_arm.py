"""Unicorn, an emulator made of QEMU, for Cortex-M: values, registers and memory.  It does not model time.

`step` executes one instruction on a given machine, `Function` calls a kernel as C does.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqgen.oracles import OracleFailed, OracleMissing, OracleTooSmall

CODE = 0x0001_0000  # where code lies
CODE_SIZE = 0x10_0000
RAM = 0x2000_0000
RAM_SIZE = 0x1_0000
HOME = CODE + CODE_SIZE - 16  # the caller's return address
STEPS = 1_000_000  # instructions of a call at most
FPU = ".fpu"  # of a core's name: it has a floating point unit, as all models have that may have one
REGISTERS = (*(f"r{number}" for number in range(13)), "sp", "lr")
SINGLES = tuple(f"s{number}" for number in range(16))  # of the floating point unit
FLAGS = {"N": 31, "ZF": 30, "C": 29, "V": 28}  # bits of the program status register
THUMB = 1  # in an address of code; also bit 24 of the status register

# The processors that it knows, for all that they are like.
_MODELS = {
    "cortex-m0": "M0",
    "cortex-m0.small-multiply": "M0",
    "cortex-m0plus": "M0",
    "cortex-m0plus.small-multiply": "M0",
    "cortex-m23": "M0",
    "cortex-m3": "M3",
    "cortex-m4": "M4",
    "cortex-m7": "M7",
    "cortex-m33": "M33",
    "cortex-m55": "M33",
}


@dataclass(frozen=True)
class State:
    """Registers, flags and the memory from `RAM` on; `at`: address of the next instruction less that of the first."""

    registers: Mapping[str, int]
    flags: Mapping[str, int]
    memory: bytes = b""
    at: int = 0


def _unicorn() -> tuple[Any, Any]:
    """Unicorn and its names for ARM.  Raises OracleMissing."""
    try:
        import unicorn  # noqa: PLC0415  (needed here only, and not everywhere installed)
        from unicorn import arm_const  # noqa: PLC0415
    except ImportError:
        raise OracleMissing("unicorn not found; install the Python package unicorn (pip install unicorn)") from None
    return unicorn, arm_const


@dataclass
class Processor:
    """One emulated processor with `image` at `CODE`, and RAM.  Raises OracleMissing, and OracleTooSmall for an image
    that does not fit."""

    core: str
    image: bytes
    accesses: list[tuple[str, int]] = field(default_factory=list)  # ("read" or "write", address)
    path: list[int] = field(default_factory=list)  # offsets of the instructions executed

    def __post_init__(self) -> None:
        unicorn, names = _unicorn()
        if len(self.image) > HOME - CODE:
            raise OracleTooSmall(f"{len(self.image)} bytes of code do not fit in its {HOME - CODE}")
        self.error = unicorn.UcError
        self.uc = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
        self.uc.ctl_set_cpu_model(getattr(names, f"UC_CPU_ARM_CORTEX_{_MODELS[self.core.removesuffix(FPU)]}"))
        self.names = {
            name: getattr(names, f"UC_ARM_REG_{name.upper()}") for name in (*REGISTERS, *SINGLES, "pc", "xpsr")
        }
        self.uc.mem_map(CODE, CODE_SIZE)
        self.uc.mem_map(RAM, RAM_SIZE)
        self.uc.mem_write(CODE, self.image)
        self.uc.hook_add(unicorn.UC_HOOK_CODE, lambda uc, at, size, data: self.path.append(at - CODE))
        access = unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE
        kinds = {unicorn.UC_MEM_READ: "read", unicorn.UC_MEM_WRITE: "write"}
        self.uc.hook_add(access, lambda uc, kind, at, size, value, data: self.accesses.append((kinds[kind], at)))

    def set(self, name: str, value: int) -> None:
        self.uc.reg_write(self.names[name], value)

    def get(self, name: str) -> int:
        return int(self.uc.reg_read(self.names[name]))

    def run(self, start: int, count: int, until: int = HOME) -> None:
        """Execute from an offset in the image, until an address, the caller's return address, or `count` instructions.

        Raises OracleFailed.
        """
        self.accesses.clear()
        self.path.clear()
        try:
            self.uc.emu_start((CODE + start) | THUMB, until, count=count)
        except self.error as error:
            raise OracleFailed(f"{error} at 0x{self.get('pc') - CODE:04x}") from None


def step(core: str, code: bytes, before: State, *, all_of_it: bool = False) -> State:
    """What one instruction, or all of the code, makes of a machine.  Raises OracleMissing, OracleFailed."""
    cpu = Processor(core, code)
    cpu.uc.mem_write(RAM, before.memory)
    for name, value in before.registers.items():
        cpu.set(name, value)
    cpu.set("xpsr", THUMB << 24 | sum(before.flags[flag] << bit for flag, bit in FLAGS.items()))
    cpu.run(0, STEPS if all_of_it else 1, CODE + len(code) if all_of_it else HOME)
    status = cpu.get("xpsr")
    after = State(
        {name: cpu.get(name) for name in before.registers},
        {flag: status >> bit & 1 for flag, bit in FLAGS.items()},
        bytes(cpu.uc.mem_read(RAM, len(before.memory))),
        cpu.get("pc") - CODE,
    )
    del cpu  # an emulator holds itself by its hooks, and 4 MB: thousands of steps would be gigabytes
    gc.collect(0)
    return after


def call(cpu: Processor, entry: int, registers: Mapping[str, int], writes: Sequence[tuple[int, bytes]]) -> None:
    """Call a function with registers set and memory filled.  Raises OracleFailed if it does not return."""
    for address, data in writes:
        cpu.uc.mem_write(address, data)
    for name, value in registers.items():
        cpu.set(name, value)
    cpu.set("lr", HOME | THUMB)
    cpu.run(entry, STEPS)
    if cpu.get("pc") != HOME:
        raise OracleFailed(f"it did not return, and was at 0x{cpu.get('pc') - CODE:04x}")
