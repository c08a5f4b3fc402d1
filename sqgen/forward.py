"""The second proof: the claim of `prove` reached the other way round, for `sqgen verify` and to check the first one.

It walks the bytes once, first instruction to last, and keeps what every place holds as an exact sum of products.  With
the first proof it shares the table, the decoder and the contract, nothing else; it is slow, and meant to be read: this
file is one case of a walk, `forward_proof` follows them all and says what comes of them.

`forward_numbers` has the numbers: forms, values, which are what registers hold, and how they are cut into digits.

A mask made of a bit, met by AND, OR or EOR, is a factor: the bit times the limb.  The walk forks only where the bit
decides what is executed.

At the end result - A*B must be zero, or a whole multiple of 2^(bits of the result): both lie below.  `forward_end`
shows that of the carries that are left in it.
Taken for granted: buffers do not overlap; nobody else writes to them, or to the stack above the stack pointer.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator, Mapping, Sequence

from .bus import Bus, connect
from .contract import DEEPEST, Contract
from .encode import Instr, decode
from .forward_bits import logic
from .forward_end import left_over, written_out
from .forward_numbers import Budget, Fork, Form, Impossible, Numbers, Value
from .forward_trace import Region, Touch, Trace
from .meaning import Meaning
from .meeting import Meetings
from .table import Core, Insn

STEP = 64  # terms added up that take as long as an instruction: a million are followed at most, in all cases
Place = tuple[str, int]  # a buffer and an offset in limbs


class Refused(Exception):
    """What keeps the kernel from being proved."""


class Machine:
    """One case: the limbs, what every place holds, and where the walk is; the domain of `Meaning.run`."""

    def __init__(
        self,
        image: bytes,
        contract: Contract,
        core: Core,
        entry: int,
        budget: Budget,
        *,
        branches: bool = False,
        joins: bool = True,
    ) -> None:
        self.image, self.contract, self.core, self.at = image, contract, core, entry
        self.branches = branches  # whether a branch may hang on a bit of the operands
        isa = self.isa = contract.isa
        self.limb_bytes = isa.limb_bits // 8
        self.opaque = {isa.slots[name] for name in isa.opaque}
        self.budget = budget
        self.numbers = Numbers(budget)
        self.address_bits = isa.limb_bits * isa.address_limbs
        self.bases: dict[int, str] = {}  # atom -> the buffer that it is the address of
        self.slots = [self.unknown(width) for width in isa.widths]
        self.memory: dict[Place, Value] = {}
        self.bus = connect(isa, core, alone=contract.alone)
        self.returns: dict[int, int] = {}  # where the stack ends after a call -> where its return address leads
        self.pushed: list[int] = []  # offsets in the stack that it writes
        self.end = 0  # where the stack ended behind the latest instruction
        self.touched: list[Touch] = []  # by the instruction at hand
        self.written: set[int] = set()  # slots that it writes, in any case
        self.interruptible = True  # whether an interrupt may come right behind the instruction at hand
        self.left: dict[int, Value] = {}  # on the stack, below its end
        self.before = 0  # atoms that there were when one of a buffer was first read, 0 if none was
        self.foreign: list[int] = []  # what a device holds that others may have used, who found nothing in it
        self.trace: Trace = []
        self.meetings = Meetings(functools.partial(decode, isa, image)) if joins else None
        self.regions: list[Region] = []  # of the trace, where arms were joined
        self.conditions: tuple[tuple[str, int], ...] = ()  # of the next instructions: flag, value it must have
        for (name, length), registers in zip(contract.buffers.items(), isa.abi.arguments, strict=False):
            self.point(registers, name)
            if name != "r":
                self.memory.update({(name, k): self.unknown(isa.limb_bits) for k in range(length)})
        self.operands = frozenset(atom for value in self.memory.values() for (atom,) in value.form)
        self.stack_pointer = isa.stack_registers
        if isa.stack_pointer:
            self.point(self.stack_pointer, "stack")
        kept = (*isa.abi.callee_saved, *filter(None, [isa.interrupt_enable]))
        # of calls that have not returned, where a link register is: what it held, where the stack ended, the target
        self.links: list[tuple[Form, int, int | None]] = []
        if isa.abi.link:
            self.links.append((self.slots[isa.slots[isa.abi.link]].form, self.stack_end(), None))
        self.entered = [len(self.numbers.ranges)]  # atoms that there were at the call of each function not left yet
        self.entry = list(self.slots)
        self.kept = {name: self.slots[isa.slots[name]].form for name in kept}

    def unknown(self, bits: int) -> Value:
        return self.numbers.unknown(bits)

    def point(self, registers: Sequence[str], buffer: str) -> None:
        """Let the registers hold the address of the buffer."""
        address = self.unknown(self.address_bits)
        ((base,),) = address.form
        self.bases[base] = buffer
        self.set_wide(registers, address)

    def set_wide(self, registers: Sequence[str], value: Value) -> None:
        """Spread a value over registers, low limb first; what is above is lost."""
        for name in registers:
            self.slots[self.isa.slots[name]], value = self.numbers.split(value, self.isa.limb_bits)

    def wide(self, registers: Sequence[str]) -> Value:
        width = self.isa.limb_bits
        return self.linear([(1 << (width * k), self.read(self.isa.slots[name])) for k, name in enumerate(registers)])

    def twin(self) -> Machine:
        """A copy of the machine.  Raises TooMuch."""
        held = (*vars(self).values(), *vars(self.numbers).values())
        self.budget.spend(sum(len(thing) for thing in held if isinstance(thing, dict | list)))
        twin = copy.copy(self)
        twin.numbers = copy.copy(self.numbers)
        for owner in (twin, twin.numbers):
            for name, thing in vars(owner).items():
                setattr(owner, name, copy.copy(thing) if isinstance(thing, dict | list | set | Bus) else thing)
        return twin

    def cases(self, bit: int) -> Iterator[Machine]:
        """Two copies of the machine, one for each value of a bit, if it can have it.  Raises TooMuch."""
        for number in (0, 1):
            twin = self.twin()
            with contextlib.suppress(Impossible):
                twin.numbers.assume(bit, number)
                yield twin

    # ---- the domain ----

    def again(self, value: Value) -> Value:
        return self.numbers.value(*value)

    def read(self, slot: int) -> Value:
        return self.unknown(1) if slot in self.opaque else self.again(self.slots[slot])

    def write(self, slot: int, value: Value) -> None:
        self.slots[slot] = value
        self.written.add(slot)

    def constant(self, value: int) -> Value:
        return self.numbers.constant(value)

    def linear(self, terms: Sequence[tuple[int, Value]]) -> Value:
        value = self.numbers.linear(terms)
        return self.pointed(value) if any(factor == 1 << self.isa.limb_bits for factor, _ in terms) else value

    def pointed(self, value: Value) -> Value:
        """The value; an address that limbs make up as the buffer's and an offset, whatever was added to it limb by limb
        and taken off again: in a loop that would never end to grow."""
        form = value.form if self.based(value.form) else written_out(self.numbers, value.form)
        return value._replace(form=form) if self.based(form) else value

    def product(self, left: Value, right: Value) -> Value:
        return self.numbers.product(left, right)

    def digits(
        self, value: Value, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]
    ) -> Sequence[Value]:
        tops = [sign * ((1 << widths[k]) - 1) << sum(widths[:k]) for k, sign in enumerate(signs)]
        low, high = sum(top for top in tops if top < 0), sum(top for top in tops if top > 0)
        rest = self.numbers.value(value.form, max(value.low, low), min(value.high, high))
        found = []
        for width, sign in zip(widths[:-1], signs[:-1], strict=True):
            assert sign == 1, "only the last digit may be negative"
            digit, rest = self.numbers.split(rest, width)
            found.append(digit)
        last = self.linear([(signs[-1], rest)])
        last = self.numbers.value(last.form, max(last.low, 0), min(last.high, (1 << widths[-1]) - 1))
        return [*found, self.numbers.tight(last)]

    def logic(self, op: str, left: Value, right: Value) -> Value:
        return logic(self, op, left, right)

    def zero(self, value: Value, also: Value | None) -> Value:
        if value.low > 0 or value.high < 0 or (also and also.high == 0):
            return self.constant(0)
        return self.constant(1) if value.low == value.high and (not also or also.low) else self.unknown(1)

    def place(self, address: Value, kind: str) -> Place:
        """(buffer, offset) of an address, which counts bytes modulo the size of the address space; what is done there
        is noted."""
        place = self.based(address.form) or self.based(written_out(self.numbers, address.form))
        if place is None:
            raise Refused("the address is not known beforehand to be in a buffer")
        self.touched.append(Touch(kind, *place))
        return place

    def based(self, form: Form) -> Place | None:
        """(buffer, offset) of an address, if that is how its form is written."""
        modulus = 1 << self.address_bits
        left = {monomial: factor % modulus for monomial, factor in form.items() if factor % modulus}
        offset = left.pop((), 0)
        buffer = next((buffer for base, buffer in self.bases.items() if left == {(base,): 1}), None)
        if buffer is None or offset % self.limb_bytes:
            return None
        return buffer, ((offset + modulus // 2) % modulus - modulus // 2) // self.limb_bytes

    def stack_end(self) -> int:
        """Where the stack ends: what lies at lower offsets may be overwritten at any time."""
        if not self.isa.stack_pointer:
            return 0
        buffer, offset = self.place(self.wide(self.stack_pointer), "end")
        if buffer != "stack":
            raise Refused("the stack pointer has left the stack")
        return offset + self.isa.stack_free

    def load(self, address: Value) -> Value:
        if self.bus and address.low == address.high:
            return self.again(self.bus.load(address.low, self))
        place = buffer, offset = self.place(address, "read")
        if buffer != "stack":
            self.before = self.before or len(self.numbers.ranges)
        if place not in self.memory or (buffer == "stack" and offset < self.stack_end()):
            raise Refused(f"reads {buffer}[{offset}], where nothing is known to be")
        return self.again(self.memory[place])

    def store(self, address: Value, value: Value) -> None:
        if self.bus and address.low == address.high:
            self.bus.store(address.low, value, self)
            return
        place = buffer, offset = self.place(address, "write")
        used = any(end <= offset < end + self.core.pc_limbs for end in self.returns)
        if offset < -DEEPEST:
            raise Refused(f"takes more than {DEEPEST} limbs of stack")
        if buffer == "stack" and offset < self.isa.stack_free and not used:
            self.pushed.append(offset)
        elif buffer != "r" or not 0 <= offset < self.contract.buffers["r"]:
            raise Refused(f"writes {buffer}[{offset}]")
        self.memory[place] = value

    # ---- the walk ----

    def step(self) -> bool:
        """One instruction; False at the end.  Raises Fork with everything as it was: each case executes it anew."""
        if not 0 <= self.at < len(self.image):
            raise Refused("the walk leaves the code")
        instr = decode(self.isa, self.image, self.at)
        if instr.insn.name in self.core.lacks or not self.isa.allowed(instr.insn, self.core):
            raise Refused(f"{self.core.name} has no {instr.insn.name}, or its time depends on operands")
        if len(self.trace) > 1000 + 100 * self.contract.limbs**2:  # a slow loop takes about 20 for each pair of limbs
            raise Refused("no end in sight")
        self.budget.spend(STEP)
        before = list(self.slots), self.memory, list(self.links), self.conditions, copy.copy(self.bus), self.end
        self.pushed, self.touched = [], []
        try:
            following = self.execute(instr)
        except Fork:
            self.slots, self.memory, self.links, self.conditions, self.bus, self.end = before
            raise
        self.trace.append((self.at, self.touched))
        self.at = following or 0
        return following is not None

    def execute(self, instr: Instr) -> int | None:
        """What an instruction does; the next one's offset, None at the end."""
        insn = instr.insn
        flag = self.isa.interrupt_enable  # an instruction that sets it lets the next one run first
        self.interruptible = not flag or self.slots[self.isa.slots[flag]].high > 0
        if self.bus:
            for slot in self.bus.begin(instr, interruptible=self.interruptible):
                clean = self.untouched(slot)
                self.slots[slot] = self.unknown(self.isa.widths[slot])
                self.foreign += [len(self.numbers.ranges) - 1] if clean else []
        if self.conditions:
            self.conditional(insn, instr.meaning(self.isa))
        else:
            instr.meaning(self.isa).run(self)
        for slot in (self.isa.slots[name] for name in insn.clobbers):
            self.slots[slot] = self.unknown(self.isa.widths[slot])
        self.forget()
        distance = next(iter(instr.immediates.values()), 0)
        return self.flow(insn.control, self.at + insn.size, distance, instr.places(self.isa))

    def conditional(self, insn: Insn, meaning: Meaning) -> None:
        """An instruction that is executed if a flag has a value; whether it has is a case of its own."""
        flag, wanted = self.conditions[0]
        value = self.read(self.isa.slots[flag])
        if insn.control or insn.kind in ("load", "store") or self.isa.cycles(insn, self.core) != 1:
            raise Refused(f"{insn.name} on a condition")
        if value.low != value.high:
            if not self.numbers.bits_of(value):
                raise Refused(f"a condition on {flag}, which is not known beforehand")
            raise Fork(self.numbers.undecided(value))
        self.conditions = self.conditions[1:]
        if value.low == wanted:
            flags = {self.isa.slots[name]: self.slots[self.isa.slots[name]] for name in self.isa.flags if insn.quiet}
            meaning.run(self)
            for slot, kept in flags.items():
                self.slots[slot] = kept

    def forget(self) -> None:
        """Nothing below the stack pointer is kept, and nobody but the caller turns interrupts on."""
        flag = self.isa.interrupt_enable
        if flag and self.slots[self.isa.slots[flag]].high > 0 and self.changed(flag):
            raise Refused("turns interrupts on, which may be off in the caller")
        try:
            end = self.stack_end()
        except Refused:
            if self.pushed:
                raise
            if self.interruptible:
                raise Refused("an interrupt could come while the stack pointer is half written") from None
            return  # until the other half is written, too, the stack cannot be used
        if any(offset < end for offset in self.pushed):
            raise Refused("writes below the stack pointer")
        if end > self.end:
            self.left.update((k, limb) for (name, k), limb in self.memory.items() if name == "stack" and k < end)
            self.memory = {(name, k): limb for (name, k), limb in self.memory.items() if name != "stack" or k >= end}
            self.returns = {offset: at for offset, at in self.returns.items() if offset >= end}
            self.budget.spend(len(self.memory))
        self.end = end

    def move_stack(self, limbs: int) -> None:
        moved = self.linear([(1, self.wide(self.stack_pointer)), (limbs * self.limb_bytes, self.constant(1))])
        self.set_wide(self.stack_pointer, moved)

    def flow(
        self, control: tuple[str, ...], following: int, distance: int, places: Mapping[str, tuple[int, ...]]
    ) -> int | None:
        """Where the walk goes on after a jump, branch, call or return; None at the end."""
        match control:
            case ():
                return following
            case ("jump",):
                return following + distance
            case ("when", flag, *wanted):
                self.conditions = tuple((flag, int(value)) for value in wanted)
                return following
            case ("branch", flag, wanted):
                value = self.read(self.isa.slots[flag])
                if value.low != value.high:
                    if self.branches and self.numbers.bits_of(value):
                        raise Fork(self.numbers.undecided(value))
                    raise Refused(f"branches on {flag}, which is not known beforehand")
                self.touched.append(Touch("flag", flag, value.low))
                return following + distance if value.low == int(wanted) else following
            case ("call",):
                self.enter(following)
                return following + distance
            case ("return", *register):
                self.entered.pop()
                return self.leave_by(self.slots[places[register[0]][0]]) if register else self.leave()
        raise Refused(f"does not know `{' '.join(control)}`")

    def enter(self, following: int) -> None:
        """A function is called: its return address goes to the link register or to the stack."""
        self.entered.append(len(self.numbers.ranges))
        if self.isa.abi.link:
            link = self.unknown(self.isa.limb_bits)
            self.write(self.isa.slots[self.isa.abi.link], link)
            self.links.append((link.form, self.stack_end(), following))
        else:
            self.move_stack(-self.core.pc_limbs)
            self.returns[self.stack_end()] = following

    def leave(self) -> int | None:
        """Where the return address on the stack leads, None where it is the caller's."""
        end = self.stack_end()
        if end not in self.returns:
            self.finish(end)
            return None
        self.move_stack(self.core.pc_limbs)
        return self.returns.pop(end)

    def leave_by(self, link: Value) -> int | None:
        """Where a return address out of a register leads: to the latest call, None where it is the caller's."""
        wanted, end, target = self.links.pop()
        if link.form != wanted:
            raise Refused("returns to another address than that of its call")
        if end != self.stack_end():
            raise Refused("returns with the stack pointer not where it was at the call")
        if target is None:
            self.finish(end)
        return target

    def finish(self, stack_end: int) -> None:
        """What the contract asks for at the return.  Raises Refused."""
        if stack_end != self.isa.stack_free:
            raise Refused("returns with the stack pointer moved")
        for name in (*self.kept, *self.isa.abi.zero_on_return):
            if self.changed(name):
                raise Refused(f"returns with a wrong {name}")
        for place in (("r", k) for k in range(self.contract.buffers["r"])):
            if place not in self.memory:
                raise Refused(f"does not write r[{place[1]}]")
        result, *operands = (self.number(name, length) for name, length in self.contract.buffers.items())
        error = self.numbers.combine((1, result), (-1, self.numbers.multiply(operands[0], operands[-1])))
        if left := left_over(self.numbers, error, self.contract.modulus):
            raise Refused(f"the result is not the product: {len(left)} terms are left over")

    def changed(self, name: str) -> bool:
        """Whether a register or flag may hold something else than at entry; or than zero, if it is not to be kept."""
        return self.again(self.slots[self.isa.slots[name]]).form != self.kept.get(name, {})

    def untouched(self, slot: int) -> bool:
        """Whether a limb of a device holds what it held at entry, or nothing, or what others left who found that."""
        value = self.slots[slot]
        nothing = all(limb in self.foreign for monomial in value.form for limb in monomial or (-1,))
        return nothing or value is self.entry[slot]

    def number(self, buffer: str, length: int) -> Form:
        """What the limbs of a buffer are as one number."""
        width = self.isa.limb_bits
        return self.numbers.combine(*((1 << (width * k), self.memory[buffer, k].form) for k in range(length)))
