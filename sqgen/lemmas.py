"""Functions that are shown once: whoever calls them later is told what they do.

When a function is called for the first time it is walked by itself, knowing nothing: registers hold unknowns, those
that hold an address at this call hold that of a buffer of their own, and the limbs read there are unknown.  If it
returns, and what it wrote is the product of what it read (`products`), that is so for every call: a *lemma*.

A call may use it if its pointers point somewhere too; if nothing that the function writes, on the stack or beyond its
pointers, is another place that it uses, for the lemma knows these as different; and if registers hold limbs of memory
where they did at the first call, as far as the function may make use of that (`brought`).  Then the call reads, writes
and runs what the lemma's walk did, moved to where the pointers point; the limbs written are digits of the product of
the limbs read, and registers hold what they held, pointers moved by as much, limbs of the product, or something
unknown.

Where branches on secrets are allowed a function may have several cases, each of which must show the same; if one does
not, the code is refused.  A function that is called by way of jumps is shown where these lead.

Otherwise, where there is no lemma, or it does not fit, the call is walked like any other code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, NamedTuple

from .agreement import Agreement
from .brought import Brought, holds, pointed_at
from .bus import Bus
from .encode import Instr
from .ending import Wrong, blame, suspected
from .held import Event, Place, Refused, Ways
from .linear import ONE, ZERO, Form, combine
from .products import Guess, digits_of, error, forms, guesses, is_product, touched
from .symbolic import State
from .table import Isa

Group = tuple[str, ...]  # registers that hold an address together, low limb first
STACK = "stack"
MOST = 2  # lemmas of one function, which is called with other pointers than before
DEEPEST = 32  # lemmas that are being shown, each for the one before


class Held(NamedTuple):
    """What a register holds at the return: a `limb` of the product, or a `number`."""

    what: Literal["limb", "number"]
    value: int


class Moved(NamedTuple):
    """A group of registers that holds an address again: a buffer's start and some bytes."""

    group: Group
    buffer: str
    distance: int


@dataclass(frozen=True)
class Lemma:
    """What a function does.  Places are in buffers named after the group of registers that pointed there, or on the
    stack, relative to the stack pointer when the function begins.  `pointers` are those of which it makes use: of what
    the others hold nothing was known but that it is a number."""

    pointers: Mapping[str, Group]
    events: tuple[Event, ...]
    paths: tuple[tuple[int, ...], ...]  # of as many cycles, enough to see all that is executed
    cases: tuple[tuple[int, ...], ...]  # those that differ by what the function itself has looked at
    ways: int  # paths in all
    lowest: int
    left: tuple[Place, ...]
    right: tuple[Place, ...]
    written: tuple[Place, ...]
    spoiled: tuple[Place, ...]  # written, but not by limbs of the product
    limbs: int  # of the product, whose highest may be in registers alone
    kept: frozenset[int]  # slots that hold what they held
    held: Mapping[int, Held]  # slots that hold something known
    moved: tuple[Moved, ...]
    first: Instr
    before: Bus | None  # the devices when it begins
    after: Bus | None  # and at its end
    masked: bool  # whether interrupts are off when it begins
    brought: Brought  # registers that hold limbs of memory then

    def path(self, call: int) -> tuple[int, ...]:
        """The path of the call with this number: they take turns."""
        return self.paths[call % len(self.paths)]

    def by_way_of(self, jumps: Sequence[int]) -> Lemma:
        """The same by way of jumps to the function, at these offsets in bytes from the entry."""
        paths, cases = (tuple((*jumps, *path) for path in some) for some in (self.paths, self.cases))
        return replace(self, paths=paths, cases=cases)


class Lemmas:
    """The lemmas of one proof, by function; at most so many `steps` are walked in vain to find some.  `refuted` says
    whether the code is known to be wrong; `joins` whether arms may be joined."""

    def __init__(self, steps: int, refuted: Callable[[], bool] = lambda: False, *, joins: bool = True) -> None:
        self.steps, self.refuted, self.joins = steps, refuted, joins
        self.known: dict[int, list[Lemma]] = {}
        self.closed: set[int] = set()  # functions that are being shown, or cannot be
        self.joined: list[tuple[tuple[int, ...], ...]] = []  # paths of arms, up to the place where they were joined
        self.tries = 0  # how often that was tried
        self.used = 0
        self.showing = 0  # lemmas, each for the one before

    def arms(self) -> Iterator[tuple[tuple[int, ...], ...]]:
        """Of each function that goes several ways, and of arms that were joined: the paths."""
        yield from self.joined
        yield from (each.cases for known in self.known.values() for each in known if len(each.cases) > 1)

    def go_on(self) -> bool:
        """Whether one more instruction may be walked to show a lemma."""
        self.steps -= 1
        return self.steps >= 0

    def of(self, target: int, show: Callable[[], Lemma | None]) -> Iterator[Lemma]:
        """What is known of a function, at last what can be shown now."""
        yield from self.known.get(target, ())
        full = len(self.known.get(target, ())) >= MOST or self.showing == DEEPEST
        if target in self.closed or full or self.steps <= 0:
            return
        self.closed.add(target)
        steps = self.steps
        self.showing += 1
        try:
            found = show()
        finally:
            self.showing -= 1
        if found:
            self.closed.remove(target)
            self.steps = steps
            self.known.setdefault(target, []).append(found)
            yield found


def groups(isa: Isa) -> Iterator[Group]:
    """Registers that may hold an address."""
    held = ((register,) for register in isa.registers) if isa.address_limbs == 1 else isa.wide.values()
    yield from (group for group in held if len(group) == isa.address_limbs and group != isa.stack_registers)


def pointers(state: State) -> dict[str, Group]:
    """The groups of registers that point to a limb of a buffer, by names for these buffers."""
    size = state.contract.isa.limb_bits // 8
    found = {}
    for group in groups(state.contract.isa):
        where = state.resolve(state.joined(group))
        if where and where[1] % size == 0:
            found[":".join(group)] = group
    return found


# ---- what a walk showed -----------------------------------------------------------------------------------------


def lemma(
    state: State,
    names: Mapping[str, Group],
    initial: Sequence[object],
    first: Instr,
    before: Bus | None,
    *,
    brought: Brought,
    refuted: Callable[[], bool] | None = None,
) -> Lemma | None:
    """What the walk of a function, or one case of it, showed that knew nothing but pointers, `initial` being what
    registers held then, limbs of memory where they were `brought`, and `before` what the devices were; None if it does
    not leave a product.  `refuted` is given where it may branch.  Raises Wrong."""
    assert state.given is not None
    read, written = touched(state, 0)
    if any(buffer == STACK for buffer, _ in (*read, *written)):
        return None
    before_it = 1 + max((atom for form in initial if isinstance(form, dict) for atom in form), default=ONE)
    whole = sorted({*read, *brought.values()})  # or some was brought by chance
    tried = (whole, read) if whole != read else (read,)
    shown = next(filter(None, (product_of(state, each, written, before_it, refuted) for each in tried)), None)
    if not shown:
        return None
    factors, result, places = shown
    kept = frozenset(slot for slot, value in enumerate(state.slots) if value is initial[slot] and value is not None)
    known = {frozenset(form.items()): at for at, form in enumerate(result) if form.keys() - {ONE}}
    held: dict[int, Held] = {}
    for slot, value in enumerate(state.slots):
        if isinstance(value, dict) and slot not in kept:
            if not value.keys() - {ONE}:
                held[slot] = Held("number", value.get(ONE, 0))
            elif frozenset(value.items()) in known:
                held[slot] = Held("limb", known[frozenset(value.items())])
    addresses = tuple(moved(state, kept))
    used = {event.place for event in state.events} | {each.buffer for each in addresses}
    used |= {buffer for buffer, _ in brought.values()}
    return Lemma(
        {name: group for name, group in names.items() if name in used},
        tuple(state.events),
        tuple(rounds(state.path, state.told)),
        (tuple(state.path),),
        prod(each.ways for _, each in state.told),
        state.lowest,
        tuple(factors[0]),
        tuple(factors[1]),
        tuple(places),
        tuple(written[len(places) :]),
        len(result),
        kept,
        held,
        addresses,
        first,
        before,
        state.bus,
        masked(state.contract.isa, initial),
        brought,
    )


def product_of(
    state: State, read: Sequence[Place], written: list[Place], atoms: int, refuted: Callable[[], bool] | None
) -> Guess | None:
    """What a function, which began when there were so many atoms, is shown to have multiplied.  Raises Wrong."""
    assert state.given is not None
    for number, (factors, result, places) in enumerate(guesses(state, read, written, atoms, 0)):
        left, right = (forms([state.given[place] for place in factor]) for factor in factors)
        try:
            if agrees(state, result, left, right, refuted) if refuted else is_product(state, result, left, right, 0):
                return factors, result, places
        except Wrong:
            if number:  # these hardly are the limbs that are meant
                return None
            raise
    return None


def agrees(
    state: State, result: Sequence[Form], left: Sequence[Form], right: Sequence[Form], refuted: Callable[[], bool]
) -> bool:
    """Whether the limbs of `result` make up left * right in the state's case.  Raises Wrong if not, and there are other
    cases, or the code is known to be wrong: to walk all cases of all calls would take long, and say the same."""
    width = state.contract.isa.limb_bits
    agreement = Agreement(state.atoms, 1 << (width * len(result)), branches=True, refuted=refuted)
    rest = agreement.left(error(state, result, left, right), state.fixed)
    if rest and (state.fixed or refuted()):
        limbs = {atom for form in (*left, *right) for atom in form}
        raise blame(state.atoms, suspected(state.atoms, rest, limbs, width)[0], None)
    return not rest


def rounds(path: Sequence[int], told: Sequence[tuple[int, Lemma | Ways]]) -> Iterator[tuple[int, ...]]:
    """The path of a case; then it with other paths of what it was `told` of, until each was there."""
    calls = Counter(id(known) for _, known in told)
    for turn in range(max((-(-len(known.paths) // calls[id(known)]) for _, known in told), default=1)):
        new: list[int] = []
        end, seen = 0, Counter[int]()
        for at, known in told:
            call, which = seen[id(known)], id(known)
            new += [*path[end:at], *known.path(turn * calls[which] + call)]
            end = at + len(known.path(call))
            seen[which] += 1
        yield (*new, *path[end:])


def together(found: Sequence[Lemma], cycles: Callable[[Sequence[int]], int]) -> Lemma | None:
    """What all cases of a function have shown; None if they do not leave the same.  Raises Refused if one can be told
    from another by its time, or by what it reads and writes."""
    first, *others = found
    if not others:
        return first
    cases = {each.paths[0]: each for each in found}
    times = sorted({cycles(path) for path in cases})
    if len(times) > 1:
        raise Refused(f"this function takes {times[0]} or {times[-1]} cycles, depending on a secret")
    if any((accesses(each), each.lowest) != (accesses(first), first.lowest) for each in others):
        raise Refused("what this function reads and writes depends on a secret")
    if any(leaves(each) != leaves(first) for each in others):
        return None
    return replace(
        first,
        paths=tuple(dict.fromkeys((*first.paths, *cases))),
        cases=tuple(cases),
        ways=sum(each.ways for each in cases.values()),
        kept=frozenset.intersection(*(each.kept for each in found)),
        held={slot: held for slot, held in first.held.items() if all(each.held.get(slot) == held for each in others)},
    )


def leaves(known: Lemma) -> tuple[object, ...]:
    """What must be the same in all cases."""
    product = known.left, known.right, known.written, known.spoiled, known.limbs
    return *product, known.moved, known.before, known.after


def accesses(known: Lemma) -> list[tuple[str, str, int]]:
    """What a function reads and writes, in order."""
    return [(kind, place, number) for _, kind, place, number in known.events if kind != "branch"]


def moved(state: State, kept: frozenset[int]) -> Iterator[Moved]:
    """The groups of registers that hold other addresses than before."""
    for group in groups(state.contract.isa):
        where = state.resolve(state.joined(group))
        if where and where[0] != STACK and not all(state.contract.isa.slots[part] in kept for part in group):
            yield Moved(group, *where)


def masked(isa: Isa, slots: Sequence[object]) -> bool:
    """Whether interrupts are off."""
    return isa.interrupt_enable is not None and slots[isa.slots[isa.interrupt_enable]] == ZERO


# ---- what a call does -------------------------------------------------------------------------------------------


def applied(state: State, known: Lemma, depth: int) -> bool:
    """Let a call do what a lemma says, the stack pointer being `depth` when the function begins; whether it may."""
    if known.masked and not masked(state.contract.isa, state.slots):
        return False
    if state.bus and known.before and not state.bus.suits(known.before, known.first):
        return False
    starts = pointed_at(state, known.pointers)
    if starts is None:
        return False
    starts[STACK] = (STACK, depth)

    def place(buffer: str, number: int) -> Place:
        there, start = starts[buffer]
        return there, start + number

    events = [at_place(event, place) for event in known.events]
    left, right, written, spoiled = (
        [place(*each) for each in some] for some in (known.left, known.right, known.written, known.spoiled)
    )
    if not all(holds(state, slot, place(*each)) for slot, each in known.brought.items()):
        return False
    before = forms([state.cell(each) for each in left]), forms([state.cell(each) for each in right])
    if not (all(before) and apart(known, place) and all(writable(state, each) for each in written + spoiled)):
        return False
    addresses = [(each.group, moved_from(state, known, each)) for each in known.moved]
    digits = digits_of(state, *before, known.limbs)
    state.events += events
    state.left.update((event.number, None) for event in events if (event.kind, event.place) == ("write", STACK))
    state.memory.update(zip(written, digits, strict=False))
    state.memory.update((each, unknown(state)) for each in spoiled)
    state.lowest = min(state.lowest, depth + known.lowest)
    registers(state, known, digits)
    for group, form in addresses:
        state.point(group, form)
    if state.bus and known.after:
        state.bus.went(known.after)
    return True


def at_place(event: Event, place: Callable[[str, int], Place]) -> Event:
    """The same event where a place is moved to."""
    if event.kind == "branch":
        return event
    buffer, number = place(event.place, event.number)
    return event._replace(place=buffer, number=number)


def apart(known: Lemma, place: Callable[[str, int], Place]) -> bool:
    """Whether each place that the function writes is, where it is moved to, none of the others that it uses."""
    used = {(event.place, event.number) for event in known.events if event.kind != "branch"}
    wrote = {(event.place, event.number) for event in known.events if event.kind == "write"}
    count = Counter(place(*each) for each in used)
    return all(count[place(*each)] == 1 for each in wrote)


def writable(state: State, place: Place) -> bool:
    """Whether code may write to a place now: to the result, or to the frame of a function that called."""
    buffer, offset = place
    if buffer == STACK:
        return state.depth - state.below() < offset <= -state.below() and isinstance(state.memory.get(place, {}), dict)
    length = state.contract.buffers.get(buffer)
    return (buffer == "r" or state.given is not None) and (length is None or 0 <= offset < length)


def moved_from(state: State, known: Lemma, to: Moved) -> Form:
    """An address that the function leaves."""
    return combine([(1, state.joined(known.pointers[to.buffer])), (to.distance, {ONE: 1})])


def registers(state: State, known: Lemma, digits: Sequence[Form]) -> None:
    """What registers and flags hold at the return, but for addresses."""
    isa = state.contract.isa
    flags = {isa.slots[flag] for flag in isa.flags}
    link = isa.slots[isa.abi.link] if isa.abi.link else None
    for slot in range(len(state.slots)):
        if slot in state.watched:
            continue
        if slot in flags:
            state.slots[slot] = None
        elif slot in known.kept and slot != link:  # which the call has written
            continue
        elif slot in known.held:
            what, value = known.held[slot]
            state.slots[slot] = digits[value] if what == "limb" else state.constant(value)
        else:
            state.slots[slot] = unknown(state)


def unknown(state: State) -> Form:
    """A limb of which nothing is known."""
    return {state.atoms.new(0, state.limb_top()): 1}
