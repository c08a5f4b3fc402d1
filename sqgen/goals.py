"""What the goals want."""

from __future__ import annotations

from .spec import Spec


def ranked(spec: Spec, body: int, call: int, size: int) -> tuple[int, int]:
    """What the goal wants small, of cycles and bytes, and then what decides between equals."""
    balance = size * call**3  # half the bytes are worth a quarter more cycles
    order = {"speed": (body, call), "call": (call, body), "size": (size, call), "balanced": (balance, call)}
    return order[spec.goal]
