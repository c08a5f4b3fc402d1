"""Code out of object and ELF files: the bytes of one function."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import Exit, UserError
from .table import Isa, nearest

LARGEST = 16 << 20  # bytes of a file that is looked into


@dataclass(frozen=True)
class CodeBytes:
    """A function in its section: `image` is the section, `entry` where the function starts in it (bytes)."""

    symbol: str
    image: bytes
    entry: int


def read(path: Path, isa: Isa, symbol: str | None) -> CodeBytes:
    """The function `symbol`, or the only global one, of an ELF file.  Raises UserError for every broken file."""
    data = _bytes(path)
    from elftools.common.exceptions import ELFError  # noqa: PLC0415  (a heavy import, needed here only)
    from elftools.elf.elffile import ELFFile  # noqa: PLC0415

    try:
        elf = ELFFile(io.BytesIO(data))
        if elf["e_machine"] != isa.elf_machine:
            raise UserError(f"'{path}' is for {elf['e_machine']}, not for {isa.elf_machine} ({isa.name})", Exit.FILE)
        return _function(elf, path, symbol)
    except UserError:
        raise
    except (ELFError, ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError, MemoryError) as error:
        raise UserError(f"'{path}' is a damaged ELF file: {error or type(error).__name__}", Exit.FILE) from None
    except Exception as error:  # pyelftools' parser raises many kinds on truncated files
        raise UserError(f"'{path}' is a damaged ELF file: {type(error).__name__}", Exit.FILE) from None


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
        raise UserError(f"'{path}' is no ELF file; assemble it first, for example with avr-gcc -c", Exit.FILE)
    return data


def _function(elf: Any, path: Path, wanted: str | None) -> CodeBytes:
    """The section and offset of the wanted symbol."""
    table = elf.get_section_by_name(".symtab")
    if table is None:
        raise UserError(f"'{path}' has no symbol table; do not strip it", Exit.FILE)
    found: dict[str, tuple[int, int, int]] = {}
    for symbol in table.iter_symbols():
        index = symbol["st_shndx"]
        if symbol.name and isinstance(index, int) and index < elf.num_sections():
            section = elf.get_section(index)
            executable = section["sh_flags"] & 4 and section["sh_type"] == "SHT_PROGBITS"
            if executable and symbol["st_info"]["bind"] in ("STB_GLOBAL", "STB_WEAK"):
                found[symbol.name] = index, symbol["st_value"], symbol["st_size"]
    name = wanted or _only(found, path)
    if name not in found:
        raise UserError(
            f"'{path}' has no function '{name}'{nearest(name, found) if found else '; it has none'}", Exit.FILE
        )
    index, value, size = found[name]
    section = elf.get_section(index)
    _no_relocations(elf, index, range(value, value + size if size else section["sh_size"]), path)
    image = section.data()
    entry = value - (section["sh_addr"] if elf["e_type"] == "ET_EXEC" else 0)
    if len(image) != section["sh_size"] or not 0 <= entry < len(image):
        raise UserError(f"'{path}' is a damaged ELF file: '{name}' lies outside its section", Exit.FILE)
    return CodeBytes(name, image, entry)


def _only(found: dict[str, tuple[int, int, int]], path: Path) -> str:
    """The only global function of the file."""
    if len(found) != 1:
        names = ", ".join(sorted(found)[:8]) or "none"
        raise UserError(
            f"'{path}' has not one global function but {len(found)} ({names}); choose with --symbol", Exit.FILE
        )
    return next(iter(found))


def _no_relocations(elf: Any, index: int, where: range, path: Path) -> None:
    """Code that a linker will still change is not the code that runs."""
    for section in elf.iter_sections():
        if section["sh_type"] not in ("SHT_RELA", "SHT_REL") or section["sh_info"] != index:
            continue
        if any(relocation["r_offset"] in where for relocation in section.iter_relocations()):
            raise UserError(
                f"'{path}' has relocations in its code, so it is not what will run; link it first", Exit.FILE
            )
