"""An instruction set read from its table `isa/<family>.toml`: registers, cores, ABIs, instructions.

Nothing else in sqgen knows a fact about an instruction: syntax, encoding, meaning, cycles and class all come from
the one entry.  `docs/table.md` describes the fields.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import itertools
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from . import meaning
from .errors import Exit, UserError
from .places import folder

TABLES = folder("isa")
ROLES = ("in", "out", "inout")


class TableError(ValueError):
    """A table that contradicts itself; a fault of the table, not of the user."""


@dataclass(frozen=True)
class RegisterClass:
    """Registers an operand may name, in the order of their codes; `limbs` consecutive registers each."""

    name: str
    registers: tuple[str, ...]
    limbs: int


@dataclass(frozen=True)
class Operand:
    """One operand: a register of a class, an immediate low..high, or a branch target of `bits` x `scale` bytes."""

    name: str
    kind: str  # "register", "immediate" or "target"
    role: str = "in"  # "in", "out" or "inout", for registers
    cls: RegisterClass | None = None
    low: int = 0
    high: int = 0
    scale: int = 1


@dataclass(frozen=True)
class Field:
    """Where an operand's code lies in the instruction word: bit positions, most significant first."""

    operand: str
    bits: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Insn:
    """One instruction of the table.

    `unit`: the isa's `code_unit`; `apart`: operand -> the wide register that it must not be part of.
    """

    name: str
    syntax: str
    same: str | None
    operands: tuple[Operand, ...]
    statements: tuple[meaning.Statement, ...]
    meaning: tuple[str, ...]
    clobbers: tuple[str, ...]
    apart: Mapping[str, str]
    control: tuple[str, ...]
    bits: int
    unit: int
    fixed: int
    mask: int
    fields: tuple[Field, ...]
    cycles: Mapping[str, int]
    taken: int
    kind: str
    frame: str
    constant_time: bool
    places: Mapping[str, tuple[int, ...]]

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self.bits // 8

    def operand(self, name: str) -> Operand:
        return next(operand for operand in self.operands if operand.name == name)


@dataclass(frozen=True)
class Core:
    """One processor: its timing column, the limbs a call pushes, the instructions it lacks."""

    name: str
    timing: str
    pc_limbs: int
    lacks: tuple[str, ...]


@dataclass(frozen=True)
class Timing:
    """A column of the cycle table: `like` where it says nothing, the simulator that agrees with it ("" for none)."""

    name: str
    title: str
    like: str
    confirmed: str


@dataclass(frozen=True)
class Assembler:
    """A command line that assembles a `.S` file: a program, or a Python module run as one."""

    name: str
    module: str
    command: tuple[str, ...]
    package: str


@dataclass(frozen=True)
class Abi:
    """A calling convention: argument registers (low limb first), kept registers, registers zero on return."""

    name: str
    arguments: tuple[tuple[str, ...], ...]
    callee_saved: tuple[str, ...]
    zero_on_return: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Isa:
    """One instruction set.  `slots` are all limb registers, then all flags; `widths` their bits.

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
    elf_machine: str
    path: Path
    digest: str
    registers: tuple[str, ...]
    special: tuple[str, ...]
    classes: Mapping[str, RegisterClass]
    wide: Mapping[str, tuple[str, ...]]
    flags: tuple[str, ...]
    opaque: frozenset[str]
    interrupt_enable: str | None
    stack_pointer: str
    stack_free: bool
    abi: Abi
    timings: Mapping[str, Timing]
    cores: Mapping[str, Core]
    assemblers: tuple[Assembler, ...]
    insns: Mapping[str, Insn]
    slots: Mapping[str, int]
    widths: tuple[int, ...]

    def core(self, name: str) -> Core:
        """The core of that name; UserError with the nearest name otherwise."""
        try:
            return self.cores[name]
        except KeyError:
            raise UserError(f"unknown core '{name}' for {self.name}{nearest(name, self.cores)}") from None

    def pairs(self) -> dict[str, str]:
        """Low register -> high register of every pair that some instruction takes as one operand."""
        above = dict(itertools.pairwise(self.registers))
        lows = {low for cls in self.classes.values() if cls.limbs == 2 for low in cls.registers}
        return {low: above[low] for low in self.registers if low in lows}

    def cycles(self, insn: Insn, core: Core) -> int:
        """Cycles of one execution on that core, a branch not taken."""
        timing = core.timing
        while timing not in insn.cycles:
            timing = self.timings[timing].like
        return insn.cycles[timing]

    def require(self, core: Core, insns: Iterable[str]) -> None:
        """UserError if the core lacks one of these instructions."""
        for name in insns:
            if name in core.lacks:
                raise UserError(
                    f"{core.name} has no {name.upper()} instruction; choose a core that has one (see `sqgen cores`)",
                    Exit.LIMITS,
                )


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, or a list of what there is."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"; did you mean '{close[0]}'?" if close else f"; known: {', '.join(names)}"


def isa_names() -> list[str]:
    """Names of the instruction sets there are tables for."""
    return sorted(path.stem for path in TABLES.glob("*.toml"))


def isa(name: str) -> Isa:
    """The instruction set of that name; UserError with the nearest name otherwise."""
    if name not in isa_names():
        raise UserError(f"unknown ISA '{name}'{nearest(name, isa_names())}")
    return load(TABLES / f"{name}.toml")


@functools.cache
def load(path: Path) -> Isa:
    """Read a table.  Raises TableError where it contradicts itself."""
    text = path.read_bytes()
    isa = _Loader(tomllib.loads(text.decode()), path, hashlib.sha256(text).hexdigest()).isa()
    for insn in isa.insns.values():
        _check(insn, isa)
    return isa


def _expand(ranges: str | list[str]) -> tuple[str, ...]:
    """`"r24-r31:2"` -> r24, r26, r28, r30; lists are joined."""
    if isinstance(ranges, list):
        return tuple(name for part in ranges for name in _expand(part))
    match = re.fullmatch(r"([A-Za-z]+)(\d+)-\1(\d+)(?::(\d+))?", ranges)
    if not match:
        return (ranges,)
    prefix, first, last, step = match.groups()
    return tuple(f"{prefix}{number}" for number in range(int(first), int(last) + 1, int(step or 1)))


class _Loader:
    """Turns the TOML document into an Isa."""

    def __init__(self, raw: dict[str, Any], path: Path, digest: str) -> None:
        self.raw, self.path, self.digest = raw, path, digest
        self.registers = _expand(raw["registers"]["gpr"])
        self.special = tuple(raw["registers"].get("special", ()))
        self.flags = (*raw["flags"]["tracked"], *raw["flags"].get("opaque", ()))
        names = (*self.registers, *self.special, *self.flags)
        self.slots = {name: index for index, name in enumerate(names)}
        limb = raw["limb_bits"]
        self.widths = tuple(1 if name in self.flags else limb for name in names)
        self.wide = {name: tuple(parts) for name, parts in raw.get("wide", {}).items()}
        self.classes = {
            name: RegisterClass(name, _expand(entry["registers"]), entry.get("limbs", 1))
            for name, entry in raw["classes"].items()
        }
        self.timings = {
            name: Timing(name, entry["title"], entry.get("like", ""), entry["confirmed"])
            for name, entry in raw["timing"].items()
        }

    def isa(self) -> Isa:
        raw = self.raw
        ((abi_name, abi),) = raw["abi"].items()
        cores = {
            name: Core(name, entry["timing"], entry.get("pc_limbs", 0), tuple(entry.get("lacks", ())))
            for name, entry in raw["cores"].items()
        }
        stack = raw.get("stack", {})
        return Isa(
            name=raw["name"],
            title=raw["title"],
            limb_bits=raw["limb_bits"],
            address_limbs=raw["address_limbs"],
            code_unit=raw["code_unit"],
            comment=raw["comment"],
            max_bits=raw["max_bits"],
            default_core=raw["default_core"],
            template=raw["template"],
            elf_machine=raw["elf_machine"],
            path=self.path,
            digest=self.digest,
            registers=self.registers,
            special=self.special,
            classes=self.classes,
            wide=self.wide,
            flags=self.flags,
            opaque=frozenset(raw["flags"].get("opaque", ())),
            interrupt_enable=raw["flags"].get("interrupt_enable"),
            stack_pointer=stack.get("pointer", ""),
            stack_free=stack.get("free", False),
            abi=Abi(
                abi_name,
                tuple(tuple(group) for group in abi["arguments"]),
                _expand(abi["callee_saved"]),
                tuple(abi.get("zero_on_return", ())),
            ),
            timings=self.timings,
            cores=cores,
            assemblers=tuple(
                Assembler(entry["name"], entry.get("module", ""), tuple(entry["command"]), entry["package"])
                for entry in raw.get("assemblers", ())
            ),
            insns={name: self.insn(name, entry) for name, entry in raw["insn"].items()},
            slots=self.slots,
            widths=self.widths,
        )

    def insn(self, name: str, entry: dict[str, Any]) -> Insn:
        operands = tuple(self.operand(name, letter, text) for letter, text in entry.get("operands", {}).items())
        bits, fixed, mask, fields = _encoding(name, entry["encoding"], operands)
        cycles = entry.get("cycles", 1)
        if isinstance(cycles, int):
            cycles = dict.fromkeys(self.timings, cycles)
        lines = tuple(entry.get("meaning", ()))
        statements = tuple(meaning.parse(line) for line in lines)
        return Insn(
            name=name,
            syntax=entry["syntax"],
            same=entry.get("same"),
            operands=operands,
            statements=statements,
            meaning=lines,
            clobbers=tuple(entry.get("clobbers", ())),
            apart=entry.get("apart", {}),
            control=tuple(entry.get("control", "").split()),
            bits=bits,
            unit=self.raw["code_unit"],
            fixed=fixed,
            mask=mask,
            fields=fields,
            cycles=cycles,
            taken=entry.get("taken", 0),
            kind=entry["class"],
            frame=entry.get("frame", ""),
            constant_time=entry.get("constant_time", True),
            places=self.places(),
        )

    @functools.cache  # noqa: B019  (one loader lives as long as its table)
    def places(self) -> dict[str, tuple[int, ...]]:
        """Slots of every name that a meaning may use without its being an operand."""
        places: dict[str, tuple[int, ...]] = {name: (slot,) for name, slot in self.slots.items()}
        places.update({name: tuple(self.slots[part] for part in parts) for name, parts in self.wide.items()})
        return places

    def operand(self, insn: str, name: str, text: str) -> Operand:
        words = text.split()
        if words[0] == "target":
            return Operand(name, "target", low=-(1 << (int(words[1]) - 1)), scale=int(words[2]))
        if ".." in words[0]:
            low, high = words[0].split("..")
            return Operand(name, "immediate", low=int(low), high=int(high))
        if words[0] not in self.classes:
            raise TableError(f"instruction {insn}: operand {name} names the unknown class {words[0]}")
        if words[1] not in ROLES:
            raise TableError(f"instruction {insn}: operand {name} is none of {', '.join(ROLES)}")
        return Operand(name, "register", words[1], self.classes[words[0]])


def _encoding(name: str, text: str, operands: tuple[Operand, ...]) -> tuple[int, int, int, tuple[Field, ...]]:
    """(bits, fixed bits, mask of fixed bits, fields) of an encoding pattern, most significant bit first."""
    pattern = text.replace(" ", "")
    bits = len(pattern)
    fixed = mask = 0
    where: dict[str, list[int]] = {}
    for index, letter in enumerate(pattern):
        position = bits - 1 - index
        if letter in "01":
            mask |= 1 << position
            fixed |= int(letter) << position
        else:
            where.setdefault(letter, []).append(position)
    if set(where) != {operand.name for operand in operands}:
        raise TableError(f"instruction {name}: the encoding's letters are not its operands")
    return bits, fixed, mask, tuple(Field(letter, tuple(found)) for letter, found in where.items())


def _check(insn: Insn, isa: Isa) -> None:
    """Raise TableError where an entry contradicts itself or the rest of its table."""

    def refuse(what: str) -> NoReturn:
        raise TableError(f"instruction {insn.name}: {what}")

    if insn.bits % (8 * insn.unit):
        refuse(f"{insn.bits} bits are no whole number of units of {insn.unit} bytes")
    for flag in (*insn.clobbers, *insn.control[1:2]):
        if flag not in isa.flags:
            refuse(f"{flag} is no flag")
    for field in insn.fields:
        operand = insn.operand(field.operand)
        codes = len(operand.cls.registers) if operand.cls else operand.high - operand.low + 1
        if operand.kind == "target":
            codes = -2 * operand.low
        if codes > 1 << len(field.bits):
            refuse(f"{len(field.bits)} bits do not hold operand {operand.name}")
    for timing in isa.timings.values():
        if timing.name not in insn.cycles and timing.like not in insn.cycles:
            refuse(f"no cycles for {timing.name}")
    try:
        for end in ("low", "high"):
            _execute_once(insn, isa, end)
    except meaning.MeaningError as error:
        refuse(str(error))
    except KeyError as error:
        refuse(f"its meaning names {error.args[0]!r}, which it does not have")


def _execute_once(insn: Insn, isa: Isa, end: str) -> None:
    """Execute the meaning on zeros, immediates at their lowest or highest, to see that names and digits fit."""
    places = dict(insn.places)
    for operand in insn.operands:
        if operand.cls:
            first = isa.slots[operand.cls.registers[0]]
            places[operand.name] = tuple(range(first, first + operand.cls.limbs))
    immediates = {operand.name: getattr(operand, end) for operand in insn.operands if not operand.cls}
    meaning.execute(insn.statements, places, immediates, isa.widths, _Zeros())


class _Zeros:
    """The domain in which every value is 0."""

    def read(self, slot: int) -> int:
        return 0

    def write(self, slot: int, value: int) -> None:
        pass

    def constant(self, value: int) -> int:
        return 0

    def linear(self, terms: Sequence[tuple[int, int]]) -> int:
        return 0

    def product(self, left: int, right: int) -> int:
        return 0

    def digits(self, value: int, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]) -> Sequence[int]:
        return [0] * len(widths)

    def logic(self, op: str, left: int, right: int) -> int:
        return 0

    def load(self, address: int) -> int:
        return 0

    def store(self, address: int, value: int) -> None:
        pass

    def zero(self, value: int, also: int | None) -> int:
        return 0
