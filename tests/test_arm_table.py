"""The table of Cortex-M says what two assemblers and an emulator say: encodings and meanings of every instruction."""

from __future__ import annotations

import functools
import random
import re
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

import pytest
from arm import arm

from sqgen import programs
from sqgen.encode import DecodeError, EncodeError, Instr, decode, encode
from sqgen.interpret import Machine
from sqgen.oracles import OracleMissing, unicorn_arm
from sqgen.statements import Load, Store
from sqgen.table import Core, Insn, Operand, OperandValue

INSNS = sorted(arm().insns)
STRUCTURED = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
FORMS = 60  # of each instruction, besides those with all operands the first or the last
SECOND = ("adds_3", "subs_3", "cmp_r")  # other encodings of what there is a shorter, or an older, one for
SPAN = 0x3000  # bytes of memory that an instruction may touch, from the emulator's RAM on


def pick(operand: Operand, rng: random.Random, place: float) -> OperandValue:
    """A value of an operand: at random, or the one at a `place` from 0 to 1."""
    if operand.cls and operand.kind == "list":
        count = round(operand.least + place * (len(operand.cls.registers) - operand.least))
        chosen = set(rng.sample(operand.cls.registers, count))
        return tuple(register for register in operand.cls.registers if register in chosen)
    if operand.cls:
        return operand.cls.registers[round(place * (len(operand.cls.registers) - 1))]
    low, high, scale = operand.low, operand.high, operand.scale
    if operand.kind == "target":
        return (low + round(place * (-2 * low - 1))) * scale + operand.bias
    return low + round(place * ((high - low) // scale)) * scale


@functools.cache
def forms(name: str) -> tuple[Instr, ...]:
    """The instruction with operands picked at random, the first and the last of each among them."""
    insn, rng = arm().insns[name], random.Random(name)
    places = [[place] * 4 for place in (0.0, 1.0)] + [[rng.random() for _ in range(4)] for _ in range(FORMS)]
    found = [Instr(insn, tuple(pick(o, rng, p) for o, p in zip(insn.operands, each, strict=False))) for each in places]
    return tuple(dict.fromkeys(instr for instr in found if not instr.clash()))


def core_for(insn: Insn) -> Core:
    """The smallest core that has the instruction, so that nothing else is needed."""
    names = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m4.fpu")
    return next(arm().core(name) for name in names if insn.name not in arm().core(name).lacks)


def assembled(lines: Sequence[str], core: Core, assembler: str) -> bytes:
    """The bytes that an assembler makes of some lines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        unit = [".fpu fpv4-sp-d16"] if core.name.endswith(unicorn_arm.FPU) else []
        text = "".join(f"{line}\n" for line in (".syntax unified", ".thumb", *unit, *lines))
        (folder / "code.S").write_text(text)
        programs.assemble(folder / "code.S", folder / "code.o", arm(), core, assembler)
        try:
            copy = ["arm-none-eabi-objcopy", "-O", "binary", "-j", ".text", "code.o", "code.bin"]
            subprocess.run(copy, cwd=folder, check=True)
        except FileNotFoundError:
            raise OracleMissing(
                "arm-none-eabi-objcopy not found; install the Debian package binutils-arm-none-eabi"
            ) from None
        return (folder / "code.bin").read_bytes()


# ---- encoding -------------------------------------------------------------------------------------------------------


@pytest.mark.simulator
@pytest.mark.parametrize("assembler", ["GNU", "LLVM"])
@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m4.fpu"])
def test_every_instruction_is_what_the_assembler_makes_of_its_text(core: str, assembler: str) -> None:
    everything = [
        instr
        for name in INSNS
        for instr in forms(name)
        if core_for(instr.insn).name == core
        and not any(operand.kind == "target" for operand in instr.insn.operands)
        and instr.insn.control[:1] != ("when",)
    ]
    image = assembled([instr.text() for instr in everything], arm().core(core), assembler)
    at = 0
    for instr in everything:
        end = at + instr.insn.size
        assert image[at:end] == encode(instr) or instr.insn.name in SECOND, instr.text()
        at = end
    assert at == len(image)


@pytest.mark.simulator
@pytest.mark.parametrize("name", SECOND)
def test_an_encoding_that_assemblers_do_not_choose_is_disassembled_as_its_text(name: str, tmp_path: Path) -> None:
    found = forms(name)
    (tmp_path / "code.bin").write_bytes(b"".join(encode(instr) for instr in found))
    command = ["arm-none-eabi-objdump", "-D", "-b", "binary", "-m", "arm", "-M", "force-thumb", "code.bin"]
    try:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        message = "arm-none-eabi-objdump not found; install the Debian package binutils-arm-none-eabi"
        raise OracleMissing(message) from None
    rows = re.findall(r"^ +[0-9a-f]+:\t[0-9a-f ]+\t(.*)$", done.stdout, re.MULTILINE)
    texts = [row.split("@")[0].replace("\t", " ").strip() for row in rows]
    for name_of, register in (("ip", "r12"), ("sl", "r10"), ("fp", "r11")):
        texts = [re.sub(rf"\b{name_of}\b", register, text) for text in texts]
    assert texts == [instr.text() for instr in found]


CONDITIONS = [name for name in INSNS if arm().insns[name].control[:1] == ("when",)]


@pytest.mark.simulator
@pytest.mark.parametrize("assembler", ["GNU", "LLVM"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_is_what_the_assembler_makes_of_it(name: str, assembler: str) -> None:
    """Of its text, with as many instructions behind it that have its condition, or the opposite one."""
    insn = arm().insns[name]
    _, flag, *wanted = insn.control
    spelled = {("C", "1"): "cs", ("C", "0"): "cc", ("ZF", "1"): "eq", ("ZF", "0"): "ne"}
    lines = [insn.syntax, *(f"mov{spelled[flag, value]} r0, r1" for value in wanted)]
    image = assembled(lines, arm().core("cortex-m3"), assembler)
    assert image == encode(Instr(insn, ())) + len(wanted) * encode(Instr(arm().insns["mov"], ("r0", "r1")))


@pytest.mark.simulator
@pytest.mark.parametrize("assembler", ["GNU", "LLVM"])
@pytest.mark.parametrize(
    "name",
    [name for name in INSNS if arm().insns[name].operands[-1:] and arm().insns[name].operands[-1].kind == "target"],
)
def test_a_jump_goes_where_the_assembler_says(name: str, assembler: str) -> None:
    """To a label: LLVM takes a distance from `.` for one from the program counter."""
    insn = arm().insns[name]
    for nops in (0, 1, 100):
        forward = [f"{name} there", *["nop"] * nops, "there:"]
        backward = ["there:", *["nop"] * nops, f"{name} there"]
        size = insn.size
        assert assembled(forward, core_for(insn), assembler)[:size] == encode(Instr(insn, (2 * nops,)))
        assert assembled(backward, core_for(insn), assembler)[-size:] == encode(Instr(insn, (-2 * nops - size,)))


@pytest.mark.parametrize("name", INSNS)
def test_what_is_encoded_is_decoded_again(name: str) -> None:
    for instr in forms(name):
        again = decode(arm(), encode(instr), 0)
        assert again == instr or encode(again) == encode(instr), instr.text()


def test_no_short_instruction_begins_a_long_one_and_all_that_is_decoded_encodes_again() -> None:
    long = {encode(instr)[:2] for name in INSNS for instr in forms(name) if instr.insn.size == 4}
    for number in range(1 << 16):
        word = number.to_bytes(2, "little")
        try:
            instr = decode(arm(), word, 0)
        except DecodeError:
            continue
        assert encode(instr) == word
        assert word not in long and number >> 11 < 0b11101


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("adds", ("r8", "r0", "r0")),
        ("ldr", ("r0", "r1", 126)),
        ("ldr", ("r0", "r1", 128)),
        ("umull", ("r1", "r1", "r2", "r3")),
        ("umaal", ("r1", "sp", "r2", "r3")),
        ("ldm", ("r1", ("r0", "r1"))),
        ("ldm", ("r1", ())),
        ("pop_w", (("r4",),)),
        ("pop_w", (("r5", "r4"),)),
        ("push", (("r8", "lr"),)),
        ("push", ("r4",)),
        ("lsls_i", ("r0", "r0", 0)),
        ("b", (1,)),
        ("b", (2050,)),
    ],
)
def test_an_operand_that_its_instruction_cannot_hold_is_refused(name: str, operands: tuple[OperandValue, ...]) -> None:
    with pytest.raises(EncodeError):
        encode(Instr(arm().insns[name], operands))


# ---- meaning --------------------------------------------------------------------------------------------------------


def state(instr: Instr, rng: random.Random) -> unicorn_arm.State:
    """A machine about to execute the instruction.  Pointers lie in RAM where they are used, anywhere otherwise."""
    share = rng.choice((0.0, 0.5, 1.0))
    names = unicorn_arm.REGISTERS
    if core_for(instr.insn).name.endswith(unicorn_arm.FPU):
        names += unicorn_arm.SINGLES
    registers = {name: rng.choice(STRUCTURED) if rng.random() < share else rng.getrandbits(32) for name in names}
    memory = rng.randbytes(SPAN)  # of all: it is seen, too, where the table forgot a store
    if touches_memory(instr):
        for operand, value in zip(instr.insn.operands, instr.operands, strict=True):
            if operand.name == "n" and isinstance(value, str):
                registers[value] = unicorn_arm.RAM + 4 * rng.randrange(0x400, 0x600)
    registers["sp"] = unicorn_arm.RAM + 4 * rng.randrange(0x400, 0x600)
    return unicorn_arm.State(registers, {flag: rng.getrandbits(1) for flag in unicorn_arm.FLAGS}, memory)


def touches_memory(instr: Instr) -> bool:
    return any(isinstance(statement, Load | Store) for statement in instr.insn.statements)


class Ram(Machine):
    """The table's machine, with its memory where the emulator has its own."""

    def inside(self, address: int, size: int) -> int:
        return super().inside(address - unicorn_arm.RAM, size)

    def load(self, address: int) -> int:
        at = self.inside(address, 4)
        return int.from_bytes(self.memory[at : at + 4], "little")

    def store(self, address: int, value: int) -> None:
        at = self.inside(address, 4)
        self.memory[at : at + 4] = value.to_bytes(4, "little")


@pytest.mark.simulator
@pytest.mark.parametrize("name", INSNS)
def test_every_instruction_does_what_the_emulator_does(name: str) -> None:
    isa, rng = arm(), random.Random(name)
    core = core_for(isa.insns[name])
    for instr in forms(name):
        if instr.insn.control:
            continue
        before = state(instr, rng)
        after = unicorn_arm.step(core.name, encode(instr), before)
        machine = Ram(isa, core, SPAN)
        machine.memory[: len(before.memory)] = before.memory
        for place, value in (*before.registers.items(), *before.flags.items()):
            machine.slots[isa.slots[place]] = value
        following = machine.step(encode(instr), 0)
        assert following == instr.insn.size == after.at, instr.text()
        assert {r: machine.slots[isa.slots[r]] for r in before.registers} == dict(after.registers), instr.text()
        assert machine.memory[: len(before.memory)] == after.memory, instr.text()
        for flag in ("C", "ZF"):
            assert machine.slots[isa.slots[flag]] == after.flags[flag], (instr.text(), flag)


@pytest.mark.simulator
def test_the_emulator_of_a_step_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = Instr(arm().insns["nop"], ())
    made = []

    class Weighed(unicorn_arm.Processor):
        def __post_init__(self) -> None:
            super().__post_init__()
            made.append(weakref.ref(self.uc))

    monkeypatch.setattr(unicorn_arm, "Processor", Weighed)
    for _ in range(20):  # a collection of its own may come in the middle of one, so not of all of them
        unicorn_arm.step("cortex-m4", encode(nothing), state(nothing, random.Random(0)))
    assert len(made) == 20 and sum(emulator() is not None for emulator in made) < 2


BRANCHES = [name for name in INSNS if arm().insns[name].control[:1] == ("branch",)]


@pytest.mark.simulator
@pytest.mark.parametrize("name", BRANCHES)
def test_a_branch_is_taken_where_the_emulator_takes_it(name: str) -> None:
    isa, rng = arm(), random.Random(name)
    ends = set()
    for _ in range(16):
        instr = Instr(isa.insns[name], (8,))
        before = state(instr, rng)
        machine = Ram(isa, isa.core("cortex-m0"), SPAN)
        for flag, value in before.flags.items():
            machine.slots[isa.slots[flag]] = value
        end = unicorn_arm.step("cortex-m0", encode(instr) + bytes(32), before).at
        assert machine.step(encode(instr), 0) == end
        ends.add(end)
    assert len(ends) == 2


@pytest.mark.simulator
@pytest.mark.parametrize("name", ["pop_pc", "pop_pcw", "bx"])
def test_a_return_goes_to_the_address_that_the_emulator_goes_to(name: str) -> None:
    isa, rng = arm(), random.Random(name)
    for instr in forms(name):
        before = state(instr, rng)
        target = unicorn_arm.CODE + 0x100 | unicorn_arm.THUMB
        registers, memory = dict(before.registers), bytearray(before.memory)
        if name == "bx":
            registers[str(instr.operands[0])] = target
        else:
            at = registers["sp"] - unicorn_arm.RAM + 4 * len(instr.operands[0])  # type: ignore[arg-type]
            memory[at : at + 4] = target.to_bytes(4, "little")
        before = unicorn_arm.State(registers, before.flags, bytes(memory))
        after = unicorn_arm.step("cortex-m4", encode(instr), before)
        machine = Ram(isa, isa.core("cortex-m4"), SPAN)
        machine.memory[: len(memory)] = memory
        for place, value in registers.items():
            machine.slots[isa.slots[place]] = value
        machine.home = target
        assert machine.step(encode(instr), 0) is None
        assert after.at == 0x100
        assert {r: machine.slots[isa.slots[r]] for r in registers} == dict(after.registers)
