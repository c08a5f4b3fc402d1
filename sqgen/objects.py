"""Code out of object and ELF files: the bytes of one function."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .encode import Instr, decode, encode
from .errors import Exit, UserError
from .table import Isa, nearest

LARGEST = 16 << 20  # bytes of a file that is looked into
MOST = {"sections": 10_000, "symbols": 100_000, "relocations": 100_000}  # of a file; each is looked at
EXECUTABLE = 4  # SHF_EXECINSTR


@dataclass(frozen=True)
class CodeBytes:
    """A function in its section: `image` is the section, `entry` where the function starts in it, `size` its length.

    All in bytes; `size` is 0 where the file does not say.  `relocated` are the places that a linker will still change.
    """

    symbol: str
    image: bytes
    entry: int
    size: int = 0
    relocated: frozenset[int] = field(default=frozenset(), repr=False)

    @property
    def body(self) -> bytes:
        """The function's own bytes: up to its size, or to the end of the section."""
        return self.image[self.entry : self.entry + self.size if self.size else None]


def read(path: Path, isa: Isa, symbol: str | None) -> CodeBytes:
    """The function `symbol`, or the only global one, of an ELF file.  Raises UserError for every broken file."""
    data = _bytes(path)
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415  (a heavy import, needed here only)

    try:
        elf = ELFFile(io.BytesIO(data))
        if elf["e_machine"] != isa.elf_machine:
            raise UserError(f"'{path}' is for {elf['e_machine']}, not for {isa.elf_machine} ({isa.name})", Exit.FILE)
        _require_sound(elf, len(data))
        code = _function(elf, path, symbol, isa)
    except UserError:
        raise
    except Exception as error:  # pyelftools raises exceptions of many kinds on damaged files
        raise UserError(f"'{path}' is a damaged ELF file: {error or type(error).__name__}", Exit.FILE) from None
    if code.relocated.intersection(range(code.entry, code.entry + len(code.body))):
        raise _unlinked(path)
    return code


def require_linked(path: Path, isa: Isa, code: CodeBytes, executed: Iterable[int]) -> None:
    """UserError where executed instructions (offsets from the entry, in bytes) are not yet what will run."""
    for at in executed:
        first = code.entry + at
        if code.relocated.intersection(range(first, first + decode(isa, code.image, first).insn.size)):
            raise _unlinked(path)


def _unlinked(path: Path) -> UserError:
    return UserError(f"'{path}' has relocations in its code, so it is not what will run; link it first", Exit.FILE)


def _bytes(path: Path) -> bytes:
    """The file's contents."""
    try:
        if not path.is_file():
            what = "is a folder" if path.is_dir() else "is no regular file" if path.exists() else "does not exist"
            raise UserError(f"'{path}' {what}; give an object or ELF file", Exit.FILE)
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UserError(f"cannot read '{path}': {error.strerror or error}", Exit.FILE) from None
    if not data:
        raise UserError(f"'{path}' is empty", Exit.FILE)
    if len(data) > LARGEST:
        raise UserError(f"'{path}' is larger than {LARGEST >> 20} MiB", Exit.FILE)
    if data[:4] != b"\x7fELF":
        raise UserError(f"'{path}' is no ELF file; assemble it first", Exit.FILE)
    return data


def _require_sound(elf: Any, size: int) -> None:
    """ValueError where the tables do not lie in the file, so that walking them would not end."""
    if elf["e_type"] not in ("ET_REL", "ET_EXEC", "ET_DYN"):
        raise ValueError("neither an object nor an executable")
    if elf["e_shentsize"] != elf.structs.Elf_Shdr.sizeof():
        raise ValueError("the section headers have a wrong size")
    _require_few("sections", elf.num_sections())
    if elf["e_shoff"] + elf.num_sections() * elf["e_shentsize"] > size:
        raise ValueError("the section headers lie outside the file")
    for section in elf.iter_sections():
        if section["sh_type"] != "SHT_NOBITS" and section["sh_offset"] + section["sh_size"] > size:
            raise ValueError(f"section '{section.name}' lies outside the file")


def _require_few(what: str, count: int) -> None:
    """ValueError for more of something than a file with a kernel has."""
    if count > MOST[what]:
        raise ValueError(f"it has {count} {what}; at most {MOST[what]} are looked at")


def _function(elf: Any, path: Path, wanted: str | None, isa: Isa) -> CodeBytes:
    """The wanted symbol in its section, what the section's own branches leave to a linker done."""
    table = elf.get_section_by_name(".symtab")
    if table is None:
        raise UserError(f"'{path}' has no symbol table; do not strip it", Exit.FILE)
    if table["sh_entsize"] != elf.structs.Elf_Sym.sizeof():
        raise ValueError("the symbols have a wrong size")
    _require_few("symbols", table.num_symbols())
    code = {
        index: section
        for index, section in enumerate(elf.iter_sections())
        if section["sh_flags"] & EXECUTABLE and section["sh_type"] == "SHT_PROGBITS" and not section.compressed
    }
    found = [
        symbol
        for symbol in table.iter_symbols()
        if symbol.name and symbol["st_shndx"] in code and symbol["st_info"]["type"] in ("STT_FUNC", "STT_NOTYPE")
    ]
    symbol = _named(found, path, wanted) if wanted else _only(found, path)
    section = code[symbol["st_shndx"]]
    base = 0 if elf["e_type"] == "ET_REL" else section["sh_addr"]
    image, entry, size = section.data(), symbol["st_value"] - base, symbol["st_size"]
    entry -= entry % isa.code_unit  # a bit that says in which mode to call it
    if not 0 <= entry < len(image) or entry + size > len(image):
        raise ValueError(f"'{symbol.name}' lies outside its section")
    image, relocated = _linked(elf, symbol["st_shndx"], image, base, isa)
    return CodeBytes(symbol.name, image, entry, size, relocated)


def _linked(elf: Any, index: int, image: bytes, base: int, isa: Isa) -> tuple[bytes, frozenset[int]]:
    """The section with jumps within it resolved, and the places of all other relocations."""
    code, left = bytearray(image), set()
    for relocations in elf.iter_sections():
        if relocations["sh_type"] not in ("SHT_RELA", "SHT_REL") or relocations["sh_info"] != index:
            continue
        _require_few("relocations", relocations.num_relocations())
        symbols = elf.get_section(relocations["sh_link"])
        for relocation in relocations.iter_relocations():
            at = relocation["r_offset"] - base
            symbol = symbols.get_symbol(relocation["r_info_sym"])
            own = relocation["r_info_type"] in isa.elf_relative and symbol["st_shndx"] == index
            if not own or not relocation.is_RELA():
                left.add(at)
                continue
            instr = decode(isa, image, at)
            distance = symbol["st_value"] + relocation["r_addend"] - relocation["r_offset"] - instr.insn.size
            operands = tuple(distance if isinstance(value, int) else value for value in instr.operands)
            code[at : at + instr.insn.size] = encode(Instr(instr.insn, operands))
    return bytes(code), frozenset(left)


def _global(symbols: Sequence[Any]) -> list[Any]:
    return [symbol for symbol in symbols if symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK")]


def _named(symbols: Sequence[Any], path: Path, name: str) -> Any:
    """The symbol of that name, a global one before a local one."""
    same = [symbol for symbol in symbols if symbol.name == name]
    same = _global(same) or same
    if not same:
        known = {symbol.name for symbol in _global(symbols)}
        hint = textwrap.shorten(nearest(name, known), 200, placeholder=" ...") if known else "; it has none"
        raise UserError(f"'{path}' has no function '{name}'{hint}", Exit.FILE)
    if len(same) > 1:
        raise UserError(f"'{path}' has {len(same)} local functions '{name}'; make one global", Exit.FILE)
    return same[0]


def _only(symbols: Sequence[Any], path: Path) -> Any:
    """The only global function of the file; labels count where nothing is marked as a function."""
    shared = _global(symbols)
    functions = [symbol for symbol in shared if symbol["st_info"]["type"] == "STT_FUNC"] or shared
    if not functions:
        local = "; name a local one with --symbol" if symbols else ""
        raise UserError(f"'{path}' has no global function{local}", Exit.FILE)
    if len(functions) > 1:
        names = sorted(symbol.name for symbol in functions)
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        raise UserError(f"'{path}' has {len(names)} global functions ({shown}); choose with --symbol", Exit.FILE)
    return functions[0]
