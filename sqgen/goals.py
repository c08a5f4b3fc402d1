"""What a request wants of a kernel, by what it costs: its goal, and its limits."""

from __future__ import annotations

from . import answers
from .spec import Spec


def ranked(spec: Spec, body: int, call: int, size: int) -> tuple[int, int]:
    """What the goal wants small, of cycles and bytes, and then what decides between equals."""
    balance = size * call**3  # half the bytes are worth a quarter more cycles
    order = {"speed": (body, call), "call": (call, body), "size": (size, call), "balanced": (balance, call)}
    return order[spec.goal]


def value(spec: Spec, row: answers.Row, scale: float = 1) -> int:
    """What the goal wants small of a row with costs, its cycles times the `scale`."""
    body, call, size, _ = answers.costs(row)
    return ranked(spec, int(scale * body), int(scale * call), size)[0]


def small(spec: Spec, row: answers.Row, scale: float = 1) -> bool:
    """Whether a row meets the limits times the `scale`; as for stack, which not all code takes more of where operands
    are longer, at least the limits."""
    times = {answers.BYTES: scale, answers.STACK: max(1, scale)}
    return all(int(row[what]) <= times[what] * most for what, most in limits(spec))


def limits(spec: Spec) -> list[tuple[str, int]]:
    """Which costs of a row are limited, and to how many bytes."""
    both = ((answers.BYTES, spec.max_bytes), (answers.STACK, spec.max_stack))
    return [(what, most) for what, most in both if most is not None]
