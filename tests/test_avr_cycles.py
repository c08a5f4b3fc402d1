"""Cycles in AVR's table against [AVRISA], column by column, by the words of an instruction's text.

simavr counts those of AVRe; of XMEGA and AVRxt this is all that holds them.  Internal RAM.
"""

from __future__ import annotations

import pytest
from conftest import avr

from sqgen.table import Insn, Isa

COLUMNS = {"atmega128": 0, "atmega2560": 1, "atxmega32a4u": 2, "atxmega128a4u": 3, "avr128da48": 4}
FIGURES = {  # AVRe+ with 16 and 22 bits of program counter, AVRxm with both, AVRxt
    "mul": (2, 2, 2, 2, 2),
    "adiw": (2, 2, 2, 2, 2),
    "sbiw": (2, 2, 2, 2, 2),
    "ld": (2, 2, 2, 2, 2),
    "ld -": (2, 2, 3, 3, 2),
    "ldd": (2, 2, 3, 3, 2),
    "st": (2, 2, 1, 1, 1),
    "st -": (2, 2, 2, 2, 1),
    "std": (2, 2, 2, 2, 1),
    "push": (2, 2, 1, 1, 1),
    "pop": (2, 2, 2, 2, 2),
    "rjmp": (2, 2, 2, 2, 2),
    "rcall": (3, 4, 2, 3, 2),
    "ret": (4, 5, 4, 5, 4),
}
ONE = (1, 1, 1, 1, 1)


def figures(insn: Insn) -> tuple[int, ...]:
    """Cycles by column; a branch that is not taken."""
    word, _, rest = insn.syntax.partition(" ")
    return FIGURES.get(f"{word} -" if "-" in rest else word, FIGURES.get(word, ONE))


def as_the_manual_says(isa: Isa, name: str) -> None:
    """AssertionError where the table says something else of an instruction."""
    insn = isa.insns[name]
    for core, column in COLUMNS.items():
        assert isa.cycles(insn, isa.core(core)) == figures(insn)[column], core
        if insn.control[:1] == ("branch",):
            assert isa.by_timing(insn.taken, isa.core(core)) == 1, core


@pytest.mark.parametrize("name", sorted(avr().insns))
def test_cycles_are_those_of_the_manual(name: str) -> None:
    as_the_manual_says(avr(), name)
