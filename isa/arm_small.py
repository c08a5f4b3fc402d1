"""Cores without long multiplication (ARMv6-M): from a plan to code in registers.

Here allocation is part of lowering, for it is the most of what a kernel costs: which of the registers that most
instructions do not reach, and how many of them, is tried for each function.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from sqgen import methods
from sqgen.code import Code, Function, Label, Op
from sqgen.errors import Exit, UserError
from sqgen.plan import Part, Plan, Recombine
from sqgen.table import Isa

from . import arm_orders
from .arm_calls import around, is_surrounded, rows_of
from .arm_cells import LIMB_BITS
from .arm_colour import LOW, Job, assign
from .arm_digits import VECTORS
from .arm_fit import WIDTH, Fit
from .arm_level import Differences, Recombination
from .arm_orders import Order
from .arm_padded import Padded
from .arm_piece import ARGUMENTS, Piece
from .arm_stack import LIMB, moved
from .arm_values import FARTHEST, Values, flat

FREE, SAVED = ("r12", "lr"), ("r8", "r10", "r11")  # high registers; r9 belongs to the platform
IN_REGISTERS = 4  # limbs up to which it may pay to save fewer high registers
SMALL = 2  # limbs up to which it may pay to save fewer low registers
BORDERED = (9, 17, 33)  # limbs of products that are faster as those of a limb less with rows around them
SHORTER = "5"  # limbs of a whole piece where that is not to be
KEEPING = 6  # cycles more of a function that is called and saves its return address
BESIDE = "r3"  # a register that a caller does not want back
MORE = "it needs more registers than there are; --reserve fewer, or take another method"
LONGEST = 1 << 17  # operations of a function; more code than any of these parts has flash for
TOO_LONG = "makes more code in one piece here than any part can hold; take --method auto, or a smaller size"


def forms(plan: Plan) -> bool:
    """Whether a plan is one of whole pieces, or of cells that registers hold."""
    if around(plan):
        return is_surrounded(plan)
    if any(plan.parts()):
        return dict(plan.parameters).get("parts") == "whole" and halved(plan)
    return not plan.loops


def halved(plan: Plan) -> bool:
    """Whether it is of thirds, or the low part is half of it, or half a limb more."""
    parts = [step.half for step in plan.steps if isinstance(step, Recombine)]
    return all(2 * limbs - plan.limbs in (0, 1) or 3 * limbs == plan.limbs for limbs in parts)


def preferred(op: str, limbs: int) -> list[tuple[str, dict[str, str]]]:
    """The methods, with their parameters, that are the fastest, and the shortest but for those that are as short."""
    columns: list[tuple[str, dict[str, str]]] = [("product-scanning", {})]
    if limbs == 1:
        return columns
    if op == "sqr":
        return [("karatsuba-squaring", {"parts": "whole"})]
    halves: list[tuple[str, dict[str, str]]] = [("karatsuba", {"parts": "whole"})]
    if limbs in BORDERED:
        return [("bordered", {"border": "1", "block": "1"}), *halves]
    if limbs in VECTORS:
        return columns + halves
    return [*halves, ("karatsuba", {"parts": "whole", "piece": SHORTER})] if has_borders(limbs) else halves


def has_borders(limbs: int) -> bool:
    """Whether products with rows around them are among that, its halves, and the halves of these."""
    return limbs in BORDERED or (limbs > BORDERED[0] and (has_borders(limbs // 2) or has_borders(-(-limbs // 2))))


def formed(plan: Plan) -> Plan:
    """A part; of a limb more than whole pieces, or halves that are such, as that and rows around it, which is faster,
    but for what is to be in smaller pieces, which is shorter.  The part inside rows is of whole pieces."""
    given = dict(plan.parameters)
    if plan.op == "mul" and plan.limbs in BORDERED and "piece" in given and given["piece"] != SHORTER:
        name, given = preferred(plan.op, plan.limbs)[0]
        return methods.plan(plan.op, plan.limbs, name, given)
    if given.get("parts") == "whole" or not any(plan.parts()):
        return plan
    return methods.plan(plan.op, plan.limbs, plan.method, {"parts": "whole"})


def lower(plan: Plan, isa: Isa, reserve: Sequence[str]) -> Code:
    """The functions of a plan, the entry first; they leave the registers to `reserve` alone."""
    return lowered(plan, isa, tuple(reserve), tuple(arm_orders.known().items()))


@functools.lru_cache(maxsize=8)  # these cores differ in cycles alone, and a request may come to a plan more than once
def lowered(plan: Plan, isa: Isa, reserve: tuple[str, ...], _orders: tuple[tuple[str, Order], ...]) -> Code:
    """The same, once for all orders of operations that are known."""
    module = Module(reserve)
    if plan.copies:
        entry = Padded(isa, plan, module.called).function()
        return Code((entry, *module.functions.values()))
    return module.code(plan)


class Module:
    """The functions of one kernel: the entry, and one for each part that is called."""

    def __init__(self, reserve: Sequence[str]) -> None:
        self.functions: dict[str, Function] = {}  # by name: for each operation and size there is one
        self.low = tuple(register for register in LOW if register not in reserve)
        self.saved = tuple(register for register in SAVED if register not in reserve)

    def code(self, plan: Plan) -> Code:
        entry = Function("", tuple(self.level(plan, "") if calls(plan) else self.piece(plan, "")), ())
        return Code((entry, *self.functions.values()))

    def called(self, plan: Plan) -> Label:
        """The function that forms a part."""
        plan = formed(plan)
        name = f"{plan.op}{LIMB_BITS * plan.limbs}"
        if name not in self.functions:
            ops = self.level(plan, name) if calls(plan) else self.piece(plan, name)
            self.functions[name] = Function(name, tuple(ops), ())
        return Label(name)

    def level(self, plan: Plan, name: str) -> list[Op]:
        """A function whose parts are functions.

        Its frame, from the top: the return address, if it is not the entry; pointers to operands and result; places for
        limbs that find no register; the sign of M; M.
        """
        if around(plan):
            return self.surrounded(plan, name)
        last = next(step for step in plan.steps if isinstance(step, Recombine))
        sign = 2 * last.half if last.signs else None
        begin = 2 * last.half + (sign is not None)
        pointers = ARGUMENTS[: 1 + len(plan.operands)]
        values = Values()
        given = {values.new(): register for register in pointers}
        Differences(plan, list(given), values, sign)
        before, few = self.section(values, given, begin)
        values = Values()
        r = values.new()
        Recombination(plan, r, values, sign)
        after, more = self.section(values, {r: "r0"}, begin)
        size = begin + max(few, more)
        rest = size - 2 * last.half  # limbs of the frame when M was taken from it
        ops = [Op("push", ((*pointers, *(["lr"] if name else [])),)), *moved("sub_sp", size), *before]
        for part in plan.parts():
            ops += [*self.arguments(part, pointers, size), Op("bl", (self.called(part.plan),))]
        ops += [Op("ldr_sp", ("r0", LIMB * size)), *after]
        if not name:
            return [*ops, *moved("add_sp", rest + len(pointers))]
        return [*ops, *moved("add_sp", rest + len(pointers) - 1), Op("pop_pc", (pointers[-1:],))]

    def surrounded(self, plan: Plan, name: str) -> list[Op]:
        """A function whose part has rows around it, which are a function, too."""
        pointers, rows = ARGUMENTS[: 1 + len(plan.operands)], rows_of(plan)
        added = arm_orders.name(rows)
        ops = [Op("push", ((*pointers, *(["lr"] if name else [])),))]
        for part in plan.parts():
            ops += [*self.arguments(part, pointers, 0), Op("bl", (self.called(part.plan),))]
        self.functions[added] = Function(added, tuple(self.piece(rows, added)), ())
        ops += [Op("ldr_sp", (register, LIMB * at)) for at, register in enumerate(pointers)]
        ops.append(Op("bl", (Label(added),)))
        if not name:
            return [*ops, *moved("add_sp", len(pointers))]
        return [*ops, *moved("add_sp", len(pointers) - 1), Op("pop_pc", (pointers[-1:],))]

    def arguments(self, part: Part, pointers: Sequence[str], size: int) -> list[Op]:
        """The pointers that a part's function finds."""
        ops: list[Op] = []
        for register, where in zip(pointers, (part.into, part.left, part.right), strict=False):
            if where.name == "m":
                ops.append(Op("add_rsp", (register, 0)))
                continue
            ops.append(Op("ldr_sp", (register, LIMB * (size + "rab".index(where.name)))))
            for at in range(0, where.first, FARTHEST):
                ops.append(Op("adds_i", (register, LIMB * min(FARTHEST, where.first - at))))
        return ops

    def section(self, values: Values, entry: Mapping[int, str], places: int) -> tuple[list[Op], int]:
        """(code between calls, in the order in which it was written; limbs kept in the frame, from a place on)."""
        operations = flat(values.units)
        high = (*FREE, *self.saved)
        fitted = Fit(operations, values.constants, list(entry), len(self.low), len(high)).run()
        if not fitted:
            raise UserError(MORE, Exit.LIMITS)
        return assign(Job(operations, fitted, values.constants, entry, self.low, high, places))

    def piece(self, plan: Plan, name: str) -> list[Op]:
        """A product in one piece, without the frame for saved registers, in as few cycles as are found.

        With a `name` it is a function that is called: it returns, and need save no register but the return address.
        """
        made = Piece(plan)
        values, entry = made.values, made.entry
        if len(flat(values.units)) > LONGEST:
            raise UserError(f"method '{plan.method}' {TOO_LONG}", Exit.LIMITS)
        operations = arm_orders.operations(made)
        best: tuple[int, Job, int | None] | None = None
        for low, high, width, seed in self.ways(plan, name, arm_orders.found(plan, made)):
            fitted = Fit(operations, values.constants, list(entry), low, len(high)).run(width)
            if fitted is None:
                continue
            cost = fitted.cost + saving(low, high, bool(name))
            if best is None or cost < best[0]:
                best = cost, Job(operations, fitted, values.constants, entry, self.low[:low], high), seed
        if best is None:
            raise UserError(MORE, Exit.LIMITS)
        _, job, seed = best
        ops, places = assign(job, seed)
        ops = [*moved("sub_sp", places), *ops, *moved("add_sp", places)]
        return self.returning(ops, job.high) if name else ops

    def returning(self, ops: Sequence[Op], high: Sequence[str]) -> list[Op]:
        """A function that is called; where limbs are in the link register, the address waits on the stack."""
        if "lr" not in high:
            return [*ops, Op("bx", ("lr",))]
        beside = self.low[: len(ARGUMENTS) + 2][-1]  # the stack pointer stays a multiple of eight bytes
        return [Op("push", ((beside, "lr"),)), *ops, Op("pop_pc", ((beside,),))]

    def ways(self, plan: Plan, name: str, own: Order | None) -> Iterator[tuple[int, Sequence[str], int, int | None]]:
        """(low registers, which high ones, states that the beam follows, seed of the registers): what the search has
        found to be best, or all that may be tried."""
        found = own and (own.called if name else own.alone)
        if found and (self.low, self.saved) == (LOW, SAVED):
            yield found.low, registers(found.high, bool(name)), found.width, found.seed
            return
        for low, high in self.choices(plan, name):
            yield low, high, found.width if found else WIDTH, None

    def choices(self, plan: Plan, name: str) -> Iterator[tuple[int, Sequence[str]]]:
        """How many low registers, and which high ones, may be used."""
        if name:
            yield from ((len(self.low), (FREE[0], *self.saved, *link)) for link in ((), FREE[1:]))
            return
        if plan.limbs <= SMALL:
            yield from ((low, FREE[:1]) for low in range(4, len(self.low)))
        for saved in range(len(self.saved) + 1) if plan.limbs <= IN_REGISTERS else (len(self.saved),):
            yield len(self.low), (*FREE, *self.saved[:saved])


def registers(high: int, called: bool) -> tuple[str, ...]:
    """So many high registers, those first that cost least; of a function that is called they need not be saved."""
    return ((FREE[0], *SAVED, FREE[1]) if called else (*FREE, *SAVED))[:high]


def calls(plan: Plan) -> bool:
    """Whether its parts are functions."""
    return any(part.called for part in plan.parts())


def saving(low: int, high: Sequence[str], called: bool) -> int:
    """Cycles of saving and restoring these registers, as far as it depends on them."""
    if called:
        return KEEPING if "lr" in high else 0
    more = len(high) - len(FREE)
    return 2 * (low - 4) + (2 if "lr" in high else 0) + (4 * more + 2 if more > 0 else 0)


def frame(saved: Sequence[str]) -> tuple[list[Op], list[Op]]:
    """Operations that save registers on entry, and those that restore them and return.

    High registers are moved to low ones to be pushed, which are saved before.  Where just LR is saved one that need not
    be goes along: POP of the program counter alone is not in the table.
    """
    high = [register for register in SAVED if register in saved]
    low = [register for register in LOW if register in saved]
    others = [register for register in LOW[4:] if register not in low]
    low = sorted([*low, *others[: max(0, len(high) - len(low))]])
    by_way = tuple(low[: len(high)])
    if "lr" in saved and not low:
        low = [BESIDE]
    before, after = [], []
    if low:
        before.append(Op("push", ((*low, *(["lr"] if "lr" in saved else [])),)))
    if high:
        before += [Op("mov", pair) for pair in zip(by_way, high, strict=True)]
        before.append(Op("push", (by_way,)))
        after.append(Op("pop", (by_way,)))
        after += [Op("mov", pair) for pair in zip(high, by_way, strict=True)]
    if "lr" in saved:
        return before, [*after, Op("pop_pc", (tuple(low),))]
    return before, [*after, *([Op("pop", (tuple(low),))] if low else []), Op("bx", ("lr",))]
