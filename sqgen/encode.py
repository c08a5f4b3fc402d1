"""Operations to bytes and back, by the table's encoding patterns."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .meaning import Meaning
from .statements import count_of
from .table import Insn, Isa, Operand, OperandValue


class EncodeError(ValueError):
    """An operand that its instruction cannot hold."""


class DecodeError(ValueError):
    """Bytes that are no instruction of the table."""


@dataclass(frozen=True)
class Instr:
    """One machine instruction: a table entry and its operands, in table order (registers by name)."""

    insn: Insn
    operands: tuple[OperandValue, ...]

    @functools.cached_property
    def immediates(self) -> dict[str, int]:
        """Immediate operands, and the lengths of lists, by name."""
        found: dict[str, int] = {}
        for operand, value in zip(self.insn.operands, self.operands, strict=True):
            if isinstance(value, int):
                found[operand.name] = value
            elif isinstance(value, tuple):
                found[count_of(operand.name)] = len(value)
        return found

    def places(self, isa: Isa) -> dict[str, tuple[int, ...]]:
        """Slots of every name in the instruction's meaning."""
        cached: dict[str, tuple[int, ...]] | None = self.__dict__.get("_places")
        if cached is None:
            cached = dict(self.insn.places)
            for operand, value in zip(self.insn.operands, self.operands, strict=True):
                if isinstance(value, str) and operand.cls:
                    first = isa.slots[value]
                    cached[operand.name] = tuple(range(first, first + operand.cls.limbs))
                elif isinstance(value, tuple):
                    cached[operand.name] = tuple(isa.slots[register] for register in value)
            self.__dict__["_places"] = cached
        return cached

    def meaning(self, isa: Isa) -> Meaning:
        """What it does, ready to run."""
        cached: Meaning | None = self.__dict__.get("_meaning")
        if cached is None:
            cached = Meaning(self.insn.statements, self.places(isa), self.immediates, isa.widths)
            self.__dict__["_meaning"] = cached
        return cached

    def text(self) -> str:
        """Assembly syntax."""
        values: dict[str, object] = {}
        for operand, value in zip(self.insn.operands, self.operands, strict=True):
            values[operand.name] = ", ".join(value) if isinstance(value, tuple) else value
            if operand.kind == "target" and isinstance(value, int):
                values[operand.name] = f".{value if self.insn.dot_is_next else value + self.insn.size:+d}"
        if self.insn.same and len(set(self.operands)) == 1:
            return self.insn.same.format(**values)
        return self.insn.syntax.format(**values)

    def clash(self) -> str:
        """The operand for which the table leaves the instruction undefined, "" if there is none."""
        if self.insn.apart:
            named = {operand.name: value for operand, value in zip(self.insn.operands, self.operands, strict=True)}
            for name, other in self.insn.apart.items():
                value, beside = str(named[name]), named.get(other)
                if beside is None:
                    clashing = self.insn.places[value][0] in self.insn.places[other]
                else:
                    clashing = value in (beside if isinstance(beside, tuple) else (beside,))
                if clashing:
                    return value
        for name, other in self.insn.among.items():
            named = {operand.name: value for operand, value in zip(self.insn.operands, self.operands, strict=True)}
            registers = named[other]
            if isinstance(registers, tuple) and named[name] not in registers:
                return str(named[name])
        return ""


def _code(operand: Operand, value: OperandValue, bits: int) -> int:
    """The number that stands for `value` in a field of `bits` bits."""
    if operand.cls:
        names = value if isinstance(value, tuple) else (str(value),)
        if isinstance(value, tuple) != (operand.kind == "list") or not set(names) <= set(operand.cls.registers):
            raise EncodeError(f"{value} is not of class {operand.cls.name}")
        codes = [operand.cls.code(name) for name in names]
        if operand.kind != "list":
            return codes[0]
        if codes != sorted(set(codes)) or len(codes) < operand.least:
            raise EncodeError(f"{', '.join(names)} are not {operand.least} or more registers in order")
        return sum(1 << code for code in codes)
    assert isinstance(value, int)
    if operand.kind == "target":
        number, rest = divmod(value - operand.bias, operand.scale)
        if rest or not operand.low <= number < -operand.low:
            raise EncodeError(f"target {value:+d} is out of reach")
        return number & ((1 << bits) - 1)
    if not operand.low <= value <= operand.high or (value - operand.low) % operand.scale:
        steps = f" in steps of {operand.scale}" if operand.scale > 1 else ""
        raise EncodeError(f"{value} is not in {operand.low}..{operand.high}{steps}")
    return value // operand.scale


def _value(operand: Operand, code: int, bits: int) -> OperandValue | None:
    """The operand that `code` stands for, None for a code that is not in use; the inverse of `_code`."""
    if operand.cls and operand.kind == "list":
        found = [operand.cls.named(index) for index in range(bits) if code >> index & 1]
        names = tuple(name for name in found if name)
        return names if len(found) == len(names) >= operand.least else None
    if operand.cls:
        return operand.cls.named(code)
    if operand.kind == "target":
        return (code - (1 << bits) if code >> (bits - 1) else code) * operand.scale + operand.bias
    value = code * operand.scale + operand.low % operand.scale
    return value if operand.low <= value <= operand.high else None


def encode(instr: Instr) -> bytes:
    """The bytes of one instruction.  Raises EncodeError for an operand out of range."""
    insn = instr.insn
    if instr.clash():
        raise EncodeError(f"{insn.name} is undefined for {instr.clash()}")
    word = insn.fixed
    for field in insn.fields:
        index = next(k for k, operand in enumerate(insn.operands) if operand.name == field.operand)
        code = _code(insn.operands[index], instr.operands[index], len(field.bits))
        for place, position in enumerate(reversed(field.bits)):
            word |= (code >> place & 1) << position
    unit = 8 * insn.unit
    chunks = [word >> shift & ((1 << unit) - 1) for shift in range(insn.bits - unit, -1, -unit)]
    return b"".join(chunk.to_bytes(insn.unit, "little") for chunk in chunks)


@functools.cache
def _patterns(isa: Isa) -> list[tuple[int, int, dict[int, list[Insn]]]]:
    """(length, mask, {fixed bits: instructions}), longest and most specific first; operands say which one it is."""
    groups: dict[tuple[int, int], dict[int, list[Insn]]] = {}
    for insn in isa.insns.values():
        groups.setdefault((insn.bits, insn.mask), {}).setdefault(insn.fixed, []).append(insn)
    ordered = sorted(groups, key=lambda key: (-key[0], -key[1].bit_count()))
    return [(bits, mask, groups[bits, mask]) for bits, mask in ordered]


@functools.cache
def _lengths(isa: Isa) -> tuple[int, ...]:
    """The lengths of instructions that there are, in bits."""
    return tuple(sorted({insn.bits for insn in isa.insns.values()}))


@functools.lru_cache(maxsize=1 << 16)
def _decode_word(isa: Isa, word: int, bits: int) -> Instr | None:
    for length, mask, insns in _patterns(isa):
        found = insns.get(word & mask, ()) if length == bits else ()
        for insn in found:
            operands = [_operand(insn, operand, word) for operand in insn.operands]
            instr = Instr(insn, tuple(operand for operand in operands if operand is not None))
            if None not in operands and not instr.clash():
                return instr
        if found:
            return None
    return None


def _operand(insn: Insn, operand: Operand, word: int) -> OperandValue | None:
    """The operand in an instruction word, None if its code stands for nothing."""
    field = next(field for field in insn.fields if field.operand == operand.name)
    code = functools.reduce(lambda code, position: code << 1 | word >> position & 1, field.bits, 0)
    return _value(operand, code, len(field.bits))


@functools.lru_cache(maxsize=1 << 16)
def decode(isa: Isa, image: bytes, address: int) -> Instr:
    """The instruction at `address` (in bytes) of `image`.  Raises DecodeError."""
    for bits in _lengths(isa):
        end = address + bits // 8
        if end > len(image):
            break
        word, unit = 0, isa.code_unit
        for at in range(address, end, unit):
            word = word << 8 * unit | int.from_bytes(image[at : at + unit], "little")
        instr = _decode_word(isa, word, bits)
        if instr:
            return instr
    if address + isa.code_unit > len(image):
        raise DecodeError("the code runs past its end")
    raise DecodeError(f"unknown instruction 0x{image[address : address + isa.code_unit][::-1].hex()}")


def disassemble(isa: Isa, image: bytes) -> Iterator[tuple[int, Instr]]:
    """(address, instruction) through straight code.  Raises DecodeError."""
    address = 0
    while address < len(image):
        instr = decode(isa, image, address)
        yield address, instr
        address += instr.insn.size


def assemble(instrs: Sequence[Instr]) -> bytes:
    """The bytes of a list of instructions."""
    made = {(instr.insn.name, instr.operands): instr for instr in instrs}
    words = {key: encode(instr) for key, instr in made.items()}  # most of them stand there more than once
    return b"".join(words[instr.insn.name, instr.operands] for instr in instrs)
