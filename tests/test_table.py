"""The table says what the assemblers and the simulator say: encodings, meanings and cycles of every instruction."""

from __future__ import annotations

import functools
import itertools
import random
import subprocess
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import assemble, avr

from sqgen import tables
from sqgen.encode import DecodeError, EncodeError, Instr, decode, encode
from sqgen.interpret import Crash, Machine
from sqgen.oracles import OracleMissing, simavr
from sqgen.statements import Equation, Load, MeaningError, Store, parse
from sqgen.table import Core, Insn, Isa, Operand, TableError

INSNS = sorted(avr().insns)
ASSEMBLERS = ("avr-gcc", "LLVM")


def values(operand: Operand) -> Sequence[str | int]:
    """Everything that an operand can be."""
    if operand.cls:
        return operand.cls.registers
    if operand.kind == "target":
        return range(operand.low * operand.scale, -operand.low * operand.scale, operand.scale)
    return range(operand.low, operand.high + 1)


@functools.cache
def forms(isa: Isa) -> tuple[Instr, ...]:
    """Every instruction with every combination of operands for which it is defined."""
    everything = (
        Instr(insn, operands)
        for insn in isa.insns.values()
        for operands in itertools.product(*map(values, insn.operands))
    )
    return tuple(instr for instr in everything if not undefined(instr))


def undefined(instr: Instr) -> bool:
    """Whether the manual leaves the result open: the register that is moved is part of the pointer that is changed."""
    pointers = [name for name in written(instr.insn) if name in ("X", "Y", "Z")]
    return any(register in avr().wide[name] for name in pointers for register in instr.operands)


def written(insn: Insn) -> list[str]:
    """Names of the places that an instruction changes by an equation."""
    equations = [statement for statement in insn.statements if isinstance(statement, Equation)]
    return [digit.name[:-1] for equation in equations for digit in equation.digits if digit.name.endswith("'")]


# ---- encoding -------------------------------------------------------------------------------------------------------


def assembled(lines: Iterable[str], assembler: str) -> bytes:
    """The bytes that an assembler, then the GNU linker, makes of some lines; away from 0, for targets behind them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "code.S").write_text("".join(f"{line}\n" for line in lines))
        assemble(folder / "code.S", folder / "code.o", assembler)
        try:
            link = ["avr-ld", "-m", "avr51", "-Ttext=0x4000", "-e", "0", "code.o", "-o", "code.elf"]
            subprocess.run(link, cwd=folder, check=True, capture_output=True)
            copy = ["avr-objcopy", "-O", "binary", "-j", ".text", "code.elf", "code.bin"]
            subprocess.run(copy, cwd=folder, check=True)
        except FileNotFoundError:
            raise OracleMissing("avr-ld not found; install the Debian package binutils-avr") from None
        return (folder / "code.bin").read_bytes()


@pytest.mark.simulator
@pytest.mark.parametrize("assembler", ASSEMBLERS)
def test_every_instruction_with_every_operand_is_what_the_assembler_makes_of_its_text(assembler: str) -> None:
    image = assembled((instr.text() for instr in forms(avr())), assembler)
    at = 0
    for instr in forms(avr()):
        end = at + instr.insn.size
        assert image[at:end] == encode(instr), instr.text()
        at = end
    assert at == len(image)


@pytest.mark.simulator
@pytest.mark.parametrize("assembler", ASSEMBLERS)
def test_the_long_spelling_of_an_instruction_that_has_a_short_one_is_the_same_code(assembler: str) -> None:
    short = [instr for instr in forms(avr()) if instr.insn.same and len(set(instr.operands)) == 1]
    assert {instr.text().split()[0] for instr in short} == {"lsl", "rol", "tst", "clr"}
    long = [instr.insn.syntax.format(d=instr.operands[0], r=instr.operands[1]) for instr in short]
    assert assembled(long, assembler) == b"".join(map(encode, short))


def test_what_is_encoded_is_decoded_again() -> None:
    isa = avr()
    for instr in forms(isa):
        assert decode(isa, encode(instr), 0) == instr


def test_every_word_decodes_to_what_encodes_to_it_or_to_nothing() -> None:
    isa = avr()
    made = {encode(instr) for instr in forms(isa)}
    assert len(made) == len(forms(isa))
    for number in range(1 << 16):
        word = number.to_bytes(2, "little")
        matching = [insn for insn in isa.insns.values() if number & insn.mask == insn.fixed]
        if word in made:
            instr = decode(isa, word, 0)
            assert encode(instr) == word
            assert matching == [instr.insn]
        else:
            assert not matching or matching[0].apart  # `ld r26, X+` and its like
            with pytest.raises(DecodeError):
                decode(isa, word, 0)


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("subi", ("r15", 1)),
        ("subi", ("r16", 256)),
        ("subi", ("r16", -1)),
        ("adiw", ("r25", 1)),
        ("adiw", ("r24", 64)),
        ("movw", ("r1", "r2")),
        ("ldd_y", ("r0", 64)),
        ("bst", ("r0", 8)),
        ("add", ("r0", "SPL")),
        ("rjmp", (4096,)),
        ("rjmp", (1,)),
        ("breq", (-130,)),
        ("ld_xp", ("r26",)),
        ("st_my", ("r29",)),
    ],
)
def test_an_operand_that_its_instruction_cannot_hold_is_refused(name: str, operands: tuple[str | int, ...]) -> None:
    with pytest.raises(EncodeError):
        encode(Instr(avr().insns[name], operands))


def contradictions(isa: Isa) -> list[tuple[str, str]]:
    """Pairs of instructions that share a code, of which neither is the other with more bits fixed."""
    return [
        (one.name, other.name)
        for one, other in itertools.combinations(isa.insns.values(), 2)
        if one.bits == other.bits
        and not (one.fixed ^ other.fixed) & one.mask & other.mask
        and (one.mask == other.mask or one.mask & other.mask not in (one.mask, other.mask))
    ]


def test_no_two_instructions_contradict_each_other() -> None:
    assert contradictions(avr()) == []


# ---- meaning --------------------------------------------------------------------------------------------------------

SREG = ("C", "ZF", "N", "V", "S", "H", "T", "I")  # lowest bit first
RAM = range(0x200, 0x400)  # what an instruction may read and write here
STATES = 64  # of each instruction
STRUCTURED = (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF)


@dataclass(frozen=True)
class After:
    """What became of a machine.  `at`: offset of the next instruction, None after a call or return."""

    registers: tuple[int, ...]
    flags: dict[str, int]
    stack_pointer: int
    memory: bytes
    cycles: int
    at: int | None


def instances(insn: Insn, rng: random.Random) -> Iterable[Instr]:
    """The instruction with operands picked at random, the first and the last of each among them."""
    choices = [values(operand) for operand in insn.operands]
    picked = [tuple(choice[0] for choice in choices), tuple(choice[-1] for choice in choices)]
    picked += [tuple(rng.choice(choice) for choice in choices) for _ in range(STATES - 2)]
    return [instr for instr in (Instr(insn, operands) for operands in picked) if not undefined(instr)]


def state(instr: Instr, rng: random.Random) -> simavr.State:
    """A machine about to execute the instruction.  Pointers lie in RAM where they are used, anywhere otherwise."""
    share = rng.choice((0.0, 0.5, 1.0))
    registers = [rng.choice(STRUCTURED) if rng.random() < share else rng.randrange(256) for _ in range(32)]
    if rng.random() < 0.2:
        registers = registers[:1] * 32  # differences of zero
    if any(isinstance(statement, Load | Store) for statement in instr.insn.statements):
        for low in (26, 28, 30):
            registers[low : low + 2] = rng.randrange(RAM.start + 1, RAM.stop - 64).to_bytes(2, "little")
    memory = (simavr.Buffer(RAM.start, rng.randbytes(len(RAM))),)  # of all: it is seen where the table forgot a store
    sp = rng.randrange(RAM.start + 4, RAM.stop - 4)
    return simavr.State(encode(instr), tuple(registers), rng.randrange(256), sp, memory)


def by_the_table(isa: Isa, core: Core, instr: Instr, before: simavr.State) -> After:
    """What the table's meaning makes of a machine."""
    machine = Machine(isa, core, RAM.stop)
    for name, value in zip(isa.registers, before.registers, strict=True):
        machine.slots[isa.slots[name]] = value
    for bit, flag in enumerate(SREG):
        machine.slots[isa.slots[flag]] = before.sreg >> bit & 1
    machine.set_wide(isa.wide["SP"], before.sp)
    for buffer in before.memory:
        machine.memory[buffer.address : buffer.address + len(buffer.data)] = buffer.data
    try:
        at = machine.step(encode(instr), 0)
    except Crash:
        assert instr.insn.control == ("call",)
        at = None
    return After(
        tuple(machine.slots[isa.slots[name]] for name in isa.registers),
        {flag: machine.slots[isa.slots[flag]] for flag in SREG},
        machine.wide(isa.wide["SP"]),
        bytes(machine.memory[RAM.start :]),
        machine.cycles,
        at,
    )


def by_simavr(after: simavr.State) -> After:
    """The same of simavr's answer."""
    assert not after.fault
    return After(
        after.registers,
        {flag: after.sreg >> bit & 1 for bit, flag in enumerate(SREG)},
        after.sp,
        b"".join(buffer.data for buffer in after.memory),
        after.cycles,
        after.pc - simavr.STEP_PC,
    )


def difference(isa: Isa, core: Core, instr: Instr, before: simavr.State, after: simavr.State) -> str:
    """In what the two differ, "" if in nothing that the table says something about."""
    mine, theirs = by_the_table(isa, core, instr, before), by_simavr(after)
    compared = [flag for flag in SREG if flag not in isa.opaque and flag not in instr.insn.clobbers]
    if instr.insn.name == "out_sreg":
        compared = list(SREG)
    wrong = [flag for flag in compared if mine.flags[flag] != theirs.flags[flag]]
    if wrong:
        return f"flag {wrong[0]}"
    if instr.insn.control[:1] in (("call",), ("return",)):  # the table leaves the stack to those who walk the code
        return flow_difference(core, instr, before, after) or ("cycles" if mine.cycles != theirs.cycles else "")
    for what in ("registers", "stack_pointer", "memory", "at", "cycles"):
        if getattr(mine, what) != getattr(theirs, what):
            return what
    return ""


def flow_difference(core: Core, instr: Instr, before: simavr.State, after: simavr.State) -> str:
    """A call pushes `pc_limbs` limbs, its target counts from the next instruction; a return takes them back."""
    pushed = -core.pc_limbs if instr.insn.control == ("call",) else core.pc_limbs
    if after.sp != before.sp + pushed:
        return "stack_pointer"
    following = before.pc + instr.insn.size
    low = min(before.sp, after.sp) + 1 - RAM.start
    if instr.insn.control == ("call",):
        target, address, holder = following + next(iter(instr.immediates.values())), following, after
    else:
        target, address, holder = after.pc, after.pc, before
    stacked = holder.memory[0].data[low : low + core.pc_limbs]  # the program counter in words, highest limb first
    mask = (1 << 8 * core.pc_limbs) - 1
    if int.from_bytes(stacked, "big") != (address // 2) & mask:
        return "memory"
    return "" if after.pc == target else "at"


def differences(isa: Isa, core: Core, names: Iterable[str]) -> dict[str, str]:
    """For each instruction on which table and simavr differ, in what they do and for which state first."""
    rng = random.Random(f"{core.name}")
    instrs = [instr for name in names for instr in instances(isa.insns[name], rng)]
    befores = [state(instr, rng) for instr in instrs]
    afters = simavr.step(core.name, befores)
    found: dict[str, str] = {}
    for instr, before, after in zip(instrs, befores, afters, strict=True):
        what = difference(isa, core, instr, before, after)
        if what:
            found.setdefault(instr.insn.name, f"{what} after `{instr.text()}` from {before}")
    return found


@pytest.mark.simulator
@pytest.mark.parametrize("core", ["atmega128", "atmega2560", "atmega328p"])
def test_every_meaning_and_cycle_count_is_what_simavr_does(core: str) -> None:
    assert differences(avr(), avr().core(core), INSNS) == {}


def test_the_states_tried_use_every_instruction_many_times() -> None:
    rng = random.Random(0)
    counts = Counter(instr.insn.name for name in INSNS for instr in instances(avr().insns[name], rng))
    assert counts.keys() == set(INSNS)
    assert min(counts.values()) >= STATES // 2


# ---- a table that is wrong ------------------------------------------------------------------------------------------


def changed(folder: Path, name: str, old: str, new: str) -> Isa:
    """The table with `old` replaced in the entry of one instruction (its name, as in "insn.adc") only."""
    head, mark, rest = avr().path.read_text().partition(f"[{name}]")
    entry, separator, tail = rest.partition("\n\n")
    assert mark and old in entry, f"{old} is not in {name}"
    path = folder / "avr.toml"
    path.write_text(head + mark + entry.replace(old, new) + separator + tail)
    return tables.load(path)


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("name", "old", "new", "what"),
    [
        ("adc", "+ C", "- C", "registers"),
        ("adc", "+ C", "", "registers"),
        ("sbc", " & ZF", "", "flag ZF"),
        ("add", "zero(d')", "zero(r)", "flag ZF"),
        ("ror", "2^8*C", "2^7*C", "registers"),
        ("asr", "x:7 + 2^7*s:1", "x:6 + 2^6*s:2", "registers"),
        ("bst", "2^b*T'", "2^b*C'", "flag"),
        ("and", "&", "|", "flag ZF"),
        ("ldd_y", "Y + q", "Y - q", "registers"),
        ("ld_mx", "[X']", "[X]", "registers"),
        ("push", "[SP] = r", "[SP + 1] = r", "memory"),
        ("pop", "SP + 1", "SP + 2", "registers"),
        ("out_sreg", "2^6*T' + 2^7*I'", "2^6*I' + 2^7*T'", "flag"),
        ("brcs", "C 1", "C 0", "at"),
        ("breq", "ZF", "C", "at"),
        ("breq", "taken    = 1", "taken    = 0", "cycles"),
        ("rjmp", "target 12 2", "target 12 4", "at"),
        ("mul", "cycles   = 2", "cycles   = 1", "cycles"),
        ("ret", "avre = 4", "avre = 5", "cycles"),
        ("rcall", "avre = 3", "avre = 2", "cycles"),
    ],
)
def test_a_wrong_meaning_or_cycle_count_is_seen(tmp_path: Path, name: str, old: str, new: str, what: str) -> None:
    isa = changed(tmp_path, f"insn.{name}", old, new)
    found = differences(isa, isa.core("atmega128"), [name])
    assert list(found) == [name]
    assert found[name].startswith(what)


@pytest.mark.simulator
def test_a_wrong_encoding_is_seen(tmp_path: Path) -> None:
    isa = changed(tmp_path, "insn.adc", "rd dddd rrrr", "dr rrrr dddd")
    wrong = [instr for instr in forms(isa) if instr.insn.name == "adc" and len(set(instr.operands)) == 2]
    assert assembled((instr.text() for instr in wrong), "avr-gcc") != b"".join(map(encode, wrong))


def test_encodings_that_overlap_are_seen(tmp_path: Path) -> None:
    assert contradictions(changed(tmp_path, "insn.adc", "0001", "0000")) == [("add", "adc")]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("insn.adc", "2^8*C'", "2^7*C'"),
        ("insn.bst", "2^(b+1)*y", "2^(b+2)*y"),
        ("insn.adc", '+ C"', '+ Carry"'),
        ("insn.adc", "d' +", "q' +"),
        ("insn.adc", "gpr inout", "acc inout"),
        ("insn.adc", "rd dddd rrrr", "rd dddd rrrx"),
        ("insn.adc", "rd dddd rrrr", "11 dddd 1111"),
        ("insn.mov", "d' = r", "d' = r ?"),
        ("insn.mov", "d' = r", "d' = "),
        ("insn.mov", "d' = r", "d' = r )"),
        ("insn.mov", "d' = r", "3*d' = r"),
        ("insn.mul", '"C", "ZF"', '"C", "ZG"'),
        ("insn.brcs", "branch C 1", "branch K 1"),
        ("insn.ldi", "0..255", "0..511"),
        ("insn.movw", "pair out", "pair between"),
    ],
)
def test_a_table_that_contradicts_itself_is_not_loaded(tmp_path: Path, name: str, old: str, new: str) -> None:
    with pytest.raises((TableError, MeaningError)) as caught:
        changed(tmp_path, name, old, new)
    assert name.removeprefix("insn.") in str(caught.value) or new in str(caught.value)


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ("{ m0 = 2, m3 = 2 }", "no core that has it needs the cycles of m0"),
        ("{ m4 = 2 }", "no cycles for m3"),
        ("{ m3 = 2, m5 = 3 }", "no core that has it needs the cycles of m5"),
    ],
    ids=["core-without-it", "no-figure", "no-column"],
)
def test_each_figure_is_one_that_some_core_needs(figures: str, says: str) -> None:
    """A figure that nothing uses is one that nothing checks."""
    raw = tomllib.loads((tables.TABLES / "arm.toml").read_text())
    raw["insn"]["mla"]["cycles"] = tomllib.loads(f"cycles = {figures}")["cycles"]
    with pytest.raises(TableError, match=f"instruction mla: {says}"):
        tables._Loader(raw, tables.TABLES / "arm.toml", "changed").isa()


@pytest.mark.parametrize("line", ["d' = r ?", "d' =", "= d", "d' = [X", "d' = zero(r", "2*3' = d", "d' = r r"])
def test_a_meaning_that_cannot_be_read_is_quoted(line: str) -> None:
    with pytest.raises(MeaningError) as caught:
        parse(line)
    assert line in str(caught.value)
