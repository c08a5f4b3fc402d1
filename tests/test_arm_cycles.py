"""Cycles in the table of Cortex-M against the rules of the manuals, by the words of an instruction's text.

[CM0], [CM3, table 3-1], [CM4, table 3-1] as docs/timing.md has them, P = 3; on M33, for which nothing is printed,
several registers take a cycle less than on M4: part of what docs/timing.md calls an estimate.
"""

from __future__ import annotations

import pytest
from arm import arm
from test_arm_table import INSNS

from sqgen.table import Core, Insn

CORES = (
    "cortex-m0",
    "cortex-m0.small-multiply",
    "cortex-m0plus",
    "cortex-m0plus.small-multiply",
    "cortex-m3",
    "cortex-m4.fpu",
    "cortex-m33.fpu",
)
REFILL = 3  # P
LISTS = ("ldm", "stm", "push", "pop")
SMALL = 32  # cycles of MULS with the small multiplier
LONG_ON_M3 = {"umull": 5, "umlal": 7}  # at most


def word(insn: Insn) -> str:
    """The mnemonic, without what says how long its code is or that it sets flags."""
    first = insn.syntax.split()[0].removesuffix(".w")
    return {"muls": "mul", "ldmia": "ldm", "stmia": "stm", "ldrh": "ldr"}.get(first, first)


def once(insn: Insn, core: Core) -> int:
    """Cycles alone, of registers in a list none, of a branch one that is not taken."""
    name, old = word(insn), core.name.startswith("cortex-m0")
    several = 0 if core.name.startswith("cortex-m33") else 1
    figures = {"ldr": 2, "str": 2 if old else 1, "mla": 2, "ldrd": several + 2, "strd": several + 2}
    figures |= dict.fromkeys(LISTS, several)
    figures |= {"bx": 3, "bl": 4, "b": 3} if old else dict.fromkeys(("bx", "bl", "b"), 1 + REFILL)
    figures |= LONG_ON_M3 if core.name == "cortex-m3" else {}
    figures |= {"mul": SMALL} if core.name.endswith("small-multiply") else {}
    if insn.control and name == "pop":
        figures["pop"] = 5 if old else several + 1 + REFILL
    goes = name in ("bx", "bl", "b") or (insn.control and name == "pop")
    return figures.get(name, 1) - (1 if goes and core.name.startswith("cortex-m0plus") else 0)


@pytest.mark.parametrize("name", INSNS)
def test_cycles_are_those_of_the_manuals(name: str) -> None:
    isa = arm()
    insn = isa.insns[name]
    for core in (isa.core(each) for each in CORES if name not in isa.core(each).lacks):
        assert isa.cycles(insn, core) == once(insn, core), core.name
        assert isa.by_timing(insn.each, core) == (1 if word(insn) in LISTS and not single(insn) else 0), core.name
        if insn.chain:
            old = core.name.startswith("cortex-m0")
            assert isa.by_timing(insn.chained, core) == (2 if old else 1), core.name
        if insn.control[:1] == ("branch",):
            plus, old = core.name.startswith("cortex-m0plus"), core.name.startswith("cortex-m0")
            assert isa.by_timing(insn.taken, core) == (1 if plus else 2 if old else REFILL), core.name


def single(insn: Insn) -> bool:
    """Whether it names its registers one by one."""
    return not any(operand.kind == "list" for operand in insn.operands)
