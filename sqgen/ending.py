"""The end of a proof: the result is the product, or an instruction is to blame.

The difference of result and product is reduced: it must vanish, or be a multiple of 2^(bits of the result), below which
both lie.  What is left over (`agreement`) is a carry that the code dropped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence

from .agreement import Agreement
from .carries import Carries
from .contract import Contract
from .linear import ONE, Form, combine
from .symbolic import State


class Wrong(Exception):
    """The result is not the product: the address of the instruction to blame, why, and the column."""

    def __init__(self, at: int, message: str, column: int | None) -> None:
        super().__init__(message)
        self.at, self.message, self.column = at, message, column


class Ending:
    """Looks at the results of all cases of a proof.

    `operands` are the atoms of their limbs, `unset` those of what registers held at entry; `first_use` finds the
    instruction that first reads such a register; `refuted` says whether a run left a wrong result.
    """

    def __init__(
        self,
        contract: Contract,
        atoms: Carries,
        operands: Mapping[str, Sequence[int]],
        unset: Mapping[int, str],
        first_use: Callable[[State, str], int],
        *,
        refuted: Callable[[], bool],
        branches: bool,
    ) -> None:
        self.contract, self.isa, self.atoms, self.operands = contract, contract.isa, atoms, operands
        self.unset, self.first_use = unset, first_use
        self.agreement = Agreement(atoms, contract.modulus, branches=branches, refuted=refuted)

    def result(self, state: State) -> None:
        """Raises Wrong unless the state's result is the product of its operands."""
        limb, n = self.isa.limb_bits, self.contract.limbs
        terms: list[tuple[int, Form]] = []
        for column in range(2 * n):
            cell = state.memory.get(("r", column))
            if not isinstance(cell, dict):
                raise Wrong(self.atoms.here, "this limb of the result is never written", column)
            terms.append((1 << (limb * column), cell))
        left = self.agreement.left(combine([*terms, (-1, self.product)]), state.fixed)
        if left:
            raise self.blamed(state, left)

    @functools.cached_property
    def product(self) -> Form:
        """That of the operands, the same in all cases."""
        limb, n = self.isa.limb_bits, self.contract.limbs
        first = self.operands["a"]
        second = self.operands.get("b", first)
        found: Form = {}
        for i in range(n):
            for j in range(n):
                atom = self.atoms.product(first[i], second[j])
                found[atom] = found.get(atom, 0) + (1 << (limb * (i + j)))
        return found

    def blamed(self, state: State, left: Form) -> Wrong:
        """A fault at the instruction that made the earliest digit that is left over, or first reads what nobody set."""
        limbs = {limb for limbs in self.operands.values() for limb in limbs}
        suspect, column = suspected(self.atoms, left, limbs, self.isa.limb_bits)
        if suspect in self.unset and suspect not in self.atoms.relation:
            register = self.unset[suspect]
            message = f"the result depends on {register}, which nobody has set"
            return Wrong(self.first_use(state, register), message, column)
        return blame(self.atoms, suspect, column)


def suspected(atoms: Carries, left: Form, limbs: Collection[int], width: int) -> tuple[int, int]:
    """Of what is left of an error the atom to blame, ONE for none but operands' `limbs`, which have `width` bits; and
    the column that it is in."""
    known = {*limbs, ONE}
    suspects = {factor for atom in left for factor in atoms.factors.get(atom, (atom,))} - known
    suspect = min(suspects or left, key=lambda atom: (atom in atoms.relation, atom))
    weight = min((c & -c for term, c in left.items() if suspect in (term, *atoms.factors.get(term, ()))), default=1)
    column = (weight.bit_length() - 1) // width
    return min(unknown_behind(atoms, suspect, known), default=suspect) if suspects else ONE, column


def unknown_behind(atoms: Carries, atom: int, known: Collection[int]) -> set[int]:
    """What an atom was computed from that is neither a limb of an operand nor public nor computed itself."""
    waiting, seen, found = [atom], set(known), set()
    while waiting:
        atom = waiting.pop()
        for factor in atoms.factors.get(atom, (atom,)):
            if factor in seen or atoms.public[factor]:
                continue
            seen.add(factor)
            relation = atoms.relation.get(factor)
            if relation is None:
                found.add(factor)
            else:
                waiting += relation.form
    return found


def blame(atoms: Carries, suspect: int, column: int | None) -> Wrong:
    """A fault at the instruction that made an atom."""
    if suspect == ONE:
        return Wrong(atoms.here, "a product is missing in the result, or counts too often", column)
    if suspect in atoms.relation:
        message = "what this instruction carries out is not added where it belongs"
        return Wrong(atoms.origin[suspect], message, column)
    return Wrong(atoms.origin[suspect], "the result depends on something that is no operand", column)
