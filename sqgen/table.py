"""An instruction set: registers, cores, ABIs, instructions, as `tables.py` reads them from `isa/<name>.toml`.

Nothing else in sqgen knows a fact about an instruction: syntax, encoding, meaning, cycles and class all come from
the one entry.  `docs/table.md` describes the fields.
"""

from __future__ import annotations

import difflib
import functools
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from .device import Device
from .errors import Exit, UserError
from .statements import Statement


class TableError(ValueError):
    """A table that contradicts itself; a fault of the table, not of the user."""


OperandValue = str | int | tuple[str, ...]  # a register, a number, or a list of registers


@dataclass(frozen=True)
class RegisterClass:
    """Registers an operand may name, in the order of their `codes`; `limbs` consecutive registers each."""

    name: str
    registers: tuple[str, ...]
    codes: tuple[int, ...]
    limbs: int

    def code(self, register: str) -> int:
        """The register's code; ValueError if it is not in the class."""
        return self.codes[self.registers.index(register)]

    def named(self, code: int) -> str | None:
        """The register of that code, None if there is none."""
        return self.registers[self.codes.index(code)] if code in self.codes else None


@dataclass(frozen=True)
class Operand:
    """One operand: a register of a class, an immediate, a branch target, or a list of registers of a class.

    Immediates are low..high in steps of `scale`; targets are counted in units of `scale` bytes from `bias` bytes behind
    the next instruction; a list has at least `least` registers, and a bit for each code.
    """

    name: str
    kind: str  # "register", "immediate", "target" or "list"
    role: str = "in"  # "in", "out" or "inout", for registers
    cls: RegisterClass | None = None
    low: int = 0
    high: int = 0
    scale: int = 1
    bias: int = 0
    least: int = 0


@dataclass(frozen=True)
class Field:
    """Where an operand's code lies in the instruction word: bit positions, most significant first."""

    operand: str
    bits: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Insn:
    """One instruction of the table.

    By timing column: `cycles` alone and not branching, `each` register of a list more, `taken` more for a branch that
    is taken, `chained` right behind an instruction of the same `chain` that does not write what this one reads;
    `variable` are the columns in which they depend on operands.

    `words`: the directive by which files have its code, where an assembler does not know it, else ""; `loads_in`: the
    cycle of it, from 1 on, in which it reads memory.

    `unit`: the isa's `code_unit`; `dot_is_next`: whether `.` means the next instruction; `apart`: operand -> the wide
    register, or other operand, that it must not be part of; `among`: operand -> the list that it must be in; `quiet`:
    whether it leaves flags as they are where it is executed on a condition.
    """

    name: str
    syntax: str
    same: str | None
    operands: tuple[Operand, ...]
    statements: tuple[Statement, ...]
    meaning: tuple[str, ...]
    clobbers: tuple[str, ...]
    apart: Mapping[str, str]
    among: Mapping[str, str]
    quiet: bool
    control: tuple[str, ...]
    bits: int
    unit: int
    dot_is_next: bool
    fixed: int
    mask: int
    fields: tuple[Field, ...]
    cycles: Mapping[str, int]
    each: Mapping[str, int]
    chain: str
    chained: Mapping[str, int]
    taken: Mapping[str, int]
    kind: str
    frame: str
    variable: frozenset[str]
    places: Mapping[str, tuple[int, ...]]
    words: str
    loads_in: int

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self.bits // 8

    @functools.cached_property
    def steady(self) -> bool:
        """Whether its cycles, where it does not branch, are the same whatever stands before it and in its list."""
        return not self.chain and not any(self.each.values())

    def operand(self, name: str) -> Operand:
        return next(operand for operand in self.operands if operand.name == name)


@dataclass(frozen=True)
class Core:
    """One processor: its timing column, the limbs a call pushes, the instructions it lacks.

    `without` is how the table says these, by name or by feature; `answers`: the core for which was searched what is of
    use on this one, "" for the default core; `devices` has the addresses of those that it has; `max_bits`: the largest
    operand that is offered on it; `any_time`: whether instructions may be used there whose cycles depend on operands;
    `brief`: whether interrupts are to be off for a column at a time.
    """

    name: str
    timing: str
    pc_limbs: int
    lacks: frozenset[str]
    without: tuple[str, ...]
    answers: str
    devices: Mapping[str, int] = field(hash=False)
    max_bits: int
    any_time: bool = False
    brief: bool = False


@dataclass(frozen=True)
class Option:
    """What may be asked for by `-p NAME=1`, whatever the method: the core whose name has this `suffix`; `note`: what a
    file's head says of it."""

    name: str
    suffix: str
    note: str


@dataclass(frozen=True)
class Timing:
    """A column of the cycle table: `like` where it says nothing, the simulator that agrees with it ("" for none), and
    what the figures are otherwise called.

    `judge`: the simulator that kernels are tried in, whether or not it counts cycles.
    """

    name: str
    title: str
    like: str
    confirmed: str
    basis: str
    judge: str


@dataclass(frozen=True)
class Assembler:
    """A command line that assembles a `.S` file: a program, or a Python module run as one.

    `names`: cores that it knows by another name.
    """

    name: str
    module: str
    command: tuple[str, ...]
    package: str
    names: Mapping[str, str]


@dataclass(frozen=True)
class Compiler:
    """A compiler to compare with: a command line that makes an ELF file of C, or a module that takes LLVM IR."""

    name: str
    levels: tuple[str, ...]
    command: tuple[str, ...]
    module: str
    triple: str
    package: str


@dataclass(frozen=True)
class Abi:
    """A calling convention: argument registers (low limb first), kept registers, registers zero on return.

    `link`: the register in which a function finds its return address, "" if that is on the stack; `cfi`: whether files
    say how to unwind.
    """

    name: str
    arguments: tuple[tuple[str, ...], ...]
    callee_saved: tuple[str, ...]
    zero_on_return: tuple[str, ...]
    link: str
    cfi: bool

    @property
    def saved(self) -> frozenset[str]:
        """Registers that a function which writes them has to save."""
        return frozenset((*self.callee_saved, self.link))


@dataclass(frozen=True, eq=False)
class Isa:
    """One instruction set.  `slots` are all limb registers, then all flags, then the devices' limbs; `widths`
    their bits.

    `interrupt_delay`: instructions behind the one that turns interrupts off, up to the last before which one may come.

    Encodings are stored in units of `code_unit` bytes, each with its least significant byte first; `comment` opens a
    comment in assembly text.
    """

    name: str
    title: str
    limb_bits: int
    address_limbs: int
    code_unit: int
    comment: str
    max_bits: int
    default_core: str
    template: str
    reserved: tuple[str, ...]
    elf_machine: str
    elf_relative: frozenset[int]
    path: Path
    digest: str
    registers: tuple[str, ...]
    special: tuple[str, ...]
    classes: Mapping[str, RegisterClass]
    wide: Mapping[str, tuple[str, ...]]
    flags: tuple[str, ...]
    opaque: frozenset[str]
    interrupt_enable: str | None
    interrupt_delay: int
    stack_pointer: str
    stack_free: bool
    abi: Abi
    timings: Mapping[str, Timing]
    cores: Mapping[str, Core]
    options: Mapping[str, Option]
    assemblers: tuple[Assembler, ...]
    compilers: tuple[Compiler, ...]
    insns: Mapping[str, Insn]
    devices: Mapping[str, Device]
    slots: Mapping[str, int]
    widths: tuple[int, ...]

    @functools.cached_property
    def jump(self) -> str:
        """The instruction that jumps."""
        return next(name for name, insn in self.insns.items() if insn.control[:1] == ("jump",))

    @functools.cached_property
    def stack_registers(self) -> tuple[str, ...]:
        """Those that hold the stack pointer together, low limb first; none where there is no stack."""
        return self.wide.get(self.stack_pointer, (self.stack_pointer,)) if self.stack_pointer else ()

    @functools.cached_property
    def wipeable(self) -> tuple[str, ...]:
        """Registers, flags and limbs of devices that a function may leave with anything: the others it keeps, and of
        opaque flags no value is known."""
        devices = (name for device in self.devices.values() for name in device.slots)
        kept = {*self.abi.callee_saved, *self.stack_registers, self.interrupt_enable, *self.opaque}
        return tuple(name for name in (*self.registers, *self.special, *self.flags, *devices) if name not in kept)

    def core(self, name: str) -> Core:
        """The core of that name; UserError with the nearest name otherwise."""
        try:
            return self.cores[name]
        except KeyError:
            raise UserError(f"unknown core '{name}' for {self.name}{nearest(name, self.cores)}") from None

    def optional(self, core: str, option: str) -> str:
        """The name of the core with what an option adds to it.  UserError for a core that has none of that."""
        suffix = self.options[option].suffix
        name = core if core.endswith(suffix) else core + suffix
        if name not in self.cores:
            able = ", ".join(each.removesuffix(suffix) for each in self.cores if each.endswith(suffix))
            raise UserError(f"{option}=1 is for cores that may have it: {able}", Exit.LIMITS)
        return name

    def notes(self, core: Core) -> list[str]:
        """What is to be said of the options that a core has."""
        return [option.note for option in self.options.values() if core.name.endswith(option.suffix)]

    def pairs(self) -> dict[str, str]:
        """Low register -> high register of every pair that some instruction takes as one operand."""
        above = dict(itertools.pairwise(self.registers))
        lows = {low for cls in self.classes.values() if cls.limbs == 2 for low in cls.registers}
        return {low: above[low] for low in self.registers if low in lows}

    def cycles(self, insn: Insn, core: Core) -> int:
        """Cycles of one execution on that core, alone, a branch not taken."""
        return self.by_timing(insn.cycles, core)

    def by_timing(self, figures: Mapping[str, int], core: Core) -> int:
        """The figure of a core's timing column."""
        timing = core.timing
        while timing not in figures:
            timing = self.timings[timing].like
        return figures[timing]

    def on(self, core: Core) -> list[Insn]:
        """The instructions that a core has."""
        return [insn for insn in self.insns.values() if insn.name not in core.lacks]

    def chained(self, core: Core) -> bool:
        """Whether loads that follow each other take less time than loads that do not."""
        loads = [insn for insn in self.on(core) if insn.kind == "load" and insn.chain]
        return any(self.by_timing(insn.chained, core) < self.cycles(insn, core) for insn in loads)

    def constant_time(self, insn: Insn, core: Core) -> bool:
        """Whether its cycles on that core are the same for all operands."""
        return core.timing not in insn.variable

    def allowed(self, insn: Insn, core: Core) -> bool:
        """Whether it may be used on that core as far as its cycles are concerned."""
        return core.any_time or self.constant_time(insn, core)

    def at_any_time(self, core: Core) -> Core:
        """The core with what it has of instructions whose cycles depend on operands; itself, if there are none."""
        constant = all(self.constant_time(insn, core) for insn in self.on(core))
        return core if constant else replace(core, any_time=True)

    def require(self, core: Core, insns: Iterable[str]) -> None:
        """UserError if the core lacks one of these instructions, or has none of the devices that others have."""
        for name in insns:
            if name in core.lacks:
                raise UserError(
                    f"{core.name} has no {name.upper()} instruction; choose a core that has one (see `sqgen cores`)",
                    Exit.LIMITS,
                )
        if self.devices and not core.devices:
            titles = " nor ".join(device.title for device in self.devices.values())
            raise UserError(
                f"{core.name} has {'neither' if len(self.devices) > 1 else 'not'} {titles};"
                " choose a core that has one (see `sqgen cores`)",
                Exit.LIMITS,
            )


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or a list of what there is."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(names)}"
