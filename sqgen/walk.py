"""The walk: code executed as it would be, on what is known for all operands.

Registers, flags and memory hold linear forms (`symbolic`, `forms`).  On the way every access is checked to lie in a
buffer or the stack, no secret to reach a branch or an address, and the stack to be safe from interrupts.
"""

from __future__ import annotations

import copy

from . import bus, turns
from .branching import decided
from .contract import DEEPEST, Contract, Fault
from .encode import DecodeError, Instr
from .forms import Atoms
from .held import Event, Refused, Return, Split, Value
from .instructions import Instructions
from .lemmas import Lemma, Lemmas, applied, lemma, masked, pointers
from .linear import ONE, ZERO, Form, combine
from .products import called, resumed, returned
from .statements import Load, Store
from .symbolic import State
from .table import Core
from .wiped import Wiped

STEPS = 1_000_000  # instructions walked at most, in all cases together
STEPS_BESIDE = 4096  # instructions that a case may take beside those for products
NESTED = 64  # calls that have not returned, at most


def steps_per_product(octets: int) -> int:
    """Instructions walked at most in one case for each product of limbs of so many octets.

    Rolled loops take about 14 where a limb is one; where it is four, products made of four multiplications take 40.
    """
    return 4 + 12 * octets


def longest(contract: Contract) -> int:
    """Instructions walked at most in one case."""
    return steps_per_product(contract.isa.limb_bits // 8) * contract.limbs**2 + STEPS_BESIDE


def terms_per_product(octets: int) -> int:
    """Terms touched at most, for each product of such limbs, in a first look for a bound."""
    return 4 * octets


class Failed(Exception):
    """The code does what the contract forbids, or what nothing is known of."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Walk:
    """Walks the code of one image, from any place."""

    def __init__(
        self,
        image: bytes,
        contract: Contract,
        core: Core,
        entry: int,
        *,
        branches: bool,
        lemmas: Lemmas | None = None,
    ) -> None:
        self.image, self.contract, self.core, self.entry = image, contract, core, entry
        self.branches = branches
        self.isa = contract.isa
        self.atoms = Atoms(terms_per_product(self.isa.limb_bits // 8) * contract.limbs**2)
        self.wiped = Wiped(self.isa, self.atoms)
        self.bases: dict[int, str] = {}
        self.initial: list[Value] = []
        self.steps = 0
        self.ran: tuple[int, ...] = ()  # the path of a function that the latest call is told of
        self.longest = longest(contract)
        self.lemmas = lemmas or Lemmas(self.longest)
        self.instructions = Instructions(image, self.isa)
        self.seen: set[int] = set()  # addresses whose instructions may be executed
        self.turns = turns.bodies(image, self.isa, entry)
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

    # ---- walking ------------------------------------------------------------------------------------------------

    def walk(self, state: State, at: int, end: int | None = None) -> tuple[int, int] | None:
        """Execute until the function returns, or the turn of a loop comes to its `end` (None), or a case must be split
        (the atom, and where)."""
        resumed(state)
        while True:
            at = self.turn(state, at)
            if at == end and state.depth == 0:
                return None
            self.count(state, at)
            try:
                instr = self.instructions.at(at)
            except DecodeError as error:
                last = self.entry + state.path[-1] if state.path else at
                raise self.failure(at if 0 <= at < len(self.image) else last, str(error)) from None
            self.atoms.here = at
            try:
                if at not in self.seen:
                    self.allowed(instr)
                    self.seen.add(at)
                following: int | None = at + instr.insn.size
                devices = copy.copy(state.bus)  # an instruction that splits begins once more in each case
                if state.bus:
                    self.tick(state.bus, state, instr)
                if state.conditions:
                    self.conditional(state, instr)
                elif instr.insn.control:
                    following = self.flow(state, instr, at)
                else:
                    self.plain(state, instr)
                    if self.turns and instr.insn.frame:
                        returned(state)
            except Split as split:
                state.bus = devices
                return split.atom, at
            except (Refused, bus.Misuse) as refused:
                raise self.failure(at, str(refused)) from None
            state.path.append(at - self.entry)
            state.path += self.ran
            self.ran = ()
            if following is None:
                self.over(at, end)
                return None
            at = following

    def over(self, at: int, end: int | None) -> None:
        """The function has returned.  Raises Failed in the turn of a loop, which has not come to its end."""
        if end is not None:
            raise self.failure(at, "returns in the turn of a loop")

    def count(self, state: State, at: int) -> None:
        """One more instruction is walked.  Raises Failed where these are too many, TooMuch where their terms are."""
        self.steps += 1
        if (
            self.steps > STEPS
            or len(state.path) >= self.longest
            or (state.given is not None and not self.lemmas.go_on())
        ):
            raise self.failure(at, f"no end after {min(self.steps, len(state.path))} instructions")
        self.atoms.hold()

    def turn(self, state: State, at: int) -> int:
        """Where the walk goes on from a place at which the code of a turn of a loop may begin, which is looked at like
        that of a function: there, or at its end, where a lemma says what it does."""
        begun = bool(state.calls) and state.calls[-1].depth == state.depth + 1  # before the state was split
        if at not in self.turns or begun:
            return at
        if self.told(state, at, self.turns[at]):
            state.path += self.ran
            self.ran = ()
            return self.turns[at]
        called(state, 1)
        return at

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

    def flow(self, state: State, instr: Instr, at: int) -> int | None:
        """The next instruction's offset after a jump, branch, call or return; None when the function returns."""
        if state.halfway:
            raise Refused("the stack pointer is half written")
        following = at + instr.insn.size
        kind = instr.insn.control[0]
        if kind == "when":
            state.conditions = tuple((instr.insn.control[1], int(wanted)) for wanted in instr.insn.control[2:])
            return following
        if kind == "return":
            return self.follow(state, instr) if self.isa.abi.link else self.leave(state)
        target = following + next(iter(instr.immediates.values()))
        if kind == "jump":
            return target
        if kind == "call":
            return self.call(state, target, following)
        flag, wanted = instr.insn.control[1], int(instr.insn.control[2])
        value = decided(state, flag, branches=self.branches)
        state.events.append(Event(at, "branch", flag, value))
        return target if value == wanted else following

    def call(self, state: State, target: int, following: int) -> int:
        """Where a call goes on: in its function, or behind it where a lemma says what that does."""
        if len(state.calls) >= NESTED:
            raise Refused(f"calls that do not return are more than {NESTED}; perhaps a function calls itself")
        if self.told(state, target):
            return following
        called(state)
        if self.isa.abi.link:
            link = self.atoms.new(0, state.limb_top(), True)
            state.slots[self.isa.slots[self.isa.abi.link]] = {link: 1}
            state.links = (*state.links, (link, state.depth, following))
            return target
        depth = state.depth
        for part in reversed(range(self.core.pc_limbs)):
            state.memory["stack", depth - state.below()] = Return(following, part)
            depth -= 1
        self.set_stack(state, depth)
        return target

    def told(self, state: State, target: int, end: int | None = None) -> bool:
        """Whether a call, or a turn up to its `end`, did what a lemma says of it, which may be shown for that."""
        if self.branches or state.fixed:
            return False
        pushed = 0 if self.isa.abi.link or end is not None else self.core.pc_limbs
        for known in self.lemmas.of(target, lambda: self.shown(state, target, end)):
            if applied(state, known, state.depth - pushed):
                self.ran = known.path
                self.lemmas.used += 1
                return True
        return False

    def shown(self, state: State, target: int, end: int | None) -> Lemma | None:
        """What a function does wherever it is called, its pointers being the registers that hold addresses now, and
        interrupts off if they are now."""
        walk = Walk(self.image, self.contract, self.core, self.entry, branches=False, lemmas=self.lemmas)
        walk.instructions, walk.seen = self.instructions, self.seen
        return walk.alone(state, target, end)

    def alone(self, caller: State, target: int, end: int | None) -> Lemma | None:
        """Walk a function that knows nothing but that some registers hold addresses; None if that shows no product."""
        names, flag = pointers(caller), self.isa.interrupt_enable
        slots = self.unknowns()
        for name, group in names.items():
            self.pointer(slots, group, name, 0)
        if flag and masked(self.isa, caller.slots):
            slots[self.isa.slots[flag]] = ZERO
        state = self.entered(slots, {})
        state.given = {}
        before = caller.bus.apart() if caller.bus else None
        state.bus = copy.copy(before)
        called(state, 0 if end is None else 1)
        try:
            if self.walk(state, target, end):  # a case of several
                return None
        except Failed:
            return None
        if flag and not self.kept(state, flag):
            return None
        return lemma(state, names, self.initial, self.instructions.at(target), before)

    def follow(self, state: State, instr: Instr) -> int | None:
        """A return to an address in a register, perhaps one that it loads: that of the latest call, or the caller's."""
        self.plain(state, instr)
        entry = self.initial[self.isa.slots[self.isa.abi.link]]
        link, depth, target = state.links[-1] if state.links else (None, 0, None)
        wanted = entry if link is None else {link: 1}
        (slot,) = instr.places(self.isa)[instr.insn.control[1]]
        found = combine([(1, state.form(state.slots[slot])), (-1, state.form(wanted))])
        if self.atoms.reduce(found, state.fixed):
            raise Refused("returns to another address than that of its call")
        if state.depth != depth:
            raise Refused("returns with the stack pointer not where it was at the call")
        if target is None:
            return None
        state.links = state.links[:-1]
        returned(state)
        return target

    def leave(self, state: State) -> int | None:
        """A return: the address on top of the stack must be one that a call, or the caller, put there."""
        first = state.depth + 1 - state.below()
        cells = [state.memory.get(("stack", first + part)) for part in range(self.core.pc_limbs)]
        target = cells[0].target if cells and isinstance(cells[0], Return) else None
        if cells != [Return(target, part) for part in range(self.core.pc_limbs)]:
            raise Refused("returns with the stack pointer not at the return address")
        if target is None:
            return None
        self.set_stack(state, state.depth + self.core.pc_limbs)
        returned(state)
        return target

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
