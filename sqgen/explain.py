"""Where a kernel's cycles go: what each executed instruction is for, and what the law of the instruction set allows.

The kernel is run once, and values carry along where they come from: a product, the zero register, an address.  An
addition of a limb that comes from a product is one of the two that each product costs, one of the zero register
catches a carry, a move of a product parks or seeds it, and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from . import interpret
from .encode import Instr, decode
from .idioms import idioms
from .interpret import Machine
from .kernel import Kernel
from .timing import framing

# Roles, in the order in which they are shown; the law speaks of groups.
GROUPS: dict[str, tuple[str, ...]] = {
    "products": ("multiplications",),
    "their sums": (
        "additions of products",
        "products moved in pairs",
        "products moved by limbs",
        "carries caught or parked",
        "limbs cleared",
    ),
    "doubling": ("doublings",),
    "operands": ("first loads", "loads again"),
    "result": ("last stores",),
    "sums of parts": ("sums stored early", "sums read back", "other additions", "signs and masks"),
    "registers": ("other moves", "saved in the frame", "read from the frame"),
    "control": ("pointers", "calls and jumps"),
}


class Product(int):
    """A limb of a product that has not been added yet, or with a carry only."""


class Nothing(int):
    """A zero that was made."""


class Address(int):
    """A pointer, or a part of one."""


class Tracer(Machine):
    """A processor whose values know where they come from, and that notes which memory is used."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.touched: int | None = None  # address of the access of the latest instruction

    def set_wide(self, names: Sequence[str], value: int) -> None:
        super().set_wide(names, value)
        for name in names:
            slot = self.isa.slots[name]
            self.slots[slot] = Address(self.slots[slot])

    def product(self, left: int, right: int) -> int:
        return Product(left * right)

    def linear(self, terms: Sequence[tuple[int, int]]) -> int:
        total = super().linear(terms)
        kinds = {type(value) for _, value in terms}
        if sum(factor for factor, value in terms if type(value) is Address):  # what of one is left in the sum
            return Address(total)
        products = sum(type(value) is Product for _, value in terms)
        return Product(total) if products == 1 and kinds <= {Product, Nothing, bool} else total

    def digits(self, value: int, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]) -> list[int]:
        found = super().digits(value, widths, signs, slots)
        kind = type(value)
        flags = len(self.isa.registers)
        # A flag has a kind of its own: it may be added to a product and leave it one.
        return [
            bool(digit) if slot >= flags and width == 1 else kind(digit)
            for digit, width, slot in zip(found, widths, slots, strict=True)
        ]

    def logic(self, op: str, left: int, right: int) -> int:
        found = super().logic(op, left, right)
        return Nothing(0) if op == "^" and left is right else found

    def load(self, address: int) -> int:
        self.touched = int(address)
        return super().load(address)

    def store(self, address: int, value: int) -> None:
        self.touched = int(address)
        super().store(address, value)


class Step(NamedTuple):
    """An instruction executed: where it stands, what it is for, as `role` says, its cycles, the address of the memory
    that it used, and whether it multiplies."""

    at: int
    instr: Instr
    role: str
    cycles: int
    address: int | None
    multiplies: bool


@dataclass
class Share:
    """Instructions executed, and their cycles."""

    count: int = 0
    cycles: int = 0

    def add(self, cycles: int) -> None:
        self.count += 1
        self.cycles += cycles


@dataclass(frozen=True)
class Part:
    """A part of the listing: its heading, its cycles, and the products in it."""

    heading: str
    cycles: int
    products: int


@dataclass(frozen=True)
class Explanation:
    """Where the cycles of a kernel's body go: by role, with the floor of each group where the law has one, by part of
    the listing; and the cycles around the body."""

    kernel: Kernel
    roles: Mapping[str, Share]
    floor: Mapping[str, int]
    parts: Sequence[Part]

    def group(self, name: str) -> Share:
        """A group of roles."""
        shares = [self.roles[role] for role in GROUPS[name] if role in self.roles]
        return Share(sum(share.count for share in shares), sum(share.cycles for share in shares))


def explain(kernel: Kernel) -> Explanation:
    """Run a kernel once and say what each instruction of its body is for."""
    spec, image = kernel.spec, kernel.compiled.image
    what, core = spec.contract, spec.core
    run = interpret.Run(what, core, Tracer)
    values = next(iter(interpret.operands(what, 1)))
    steps: list[Step] = []
    run.start(values)
    machine = run.machine
    assert isinstance(machine, Tracer)
    position: int | None = 0
    while position is not None:
        at, before = position, machine.cycles
        instr = decode(what.isa, image, at)
        found = role(instr, machine)
        machine.touched = None
        position = machine.step(image, at)
        port = machine.bus.places.get(machine.touched) if machine.bus and machine.touched is not None else None
        if port:
            found = "multiplications" if port.shows < 0 else "additions of products"
        multiplies = instr.insn.kind == "mul" or bool(port and port.ready)
        steps.append(Step(at, instr, found, machine.cycles - before, machine.touched, multiplies))
    outside = set(framing([step.instr for step in steps]))
    body = [step for index, step in enumerate(steps) if index not in outside]
    roles: dict[str, Share] = {}
    for name, step in zip(accesses(run, body), body, strict=True):
        roles.setdefault(name, Share()).add(step.cycles)
    floor = idioms(what.isa).floor(what.op, what.limbs, core)
    return Explanation(kernel, roles, floor, parts(kernel, body))


def role(instr: Instr, machine: Machine) -> str:
    """What an instruction is for, as far as that hangs on the values that it takes; "" for an access to memory."""
    insn, places = instr.insn, instr.places(machine.isa)
    named = [[machine.slots[slot] for slot in places[str(o.name)]] for o in insn.operands if o.cls]
    kinds = [type(value) for values in named for value in values]
    if insn.control:
        found = "calls and jumps"
    elif insn.frame or insn.kind in ("load", "store"):
        found = ""
    elif insn.kind == "mul":
        found = "multiplications"
    elif Address in kinds and not _same(instr):
        found = "pointers"
    elif insn.kind == "move":
        width = "by limbs" if len(named[-1]) == 1 else "in pairs"
        found = f"products moved {width}" if kinds[-1] is Product else "other moves"
    elif insn.kind == "logic":
        found = "limbs cleared" if _same(instr) else "signs and masks"
    elif insn.kind == "add":
        found = _addition(instr, kinds)
    else:
        found = "carries caught or parked" if insn.kind == "shift" else "saved in the frame"
    return found


def _same(instr: Instr) -> bool:
    return len(instr.operands) > 1 and len(set(instr.operands)) == 1


def _addition(instr: Instr, kinds: Sequence[type]) -> str:
    """What an addition or subtraction of values of these kinds is for."""
    if _same(instr) and instr.insn.same:  # another name for it: a shift
        return "doublings"
    if _same(instr) or len(kinds) == 1 or kinds[-1] is Nothing:
        return "carries caught or parked"
    return "additions of products" if Product in kinds else "other additions"


def accesses(run: interpret.Run, body: Sequence[Step]) -> list[str]:
    """The roles of all instructions, those of accesses to memory too."""
    last = {step.address: index for index, step in enumerate(body) if step.instr.insn.kind == "store"}
    loaded: set[int] = set()
    found = []
    for index, step in enumerate(body):
        address = step.address
        if step.role or address is None:
            found.append(step.role)
            continue
        buffer, is_load = run.buffer(address), step.instr.insn.kind == "load"
        if buffer is None:
            found.append("read from the frame" if is_load else "saved in the frame")
        elif buffer == "r":
            final = last.get(address) == index
            found.append("sums read back" if is_load else "last stores" if final else "sums stored early")
        else:
            found.append("loads again" if address in loaded else "first loads")
            loaded.add(address)
    return found


def parts(kernel: Kernel, body: Sequence[Step]) -> list[Part]:
    """The parts of the listing in order, with what they cost all in all."""
    heading, at, headings = "", 0, {}
    for line in kernel.compiled.lines:
        heading = line.heading or heading
        headings[at] = heading
        at += line.instr.insn.size
    cycles: Counter[str] = Counter()
    products: Counter[str] = Counter()
    for step in body:
        cycles[headings[step.at]] += step.cycles
        products[headings[step.at]] += step.multiplies
    return [Part(name.replace("\n", "; ") or "entry", cycles[name], products[name]) for name in cycles]
