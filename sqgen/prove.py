"""The proof, on bytes: for all operands the code writes their product, and nothing else that matters.

The code is walked as it executes, on linear forms (`symbolic`, `forms`).  At the end the difference of result and
product is reduced: it must vanish, or be a multiple of 2^(bits of the result), below which both lie; what else
remains is a carry that the code dropped, and names the instruction.  On the way every access is checked to lie in an
operand, the result or the stack, no secret to reach a branch or an address, and the stack to be safe from interrupts.
"""

from __future__ import annotations

import itertools
from math import prod

from .contract import Contract, Verdict
from .ending import Ending, Wrong
from .forms import TooMuch
from .garbage import uncollected
from .held import Return
from .lemmas import Lemmas, rounds
from .linear import Form
from .overlap import overlap
from .runs import Runs
from .steps import Failed
from .symbolic import State
from .table import Core
from .timing import Price, price
from .walk import Walk, longest

__all__ = ["longest", "prove"]

FEW, CALLS = 20_000, 1  # instructions run, or calls, to find a counterexample before what remains is looked at closely
MANY = 60_000  # and before code that branches is walked again
SHARE = 16  # terms looked at closely for each instruction that is run beyond that
CASES = 4096  # cases followed at most


def prove(image: bytes, contract: Contract, core: Core, entry: int = 0, *, branches: bool = False) -> Verdict:
    """Walk `image` from `entry` (offset in bytes) and decide.  Never raises for what the code does.

    `branches`: the path may depend on secrets, as long as its cycles on the core and what it accesses do not.
    """
    with uncollected():
        runs = Runs(image, contract, core, entry)
        proof = _Proof(runs, branches=branches)
        verdict = proof.run()
        if verdict.fault and proof.done_at_once:  # one by one more is known, and which of them is at fault
            proof = _Proof(runs, branches=branches, at_once=False)
            verdict = proof.run()
        shortened = proof.lemmas.tries if branches else proof.lemmas.used
        if verdict.fault and shortened and not (proof.refuted() or (branches and runs.show(MANY))):
            # more is known of what arms leave if they are not joined, and without lemmas of what a function does
            lemmas = Lemmas(longest(contract), joins=False) if branches else Lemmas(0)
            second = _Proof(runs, branches=branches, lemmas=lemmas, at_once=False).run()
            verdict = verdict if branches and second.fault else second  # joined arms tell in which one it takes longer
        return verdict


class _Proof(Walk):
    """The proof of one function: all its cases, from the first instruction to the last.  `runs` of it may show that
    there is none."""

    def __init__(self, runs: Runs, *, branches: bool, lemmas: Lemmas | None = None, at_once: bool = True) -> None:
        super().__init__(
            runs.image, runs.contract, runs.core, runs.entry, branches=branches, lemmas=lemmas, at_once=at_once
        )
        self.runs = runs

    def run(self) -> Verdict:
        first: State | None = None
        self.paths: dict[tuple[int, ...], Price] = {}  # of all cases, where they may differ
        self.ways = 0
        cases = 0
        try:
            for state in self.cases(self.start(), self.entry, CASES):
                cases += 1
                self.finish(state)
                first = first or state
                if self.branches:
                    self.alike(first, state)
                else:
                    self.same(first, state)
        except Failed as failed:
            return Verdict(self.contract, failed.fault, (), 0, {}, cases)
        except TooMuch:
            fault = self.failure(self.atoms.here, "more terms than this proof can hold").fault
            return Verdict(self.contract, fault, (), 0, {}, cases)
        assert first is not None
        path = tuple(first.path)
        others = tuple(dict.fromkeys((*rounds(first.path, first.told), *self.paths)))[1:]
        arms = tuple(self.lemmas.arms())
        ways, masked = max(1, self.ways), frozenset(at - self.entry for at in self.masked)
        return Verdict(self.contract, None, path, self.stack(first), overlap(first), cases, others, ways, arms, masked)

    def stack(self, state: State) -> int:
        return -state.lowest * (self.isa.limb_bits // 8)

    # ---- before the first instruction ---------------------------------------------------------------------------

    def start(self) -> State:
        """Registers hold unknowns, argument registers the buffers' addresses, the buffers operand limbs."""
        self.lemmas.refuted = self.refuted
        self.operands: dict[str, list[int]] = {}
        slots = self.unknowns()
        for group, (buffer, length) in zip(self.isa.abi.arguments, self.contract.buffers.items(), strict=False):
            self.pointer(slots, group, buffer, length)
        memory: dict[tuple[str, int], Form | Return] = {}
        for buffer in list(self.contract.buffers)[1:]:
            limbs = [self.atoms.new(0, (1 << self.isa.limb_bits) - 1) for _ in range(self.contract.limbs)]
            self.operands[buffer] = limbs
            self.wiped.operands.update(limbs)
            memory.update({(buffer, index): {atom: 1} for index, atom in enumerate(limbs)})
        state = self.entered(slots, memory)
        held = {name: slots[self.isa.slots[name]] for name in self.isa.registers}
        unset = {atom: name for name, value in held.items() if isinstance(value, dict) for atom in value}
        self.ending = Ending(
            self.contract,
            self.atoms,
            self.operands,
            unset,
            self.first_use,
            refuted=self.refuted,
            branches=self.branches,
        )
        return state

    def refuted(self) -> bool:
        """Whether some operands show that the code is wrong, of the more the longer is looked at it."""
        return self.runs.show(max(FEW, self.atoms.looked // SHARE), CALLS)

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
        if self.contract.wiped and (where := self.wiped.leftover(state)):
            raise self.failure(at, f"what was made from operands may be left {where}")

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
        self.ways += prod(known.ways for _, known in other.told)
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
            instr = self.instructions.at(self.entry + offset)
            for operand in instr.insn.operands:
                if operand.cls and operand.role != "out" and slot in instr.places(self.isa)[operand.name]:
                    return self.entry + offset
        return self.atoms.here
