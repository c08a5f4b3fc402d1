"""The proof, on bytes: for all operands the code writes their product, and nothing else that matters.

The code is walked as it executes, on linear forms (`symbolic`, `forms`).  At the end the difference of result and
product is reduced: it must vanish, or be a multiple of 2^(bits of the result), below which both lie; what else
remains is a carry that the code dropped, and names the instruction.  On the way every access is checked to lie in an
operand, the result or the stack, no secret to reach a branch or an address, and the stack to be safe from interrupts.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Sequence

from . import bus, turns
from .code import flags_read, flags_written
from .contract import Contract, Fault, Verdict
from .encode import DecodeError, Instr, decode
from .ending import Ending, Wrong
from .forms import Atoms
from .linear import ONE, ZERO, Form, combine
from .meaning import LOST
from .overlap import overlap
from .products import called, resumed, returned
from .statements import Load, Store
from .symbolic import Event, Refused, Return, Split, State, Value, ZeroTest
from .table import Core
from .timing import Price, price

STEPS = 1_000_000  # instructions walked at most, in all cases together
STEPS_PER_PRODUCT = 16  # instructions walked at most in one case, for each product of limbs; rolled loops take about 14
STEPS_BESIDE = 4096  # instructions that a case may take beside these
TERMS_PER_PRODUCT = 4  # terms touched at most, for each product of limbs, in a first look for a bound
CASES = 4096  # cases followed at most
LOOK_AHEAD = 64  # instructions looked at to see whether a carry is dropped


def prove(image: bytes, contract: Contract, core: Core, entry: int = 0, *, branches: bool = False) -> Verdict:
    """Walk `image` from `entry` (offset in bytes) and decide.  Never raises for what the code does.

    `branches`: the path may depend on secrets, as long as its cycles on the core and what it accesses do not.
    """
    collecting = gc.isenabled()
    gc.disable()  # forms are many and never cyclic: looking for cycles takes a tenth of the time and finds none
    try:
        return _Proof(image, contract, core, entry, branches).run()
    finally:
        if collecting:
            gc.enable()


class _Failed(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class _Proof:
    def __init__(self, image: bytes, contract: Contract, core: Core, entry: int, branches: bool) -> None:
        self.image, self.contract, self.core, self.entry = image, contract, core, entry
        self.branches = branches
        self.paths: dict[tuple[int, ...], Price] = {}  # of all cases, where they may differ
        self.isa = contract.isa
        self.atoms = Atoms(TERMS_PER_PRODUCT * contract.limbs**2)
        self.bases: dict[int, str] = {}
        self.initial: list[Value] = []
        self.operands: dict[str, list[int]] = {}
        self.steps = 0
        self.longest = STEPS_PER_PRODUCT * contract.limbs**2 + STEPS_BESIDE
        self.decoded: dict[int, Instr] = {}
        self.seen: set[int] = set()  # addresses whose instructions may be executed
        self.turns = turns.bodies(image, self.isa, entry)
        parts = self.isa.wide.get(self.isa.stack_pointer, (self.isa.stack_pointer,)) if self.isa.stack_pointer else ()
        self.stack_slots = tuple(self.isa.slots[part] for part in parts)
        flag = self.isa.interrupt_enable
        self.watched = frozenset((*self.stack_slots, self.isa.slots[flag]) if flag else self.stack_slots)

    def run(self) -> Verdict:
        waiting = [(self.start(), self.entry)]
        first: State | None = None
        cases = 0
        try:
            while waiting:
                state, at = waiting.pop()
                split = self.walk(state, at)
                if split is not None:
                    atom, at = split
                    waiting += [(state.fork(atom, value), at) for value in (1, 0)]
                    if cases + len(waiting) > CASES:
                        raise self.failure(at, f"the proof needs more than {CASES} cases")
                    continue
                cases += 1
                self.finish(state)
                first = first or state
                if self.branches:
                    self.alike(first, state)
                else:
                    self.same(first, state)
        except _Failed as failed:
            return Verdict(self.contract, failed.fault, (), 0, {}, cases)
        assert first is not None
        path, others = tuple(first.path), tuple(self.paths)[1:]
        return Verdict(self.contract, None, path, self.stack(first), overlap(first), cases, others)

    def stack(self, state: State) -> int:
        return -state.lowest * (self.isa.limb_bits // 8)

    # ---- before the first instruction ---------------------------------------------------------------------------

    def start(self) -> State:
        """Registers hold unknowns, argument registers the buffers' addresses, the buffers operand limbs."""
        slots: list[Value] = [None] * len(self.isa.slots)
        limb_top = (1 << self.isa.limb_bits) - 1
        devices = (name for device in self.isa.devices.values() for name in device.slots)
        for name in (*self.isa.registers, *self.isa.special, *devices):
            slots[self.isa.slots[name]] = {self.atoms.new(0, limb_top): 1}
        if self.isa.interrupt_enable:
            slots[self.isa.slots[self.isa.interrupt_enable]] = {self.atoms.new(0, 1, True): 1}
        for group, (buffer, length) in zip(self.isa.abi.arguments, self.contract.buffers.items(), strict=False):
            self.pointer(slots, group, buffer, length)
        if self.isa.stack_pointer:
            parts = self.isa.wide.get(self.isa.stack_pointer, (self.isa.stack_pointer,))
            self.pointer(slots, parts, "stack", 0)
        memory: dict[tuple[str, int], Form | Return] = {}
        for buffer in list(self.contract.buffers)[1:]:
            limbs = [self.atoms.new(0, limb_top) for _ in range(self.contract.limbs)]
            self.operands[buffer] = limbs
            memory.update({(buffer, index): {atom: 1} for index, atom in enumerate(limbs)})
        for part in range(self.core.pc_limbs):
            memory["stack", part + (1 if self.isa.stack_free else 0)] = Return(None, part)
        self.initial = list(slots)
        held = {name: slots[self.isa.slots[name]] for name in self.isa.registers}
        unset = {atom: name for name, value in held.items() if isinstance(value, dict) for atom in value}
        self.ending = Ending(self.contract, self.atoms, self.operands, unset, self.first_use, branches=self.branches)
        opaque = frozenset(self.isa.slots[name] for name in self.isa.opaque)
        state = State(self.contract, self.atoms, slots, memory, self.bases, opaque, self.watched, self.unread)
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

    def walk(self, state: State, at: int) -> tuple[int, int] | None:
        """Execute until the function returns (None) or a case must be split (the atom, and where)."""
        resumed(state)
        while True:
            self.steps += 1
            if self.steps > STEPS or len(state.path) >= self.longest:
                raise self.failure(at, f"no end after {min(self.steps, len(state.path))} instructions")
            try:
                instr = self.decode(at)
            except DecodeError as error:
                last = self.entry + state.path[-1] if state.path else at
                raise self.failure(at if 0 <= at < len(self.image) else last, str(error)) from None
            self.atoms.here = at
            self.turn(state, at)
            try:
                if at not in self.seen:
                    self.allowed(instr)
                    self.seen.add(at)
                following: int | None = at + instr.insn.size
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
                return split.atom, at
            except (Refused, bus.Misuse) as refused:
                raise self.failure(at, str(refused)) from None
            state.path.append(at - self.entry)
            if following is None:
                return None
            at = following

    def turn(self, state: State, at: int) -> None:
        """The code of a turn of a loop may begin here: it is looked at like that of a function."""
        begun = bool(state.calls) and state.calls[-1].depth == state.depth + 1  # before the state was split
        if at in self.turns and not begun:
            called(state, 1)

    def tick(self, devices: bus.Bus, state: State, instr: Instr) -> None:
        """An instruction begins: what an interrupt may have done to the devices is done."""
        for slot in devices.begin(instr, interruptible=self.interrupts(state)):
            state.slots[slot] = {self.atoms.new(0, state.limb_top()): 1}

    def decode(self, at: int) -> Instr:
        """The instruction at `at`.  Raises DecodeError."""
        if at < 0:
            raise DecodeError("the code runs before its start")
        if at not in self.decoded:
            self.decoded[at] = decode(self.isa, self.image, at)
        return self.decoded[at]

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
        if depth != state.depth:
            state.move_stack(depth)
        limit = depth - state.below()
        if any(buffer == "stack" and offset <= limit for buffer, offset in state.memory):
            raise Refused("writes below the stack pointer, where an interrupt may write too")

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
        if kind == "call" and self.isa.abi.link:
            called(state)
            link = self.atoms.new(0, state.limb_top(), True)
            state.slots[self.isa.slots[self.isa.abi.link]] = {link: 1}
            state.links = (*state.links, (link, state.depth, following))
            return target
        if kind == "call":
            called(state)
            depth = state.depth
            for part in reversed(range(self.core.pc_limbs)):
                state.memory["stack", depth - state.below()] = Return(following, part)
                depth -= 1
            self.set_stack(state, depth)
            return target
        flag, wanted = instr.insn.control[1], int(instr.insn.control[2])
        value = self.decide(state, flag)
        state.events.append(Event(at, "branch", flag, value))
        return target if value == wanted else following

    def decide(self, state: State, flag: str) -> int:
        """The value of a flag that a branch looks at.

        Raises Refused unless it is the same for all operands; Split where it need not be and a bit decides.
        """
        value = state.slots[self.isa.slots[flag]]
        if self.branches and isinstance(value, dict):
            value = self.atoms.reduce(value, state.fixed)
        if isinstance(value, ZeroTest):
            forms = [self.atoms.reduce(form, state.fixed) for form in value.forms]
            if all(not form or form.keys() == {ONE} for form in forms):
                return int(not any(forms))
        elif value is not None and (not value or value.keys() == {ONE}):
            return value.get(ONE, 0)
        if self.branches and value is not None:
            self.split(forms if isinstance(value, ZeroTest) else [value])
        raise Refused(f"branches on {flag}, which depends on a secret or is unknown")

    def split(self, forms: Sequence[Form]) -> None:
        """Raises Split at a bit that the forms, which are reduced, depend on; signs before others."""
        found = {factor for form in forms for atom in form for factor in self.atoms.factors.get(atom, (atom,))}
        bits = [factor for factor in sorted(found) if self.atoms.is_bit(factor)]
        if bits:
            raise Split(next((bit for bit in bits if bit in self.atoms.signs), bits[0]))

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
        limb, parts = self.isa.limb_bits, len(self.stack_slots)
        terms = [(1 << (index * limb), state.slots[slot]) for index, slot in enumerate(self.stack_slots)]
        moved = combine([(1, state.linear(terms)), ((depth - state.depth) * (limb // 8), {ONE: 1})])
        digits = state.digits(moved, [limb] * parts + [1], [1] * (parts + 1), [0] * parts + [LOST])
        for slot, digit in zip(self.stack_slots, digits, strict=False):
            state.slots[slot] = digit
        state.move_stack(depth)

    def unread(self, state: State, slot: int) -> bool:
        """Whether the flag in `slot`, as the current instruction leaves it, is written again before it is read."""
        flag = self.isa.flags[slot - len(self.isa.registers) - len(self.isa.special)]
        at: int | None = self.atoms.here
        assert at is not None
        at += self.decode(at).insn.size
        stack_moved = False
        on_condition = len(state.conditions)  # instructions that may write it, or not
        for _ in range(LOOK_AHEAD):
            try:
                insn = self.decode(at).insn
            except DecodeError:
                return False
            if flag in flags_read(insn, self.isa):
                return False
            if flag in flags_written(insn, self.isa) and not on_condition:
                return True
            on_condition = len(insn.control) - 2 if insn.control[:1] == ("when",) else max(0, on_condition - 1)
            stack_moved = stack_moved or bool(insn.frame) or insn.control[:1] == ("call",)
            at = None if stack_moved and insn.control[:1] == ("return",) else self.after(state, at)
            if at is None:
                return False
        return False

    def after(self, state: State, at: int) -> int | None:
        """Where the code goes on after the instruction at `at`, None where that is not known ahead."""
        instr = self.decode(at)
        following = at + instr.insn.size
        kind = instr.insn.control[0] if instr.insn.control else ""
        if kind == "return" and self.isa.abi.link:
            return state.links[-1][2] if state.links else None
        if kind == "return":
            cell = state.memory.get(("stack", state.depth + 1 - state.below()))
            return cell.target if isinstance(cell, Return) else None
        if kind in ("jump", "call"):
            return following + next(iter(instr.immediates.values()))
        return None if kind and kind != "when" else following

    # ---- at the end ---------------------------------------------------------------------------------------------

    def finish(self, state: State) -> None:
        """Kept registers, zero registers, the interrupt flag, and the result."""
        at = self.atoms.here
        for register in self.isa.abi.callee_saved:
            if not self.kept(state, register):
                raise self.failure(at, f"{register} is not restored")
        for register in self.isa.abi.zero_on_return:
            if self.atoms.reduce(state.form(state.slots[self.isa.slots[register]]), state.fixed):
                raise self.failure(at, f"{register} is not zero on return")
        flag = self.isa.interrupt_enable
        if flag and not self.kept(state, flag):
            raise self.failure(at, "returns with interrupts turned off")
        try:
            self.ending.result(state)
        except Wrong as wrong:
            raise self.failure(wrong.at, wrong.message, wrong.column) from None

    def kept(self, state: State, name: str) -> bool:
        """Whether a register or flag holds what it held at entry."""
        now, then = state.slots[self.isa.slots[name]], self.initial[self.isa.slots[name]]
        if now is then:
            return True
        return not self.atoms.reduce(combine([(1, state.form(now)), (-1, state.form(then))]), state.fixed)

    def same(self, first: State, other: State) -> None:
        """Where a run goes and what it accesses must not differ from case to case."""
        for mine, its in zip(first.events, other.events, strict=False):
            if mine != its:
                what = f"branches on {mine.place}" if mine.kind == "branch" else "the address"
                verb = ", which depends" if mine.kind == "branch" else " depends"
                raise self.failure(mine.at, f"{what}{verb} on a secret")

    def alike(self, first: State, other: State) -> None:
        """Cases may go different ways, but what they access, their stack and their cycles must be the same."""
        mine, its = ([event for event in state.events if event.kind != "branch"] for state in (first, other))
        for ours, theirs in itertools.zip_longest(mine, its):
            if ours is None or theirs is None or ours[1:] != theirs[1:]:
                raise self.failure((ours or theirs).at, "the address depends on a secret")
        if self.stack(first) != self.stack(other):
            raise self.failure(self.atoms.here, "its stack depends on a secret")
        path = tuple(other.path)
        if path in self.paths:
            return
        self.paths[path] = price(self.isa, self.core, self.image, path, self.entry)
        cost, before = self.paths[path], next(iter(self.paths.values()))
        if cost.cycles != before.cycles:
            apart = next(at for at, pair in enumerate(zip(first.path, path, strict=False)) if pair[0] != pair[1])
            cycles = " or ".join(map(str, sorted((before.call, cost.call))))
            raise self.failure(self.entry + path[apart - 1], f"takes {cycles} cycles, depending on a secret")

    def first_use(self, state: State, register: str) -> int:
        """Address of the first instruction executed that reads a register."""
        slot = self.isa.slots[register]
        for offset in state.path:
            instr = self.decode(self.entry + offset)
            for operand in instr.insn.operands:
                if operand.cls and operand.role != "out" and slot in instr.places(self.isa)[operand.name]:
                    return self.entry + offset
        return self.atoms.here

    def failure(self, at: int, message: str, column: int | None = None) -> _Failed:
        """A fault of the instruction at `at`."""
        try:
            text = self.decode(at).text()
        except DecodeError:
            text = "?"
        return _Failed(Fault(at - self.entry, text, message, column))
