"""One level of Karatsuba on AVR whose parts are functions, written out or with loops.

The frame on the stack, from the top: the pointers r, b, a, each low byte first, but r below the others if it is needed
to the end, since the parts do not leave it where one knows; the sign of M, if there is one; M.
What is needed for the last time is popped, M as its limbs are used: so nothing is left of the frame at the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqgen.allocate import meeting
from sqgen.code import Builder, Memory, Virtual
from sqgen.plan import Block, Difference, Part, Plan, Recombine, Slice

from .avr_address import SCRATCH, moves, reserve, stack_pointer_to
from .avr_arms import in_arms
from .avr_difference import difference
from .avr_groups import LOAD, REACHED, STORE, most_upper, reached
from .avr_karatsuba import Loop, looped_difference
from .avr_leaf import store
from .avr_passing import ALL_STORED, Functions, Given, Passing, Taken
from .avr_recombine import Recombination
from .avr_registers import HIGH, LOW, POINTERS, pointers
from .avr_unrolled import SECOND, ZERO, OfL, Unrolled
from .avr_writer import looped


def whole_turns(step: Recombine, plan: Plan) -> bool:
    """Whether a loop can do the last step of a plan: the limbs of both halves make whole turns."""
    return bool(step.turn) and plan.limbs % (2 * step.turn) == 0


def left(plan: Plan, given: Given) -> int | None:
    """The limb of the result at which a function that forms a plan leaves its pointer, None if that is not settled."""
    if looped(plan):
        return None
    last = next((step for step in plan.steps if isinstance(step, Recombine)), None)
    if any(part.called for part in plan.parts()):
        return 2 * last.half if last and last.half <= REACHED and not whole_turns(last, plan) else None
    if pointers(plan)["r"] == "X":
        return 2 * plan.limbs - (1 if given.stored else given.limbs)
    return 0 if 2 * plan.limbs <= REACHED else None


FEW = 4  # turns of a loop that are better written out
LATER = 2  # calls after M's


def load_pointer(build: Builder, pointer: str, slot: int, first: int) -> None:
    """Let a pointer register point at limb `first` of what the pointer in a slot of the frame points at; Y is the stack
    pointer, and may be the one that is loaded."""
    low, high = POINTERS[pointer]
    by_way = LOW if pointer == "Y" else low
    build.emit("ldd_y", by_way, slot)
    build.emit("ldd_y", high, slot + 1)
    if pointer == "Y":
        build.emit("mov", low, by_way)
    build.raw(moves(pointer, first))


class Level:
    """The steps of a plan: differences, three calls, and the last one.

    `pool` are the registers for limbs beside the pointers, `functions` those that form the parts, `own` the limbs of an
    operand that are in registers at the beginning.  What has not been stored of M and H is stored here; of L it is what
    the last step needs next.
    """

    def __init__(
        self, build: Builder, plan: Plan, pool: Sequence[str], functions: Functions, own: Taken | None
    ) -> None:
        self.build, self.plan, self.given, self.own = build, plan, functions.given, own
        self.passing = Passing(build, plan, functions, own)
        self.pool = list(pool)
        self.walks = pointers(plan)
        (self.last,) = (step for step in plan.steps if isinstance(step, Recombine))
        self.halves = (self.last.half, plan.limbs - self.last.half)
        self.turn = self.last.turn if whole_turns(self.last, plan) else 0  # limbs in a turn of the loops, if any
        self.above_m: list[str] = []  # what lies on M, byte by byte
        self.kept: deque[tuple[str, int]] = deque()  # where calls to come leave the result's pointer
        self.sign: Virtual | str | None = None  # of the last difference, or of M
        self.at = 0  # the limb that the result's pointer points at when all are formed
        self.highest: Sequence[Virtual] = ()  # limbs of the product, which are left in registers too
        self.upper: dict[int, Virtual] = {}  # the limbs of L's upper half that are in registers, by index

    def all_steps(self) -> None:
        """From the pointers in registers to the whole result."""
        with self.passing.accepted():
            self.save()
        if self.plan.limbs % 2:
            self.build.emit("eor", ZERO, ZERO)
        later = True  # a call is still to come after this one
        for step in self.plan.steps:
            match step:
                case Block(title):
                    self.build.heading(title)
                case Difference():
                    self.difference(step)
                case Part() if step.into.name == "m":
                    self.call_middle(step)
                case Part() if later:
                    self.call_second(step)
                    later = False
                case Part():
                    self.call_third(step)
                case Recombine():
                    self.recombine(step)

    def save(self) -> None:
        """Reserve the frame and push the pointers."""
        self.above_m = ["sign"] if self.last.signs else []
        self.build.raw(reserve(2 * self.last.half + len(self.above_m)))
        self.kept = deque(self.ends())
        for base, pointer in sorted(self.walks.items(), key=lambda walk: (walk[0] == "r") == bool(self.kept)):
            for register in reversed(POINTERS[pointer]):
                self.build.emit("push", register)
                self.above_m.append(base)

    def ends(self) -> list[tuple[str, int]]:
        """(pointer register, limb) where H and L leave the result's pointer, if that is known of both."""
        found = [
            (pointers(part.plan)["r"], part.into.first + at)
            for part in self.plan.parts()
            if part.into.name == "r" and (at := left(part.plan, ALL_STORED)) is not None
        ]
        return found if len(found) == LATER else []

    def slot(self, name: str) -> int:
        """Where something lies, its lowest byte, in bytes above the stack pointer."""
        return len(self.above_m) - max(index for index, each in enumerate(self.above_m) if each == name)

    def pop(self, pointer: str) -> None:
        """Take a pointer register from the stack."""
        for register in POINTERS[pointer]:
            self.build.emit("pop", register)
            self.above_m.pop()

    def difference(self, step: Difference) -> None:
        """|low - high| of an operand, or |high - low| if this function takes limbs of an upper half, which become that;
        Y walks over each in turn."""
        build, pointer, passing = self.build, self.walks[step.left.name], self.passing
        last = step is passing.last_difference
        if pointer != "Y":
            build.emit("movw", POINTERS["Y"][0], POINTERS[pointer][0])
            build.mark("point", "Y", Memory(step.left.name, 0))
            self.lend(pointer)
        in_r1 = not self.sign and not self.plan.limbs % 2  # which no loop leaves to a sign
        sign: Virtual | str = HIGH if in_r1 else build.limb("borrow")
        if not in_r1 and not self.sign and passing.taken(passing.middle):
            sign = SCRATCH[1]  # where no function takes a limb
            build.mark("retake", sign)
        if self.turn and step.into.count > FEW * self.turn:
            sign = looped_difference(self.loop({"Y": step.left.name, "Z": "r"}), step)
        else:
            free = len(self.pool) - (not in_r1) - bool(self.sign and self.sign != HIGH)
            halves = replace(step, left=step.right, right=step.left) if self.own else step
            found = difference(build, halves, free, sign, there=passing.there, places=passing.places(step))
            passing.there = found if last else {}
        if self.sign:
            build.emit("eor", sign, self.sign, comment="all ones if M is to be added")
        if last and SCRATCH[1] in (sign, self.sign):
            build.mark("release", SCRATCH[1])
        self.sign = sign

    def lend(self, pointer: str) -> None:
        """Limbs may have a pointer's registers from here on."""
        self.build.mark("release", *POINTERS[pointer])
        self.pool += POINTERS[pointer]

    def take(self, pointer: str) -> bool:
        """They may not, if they might; whether they might."""
        might = POINTERS[pointer][0] in self.pool
        if might:
            self.build.mark("retake", *POINTERS[pointer])
            self.pool = [register for register in self.pool if register not in POINTERS[pointer]]
        return might

    # ---- calls ----------------------------------------------------------------------------------------------------

    def call_middle(self, step: Part) -> None:
        """M, from the differences in the result, where Z points."""
        build, wanted, arrived = self.build, pointers(step.plan), self.passing.of_middle()
        build.mark("walk", Memory("r", 0))
        if "sign" in self.above_m:
            assert self.sign
            build.raw(stack_pointer_to("Y"))
            build.emit("std_y", self.sign, self.slot("sign"))
        operands = {wanted[base]: where.first for base, where in self.passing.factors().items() if base in wanted}
        for pointer in sorted(operands, key=lambda pointer: pointer == "Z"):  # Z is the way to the others: last
            if pointer != "Z":
                build.emit("movw", POINTERS[pointer][0], POINTERS["Z"][0])
            build.raw(moves(pointer, operands[pointer]))
        build.raw(stack_pointer_to(wanted["r"]))
        build.raw(moves(wanted["r"], len(self.above_m) + 1))
        self.call(step, arrived)

    def call_second(self, step: Part) -> None:
        """H.  The result's pointer is popped if the parts leave it where it can be used again."""
        build, wanted = self.build, pointers(step.plan)
        slices = {wanted[base]: where for base, where in (("a", step.left), ("b", step.right)) if base in wanted}
        if not self.kept:
            slices[wanted["r"]] = step.into
        build.raw(stack_pointer_to("Y"))
        fetched: list[Virtual] = []
        if self.passing.by_x(step):
            self.load_pointers({"X": slices.pop("X")})
            fetched = self.passing.fetched(step, "Z")
        self.load_pointers(slices)
        if self.kept:
            self.pop(wanted["r"])
            build.raw(moves(wanted["r"], step.into.first))
        self.call(step, fetched or self.passing.fetched(step))

    def call_third(self, step: Part) -> None:
        """L.  The operands' pointers are popped."""
        build, wanted = self.build, pointers(step.plan)
        if self.kept:
            self.take_over(wanted["r"], step.into.first)
        else:
            build.raw(stack_pointer_to("Y"))
            self.load_pointers({wanted["r"]: step.into})
        slices = {"a": step.left, "b": step.right}
        fetched: list[Virtual] = []
        for base in reversed([base for base in self.walks if base in slices]):
            self.pop(wanted[base])
            build.raw(moves(wanted[base], slices[base].first))
            if wanted[base] == "X" and self.passing.by_x(step):
                fetched = self.passing.fetched(step, "Y")
        fetched = fetched or self.passing.fetched(step)
        if reached(self.last.half) and not self.turn:
            self.lend("Y")
        self.upper = self.call(step, fetched, last=True)

    def call(self, step: Part, arrived: Sequence[Virtual], *, last: bool = False) -> dict[int, Virtual]:
        """Form a part.  What its function has not stored is stored here, but for limbs of the `last` one that stay in
        registers: these, by their indices in its upper half."""
        build, pointer = self.build, pointers(step.plan)["r"]
        label = self.passing.label(step)
        if self.turn:
            build.mark("rcall", label)
            return {}
        given = self.given[label.name]
        limbs = [build.limb(f"{step.into.name}{i}", place=meeting(label.name, "give", i)) for i in range(given.limbs)]
        others = [register for each in POINTERS if each != pointer for register in POINTERS[each]]
        build.mark("release", *others)  # where limbs may be left, but not in the pointer that is needed next
        taken = self.take(pointer)
        build.mark("rcall", label, *arrived, *limbs, reads=arrived, writes=limbs)
        first = len(limbs) - (self.staying(given) if last else 0)  # of those that stay
        end = left(step.plan, Given(len(limbs) - first, stored=given.stored or first == len(limbs)))
        if not given.stored:
            self.store(step, limbs[:first], given, end)
        build.mark("retake", *(register for register in others if register not in self.pool))
        if last and self.kept and end is not None:
            self.kept[0] = (pointer, end)
        elif taken:
            self.lend(pointer)
        return dict(enumerate(limbs[first:], step.plan.limbs - len(limbs) + first))

    def store(self, step: Part, limbs: Sequence[Virtual], given: Given, end: int | None) -> None:
        """Store limbs of a part where its function, which has not, leaves its pointer; that is at `end` then."""
        at = left(step.plan, given)
        assert at is not None and end is not None, "or the function would have stored them"
        base, first = step.into.name, step.into.first
        self.build.mark("point", pointers(step.plan)["r"], Memory(base, first + at))
        store(self.build, first + step.into.count - given.limbs, limbs, base)
        self.build.mark("walk", Memory(base, first + end))

    def staying(self, given: Given) -> int:
        """How many of the limbs of L that its function leaves in registers stay there."""
        masked = bool(self.last.signs) and not self.last.branched
        saved = LOAD if given.stored else LOAD + STORE
        there = min(given.limbs, self.last.half)
        return most_upper(self.halves, len(self.pool), there, masked=masked, saved=saved)

    def take_over(self, pointer: str, limb: int) -> None:
        """Let a register point at a limb of the result, from where the last call left its pointer."""
        known, at = self.kept.popleft()
        if known != pointer:
            self.build.emit("movw", POINTERS[pointer][0], POINTERS[known][0])
        self.build.raw(moves(pointer, limb - at))

    def load_pointers(self, slices: dict[str, Slice]) -> None:
        """Let pointer registers point at slices of the operands and the result, by way of Y at the stack pointer."""
        for pointer, where in sorted(slices.items(), key=lambda item: item[0] == "Y"):  # Y last
            load_pointer(self.build, pointer, self.slot(where.name), where.first)

    # ---- the last step --------------------------------------------------------------------------------------------

    def recombine(self, step: Recombine) -> None:
        """Z and the sign from the stack, then L + H - M or, with a negative M, L + H + M."""
        build = self.build
        if self.kept:
            known, self.at = self.kept.popleft()
            if known != "Z":
                build.emit("movw", POINTERS["Z"][0], POINTERS[known][0])
                if not self.turn:
                    self.lend(known)
        else:
            self.pop("Z")
        if self.turn:
            build.raw(moves("Z", -self.at))
            self.at = 0
        elif not reached(step.half):
            build.emit("movw", POINTERS["Y"][0], POINTERS["Z"][0])
            build.raw(moves("Y", -self.at))
        lent: Sequence[str] = () if reached(step.half) and not self.turn else POINTERS["Y"]
        sign: Virtual | None = None
        if step.signs:
            sign = build.limb("sign")
            build.emit("pop", sign)
        if sign and step.branched:
            build.emit("asr", sign)
            self.highest = in_arms(
                build, "brcs", lambda added, above: self.arm(step, None, added=added, lent=lent, above=above)
            )
        elif last := self.arm(step, sign, added=False, lent=lent):
            self.highest = last.highest()

    def loop(self, walks: Mapping[str, str]) -> Loop:
        return Loop(self.build, self.turn, walks)

    def arm(
        self,
        step: Recombine,
        sign: Virtual | None,
        *,
        added: bool,
        lent: Sequence[str],
        above: Sequence[Virtual] = (),
    ) -> Unrolled | None:
        """L + H - M, or L + H + M if it is `added` or the mask `sign` is all ones; what did it, if no loop."""
        build = self.build
        build.mark("point", "Z", Memory("r", self.at))
        if self.turn:
            build.emit("eor", ZERO, ZERO)
            loop = self.loop({"Z": "r"})
            Recombination(loop, step.half, sign=sign, added=added).all_steps()
            return None
        if not reached(step.half):
            build.mark("point", "Y", Memory(SECOND, 0))
        free, of_l = len(self.pool), OfL(self.upper)
        last = Unrolled(build, self.halves, free, sign=sign, added=added, lent=lent, of_l=of_l, above=above)
        last.all_steps()
        return last
