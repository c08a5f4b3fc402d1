"""How far registers are looked for: all that is tried where nothing is known, or one way that an answer names.

A wider search does not always find more, and takes as much longer.  Which weight and which width found most is known
once all were tried (`hints.py`); kept with the answer, they give the same code in a fraction of the time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import UserError
from .methods import REGISTERS
from .plan import Plan

KEPT = re.compile(r"([1-9](?:\.[0-9])?),([1-9][0-9]?)")  # a weight and a width


@dataclass(frozen=True)
class Looking:
    """`weights`: how much nearer the next use may be of what is evicted at half the price, each of them tried
    (`residence`); `width`: states that are followed (`beam`)."""

    weights: tuple[float, ...] = (2, 1.2)
    width: int = 16


EVERYWHERE = Looking()


def looking(plan: Plan) -> Looking:
    """What the plan's parameters say of it.  Raises UserError."""
    text = dict(plan.parameters).get(REGISTERS.name, "")
    if not text:
        return EVERYWHERE
    if found := KEPT.fullmatch(text):
        return Looking((float(found[1]),), int(found[2]))
    raise UserError(
        f"method '{plan.method}': parameter '{REGISTERS.name}' is a weight from 1 to 9.9 and a width from 1 to 99,"
        f" as in 1.2,10, not '{text}'"
    )
