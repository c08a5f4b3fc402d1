"""One instruction of the walk: what it does to a state that is known for all operands, and what it must not do.

Every access is checked to lie in a buffer or the stack, no secret to reach an address, and the stack to be safe from
interrupts.
"""

from __future__ import annotations

from . import bus
from .carries import Carries
from .contract import DEEPEST, Contract, Fault
from .encode import DecodeError, Instr
from .held import Refused, Return, Split, Value
from .instructions import Instructions
from .linear import ONE, ZERO, Form, combine
from .statements import Load, Store
from .symbolic import State
from .table import Core
from .wiped import Wiped


def terms_per_product(octets: int) -> int:
    """Terms touched at most, for each product of such limbs, in a first look for a bound."""
    return 4 * octets


class Failed(Exception):
    """The code does what the contract forbids, or what nothing is known of."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Steps:
    """Executes the instructions of one image, but for those that go elsewhere."""

    def __init__(self, image: bytes, contract: Contract, core: Core, entry: int) -> None:
        self.image, self.contract, self.core, self.entry = image, contract, core, entry
        self.isa = contract.isa
        self.atoms = Carries(terms_per_product(self.isa.limb_bits // 8) * contract.limbs**2)
        self.wiped = Wiped(self.isa, self.atoms)
        self.bases: dict[int, str] = {}
        self.initial: list[Value] = []
        self.instructions = Instructions(image, self.isa)
        flag = self.isa.interrupt_enable
        watched = (*self.isa.stack_registers, flag) if flag else self.isa.stack_registers
        self.watched = frozenset(self.isa.slots[name] for name in watched)

    # ---- before the first instruction ---------------------------------------------------------------------------

    def unknowns(self) -> list[Value]:
        """What all registers hold: unknown limbs, and unknown bits."""
        slots: list[Value] = [None] * len(self.isa.slots)
        limb_top = (1 << self.isa.limb_bits) - 1
        devices = (name for device in self.isa.devices.values() for name in device.slots)
        for name in (*self.isa.registers, *self.isa.special, *devices):
            slots[self.isa.slots[name]] = {self.atoms.new(0, limb_top): 1}
        for name in self.isa.flags if self.contract.wiped else ():  # they may stay as they are
            slots[self.isa.slots[name]] = {self.atoms.new(0, 1): 1}
        if self.isa.interrupt_enable:
            slots[self.isa.slots[self.isa.interrupt_enable]] = {self.atoms.new(0, 1, True): 1}
        return slots

    def entered(self, slots: list[Value], memory: dict[tuple[str, int], Form | Return]) -> State:
        """A function begins: the stack pointer points at its return address."""
        if self.isa.stack_pointer:
            self.pointer(slots, self.isa.stack_registers, "stack", 0)
        for part in range(self.core.pc_limbs):
            memory["stack", part + (1 if self.isa.stack_free else 0)] = Return(None, part)
        self.initial = list(slots)
        opaque = frozenset(self.isa.slots[name] for name in self.isa.opaque)
        state = State(
            self.contract, self.atoms, slots, memory, self.bases, opaque, self.watched, self.instructions.unread
        )
        state.bus = bus.connect(self.isa, self.core, alone=self.contract.alone)
        return state

    def pointer(self, slots: list[Value], registers: tuple[str, ...], buffer: str, length: int) -> None:
        """Put an unknown public address into `registers`, low limb first.  The buffer ends below the last address."""
        limb = self.isa.limb_bits
        top = (1 << (limb * len(registers))) - 1
        base = self.atoms.new(0, top - length * (limb // 8), True)
        self.bases[base] = buffer
        digits = tuple(self.atoms.new(0, (1 << limb) - 1, True) for _ in registers)
        self.atoms.define(digits, [1 << (limb * index) for index in range(len(digits))], {base: 1})
        for register, digit in zip(registers, digits, strict=True):
            slots[self.isa.slots[register]] = {digit: 1}

    # ---- one instruction ----------------------------------------------------------------------------------------

    def tick(self, devices: bus.Bus, state: State, instr: Instr) -> None:
        """An instruction begins: what an interrupt may have done to the devices is done."""
        for slot in devices.begin(instr, interruptible=self.interrupts(state)):
            before, unknown = state.slots[slot], self.atoms.new(0, state.limb_top())
            if before is self.initial[slot] or self.wiped.nothing(before):
                self.atoms.foreign.add(unknown)
            state.slots[slot] = {unknown: 1}

    def allowed(self, instr: Instr) -> None:
        """Raises Refused for an instruction that must not occur, wherever it does."""
        if instr.insn.name in self.core.lacks:
            raise Refused(f"{self.core.name} has no such instruction")
        if not self.isa.allowed(instr.insn, self.core):
            raise Refused(f"not constant-time on {self.core.name}; --allow-variable-time permits it")

    def plain(self, state: State, instr: Instr) -> None:
        """An instruction that goes on to the next one."""
        enabled = self.interrupts(state)
        state.stack_touched = False
        instr.meaning(self.isa).run(state)
        for flag in instr.insn.clobbers:
            state.slots[self.isa.slots[flag]] = None
        if state.stack_touched or state.halfway:
            self.check_stack(state, enabled)

    def conditional(self, state: State, instr: Instr) -> None:
        """An instruction that is executed if a flag has a value, and takes as long if not."""
        (flag, wanted), *rest = state.conditions
        state.conditions = tuple(rest)
        insn = instr.insn
        memory = any(isinstance(statement, Load | Store) for statement in insn.statements)
        if insn.control or memory or self.isa.cycles(insn, self.core) != 1:
            raise Refused("does on a condition what may be seen from outside, or takes another time if it is not done")
        value = state.slots[self.isa.slots[flag]]
        if not isinstance(value, dict):
            raise Refused(f"depends on {flag}, of which nothing is known")
        condition = value if wanted else combine([(1, {ONE: 1}), (-1, value)])
        before = list(state.slots)
        state.quiet = insn.quiet
        try:
            instr.meaning(self.isa).run(state)
        except Split:  # each case executes this instruction anew
            state.conditions = ((flag, wanted), *rest)
            raise
        finally:
            state.quiet = False
        for name in self.isa.flags:
            slot = self.isa.slots[name]
            if state.slots[slot] is not before[slot]:
                state.slots[slot] = before[slot] if insn.quiet else None
                before[slot] = state.slots[slot]
        state.choose(condition, before)

    def check_stack(self, state: State, enabled: bool) -> None:
        """After a change of the stack, its pointer or the interrupt flag, or between two halves of a change: nothing
        that is in use may lie where an interrupt writes."""
        flag = self.isa.interrupt_enable
        if flag and self.interrupts(state) and not self.kept(state, flag):
            raise Refused("turns interrupts on, which may be off in the caller")
        depth = state.stack_pointer()
        state.halfway = depth is None
        if depth is None:
            if enabled:
                raise Refused("an interrupt could come while the stack pointer is half written")
            return
        if depth > 0:
            raise Refused("raises the stack pointer above its value at entry")
        if depth < -DEEPEST:
            raise Refused(f"takes more than {DEEPEST} limbs of stack")
        if depth != state.depth:
            state.move_stack(depth)
        if any(offset <= depth - state.below() and ("stack", offset) in state.memory for offset in state.pushed):
            raise Refused("writes below the stack pointer, where an interrupt may write too")
        state.pushed.clear()

    def interrupts(self, state: State) -> bool:
        """Whether an interrupt may come right after the instruction that starts now.  One that turns interrupts on
        lets the next instruction run first."""
        if not self.isa.interrupt_enable:
            return True
        return state.slots[self.isa.slots[self.isa.interrupt_enable]] != ZERO

    def set_stack(self, state: State, depth: int) -> None:
        """Move the stack pointer by a call or a return."""
        registers, octets = self.isa.stack_registers, self.isa.limb_bits // 8
        state.point(registers, combine([(1, state.joined(registers)), ((depth - state.depth) * octets, {ONE: 1})]))
        state.move_stack(depth)

    def kept(self, state: State, name: str) -> bool:
        """Whether a register or flag holds what it held at entry."""
        now, then = state.slots[self.isa.slots[name]], self.initial[self.isa.slots[name]]
        if now is then:
            return True
        return not self.atoms.reduce(combine([(1, state.form(now)), (-1, state.form(then))]), state.fixed)

    def failure(self, at: int, message: str, column: int | None = None) -> Failed:
        """A fault of the instruction at `at`."""
        try:
            text = self.instructions.at(at).text()
        except DecodeError:
            text = "?"
        return Failed(Fault(at - self.entry, text, message, column))
