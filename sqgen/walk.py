"""The walk: code executed as it would be, on what is known for all operands.

Registers, flags and memory hold linear forms (`symbolic`, `forms`).  `steps` has what single instructions do; here is
where the walk goes: no secret must reach a branch, or each of its values is a case of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import NamedTuple

from . import bus, joined, turns
from .branching import decided
from .brought import brought_by
from .contract import Contract
from .encode import DecodeError, Instr
from .ending import Wrong
from .held import Event, Refused, Return, Split, Ways
from .hot import Hot
from .lemmas import Lemma, Lemmas, applied, lemma, masked, pointers, together
from .linear import ZERO, combine
from .meeting import Meetings
from .products import called, resumed, returned
from .steps import Failed
from .symbolic import State
from .table import Core
from .timing import price

STEPS = 1_000_000  # instructions walked at most, in all cases together
STEPS_BESIDE = 4096  # instructions that a case may take beside those for products
MOST_CASES = 64  # of a function, which is shown by itself, or between a branch and where its arms meet
WAITING = 1 << 24  # what the cases that wait hold at most, in instructions, events and cells: some 200 MB
NESTED = 64  # calls that have not returned, at most


def steps_per_product(octets: int) -> int:
    """Instructions walked at most in one case for each product of limbs of so many octets.

    Rolled loops take about 14 where a limb is one; where it is four, products made of four multiplications take 40.
    """
    return 4 + 12 * octets


def longest(contract: Contract) -> int:
    """Instructions walked at most in one case."""
    return steps_per_product(contract.isa.limb_bits // 8) * contract.limbs**2 + STEPS_BESIDE


class End(NamedTuple):
    """Where a walk ends: a place, with so many calls that have not returned; for None the end of the turn of a loop,
    with the stack pointer where it was at the start."""

    at: int
    calls: int | None = None

    def reached(self, state: State, at: int) -> bool:
        return at == self.at and (state.depth == 0 if self.calls is None else len(state.calls) == self.calls)


class Apart(Failed):
    """The cases of a function can be told from each other, or one is wrong, whoever calls it."""


class Walk(Hot):
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
        at_once: bool = True,
    ) -> None:
        loops = turns.bodies(image, contract.isa, entry)  # whose turns are looked at for their products
        super().__init__(image, contract, core, entry, at_once=at_once and not loops)
        self.branches = branches
        self.steps = 0
        self.latest: Lemma | None = None  # what the latest call was told, and has still to go into the path
        self.longest = longest(contract)
        self.lemmas = lemmas or Lemmas(self.longest)
        self.seen: set[int] = set()  # addresses whose instructions may be executed
        self.masked: set[int] = set()  # those before which interrupts are off
        self.meetings = Meetings(self.instructions.at)
        self.turns = loops

    def cases(self, state: State, at: int, most: int, end: End | None = None) -> Iterator[State]:
        """All cases of what is executed from a place on, each at its end.  Raises Failed, also where they are more than
        `most`, or too large."""
        waiting, held, ended = [(state, at)], state.size, 0
        while waiting:
            case, at = waiting.pop()
            held -= case.size
            split = self.walk(case, at, end)
            if split is None:
                ended += 1
                yield case
                continue
            forked = self.forked(case, *split, end)
            waiting += forked
            held += sum(each.size for each, _ in forked)
            if ended + len(waiting) > most or held > WAITING:
                raise self.failure(at, f"the proof needs more than {most} cases, or too much for each")

    def forked(self, state: State, atom: int, at: int, outer: End | None) -> list[tuple[State, int]]:
        """The two cases of an atom at a place; or where they meet, as one if they can be, with those of a split around
        it if these meet there, too: two atoms may decide one branch."""
        made = len(self.atoms.low)
        forked = [(state.fork(atom, value), at) for value in (1, 0)]
        place = self.meetings.after(at) if self.lemmas.joins else None
        end = End(place, len(state.calls)) if place is not None else None
        if place is None or end == outer:
            return forked
        self.lemmas.tries += 1
        cases = [each for case, _ in forked for each in self.cases(case, at, MOST_CASES // 2, end)]
        one = joined.united(state, cases, made, self.lemmas.refuted)
        if one is None or not self.together(one, place):
            return [(case, place) for case in cases]
        return [(one, place)]

    def together(self, state: State, at: int) -> bool:
        """Whether all ways of arms that were joined, which meet at a place, take as long; then they are noted."""
        _, ways = state.told[-1]
        assert isinstance(ways, Ways)
        paths = tuple((*path, at - self.entry) for path in ways.paths)
        if len({price(self.isa, self.core, self.image, path, self.entry).call for path in paths}) > 1:
            return False
        self.lemmas.joined.append(paths)
        return True

    def walk(self, state: State, at: int, end: End | None = None) -> tuple[int, int] | None:
        """Execute until the function returns, or the `end` is reached (None), or a case must be split (the atom, and
        where)."""
        resumed(state)
        while True:
            at = self.turn(state, at)
            if end and end.reached(state, at):
                return None
            if self.stretches.get(at) and (done := self.executed(state, at, self.left(state), end and end.at)):
                at = self.behind(state, done)
                continue
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
                devices = copy.copy(state.bus)  # an instruction that splits begins once more in each case
                following = self.one(state, instr, at)
            except Split as split:
                state.bus = devices
                return split.atom, at
            except (Refused, bus.Misuse) as refused:
                raise self.failure(at, str(refused)) from None
            state.path.append(at - self.entry)
            self.ran(state)
            if following is None:
                self.over(at, end)
                return None
            at = following

    def one(self, state: State, instr: Instr, at: int) -> int | None:
        """Execute one instruction: where the code goes on behind it, None where it returns."""
        if state.bus:
            self.tick(state.bus, state, instr)
        if state.conditions:
            self.conditional(state, instr)
        elif instr.insn.control:
            following = self.flow(state, instr, at)
            if following is not None and following <= at and instr.insn.control[0] in ("jump", "branch"):
                self.came_back(state, following)
            return following
        else:
            self.plain(state, instr)
            if self.turns and instr.insn.frame:
                returned(state)
        return at + instr.insn.size

    def left(self, state: State) -> int:
        """How many instructions may be walked from here on."""
        return min(STEPS - self.steps, self.longest - len(state.path))

    def behind(self, state: State, done: list[int]) -> int:
        """Note instructions that have been executed at once; where the walk goes on behind them."""
        self.atoms.hold()
        self.steps += len(done)
        self.seen.update(done)
        if not self.interrupts(state):
            self.masked.update(done)
        state.path += [at - self.entry for at in done]
        return done[-1] + self.instructions.at(done[-1]).insn.size

    def ran(self, state: State) -> None:
        """What the latest call was told of has been executed."""
        if self.latest:
            before = sum(known is self.latest for _, known in state.told)
            state.told.append((len(state.path), self.latest))
            state.path += self.latest.path(before)
            self.latest = None

    def over(self, at: int, end: End | None) -> None:
        """The function has returned.  Raises Failed where it should have come to an end before."""
        if end is not None:
            where = "in the turn of a loop" if end.calls is None else "before the arms of a branch meet"
            raise self.failure(at, f"returns {where}")

    def count(self, state: State, at: int) -> None:
        """One more instruction is walked.  Raises Failed where these are too many, TooMuch where their terms are."""
        self.steps += 1
        if not self.interrupts(state):
            self.masked.add(at)
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
            self.ran(state)
            return self.turns[at]
        called(state, 1)
        return at

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
        target = self.instructions.target(at)
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
        if state.fixed and not self.branches:
            return False
        pushed = 0 if self.isa.abi.link or end is not None else self.core.pc_limbs
        for known in self.lemmas.of(target, lambda: self.shown(state, target, end)):
            if applied(state, known, state.depth - pushed):
                self.latest = known
                self.lemmas.used += 1
                return True
        return False

    def shown(self, state: State, target: int, end: int | None) -> Lemma | None:
        """What a function does wherever it is called, its pointers being the registers that hold addresses now, and
        interrupts off if they are now."""
        *jumps, beyond = [target] if state.bus or end is not None else self.way(target)
        if jumps:
            known = next(self.lemmas.of(beyond, lambda: self.shown(state, beyond, None)), None)
            return known and known.by_way_of([at - self.entry for at in jumps])
        walk = Walk(self.image, self.contract, self.core, self.entry, branches=self.branches, lemmas=self.lemmas)
        walk.instructions, walk.seen, walk.masked = self.instructions, self.seen, self.masked
        return walk.alone(state, target, end)

    def way(self, at: int) -> list[int]:
        """By way of which jumps a function is called, and where it is; a round of them is the function itself."""
        places = {at: None}
        while True:
            try:
                instr = self.instructions.at(at)
            except DecodeError:
                return [*places]
            if instr.insn.control[:1] != ("jump",):
                return [*places]
            self.allowed(instr)
            self.seen.add(at)
            at = self.instructions.target(at)
            if at in places:
                return [at]
            places[at] = None

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
        brought = brought_by(caller, names, self.instructions, target)
        for slot, place in brought.items():
            limb = state.cell(place)
            assert isinstance(limb, dict), "nothing is known of the stack"
            slots[slot] = limb
        self.initial = list(slots)
        before = caller.bus.apart() if caller.bus else None
        state.bus = copy.copy(before)
        called(state, 0 if end is None else 1)
        found: list[Lemma] = []
        refuted = self.lemmas.refuted if self.branches else None
        try:
            ended = None if end is None else End(end)
            for case in self.cases(state, target, MOST_CASES if self.branches else 1, ended):
                if flag and not self.kept(case, flag):
                    return None
                first = self.instructions.at(target)
                shown = lemma(case, names, self.initial, first, before, brought=brought, refuted=refuted)
                if not shown:
                    return None
                found.append(shown)
            return together(found, lambda path: price(self.isa, self.core, self.image, path, self.entry).call)
        except Refused as apart:
            raise Apart(self.failure(target, str(apart)).fault) from None
        except Wrong as wrong:
            raise Apart(self.failure(wrong.at, wrong.message).fault) from None
        except Apart:  # of a function that this one calls
            raise
        except Failed:
            return None

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
