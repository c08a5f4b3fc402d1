"""Run code on numbers, by the table's meaning lines.

Memory is a byte array; flags that an instruction leaves undefined, and registers that nobody has written, hold
whatever the caller put there.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from . import timing
from .bus import Misuse, connect
from .contract import Contract
from .encode import DecodeError, Instr, decode
from .table import Core, Isa

STEPS = 2_000_000  # instructions that a call executes at most
PLAIN = 6  # operands of one limb again and again
GAP = 64  # bytes between buffers
STACK = 4096  # bytes; the deepest kernels, of 4096 bits, take a third
LOGIC = {"^": operator.xor, "&": operator.and_, "|": operator.or_}


class Crash(Exception):
    """The code left the bytes it was given, its memory, or did not end."""


class Endless(Crash):
    """The code executed more instructions than it was given."""


class Machine:
    """A processor: `slots` are registers and flags in the table's order, `memory` bytes from address 0."""

    def __init__(self, isa: Isa, core: Core, memory_bytes: int) -> None:
        self.isa, self.core = isa, core
        self.bus = connect(isa, core)
        self.slots = [0] * len(isa.slots)
        self.memory = bytearray(memory_bytes)
        self.cycles = 0
        self.before: Instr | None = None  # the instruction that was executed last
        self.stack = isa.stack_registers
        self.frames: dict[int, tuple[int, bytes]] = {}  # by stack pointer: where a return goes, what stands there
        self.home = 0  # the return address in the link register
        self.links: list[tuple[int, int]] = []  # of calls that have not returned: what the link register held, where to
        self.conditions: tuple[tuple[str, int], ...] = ()  # of the next instructions: flag, value it must have

    # ---- the domain of `Meaning.run` ------------------------------------------------------------------------

    def read(self, slot: int) -> int:
        return self.slots[slot]

    def write(self, slot: int, value: int) -> None:
        self.slots[slot] = value

    def constant(self, value: int) -> int:
        return value

    def linear(self, terms: Sequence[tuple[int, int]]) -> int:
        total = 0
        for coefficient, value in terms:
            total += coefficient * value
        return total

    def product(self, left: int, right: int) -> int:
        return left * right

    def digits(self, value: int, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]) -> list[int]:
        found = []
        for width, sign in zip(widths, signs, strict=True):
            found.append(sign * value & ((1 << width) - 1))
            value = (value - sign * found[-1]) >> width
        return found

    def logic(self, op: str, left: int, right: int) -> int:
        return int(LOGIC[op](left, right))

    def load(self, address: int) -> int:
        if self.bus and address < self.bus.top:
            return int(self.bus.load(address, self))
        size = self.isa.limb_bits // 8
        return int.from_bytes(self.memory[self.limb(address) : address + size], "little")

    def store(self, address: int, value: int) -> None:
        if self.bus and address < self.bus.top:
            self.bus.store(address, value, self)
            return
        size = self.isa.limb_bits // 8
        self.memory[self.limb(address) : address + size] = value.to_bytes(size, "little")

    def zero(self, value: int, also: int | None) -> int:
        return int(value == 0 and also != 0)

    def limb(self, address: int) -> int:
        """The address of a limb in the memory.  Raises Crash, also between two limbs, where cores fault or read
        another one."""
        size = self.isa.limb_bits // 8
        if address % size:
            raise Crash(f"address 0x{address:x} is no multiple of {size}")
        return self.inside(address, size)

    def inside(self, address: int, size: int) -> int:
        if not 0 <= address <= len(self.memory) - size:
            raise Crash(f"address 0x{address:x} is outside the memory")
        return address

    # ---- running ------------------------------------------------------------------------------------------------

    def set_wide(self, names: Sequence[str], value: int) -> None:
        """Put a number into registers, low limb first."""
        for index, name in enumerate(names):
            self.slots[self.isa.slots[name]] = value >> (index * self.isa.limb_bits) & ((1 << self.isa.limb_bits) - 1)

    def wide(self, names: Iterable[str]) -> int:
        return number((self.slots[self.isa.slots[name]] for name in names), self.isa.limb_bits)

    def fill(self, seed: int) -> None:
        """Put junk everywhere but where the ABI promises zero: code must not rely on what it finds."""
        rng = random.Random(seed)
        self.slots = [rng.getrandbits(width) for width in self.isa.widths]
        self.memory[:] = rng.randbytes(len(self.memory))
        for register in self.isa.abi.zero_on_return:
            self.slots[self.isa.slots[register]] = 0
        self.home = self.wide(filter(None, [self.isa.abi.link]))

    def step(self, image: bytes, at: int) -> int | None:
        """Execute the instruction at `at`; the next one's offset, None for a return."""
        instr = decode(self.isa, image, at)
        insn = instr.insn
        if insn.name in self.core.lacks:
            raise Crash(f"{self.core.name} has no {insn.name}")
        self.cycles += timing.cost(self.isa, self.core, instr, self.before)
        self.before = instr
        following = at + insn.size
        if self.conditions:
            self.conditional(instr)
            return following
        self.execute(instr)
        if insn.control[:1] == ("when",):
            self.conditions = tuple((insn.control[1], int(wanted)) for wanted in insn.control[2:])
        if insn.control[:1] in {(), ("when",)}:
            return following
        if insn.control[0] == "return":
            return (
                self.follow(self.slots[instr.places(self.isa)[insn.control[1]][0]])
                if insn.control[1:]
                else self.leave()
            )
        target = following + next(iter(instr.immediates.values()))
        if insn.control[0] == "call":
            self.enter(following)
            return target
        if insn.control[0] == "branch" and self.slots[self.isa.slots[insn.control[1]]] != int(insn.control[2]):
            return following
        self.cycles += self.isa.by_timing(insn.taken, self.core)
        return target

    def conditional(self, instr: Instr) -> None:
        """Execute an instruction if its condition holds.  Raises Crash."""
        (flag, wanted), *rest = self.conditions
        self.conditions = tuple(rest)
        if instr.insn.control:
            raise Crash("a jump on a condition")
        if self.slots[self.isa.slots[flag]] == wanted:
            flags = {name: self.slots[self.isa.slots[name]] for name in self.isa.flags if instr.insn.quiet}
            self.execute(instr)
            for name, value in flags.items():
                self.slots[self.isa.slots[name]] = value

    def execute(self, instr: Instr) -> None:
        """What it does but for the flow of control.  Raises Crash."""
        try:
            if self.bus:
                flag = self.isa.interrupt_enable
                on = not flag or self.slots[self.isa.slots[flag]] == 1
                for slot in self.bus.begin(instr, interruptible=on):
                    self.slots[slot] ^= self.isa.limb_bits  # an interrupt handler may have used the device
            instr.meaning(self.isa).run(self)
        except Misuse as misuse:
            raise Crash(str(misuse)) from None

    def enter(self, following: int) -> None:
        """Push a return address: the place itself is kept aside, the bytes for it stay what they are.

        Where there is a link register, it gets a number that stands for the place.
        """
        if self.isa.abi.link:
            slot = self.isa.slots[self.isa.abi.link]
            self.slots[slot] = self.home + following & (1 << self.isa.limb_bits) - 1
            self.links.append((self.slots[slot], following))
            return
        size = self.core.pc_limbs * (self.isa.limb_bits // 8)
        stack = self.wide(self.stack) - size
        self.set_wide(self.stack, stack)
        at = self.inside(stack + self.isa.stack_free, size)
        self.frames[stack] = following, bytes(self.memory[at : at + size])

    def follow(self, link: int) -> int | None:
        """Where a return address out of a register leads: to the latest call, None where it is the caller's."""
        if not self.links:
            if link != self.home:
                raise Crash("the return address is not the one at entry")
            return None
        expected, following = self.links.pop()
        if link != expected:
            raise Crash("the return address is not that of the latest call")
        return following

    def leave(self) -> int | None:
        """Pop a return address; None where it is the caller's."""
        stack = self.wide(self.stack) if self.stack else 0
        if stack not in self.frames:
            return None
        following, pushed = self.frames.pop(stack)
        at = stack + self.isa.stack_free
        if self.memory[at : at + len(pushed)] != pushed:
            raise Crash("a return address was written over")
        self.set_wide(self.stack, stack + len(pushed))
        return following


def call(image: bytes, contract: Contract, core: Core, operands: Sequence[int], entry: int = 0) -> int:
    """The number a kernel leaves in its result for these operands.  Raises Crash, DecodeError."""
    return trace(image, contract, core, operands, entry)[0]


def trace(
    image: bytes, contract: Contract, core: Core, operands: Sequence[int], entry: int = 0
) -> tuple[int, tuple[int, ...]]:
    """(result, offsets in bytes from the entry of the instructions executed).  Raises Crash, DecodeError."""
    result, path = run(image, contract, core, operands, entry, limit=STEPS)
    return result, tuple(at - entry for at in path)


def run(
    image: bytes, contract: Contract, core: Core, operands: Sequence[int], entry: int, *, limit: int
) -> tuple[int, list[int]]:
    """(result, places of the instructions executed), of which there may be `limit`."""
    prepared = Run(contract, core)
    prepared.start(operands)
    path = list(follow(prepared.machine, image, entry, limit))
    return prepared.result(), path


def follow(machine: Machine, image: bytes, entry: int, limit: int = STEPS) -> Iterator[int]:
    """The place of each instruction of a call, before it is executed.  Raises DecodeError, Crash, and Endless if
    there are more than `limit`."""
    position: int | None = entry
    count = 0
    while position is not None:
        if count == limit:
            raise Endless("no end")
        yield position
        position = machine.step(image, position)
        count += 1


class Run:
    """A machine with the buffers of a contract in its memory: `places` are their addresses, `lengths` their bytes."""

    def __init__(self, contract: Contract, core: Core, kind: type[Machine] = Machine) -> None:
        isa = contract.isa
        size = isa.limb_bits // 8
        self.lengths = {name: limbs * size for name, limbs in contract.buffers.items()}
        self.places: dict[str, int] = {}
        devices = connect(isa, core)
        at = GAP + (devices.top if devices else 0)
        for name, length in self.lengths.items():
            self.places[name] = at
            at += length + GAP
        self.machine = kind(isa, core, at + GAP + STACK)
        if self.machine.bus:
            self.machine.bus.alone = contract.alone

    def start(self, operands: Sequence[int]) -> None:
        """Junk everywhere, the operands in their buffers, and the arguments in their registers."""
        machine = self.machine
        machine.fill(sum(operands))
        for place, group in zip(self.places.values(), machine.isa.abi.arguments, strict=False):
            machine.set_wide(group, place)
        for name, value in zip(list(self.lengths)[1:], operands, strict=True):
            at, length = self.places[name], self.lengths[name]
            machine.memory[at : at + length] = value.to_bytes(length, "little")
        if machine.stack:
            machine.set_wide(machine.stack, len(machine.memory) - 8)

    def result(self) -> int:
        """What the result's buffer holds."""
        return int.from_bytes(self.machine.memory[self.places["r"] : self.places["r"] + self.lengths["r"]], "little")

    def buffer(self, address: int) -> str | None:
        """The buffer that an address lies in."""
        found = (name for name, at in self.places.items() if at <= address < at + self.lengths[name])
        return next(found, None)


def operands(contract: Contract, count: int, seed: int = 0) -> Iterator[tuple[int, ...]]:
    """Operand tuples that find carry faults: limbs 0, 1, 7f.., 80.., fe.., ff.. mixed with random ones."""
    rng = random.Random(seed)
    width = contract.isa.limb_bits
    top = (1 << width) - 1
    special = (0, 1, top >> 1, (top >> 1) + 1, top - 1, top)
    assert len(special) == PLAIN
    how_many = len(contract.buffers) - 1
    for index in range(count):
        values = []
        for _ in range(how_many):
            if index < len(special):
                limbs = [special[index]] * contract.limbs
            else:
                share = rng.choice((0.0, 0.5, 0.9, 1.0))
                pick = [rng.choice(special), rng.choice(special)] if rng.random() < 0.5 else list(special)
                limbs = [
                    rng.choice(pick) if rng.random() < share else rng.randint(0, top) for _ in range(contract.limbs)
                ]
            values.append(number(limbs, width))
        yield tuple(values)


def number(limbs: Iterable[int], width: int) -> int:
    """The number with these limbs of `width` bits, lowest first."""
    return sum(limb << (width * k) for k, limb in enumerate(limbs))


def broken_promise(
    image: bytes, contract: Contract, core: Core, runs: int, entry: int = 0, *, branches: bool = False
) -> str:
    """What code does that its contract forbids, on so many operands: "" if nothing was seen.

    Result, registers to be kept, stack pointer, memory that is not its own, and the path, which must be one for all
    operands, or take as many cycles if it may have `branches`.
    """
    first: list[int] = []
    for values in operands(contract, runs):
        run = Run(contract, core)
        run.start(values)
        before = Before.of(run)
        try:
            path = list(follow(run.machine, image, entry))
        except (Crash, DecodeError) as error:
            return str(error)
        found = harm(run, before, values)
        first = first or path
        if not found and path != first:
            isa = contract.isa
            same = branches and len({timing.price(isa, core, image, each).call for each in (first, path)}) == 1
            found = "" if same else f"its {'time' if branches else 'path'} depends on the operands"
        if found:
            return found
    return ""


@dataclass(frozen=True)
class Before:
    """Memory and registers when a call begins; `top` is the address at which the caller's stack begins."""

    memory: bytes
    slots: tuple[int, ...]
    top: int

    @staticmethod
    def of(run: Run) -> Before:
        """As they are now."""
        machine = run.machine
        top = machine.wide(machine.stack) + machine.isa.stack_free if machine.stack else len(machine.memory)
        return Before(bytes(machine.memory), tuple(machine.slots), top)


def harm(run: Run, before: Before, values: Sequence[int]) -> str:
    """What a call has left that no kernel may leave, "" if nothing."""
    machine, isa = run.machine, run.machine.isa
    if run.result() != values[0] * values[-1]:
        return "the result is wrong"
    kept = (*isa.abi.callee_saved, *isa.stack_registers, *isa.abi.zero_on_return, isa.interrupt_enable or "")
    for name in filter(None, kept):
        if machine.slots[isa.slots[name]] != before.slots[isa.slots[name]]:
            return f"{name} is not kept"
    after, top = bytearray(machine.memory), before.top
    for start, end in ((run.places["r"], run.places["r"] + run.lengths["r"]), (max(0, top - STACK), top)):
        after[start:end] = before.memory[start:end]
    return "memory beside the result is changed" if after != before.memory else ""
