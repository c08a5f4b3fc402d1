"""The stack pointer of Cortex-M, moved by any number of limbs."""

from __future__ import annotations

from sqgen.code import Op

LIMB = 4  # bytes
STEP = 508  # bytes that one instruction moves it by at most


def moved(insn: str, limbs: int) -> list[Op]:
    """The instructions, `sub_sp` or `add_sp`, that move it by so many limbs."""
    return [Op(insn, (min(STEP, LIMB * limbs - at),)) for at in range(0, LIMB * limbs, STEP)]
