"""The end of a proof: the result is the product, or an instruction is to blame.

The difference of result and product is reduced: it must vanish, or be a multiple of 2^(bits of the result), below which
both lie.  What is left over may be carries that cannot be, which is shown then; else it is a carry that the code
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .contract import Contract
from .forms import Atoms
from .linear import ONE, Form, combine
from .symbolic import State

MOST_FIXED = 24  # digits of one case that have a value, before the proof gives up
DEEP = 1_000_000  # terms touched at most to show one carry constant at the end


class Wrong(Exception):
    """The result is not the product: the address of the instruction to blame, why, and the column."""

    def __init__(self, at: int, message: str, column: int) -> None:
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
        atoms: Atoms,
        operands: Mapping[str, Sequence[int]],
        unset: Mapping[int, str],
        first_use: Callable[[State, str], int],
        *,
        refuted: Callable[[], bool],
        branches: bool,
    ) -> None:
        self.contract, self.isa, self.atoms, self.operands = contract, contract.isa, atoms, operands
        self.unset, self.first_use, self.refuted, self.branches = unset, first_use, refuted, branches

    def result(self, state: State) -> None:
        """Raises Wrong unless the state's result is the product of its operands."""
        limb, n = self.isa.limb_bits, self.contract.limbs
        terms: list[tuple[int, Form]] = []
        for column in range(2 * n):
            cell = state.memory.get(("r", column))
            if not isinstance(cell, dict):
                raise Wrong(self.atoms.here, "this limb of the result is never written", column)
            terms.append((1 << (limb * column), cell))
        first = self.operands["a"]
        second = self.operands.get("b", first)
        product: Form = {}
        for i in range(n):
            for j in range(n):
                atom = self.atoms.product(first[i], second[j])
                product[atom] = product.get(atom, 0) - (1 << (limb * (i + j)))
        self.agree(state, combine([*terms, (1, product)]), state.fixed)

    def agree(self, state: State, error: Form, fixed: Mapping[int, int]) -> None:
        """The error of the result must vanish but for a multiple of the result's modulus.

        What is left over is zero if this case cannot occur, once its signs are known, or if a carry in it cannot.
        """
        modulus = self.contract.modulus
        error = self.atoms.reduce(error, fixed)
        left = {atom: c for atom, c in error.items() if c % modulus}
        if not left or self.infeasible(fixed):
            return
        if self.atoms.settle(left):
            self.agree(state, error, fixed)
            return
        if self.refuted():  # what is looked for from here on is not there, and to find that out takes long
            raise self.blame(state, left)
        if self.atoms.cancel(left):
            self.agree(state, error, fixed)
            return
        digits = {factor for atom in left for factor in self.atoms.factors.get(atom, (atom,))} - fixed.keys()
        signs = sorted(digits & self.atoms.signs)
        if signs and len(fixed) < MOST_FIXED:
            for value in (0, 1):
                self.agree(state, error, {**fixed, signs[0]: value})
            return
        made = sorted(digits & self.atoms.relation.keys())
        found = self.constants(made, fixed)
        pair = () if found else self.extended(made, fixed)
        if pair:
            for value in (0, 1):
                self.agree(state, error, {**fixed, **dict.fromkeys(pair, value)})
            return
        if not found:
            raise self.blame(state, left)
        self.agree(state, error, {**fixed, **found})

    def extended(self, digits: Sequence[int], fixed: Mapping[int, int]) -> tuple[int, ...]:
        """A carry among the digits that is in this case the sign of what was added, and that sign; () if there is none.
        Without branches `settle` has found those that are."""
        for carry in digits if self.branches else ():
            for sign in (self.atoms.extended(carry), *self.atoms.borrows(carry)):
                if sign and sign not in fixed and self.atoms.bounded({carry: 1, sign: -1}, 0, 0, fixed):
                    return carry, sign
        return ()

    def constants(self, digits: Sequence[int], fixed: Mapping[int, int]) -> dict[int, int]:
        """Those of the digits that have only one value: carries that the code dropped since they cannot occur."""
        for value in (0, 1):
            found = {d: value for d in digits if self.atoms.within({d: 1}, value, value, fixed, DEEP)}
            if found:
                return found
        if self.branches:  # an arm is right by what is known in its case alone
            return {d: 0 for d in digits if self.atoms.bounded({d: 1}, 0, 0, fixed)}
        return {}

    def infeasible(self, fixed: Mapping[int, int]) -> bool:
        """Whether this case cannot occur: a fixed digit contradicts the range of the digits beside it."""
        for atom, value in fixed.items():
            relation = self.atoms.relation.get(atom)
            if relation is None:
                continue
            weights = dict(zip(relation.digits, relation.weights, strict=True))
            form = combine([(1, relation.form), (-weights.pop(atom) * value, {ONE: 1})])
            if self.atoms.impossible(form, *self.atoms.range(weights), fixed, DEEP):
                return True
        return False

    def unknown_behind(self, atom: int, limbs: set[int]) -> set[int]:
        """What an atom was computed from that is neither a limb of an operand nor public nor computed itself."""
        waiting, seen, found = [atom], set(limbs), set()
        while waiting:
            atom = waiting.pop()
            for factor in self.atoms.factors.get(atom, (atom,)):
                if factor in seen or self.atoms.public[factor]:
                    continue
                seen.add(factor)
                relation = self.atoms.relation.get(factor)
                if relation is None:
                    found.add(factor)
                else:
                    waiting += relation.form
        return found

    def blame(self, state: State, left: Form) -> Wrong:
        """A fault at the instruction that made the earliest digit that is left over."""
        limbs = {limb for limbs in self.operands.values() for limb in limbs} | {ONE}
        suspects = {factor for atom in left for factor in self.atoms.factors.get(atom, (atom,))} - limbs
        atom = min(suspects or left, key=lambda atom: (atom in self.atoms.relation, atom))
        weight = min(
            (c & -c for term, c in left.items() if atom in (term, *self.atoms.factors.get(term, ()))), default=1
        )
        column = (weight.bit_length() - 1) // self.isa.limb_bits
        if not suspects:
            return Wrong(self.atoms.here, "a product is missing in the result, or counts too often", column)
        atom = min(self.unknown_behind(atom, limbs), default=atom)
        if atom in self.atoms.relation:
            message = "what this instruction carries out is not added where it belongs"
            return Wrong(self.atoms.origin[atom], message, column)
        if atom in self.unset:
            register = self.unset[atom]
            message = f"the result depends on {register}, which nobody has set"
            return Wrong(self.first_use(state, register), message, column)
        return Wrong(self.atoms.origin[atom], "the result depends on something that is no operand", column)
