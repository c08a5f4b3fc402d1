"""Inputs for `tools/fuzz.py`: kernels of an instruction set as object file and manifest, and what damage can be done to
them.

An input is a byte that chooses a command line, the length of a manifest, the manifest and the object file.  Damage
knows where headers, symbols, relocations and instructions lie (ELF, 32 bits, little-endian, as all objects here are),
and the fields of a manifest; everything else is the fuzzer's own.
"""

from __future__ import annotations

import json
import random
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqgen import emit, programs
from sqgen import kernel as kernel_module
from sqgen.encode import DecodeError, EncodeError, decode, encode
from sqgen.kernel import Kernel
from sqgen.mutants import alterations
from sqgen.spec import spec
from sqgen.table import Isa
from sqgen.tables import isa

SYMBOL = "k"
COMMANDS = ("prove", "verify", "check")
FILES = ("k.o", "k.json")
# What is made: instruction set -> core, operation, bits, method; with loops, calls, masks and relocations among them.
SEEDS: Mapping[str, Sequence[tuple[str, str, int, str]]] = {
    "avr": (
        ("atmega128", "sqr", 16, "product-scanning"),
        ("atmega128", "mul", 16, "operand-scanning"),
        ("atmega128", "sqr", 32, "sbd"),
        ("atmega128", "sqr", 32, "karatsuba-squaring"),
        ("atmega128", "mul", 32, "karatsuba"),
    ),
    "arm": (
        ("cortex-m4", "sqr", 64, "product-scanning"),
        ("cortex-m4", "mul", 64, "rows"),
        ("cortex-m3", "sqr", 64, "product-scanning"),
        ("cortex-m0", "sqr", 64, "auto"),
        ("cortex-m0", "mul", 64, "auto"),
        ("cortex-m4", "mul", 64, "row-loops"),
    ),
    "msp430": (
        ("msp430", "sqr", 32, "product-scanning"),
        ("msp430", "mul", 32, "rows"),
        ("msp430x-mpy32", "sqr", 64, "auto"),
        ("msp430x", "mul", 32, "auto"),
        ("msp430", "mul", 48, "column-loops"),
    ),
}
MORE = ("", " --allow-branches", " --allow-variable-time")
LARGE = (0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 0x34, 0x7FFF, 0xFF00, 0xFFF1, 0xFFFF, *LARGE)


@dataclass(frozen=True)
class Input:
    """What a command is given: which of its lines, and the two files."""

    line: int
    manifest: bytes
    object: bytes

    def packed(self) -> bytes:
        return bytes([self.line]) + struct.pack("<I", len(self.manifest)) + self.manifest + self.object

    @staticmethod
    def unpacked(data: bytes) -> Input:
        """Any bytes are an input."""
        head = data[:5].ljust(5, b"\0")
        length = struct.unpack("<I", head[1:])[0]
        return Input(head[0], data[5 : 5 + length], data[5 + length :])


# ---- seeds ----------------------------------------------------------------------------------------------------------


def kernels(name: str) -> Iterator[Kernel]:
    """The kernels of the list."""
    for core, op, bits, method in SEEDS[name]:
        yield kernel_module.make(spec(name, bits, op=op, method=method, core=core, symbol=SYMBOL))


def seeds(name: str) -> list[Input]:
    """An input for each kernel.  Raises UserError without an assembler."""
    found: list[Input] = []
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "k.S", Path(folder) / "k.o"
        for made in kernels(name):
            source.write_text(emit.assembly(made))
            programs.assemble(source, target, isa(name), made.spec.core)
            found.append(Input(len(MORE) * len(found), emit.manifest_text(made).encode(), target.read_bytes()))
    return found


def lines(name: str, command: str) -> list[str]:
    """The command lines that an input chooses among: each kernel's own, and as many other ones as `MORE` has."""
    if command == "verify":
        return ["verify k.json k.o"]
    jobs = [(made.spec.core.name, made.spec.contract) for made in kernels(name)]
    asked = [
        f"--isa {name} --core {core} --op {what.op} --bits {what.limbs * what.isa.limb_bits}" for core, what in jobs
    ]
    if command == "prove":
        return [f"prove k.o {words}{more}" for words in asked for more in MORE]
    ways = ("", " {}", " {} --allow-branches")  # as the manifest says, or as the line does
    return [f"check k.o --runs 2{way.format(words)}" for words in asked for way in ways]


# ---- damage ---------------------------------------------------------------------------------------------------------

HEADER = [(16, 2), (18, 2), *((at, 4) for at in range(20, 40, 4)), *((at, 2) for at in range(40, 52, 2))]
SECTION = [(at, 4) for at in range(0, 40, 4)]
SYMBOLS = [(0, 4), (4, 4), (8, 4), (12, 1), (13, 1), (14, 2)]
RELOCATION = [(0, 4), (4, 4), (8, 4)]
TABLES = {2: (16, SYMBOLS), 9: (8, RELOCATION[:2]), 4: (12, RELOCATION)}  # by sh_type: size of an entry, its fields


def sections(data: bytes | bytearray) -> list[tuple[int, tuple[int, ...]]]:
    """Where each section header lies, and its ten words; [] where there are none."""
    if len(data) < 52:
        return []
    first, size, count = struct.unpack_from("<I", data, 32)[0], *struct.unpack_from("<HH", data, 46)
    places = range(first, first + size * min(count, 100), size) if size >= 40 else range(0)
    return [(at, struct.unpack_from("<10I", data, at)) for at in places if at + 40 <= len(data)]


def put(data: bytearray, at: int, size: int, rng: random.Random) -> None:
    """Another number in a field: a special one, one near, or one bit changed."""
    if at + size > len(data):
        return
    old, top = int.from_bytes(data[at : at + size], "little"), (1 << 8 * size) - 1
    step, bit = rng.choice((-4, -2, -1, 1, 2, 4)), 1 << rng.randrange(8 * size)
    near = (old + step, old ^ bit, len(data), rng.getrandbits(8 * size))
    data[at : at + size] = (rng.choice((*NUMBERS, *near)) & top).to_bytes(size, "little")


def header(data: bytearray, rng: random.Random, which: Isa) -> None:
    put(data, *rng.choice(HEADER), rng)


def section(data: bytearray, rng: random.Random, which: Isa) -> None:
    if found := sections(data):
        at, size = rng.choice(SECTION)
        put(data, rng.choice(found)[0] + at, size, rng)


def entry(data: bytearray, rng: random.Random, which: Isa) -> None:
    """A field of a symbol or of a relocation."""
    if found := [words for _, words in sections(data) if words[1] in TABLES]:
        words = rng.choice(found)
        size, fields = TABLES[words[1]]
        at, width = rng.choice(fields)
        put(data, words[4] + size * rng.randrange(max(1, words[5] // size)) + at, width, rng)


def code(data: bytearray, rng: random.Random, which: Isa) -> None:
    """Instructions: near ones of the table, any of the table, moved, or words that may be none."""
    found = [words[4:6] for _, words in sections(data) if words[2] & 4 and words[5] and sum(words[4:6]) <= len(data)]
    if not found:
        return
    first, length = rng.choice(found)
    at = first + rng.randrange(0, length, which.code_unit)
    image = bytes(data[first : first + length])
    new = rng.choice(WORDS)(image, at - first, rng, which)
    end = min(at + len(new), len(data))
    data[at:end] = new[: end - at]


def near(image: bytes, at: int, rng: random.Random, which: Isa) -> bytes:
    """What the instruction there may be mistaken for; b"" where that is no instruction."""
    try:
        others = [other for _, other in alterations(which, decode(which, image, at))]
        return encode(rng.choice(others)) if others else b""
    except (DecodeError, EncodeError):
        return b""


def any_insn(image: bytes, at: int, rng: random.Random, which: Isa) -> bytes:
    """An instruction of the table with any operands."""
    insn = rng.choice(list(which.insns.values()))
    word = insn.fixed | rng.getrandbits(insn.bits) & ~insn.mask
    unit = 8 * insn.unit
    return b"".join(
        (word >> shift & (1 << unit) - 1).to_bytes(insn.unit, "little") for shift in range(insn.bits - unit, -1, -unit)
    )


def moved(image: bytes, at: int, rng: random.Random, which: Isa) -> bytes:
    """A piece of the code from elsewhere."""
    start = rng.randrange(0, len(image), which.code_unit)
    return image[start : start + which.code_unit * rng.choice((1, 1, 2, 8))]


def noise(image: bytes, at: int, rng: random.Random, which: Isa) -> bytes:
    return rng.randbytes(which.code_unit)


WORDS: Sequence[Callable[[bytes, int, random.Random, Isa], bytes]] = (near, near, any_insn, moved, noise)


def cut(data: bytearray, rng: random.Random, which: Isa) -> None:
    """A shorter or a longer file."""
    if rng.random() < 0.5:
        del data[rng.randrange(len(data) + 1) :]
    else:
        data += rng.randbytes(rng.choice((1, 40, 1000)))


Damage = Callable[[bytearray, random.Random, Isa], None]
DAMAGE: Sequence[Damage] = (header, section, entry, *[code] * 4, cut)
WORDS_SAID = ("", "k", "avr", "\0", "\ud800", "a" * 300)
PARTS: Sequence[object] = ([], {}, [[]], [[0, 1]], [[1, 0]], ["r0"], {"": ""}, {"mpy_base": "0x0200"}, {"a": [[-9, 9]]})
VALUES: Sequence[object] = (None, True, 0, 1, -1, 8, 1 << 31, 1 << 64, 10**400, 1.5, 1e308, *WORDS_SAID, *PARTS)


def said(text: bytes, rng: random.Random) -> bytes:
    """A manifest with a field changed, or gone; where it is none, it stays."""
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError):
        return text
    holder: Any = manifest
    while isinstance(holder, dict) and holder:
        name = rng.choice(sorted(holder))
        if isinstance(holder[name], dict) and rng.random() < 0.7:
            holder = holder[name]
            continue
        if rng.random() < 0.15:
            del holder[name]
        else:
            holder[name] = other(holder[name], rng)
        break
    return json.dumps(manifest).encode()


def other(value: object, rng: random.Random) -> object:
    """Another value for a field."""
    if isinstance(value, int) and rng.random() < 0.4:
        return value + rng.choice((-8, -2, -1, 1, 2, 8, 32))
    if isinstance(value, str) and rng.random() < 0.3:
        return value[: rng.randrange(len(value) + 1)]
    return rng.choice(VALUES)


def damaged(given: Input, command: str, rng: random.Random, which: Isa) -> Input:
    """An input with one to three things changed."""
    data, manifest, line = bytearray(given.object), given.manifest, given.line
    for _ in range(rng.choice((1, 1, 2, 3))):
        if command != "prove" and rng.random() < 0.4:
            manifest = said(manifest, rng)
        elif rng.random() < 0.05:
            line = rng.randrange(256)
        else:
            rng.choice(DAMAGE)(data, rng, which)
    return Input(line, manifest, bytes(data))
