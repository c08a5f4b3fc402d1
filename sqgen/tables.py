"""Reads the table of an instruction set, `isa/<name>.toml`, and refuses one that contradicts itself."""

from __future__ import annotations

import functools
import hashlib
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from . import device
from .errors import UserError
from .meaning import Meaning
from .places import folder
from .statements import MeaningError, count_of, parse
from .table import (
    Abi,
    Assembler,
    Compiler,
    Core,
    Field,
    Insn,
    Isa,
    Operand,
    Option,
    RegisterClass,
    TableError,
    Timing,
    nearest,
)

TABLES = folder("isa")
ROLES = ("in", "out", "inout")
HOLE = "_"


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


def _register_class(name: str, names: Sequence[str], limbs: int) -> RegisterClass:
    """A class of registers; `HOLE` stands where a code stands for none."""
    codes = tuple(code for code, register in enumerate(names) if register != HOLE)
    return RegisterClass(name, tuple(names[code] for code in codes), codes, limbs)


class _Loader:
    """Turns the TOML document into an Isa."""

    def __init__(self, raw: dict[str, Any], path: Path, digest: str) -> None:
        self.raw, self.path, self.digest = raw, path, digest
        self.registers = _expand(raw["registers"]["gpr"])
        self.special = _expand(raw["registers"].get("special", []))
        self.flags = (*raw["flags"]["tracked"], *raw["flags"].get("opaque", ()))
        names = (*self.registers, *self.special, *self.flags)
        self.devices = device.read(raw.get("devices", {}))
        states = [name for each in self.devices.values() for name in each.slots]
        self.slots = {name: index for index, name in enumerate((*names, *states))}
        limb = raw["limb_bits"]
        self.widths = tuple(1 if name in self.flags else limb for name in self.slots)
        self.wide = {name: tuple(parts) for name, parts in raw.get("wide", {}).items()}
        self.classes = {
            name: _register_class(name, _expand(entry["registers"]), entry.get("limbs", 1))
            for name, entry in raw["classes"].items()
        }
        self.timings = {
            name: Timing(
                name,
                entry["title"],
                entry.get("like", ""),
                entry["confirmed"],
                entry.get("basis", "model"),
                entry.get("judge", entry["confirmed"]),
            )
            for name, entry in raw["timing"].items()
        }

    def isa(self) -> Isa:
        raw = self.raw
        ((abi_name, abi),) = raw["abi"].items()
        cores = {
            name: Core(
                name,
                entry["timing"],
                entry.get("pc_limbs", 0),
                self.lacks[name],
                tuple(entry.get("lacks", ())),
                entry.get("answers", ""),
                entry.get("devices", {}),
                entry.get("max_bits", raw["max_bits"]),
            )
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
            reserved=tuple(raw.get("reserved", ())),
            elf_machine=raw["elf_machine"],
            elf_relative=frozenset(raw.get("elf_relative", ())),
            path=self.path,
            digest=self.digest,
            registers=self.registers,
            special=self.special,
            classes=self.classes,
            wide=self.wide,
            flags=self.flags,
            opaque=frozenset(raw["flags"].get("opaque", ())),
            interrupt_enable=raw["flags"].get("interrupt_enable"),
            interrupt_delay=raw["flags"].get("interrupt_delay", 0),
            stack_pointer=stack.get("pointer", ""),
            stack_free=stack.get("free", False),
            abi=Abi(
                abi_name,
                tuple(tuple(group) for group in abi["arguments"]),
                _expand(abi["callee_saved"]),
                tuple(abi.get("zero_on_return", ())),
                abi.get("link", ""),
                abi.get("cfi", False),
            ),
            timings=self.timings,
            cores=cores,
            options={
                name: Option(name, entry["suffix"], entry["note"]) for name, entry in raw.get("options", {}).items()
            },
            assemblers=tuple(
                Assembler(
                    entry["name"],
                    entry.get("module", ""),
                    tuple(entry["command"]),
                    entry["package"],
                    entry.get("names", {}),
                )
                for entry in raw.get("assemblers", ())
            ),
            compilers=tuple(
                Compiler(
                    name=entry["name"],
                    levels=tuple(entry["levels"]),
                    command=tuple(entry.get("command", ())),
                    module=entry.get("module", ""),
                    triple=entry.get("triple", ""),
                    package=entry["package"],
                )
                for entry in raw.get("compilers", ())
            ),
            insns={name: self.insn(name, entry) for name, entry in raw["insn"].items()},
            devices=self.devices,
            slots=self.slots,
            widths=self.widths,
        )

    @functools.cached_property
    def lacks(self) -> dict[str, frozenset[str]]:
        """The instructions that each core lacks, which are named one by one or by the feature they belong to."""
        features = {name: entry.get("feature", "") for name, entry in self.raw["insn"].items()}
        found = {}
        for core, entry in self.raw["cores"].items():
            words = set(entry.get("lacks", ()))
            unknown = words - features.keys() - set(features.values())
            if unknown:
                raise TableError(f"a core lacks {', '.join(sorted(unknown))}, which is neither instruction nor feature")
            found[core] = frozenset(name for name, feature in features.items() if name in words or feature in words)
        return found

    def figures(self, insn: str, given: int | dict[str, int]) -> dict[str, int]:
        """Figures by timing column, where one number stands for all: of the columns of cores that have the instruction.

        TableError where a column that one of them needs is not there, or one that none of them needs is.
        """
        needed = {entry["timing"] for name, entry in self.raw["cores"].items() if insn not in self.lacks[name]}
        if isinstance(given, int):
            return dict.fromkeys(needed, given)
        used = set()
        for column in sorted(needed):
            likes = [column]
            while likes[-1] not in given:
                like = self.timings[likes[-1]].like
                if not like or like in likes:
                    raise TableError(f"instruction {insn}: no cycles for {column}")
                likes.append(like)
            used.add(likes[-1])
        if unused := given.keys() - used:
            raise TableError(f"instruction {insn}: no core that has it needs the cycles of {min(unused)}")
        return given

    def insn(self, name: str, entry: dict[str, Any]) -> Insn:
        operands = tuple(self.operand(name, letter, text) for letter, text in entry.get("operands", {}).items())
        bits, fixed, mask, fields = _encoding(name, entry["encoding"], operands)
        lines = tuple(entry.get("meaning", ()))
        statements = tuple(parse(line) for line in lines)
        return Insn(
            name=name,
            syntax=entry["syntax"],
            same=entry.get("same"),
            operands=operands,
            statements=statements,
            meaning=lines,
            clobbers=tuple(entry.get("clobbers", ())),
            apart=entry.get("apart", {}),
            among=entry.get("among", {}),
            quiet=bits == self.raw.get("quiet_bits") and entry["class"] != "compare",
            control=tuple(entry.get("control", "").split()),
            bits=bits,
            unit=self.raw["code_unit"],
            dot_is_next=self.raw.get("dot_is_next", True),
            fixed=fixed,
            mask=mask,
            fields=fields,
            cycles=self.figures(name, entry.get("cycles", 1)),
            each=self.figures(name, entry.get("each", 0)),
            chain=entry.get("chain", ""),
            chained=self.figures(name, entry.get("chained", entry.get("cycles", 1))),
            taken=self.figures(name, entry.get("taken", 0)),
            kind=entry["class"],
            frame=entry.get("frame", ""),
            variable=frozenset(entry.get("variable_time", ())),
            places=self.places(),
            words=entry.get("words", ""),
            loads_in=entry.get("loads_in", 1),
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
            bits, scale, bias = (int(word) for word in (*words[1:], "0")[:3])
            return Operand(name, "target", low=-(1 << (bits - 1)), scale=scale, bias=bias)
        if ".." in words[0]:
            ends, _, step = words[0].partition(":")
            low, high = (int(end) for end in ends.split(".."))
            return Operand(name, "immediate", low=low, high=high, scale=int(step or 1))
        kind, least = "register", 0
        if words[0] == "list":
            kind, least = "list", int(words[3])
            words = words[1:]
        if words[0] not in self.classes:
            raise TableError(f"instruction {insn}: operand {name} names the unknown class {words[0]}")
        if words[1] not in ROLES:
            raise TableError(f"instruction {insn}: operand {name} is none of {', '.join(ROLES)}")
        return Operand(name, kind, words[1], self.classes[words[0]], least=least)


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


def _codes(operand: Operand) -> int:
    """How many codes an operand needs."""
    if operand.cls:
        codes = max(operand.cls.codes) + 1
        return 1 << codes if operand.kind == "list" else codes
    if operand.kind == "target":
        return -2 * operand.low
    return operand.high // operand.scale + 1


def _check(insn: Insn, isa: Isa) -> None:
    """Raise TableError where an entry contradicts itself or the rest of its table."""

    def refuse(what: str) -> NoReturn:
        raise TableError(f"instruction {insn.name}: {what}")

    if insn.bits % (8 * insn.unit):
        refuse(f"{insn.bits} bits are no whole number of units of {insn.unit} bytes")
    for flag in (*insn.clobbers, *(insn.control[1:2] if insn.control[:1] in {("branch",), ("when",)} else ())):
        if flag not in isa.flags:
            refuse(f"{flag} is no flag")
    if insn.control[:1] == ("return",) and isa.abi.link and len(insn.control) < 2:
        refuse("it does not say which register has the return address")
    for field in insn.fields:
        operand = insn.operand(field.operand)
        if _codes(operand) > 1 << len(field.bits):
            refuse(f"{len(field.bits)} bits do not hold operand {operand.name}")
    if unknown := insn.variable - isa.timings.keys():
        refuse(f"no cycles for {min(unknown)}")
    try:
        for end in ("low", "high"):
            _execute_once(insn, isa, end)
    except MeaningError as error:
        refuse(str(error))
    except KeyError as error:
        refuse(f"its meaning names {error.args[0]!r}, which it does not have")


def _execute_once(insn: Insn, isa: Isa, end: str) -> None:
    """Execute the meaning on zeros, immediates at their lowest or highest, to see that names and digits fit."""
    places = dict(insn.places)
    immediates: dict[str, int] = {}
    for operand in insn.operands:
        if operand.cls:
            first = isa.slots[operand.cls.registers[0]]
            places[operand.name] = tuple(range(first, first + operand.cls.limbs))
            immediates[count_of(operand.name)] = 1
        else:
            immediates[operand.name] = getattr(operand, end)
    Meaning(insn.statements, places, immediates, isa.widths).run(_Zeros())


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
