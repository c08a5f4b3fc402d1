"""A level of Karatsuba's method on MSP430 whose parts are formed one after the other by the same code, in a loop.

A call would have to name an absolute address, so that the code's bytes would hang on where it is linked; a loop does
not.  What each turn works on is pushed before, and popped at its beginning:

    turns left, (b), a, r  ... (b), a, r        the addresses of M come first, then those of H and L

The frame that stays below lies, from the stack pointer up: M, its sign if there are two, the addresses that the level
was given.  `msp430_sums` is the last step.

Of an odd number of limbs the lower half has one more, and H is formed by code of its own, before the others.

Sources: [HS15]; research/msp430.md, section 5.6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqgen.code import Op
from sqgen.errors import UserError
from sqgen.plan import Block, Difference, Part, Plan, Recombine, Slice
from sqgen.table import Core, Isa

from .msp430_columns import FREE
from .msp430_sums import recombine
from .msp430_writer import LEFT, RESULT, RIGHT, Writer

ADDRESSES = {"r": RESULT, "a": LEFT, "b": RIGHT}
WORDS = ("r11", "r10", "r9", *FREE)  # what passes over limbs has in registers at a time
SPARE = "r15"
NEAR = 1000  # bytes over which a branch goes back for sure

Former = Callable[[Plan, str], Sequence[Op]]  # how a part is formed, and its path: it may change every register
HIGHER, LOWER = "h", "l"  # on the path to a part: H of a level, or what shares code with L


def leveled(plan: Plan) -> bool:
    """Whether a plan is a level of parts that are called."""
    level = all(isinstance(step, Block | Difference | Part | Recombine) for step in plan.steps)
    return level and any(part.called for part in plan.parts()) and isinstance(plan.steps[-1], Recombine)


class Level(Writer):
    """One level; `former` forms its parts, `path` leads to it from the outermost one."""

    def __init__(self, plan: Plan, isa: Isa, core: Core, former: Former, path: str) -> None:
        self.plan, self.former, self.path = plan, former, path
        self.level = f"{len(path)}{path if HIGHER in path else ''}"  # in labels, of which each must be another one
        self.half = next(step.half for step in plan.steps if isinstance(step, Recombine))
        self.given = [ADDRESSES[name] for name in ("r", *plan.operands)]
        self.room = 2 * self.half + len(plan.operands) - 1  # limbs below the addresses
        self.pushed = 0  # limbs below the frame
        self.known = {
            register: (name, 0) for name, register in ADDRESSES.items()
        }  # register -> what it points at, and at which limb of that
        super().__init__(isa, core)

    def all(self) -> None:
        """All steps, in order."""
        for register in reversed(self.given):
            self.emit("push", register)
        self.shift_stack(-self.room)
        parts: list[Part] = []
        for step in self.plan.steps:
            match step:
                case Block(title):
                    self.build.heading(title)
                case Difference():
                    self.difference(step)
                case Part():
                    parts.append(step)
                case Recombine(turn=0, branched=False):
                    self.parts(parts)
                    self.point(RESULT, Slice("r", 0, 0))
                    recombine(self, self.plan.limbs, signed=self.plan.op == "mul")
                case Recombine():
                    raise UserError(f"{self.plan.method} sums up without loops on this core; choose recombine=unrolled")
                case _:
                    raise UserError(f"{self.plan.method} has cells beside a part, which sqgen cannot form here")
        self.shift_stack(self.room - 2 * self.half + len(self.given))

    # ---- addresses -------------------------------------------------------------------------------------------------

    def point(self, register: str, which: Slice) -> None:
        """Let a register point at a slice: of what the level was given, or of M."""
        beside = {name: (other, first) for other, (name, first) in self.known.items()}
        name, first = self.known.get(register, ("", 0))
        if name != which.name and which.name in beside:
            other, first = beside[which.name]
            self.emit("mov_r", register, other)
            name = which.name
        if name == which.name:
            self.shift(register, which.first - first)
        elif which.name in ADDRESSES:
            place = self.room + self.given.index(ADDRESSES[which.name])
            self.read("mov", register, "sp", self.pushed + place)
            self.shift(register, which.first)
        else:
            self.emit("mov_sp", register)
            self.shift(register, self.pushed + which.first)
        self.known[register] = (which.name, which.first)

    # ---- parts -----------------------------------------------------------------------------------------------------

    def parts(self, parts: Sequence[Part]) -> None:
        """All parts; those that other limbs make come first, then those that M's code forms, in a loop."""
        alike = [part for part in parts if part.plan.key == parts[0].plan.key]
        for part in parts:
            if part not in alike:
                self.turn([part])
        self.turn(alike)

    def slices(self, part: Part) -> tuple[Slice, ...]:
        """What a part works on, in the order of the addresses."""
        return (part.into, part.left, part.right)[: 1 + len(part.plan.operands)]

    def turn(self, parts: Sequence[Part]) -> None:
        """Parts that the same code forms.  A loop is made for one as well, where it is more than columns: what its code
        carries out at the top is nothing since the part is a product, which the proof sees of a turn (`turns`)."""
        code = self.former(parts[0].plan, self.path + (LOWER if len(parts) > 1 else HIGHER))
        looped = len(parts) > 1 or not parts[0].plan.by_columns
        for left, part in enumerate(reversed(parts), 1):
            if looped:
                self.emit("mov_1", SPARE) if left == 1 else self.emit("add_1", SPARE)
                self.emit("push", SPARE, comment=f"turns left with {part.into}")
                self.pushed += 1
            for which in reversed(self.slices(part)):
                register = ADDRESSES.get(which.name, SPARE)
                self.point(register, which)
                self.emit("push", register)
                self.pushed += 1
        label = self.build.label(f"turn{self.level}_")
        if looped:
            self.build.mark("label", label)
        for register in (RESULT, LEFT, RIGHT)[: len(self.slices(parts[0]))]:
            self.emit("pop", register)
        self.build.raw(code)
        self.pushed = 0
        self.known = {}
        if not looped:
            return
        self.emit("pop", SPARE)
        self.emit("sub_1", SPARE)
        size = sum(self.isa.insns[op.insn].size for op in code if op.insn in self.isa.insns)
        if size < NEAR:
            self.build.mark("jne", label)
            return
        behind = self.build.label(f"behind{self.level}_")
        self.build.mark("jeq", behind)
        self.build.mark("bra", label)
        self.build.mark("label", behind)

    # ---- differences -----------------------------------------------------------------------------------------------

    def difference(self, step: Difference) -> None:
        """into = |left - right|, to the result; a product's sign is that of both, as a mask."""
        count, other = step.left.count, step.right.count
        self.build.heading(f"{step.into} = |{step.left} - {step.right}|")
        low, high = (LEFT, RIGHT) if step.left.name == "a" else (RIGHT, LEFT)
        self.point(low, step.left)
        self.point(high, step.right)
        self.point(RESULT, step.into)
        for register, which in ((low, step.left), (high, step.right)):
            self.known[register] = (which.name, which.first + which.count)  # they walk
        kept = range(max(0, count - len(WORDS)), count)  # what stays in registers until the sign is known
        words = {k: WORDS[k - kept.start] for k in kept}
        for k in range(count):
            word = words.get(k, SPARE)
            self.emit("mov_p", word, low)
            if k < other:
                self.emit("subc_p" if k else "sub_p", word, high)
            else:
                self.emit("sbc", word)
            if k not in words:
                self.write("mov", word, RESULT, k)
        self.emit("subc_r", SPARE, SPARE, comment="all ones if the difference is negative")
        for k in range(kept.start):
            self.write("xor", SPARE, RESULT, k)
        for word in words.values():
            self.emit("xor_r", word, SPARE)
        for k in range(count):
            if k in words:
                self.emit("subc_r" if k else "sub_r", words[k], SPARE)
                self.write("mov", words[k], RESULT, k)
            else:
                self.write("subc" if k else "sub", SPARE, RESULT, k)
        self.sign(first=step.into.first == 0)

    def sign(self, *, first: bool) -> None:
        """Keep the sign of the first difference, and of both with the second one: all ones if M is to be subtracted."""
        if self.plan.op == "sqr":
            return
        self.emit("inv", SPARE) if first else self.write("xor", SPARE, "sp", 2 * self.half)
        if first:
            self.write("mov", SPARE, "sp", 2 * self.half)


def level(plan: Plan, isa: Isa, core: Core, former: Former, path: str) -> list[Op]:
    """The level's operations; `path` leads to it from the outermost one."""
    found = Level(plan, isa, core, former, path)
    found.all()
    return found.build.ops
