"""What the second proof says of `-p wipe=1`: on return, nothing made from operands is left anywhere but in the result.

Limbs are numbered as the walk meets them.  Those that it had met before it first read a buffer, and that are no
operands', are what was there at entry.  A place that holds a sum of these, or a number, says nothing of the operands,
if it is the same in all cases.
"""

from __future__ import annotations

from .forward import Machine

Contents = dict[str, object]  # by place, what it holds


def remains(machine: Machine) -> Contents | str:
    """What a case leaves in registers, flags, devices and on the stack; or where it leaves what may be of operands."""
    isa = machine.isa
    found = {f"in {name}": machine.slots[isa.slots[name]] for name in isa.wipeable}
    end = isa.stack_free
    now = {k: value for (buffer, k), value in machine.memory.items() if buffer == "stack" and k < end}
    found |= {f"on the stack at limb {k}": value for k, value in {**machine.left, **now}.items()}
    contents: Contents = {}
    for where, kept in found.items():
        value = machine.again(kept)
        limbs = {limb for monomial in value.form for limb in monomial}
        if limbs and limbs <= {*machine.foreign}:
            contents[where] = None
        elif all(limb < machine.before and limb not in machine.operands for limb in limbs):
            contents[where] = frozenset(value.form.items())
        else:
            return where
    return contents
