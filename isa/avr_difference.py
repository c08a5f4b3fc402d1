"""|low - high| of an operand's halves on AVR, written out, and stored for a called function (`avr_level`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from sqgen.code import Builder, Flag, Memory, Virtual
from sqgen.plan import Difference, Slice

from .avr_groups import REACHED, groups
from .avr_karatsuba import near
from .avr_leaf import store
from .avr_registers import LOW
from .avr_unrolled import SUBTRACT, ZERO, Chain, load


def difference(
    build: Builder,
    step: Difference,
    registers: int,
    mask: Virtual | str,
    *,
    there: Mapping[int, Virtual] = MappingProxyType({}),
    places: Mapping[int, str] = MappingProxyType({}),
) -> dict[int, Virtual]:
    """|low - high| of an operand's halves, stored where the step says; its sign as a `mask`.

    The upper limbs stay in registers until the sign is known; those that find none are stored, and loaded again.
    Between two groups the borrow waits in the mask, if a pointer may have to move there.

    Limbs of the operand that are `there` in registers, by index, are not loaded: on the left they become limbs of the
    difference; new ones of that are given `places`.  Given back are those that have stayed, by index, too.
    """
    low, high, into, half = step.left, step.right, step.into, step.into.count
    moves = 2 * half > REACHED
    first = max(0, half - registers)
    waiting: dict[int, Virtual] = {}
    carry: Flag | None = None

    def subtrahend(index: int) -> Virtual | str:
        if index >= high.count:
            return ZERO
        return there.get(high.first + index) or load(build, LOW, high.name, high.first + index)

    for group in [*groups(range(first), registers - len(there)), range(first, half)]:
        if half + len(group) > REACHED:
            near(build, low.name, low.first + group[0], low.first + group[-1])
        names = {low.first + index: places.get(index) for index in group}
        limbs = [there.get(name) or build.limb(f"{low.name}{name}", place=place) for name, place in names.items()]
        for limb, name in zip(limbs, names, strict=True):
            if name >= low.first + low.count:
                build.emit("eor", limb, limb, fresh=True)
            elif name not in there:
                load(build, limb, low.name, name)
        others = [index for index in group if index < high.count]
        if others:
            near(build, high.name, high.first + others[0], high.first + others[-1])
        if moves and group[0]:
            carry = build.emit("lsr", mask)
        carry = Chain(SUBTRACT, subtrahend).run(build, limbs, group, carry)
        if moves or group[-1] == half - 1:
            build.emit("sbc", mask, mask, takes=carry, fresh=True)
        if group[-1] < half - 1:
            store(build, into.first + group[0], limbs)
        else:
            waiting = dict(zip(group, limbs, strict=True))
    negate(build, mask, into, waiting)
    return waiting


def negate(build: Builder, mask: Virtual | str, whole: Slice, limbs: Mapping[int, Virtual]) -> None:
    """Negate a number if the mask is all ones: `limbs` of it that are in registers, by index, and others that are
    stored."""
    carry: Flag | None = None
    near(build, "r", whole.first, whole.first + whole.count - 1)
    for index in range(whole.count):
        limb = limbs.get(index, LOW)
        if index not in limbs:
            load(build, limb, "r", whole.first + index)
        build.emit("eor", limb, mask)
        carry = build.emit("sbc" if carry else "sub", limb, mask, takes=carry)
        build.memory("store", limb, Memory("r", whole.first + index))
