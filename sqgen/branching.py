"""Where a branch goes in the proof: the flag that it looks at must be the same for all operands."""

from __future__ import annotations

from collections.abc import Sequence

from .held import Refused, Split, ZeroTest
from .linear import ONE, Form
from .symbolic import State


def decided(state: State, flag: str, *, branches: bool) -> int:
    """The value of a flag that a branch looks at.

    Raises Refused unless it is the same for all operands; with `branches` it need not be, and Split is raised where a
    bit decides.
    """
    value = state.slots[state.contract.isa.slots[flag]]
    if branches and isinstance(value, dict):
        value = state.atoms.reduce(value, state.fixed)
    if isinstance(value, ZeroTest):
        forms = [state.atoms.reduce(form, state.fixed) for form in value.forms]
        if all(not form or form.keys() == {ONE} for form in forms):
            return int(not any(forms))
    elif value is not None and (not value or value.keys() == {ONE}):
        return value.get(ONE, 0)
    if branches and value is not None:
        split(state, forms if isinstance(value, ZeroTest) else [value])
    raise Refused(f"branches on {flag}, which depends on a secret or is unknown")


def split(state: State, forms: Sequence[Form]) -> None:
    """Raises Split at a bit that the forms, which are reduced, depend on; signs before others."""
    atoms = state.atoms
    found = {factor for form in forms for atom in form for factor in atoms.factors.get(atom, (atom,))}
    bits = [factor for factor in sorted(found) if atoms.is_bit(factor)]
    if bits:
        raise Split(next((bit for bit in bits if bit in atoms.signs), bits[0]))
