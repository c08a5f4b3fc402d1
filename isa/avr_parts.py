"""Products that are made of products: functions that call each other, and Karatsuba's steps, on AVR.

A function finds its pointers in registers (`pointers` of its plan) and keeps none: it may change every register.  One
that calls keeps its pointers on the stack.  After each call Y is set to the stack pointer, to reach them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqgen.allocate import meeting
from sqgen.code import Builder, Code, Function, Label, Memory, Op, Virtual
from sqgen.errors import UserError
from sqgen.plan import Block, Difference, Load, Part, Plan, Recombine, Slice
from sqgen.table import Isa

from . import avr_rows
from .avr_address import stack_pointer_to
from .avr_arms import InArms
from .avr_karatsuba import COUNTER, Buffer, Source, limbs_of, resident_difference
from .avr_leaf import Leaf, operands, store
from .avr_level import Level, left, load_pointer
from .avr_middle import in_place
from .avr_nested import FRAME, first_of, nested
from .avr_padded import Padded
from .avr_passing import ALL_STORED, Functions, Given, Taken
from .avr_registers import HIGH, POINTERS, pointers, pointers_behind, pool
from .avr_runs import clear
from .avr_signed import Site
from .avr_stream import Stream
from .avr_taken import taking, wanted
from .avr_writer import looped

FAR = 300  # products after which a call no longer reaches what stands behind them


class Module:
    """The functions of one kernel: the entry, and one for each part that is called."""

    def __init__(self, isa: Isa, reserve: Sequence[str]) -> None:
        self.isa, self.reserve = isa, reserve
        self.functions: list[Function] = []
        self.names: dict[tuple[object, ...], Label] = {}
        self.given: dict[str, Given] = {}  # what a function leaves in registers
        self.taken: dict[str, Taken] = {}  # what it takes there
        self.passing = Functions(self.called, self.given, self.taken)

    def code(self, plan: Plan) -> Code:
        """Entry: pointers from the argument registers; at the end r1 is zero."""
        build, walks = Builder(self.isa), pointers(plan)
        arguments = dict(zip(("r", "a", "b"), self.isa.abi.arguments, strict=False))
        for base, pointer in walks.items():
            low, _ = arguments["a" if plan.op == "sqr" and base == "b" else base]
            build.emit("movw", POINTERS[pointer][0], low)
        self.body(build, plan, whole=True)
        if not cleared(build.ops):
            build.emit("eor", HIGH, HIGH, comment="r1 is zero on return")
        return Code((self.function("", build, plan), *self.in_reach()))

    def in_reach(self) -> list[Function]:
        """The functions in an order in which calls are short: those that call first, the largest before its parts."""
        callers = [each for each in self.functions if any(op.insn == "rcall" for op in each.ops)]
        leaves = [each for each in self.functions if each not in callers]
        return [*reversed(callers), *sorted(leaves, key=lambda each: len(each.ops))]

    def function(self, name: str, build: Builder, plan: Plan) -> Function:
        return Function(name, tuple(build.ops), self.registers(plan))

    def registers(self, plan: Plan) -> tuple[str, ...]:
        """Those that a plan's function may use for limbs."""
        looped = any(isinstance(step, Recombine) and step.turn for step in plan.steps)
        taken = (*self.reserve, COUNTER) if looped else self.reserve
        return tuple(register for register in pool(self.isa, pointers(plan)) if register not in taken)

    def body(self, build: Builder, plan: Plan, *, whole: bool = False, taken: Taken | None = None) -> Sequence[Virtual]:
        """The steps of a plan, which may be the `whole` one, its pointers set, and limbs that are `taken` in registers;
        the highest limbs of the result that are left there."""
        for base, pointer in pointers(plan).items():
            build.mark("point", pointer, Memory(base, 0))
        parts = list(plan.parts())
        if not parts:
            for base in plan.operands:
                build.mark("lend", base, *POINTERS[pointers(plan)[base]])
            leaf = Leaf(plan, build, *operands(build, plan))
            leaf.all_steps()
            return leaf.highest
        elif not any(part.called for part in parts):
            for part in parts:
                if any(isinstance(step, Load) for step in part.plan.steps):
                    raise UserError(
                        f"{part.plan.method} adds to what it has stored, which a part in place has not;"
                        " choose parts=calls or another leaf"
                    )
            if plan.operands == ("a",):
                if any(any(part.plan.parts()) for part in parts):
                    raise UserError(
                        f"{plan.method} forms one level in place on AVR; choose parts=inline or parts=calls"
                    )
                return InPlace(self, build, plan).all_steps()
            elif any(any(part.plan.parts()) for part in parts if part.into.name == FRAME):
                both = nested(build, plan, len(self.registers(plan)), taken)
                both.all_steps()
                return both.highest
            else:
                site = Site(operands(build, plan), "r", 0, clear(build, "zero"), pointers(plan), whole=whole)
                (InArms if plan.branches else in_place)(build, plan, site).all_steps()
        elif any(isinstance(step, Recombine) for step in plan.steps):
            level = Level(build, plan, self.registers(plan), self.passing, taken)
            level.all_steps()
            return level.highest
        else:
            form = Padded(build, plan, self.called) if plan.copies else Calling(self, build, plan)
            form.all_steps()
        return ()

    def called(self, plan: Plan, stored: bool = True) -> Label:
        """The function that forms a part; where not all need be `stored`, which all that call it must say alike, it
        leaves limbs in registers alone, if one knows then where its pointer is."""
        stored = stored or left(plan, ALL_STORED) is None
        if plan.key not in self.names:
            label = self.names[plan.key] = Label(f"{plan.op}{plan.limbs * self.isa.limb_bits}")
            self.functions.append(self.looped(plan, label) if looped(plan) else self.written(plan, label, stored))
        return self.names[plan.key]

    def looped(self, plan: Plan, label: Label) -> Function:
        """A function that is a loop."""
        self.given[label.name] = ALL_STORED
        return Function(label.name, tuple(avr_rows.called(plan, self.isa, self.reserve)), ())

    def written(self, plan: Plan, label: Label, stored: bool) -> Function:
        """A function that is written out; what it takes in registers each of its callers has to have there."""
        build = Builder(self.isa)
        taken = None if stored else wanted(plan, self.registers(plan), first_of)
        limbs = self.body(build, plan, taken=taken)
        given = self.given[label.name] = Given(len(limbs), stored or not limbs)
        if not given.stored:  # they stay where they are instead, whichever way the code goes
            places = {op.args[0]: op.args for op in build.ops if op.insn == "store"}  # where each is stored last
            for index, op in enumerate(build.ops):
                if op.insn == "store" and op.args[0] in limbs and op.args == places[op.args[0]]:
                    build.ops[index] = Op("own", op.args[:1], op.reads, heading=op.heading)
        end = left(plan, given)
        if end is not None:
            build.mark("walk", Memory("r", end))
        if limbs:
            build.mark("give", *limbs, reads=limbs)
        build.emit("ret")
        function = self.function(label.name, build, plan)
        if not stored and all_in_place(plan):
            function, taken = taking(function)
        if taken:
            self.taken[label.name] = taken
        return function

    def shared(self, plan: Plan, kept: Sequence[str]) -> Label:
        """The function on registers that forms a part's product; it does not touch the pointers `kept`."""
        key = (*plan.key, "on registers")
        if key not in self.names:
            self.names[key] = Label(f"{plan.op}{plan.limbs * self.isa.limb_bits}")
            build = Builder(self.isa)
            limbs = [build.limb(f"a{i}") for i in range(plan.limbs)]
            product: list[Virtual] = []
            build.mark("accept", *limbs, writes=limbs)
            Leaf(plan, build, limbs, limbs, out=lambda column, limbs: product.extend(limbs)).all_steps()
            build.mark("give", *product, reads=product)
            build.emit("ret")
            registers = pool(self.isa, {pointer: pointer for pointer in kept})
            self.functions.append(Function(self.names[key].name, tuple(build.ops), registers))
        return self.names[key]


def all_in_place(plan: Plan) -> bool:
    """Whether a plan's function is that of a square in one piece, which calls none that has all registers."""
    parts = list(plan.parts())
    return plan.op == "sqr" and bool(parts) and not any(part.called or part.shared for part in parts)


def cleared(ops: Sequence[Op]) -> bool:
    """Whether r1 is zero at the end because the last operation that names it, or may write it, clears it."""
    last = next((op for op in reversed(ops) if op.insn in ("mul", "rcall") or HIGH in op.args[:1]), None)
    return last is not None and last.insn == "eor" and last.args == (HIGH, HIGH)


class InPlace:
    """One level of Karatsuba squaring in one piece.

    When the difference is formed no operand is needed any more: its pointer becomes registers for limbs, or reaches a
    frame if there are too many of them.
    """

    def __init__(self, module: Module, build: Builder, plan: Plan) -> None:
        self.module, self.build, self.plan = module, build, plan
        self.vectors: dict[str, list[Virtual]] = {}
        (self.last,) = [step for step in plan.steps if isinstance(step, Recombine)]

    def all_steps(self) -> list[Virtual]:
        """Step by step; the highest limbs of the result, which are in registers too."""
        highest: list[Virtual] = []
        self.vectors["a"], _ = operands(self.build, self.plan)
        self.build.mark("enter")
        shared = any(part.shared for part in self.plan.parts())  # a call leaves no register as it is
        self.zero = self.build.limb("zero") if shared else clear(self.build, "zero")
        self.stream = Stream(self.build, (self.last.half, self.plan.limbs - self.last.half), self.zero)
        for step in self.plan.steps:
            match step:
                case Block(title):
                    self.build.heading(title)
                case Part(shared=True):
                    self.call(step)
                case Part():
                    self.part(step)
                case Difference():
                    self.difference(step)
                case Recombine():
                    highest = self.stream.finish()
        self.build.mark("leave")
        return highest

    def out(self, step: Part) -> Callable[[int, list[Virtual]], None]:
        """Where the limbs of a part go."""
        if step.into.name == "m":
            return self.stream.middle
        if step.into.first:
            return self.stream.high
        return self.stream.low if not step.shared else lambda column, limbs: store(self.build, column, limbs)

    def part(self, step: Part) -> None:
        """A product in place."""
        left, right = (self.vectors[s.name][s.first : s.first + s.count] for s in (step.left, step.right))
        leaf = Leaf(step.plan, self.build, left, right, out=self.out(step), zero=self.zero)
        self.stream.source = leaf
        leaf.all_steps()

    def call(self, step: Part) -> None:
        """A square by a function on registers."""
        build, label = self.build, self.function(step)
        if step.left.name in self.plan.operands:
            limbs = limbs_of(self.arriving(step.left, label), range(step.left.count))
        else:
            limbs = self.vectors[step.left.name]
        product = [build.limb(f"m{i}", place=meeting(label.name, "give", i)) for i in range(step.into.count)]
        self.stream.wait()
        build.mark("rcall", label, *limbs, *product, reads=limbs, writes=product)
        if step.into.first or step.into.name != "r":  # L is only stored
            self.zero = clear(build, "zero")
            self.stream.resume(self.zero)
        self.out(step)(0, product)

    def function(self, step: Part) -> Label:
        return self.module.shared(step.plan, list(pointers(self.plan).values()))

    def arriving(self, where: Slice, label: Label) -> Source:
        """Limbs of an operand, loaded to the registers where the function accepts them."""

        def load(index: int) -> Virtual | None:
            if index >= where.count:
                return None
            limb = self.build.limb(f"{where.name}{where.first + index}", place=meeting(label.name, "accept", index))
            self.build.memory("load", limb, Memory(where.name, where.first + index))
            return limb

        return load

    def difference(self, step: Difference) -> None:
        low: Source = Buffer.of(self.build, step.left)
        middle = next(part for part in self.plan.parts() if step.into in (part.left, part.right))
        if middle.shared:
            low = self.arriving(step.left, self.function(middle))
        high = self.vectors[step.right.name][step.right.first : step.right.first + step.right.count]
        found = resident_difference(self.build, low, high, step.into.count, self.zero)
        self.vectors[step.into.name] = found
        if not middle.shared:
            self.stream.lodge(found)
        self.build.mark("spill", *POINTERS[pointers(self.plan)["a"]])


class Calling:
    """A plan whose parts are functions, and whose other steps are in place; its pointers wait on the stack."""

    def __init__(self, module: Module, build: Builder, plan: Plan) -> None:
        self.module, self.build, self.plan = module, build, plan
        self.walks = pointers(plan)
        self.slots: dict[str, int] = {}  # where in the frame (bytes above SP) a pointer waits

    def save(self) -> None:
        """Push the pointers."""
        self.depth = 0
        for base, pointer in self.walks.items():
            for register in reversed(POINTERS[pointer]):
                self.build.emit("push", register)
            self.depth += 2
            self.slots[base] = self.depth
        self.slots = {base: self.depth - above + 1 for base, above in self.slots.items()}

    def call(self, step: Part) -> None:
        """Set the pointers of a part's function, where they are not, and call it."""
        wanted = pointers(step.plan)
        slices = {"r": step.into, "a": step.left, "b": step.right}
        own = all((where.name, where.first) == (base, 0) for base, where in slices.items())
        if not (own and wanted == self.walks and step is next(self.plan.parts())):
            self.build.raw(stack_pointer_to("Y"))
            for base in sorted(wanted, key=lambda name: wanted[name] == "Y"):  # Y is the way to them: last
                where = slices[base]
                load_pointer(self.build, wanted[base], self.slots[where.name], where.first)
        self.build.mark("rcall", self.module.called(step.plan))

    def all_steps(self) -> None:
        """Call the parts; take the pointers back; go on with the other steps."""
        self.save()
        steps = self.plan.steps
        last = max(index for index, step in enumerate(steps) if isinstance(step, Part))
        for step in steps[: last + 1]:
            if isinstance(step, Block):
                self.build.heading(step.title)
            elif isinstance(step, Part):
                self.call(step)
        if sum(1 for _ in self.plan.products()) > FAR:  # the parts stand here, or no call would reach them
            self.build.mark("functions")
        rest = replace(self.plan, steps=steps[last + 1 :])
        after = pointers_behind(self.plan)
        for base in reversed(self.walks):
            for register in POINTERS[after[base]]:
                self.build.emit("pop", register)
            self.build.mark("point", after[base], Memory(base, 0))
        Leaf(rest, self.build, *operands(self.build, rest)).all_steps()
