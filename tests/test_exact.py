"""Equations of meaning lines are equations: what the digits on the left cannot hold is named as lost, `_`.

Interpreter and simulators cannot tell, for they cut numbers off; the proofs take an equation at its word.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from sqgen.encode import Instr
from sqgen.interpret import Machine
from sqgen.table import Isa, Operand, OperandValue
from sqgen.tables import isa, isa_names

STATES = 40  # of each instruction
HERE = 512  # bytes of memory, which any address is taken to be in


class Exact(Machine):
    """A machine whose numbers must fit."""

    def digits(self, value: int, widths: Sequence[int], signs: Sequence[int], slots: Sequence[int]) -> list[int]:
        found = super().digits(value, widths, signs, slots)
        places = [1 << sum(widths[:at]) for at in range(len(widths))]
        again = sum(sign * digit * place for sign, digit, place in zip(signs, found, places, strict=True))
        assert again == value, f"{value} is more than its digits {found}"
        return found

    def load(self, address: int) -> int:
        return super().load(self.anywhere(address))

    def store(self, address: int, value: int) -> None:
        super().store(self.anywhere(address), value)

    def anywhere(self, address: int) -> int:
        """An address that there is, of a limb."""
        size = self.isa.limb_bits // 8
        return address % HERE // size * size


def pick(operand: Operand, rng: random.Random) -> OperandValue:
    if operand.cls and operand.kind == "list":
        chosen = rng.sample(operand.cls.registers, rng.randint(operand.least, len(operand.cls.registers)))
        return tuple(register for register in operand.cls.registers if register in chosen)
    if operand.cls:
        return rng.choice(operand.cls.registers)
    steps = (operand.high - operand.low) // operand.scale
    return operand.low + operand.scale * rng.choice((0, steps, rng.randint(0, steps)))


def loses_nothing(which: Isa, name: str) -> None:
    """AssertionError where a number of an instruction's equations is more than its digits."""
    insn, rng, core = which.insns[name], random.Random(name), next(iter(which.cores.values()))
    for _ in range(STATES):
        instr = Instr(insn, tuple(pick(operand, rng) for operand in insn.operands))
        if instr.clash():
            continue
        machine = Exact(which, core, 2 * HERE)
        machine.bus = None
        for slot, width in enumerate(which.widths):
            top = (1 << width) - 1
            machine.slots[slot] = rng.choice((0, 1, top, top - 1, rng.getrandbits(width)))
        machine.memory[:] = rng.randbytes(len(machine.memory))
        instr.meaning(which).run(machine)


@pytest.mark.parametrize(("which", "name"), [(each, name) for each in isa_names() for name in isa(each).insns])
def test_no_digit_is_lost_that_is_not_named(which: str, name: str) -> None:
    if not isa(which).insns[name].control:
        loses_nothing(isa(which), name)
