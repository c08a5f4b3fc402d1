"""A product in one piece on ARMv6-M: its operands loaded, formed in registers, its limbs stored.

A square of up to four limbs and a product of up to two are formed as they stand.  Of more, levels are in memory
(`arm_staged`), or there are three parts (`arm_thirds`).

Sources: research/arm_kernels.md, section M0, idea 5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqgen.plan import Plan

from .arm_digits import VECTORS, Limbs, form, pairs
from .arm_scan import Scan
from .arm_staged import Staged, shared_out
from .arm_thirds import Thirds
from .arm_values import Values, Walk, flat

IN_REGISTERS = {"sqr": 4, "mul": 2}  # limbs of an operand, at most, of what is formed as it stands
ARGUMENTS = ("r0", "r1", "r2")  # pointers to r, a and b


class Piece:
    """The values of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.values = plan, Values()
        self.spans: list[tuple[Plan, int, int]] = []  # parts formed in registers: operations from one to another
        self.r = self.values.new()
        self.pointers = {name: self.values.new() for name in plan.operands}
        self.entry = dict(zip((self.r, *self.pointers.values()), ARGUMENTS, strict=False))  # their registers
        rows = plan.op == "mul" and plan.limbs in VECTORS and plan.by_columns
        if not any(plan.parts()) and not rows:
            Scan(plan, self.values, dict(self.pointers), self.r).all()
        elif rows or not self.staged(plan):
            self.formed()
        elif len(pairs(plan)) > 1:
            Thirds(self).all()
        else:
            Staged(self, plan, {name: Walk(self.values, at) for name, at in self.pointers.items()}).all()

    def staged(self, plan: Plan) -> bool:
        """Whether a part has a level in memory."""
        return any(plan.parts()) and plan.limbs > IN_REGISTERS[plan.op]

    def form(self, plan: Plan, operands: Mapping[str, Limbs]) -> list[int]:
        """The limbs of a part, or of all, whose operations are remembered."""
        first = len(flat(self.values.units))
        found = form(self.values, plan, operands)
        self.spans.append((plan, first, len(flat(self.values.units))))
        return found

    def load(self, name: str, count: int) -> list[int]:
        """Limbs of an operand, where its pointer points, which goes on."""
        self.pointers[name], limbs = self.values.load(self.pointers[name], count)
        return limbs

    def store(self, limbs: Sequence[int]) -> None:
        """Limbs of the result, where its pointer points, which goes on."""
        for some in shared_out(limbs):
            self.r = self.values.store(self.r, some)

    def formed(self) -> None:
        """All in registers."""
        operands = {name: self.load(name, self.plan.limbs) for name in self.plan.operands}
        found = self.form(self.plan, operands)
        early = (self.plan.limbs + 1) // 2  # which are there before all others
        self.store(found[:early])
        self.store(found[early:])
