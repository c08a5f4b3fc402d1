"""The proof of code whose units stand in any order: absolute differences that lie in each other, begun and ended
whenever it likes."""

from __future__ import annotations

import random

import pytest
from arm import arm
from flips import passed
from sqgen.isa import arm_orders, arm_small
from sqgen.isa.arm_piece import Piece
from sqgen.isa.arm_values import before

from sqgen import methods
from sqgen.carries import Carries
from sqgen.encode import Instr, assemble, disassemble
from sqgen.errors import UserError
from sqgen.kernel import Kernel, make
from sqgen.linear import ONE, Form
from sqgen.prove import prove
from sqgen.spec import spec

BITS, CORE = 32, "cortex-m0"
TOP = (1 << BITS) - 1
TRIES = 20  # orders that may need more registers than there are


def shuffled(piece: Piece, seed: int) -> tuple[int, ...]:
    """The units of a piece, of all that may come next any one."""
    chance, needs = random.Random(seed), before(piece.values.units)
    units: dict[int, None] = {}
    while len(units) < len(needs):
        units[chance.choice([u for u, others in enumerate(needs) if u not in units and others <= units.keys()])] = None
    return tuple(units)


def in_any_order(op: str, limbs: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """A proved kernel whose units are in an order by chance, the first one from a seed for which registers suffice."""
    method, given = arm_small.preferred(op, limbs)[0]
    plan = methods.plan(op, limbs, method, given)
    for each in range(seed, seed + TRIES):
        order = arm_orders.Order(shuffled(Piece(plan), each), arm_orders.Registers(8, 5, 2))
        monkeypatch.setitem(arm_orders.known(), arm_orders.name(plan), order)
        try:
            return make(spec("arm", BITS * limbs, op=op, core=CORE))
        except UserError as error:
            if "registers" not in str(error):
                raise
    raise AssertionError("no order for which registers suffice")


@pytest.mark.parametrize("seed", [0, 100, 200, 300])
@pytest.mark.parametrize(("op", "limbs"), [("mul", 2), ("mul", 4), ("sqr", 4)])
def test_any_order_of_units_is_proved(op: str, limbs: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert in_any_order(op, limbs, seed, monkeypatch).verdict.cases == 1


def test_what_is_proved_with_a_bit_flipped_multiplies_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert passed(in_any_order("mul", 4, 0, monkeypatch), 30) < 3


def test_no_order_that_loses_a_carry_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ADCS in turn is ADDS."""
    kernel = in_any_order("mul", 2, 0, monkeypatch)
    contract, core = kernel.spec.contract, kernel.spec.core
    _, instrs = zip(*disassemble(arm(), kernel.compiled.image), strict=True)
    refused = 0
    for at, instr in enumerate(instrs):
        if instr.insn.name == "adcs":
            first, second = instr.operands
            image = assemble([*instrs[:at], Instr(arm().insns["adds"], (first, first, second)), *instrs[at + 1 :]])
            assert not prove(image, contract, core).proved
            refused += 1
    assert refused > 10


# ---- the equations behind it ------------------------------------------------------------------------------------


class Numbers:
    """Two differences of limbs, and their signs."""

    def __init__(self) -> None:
        self.atoms = Carries()
        self.limbs = [self.limb() for _ in range(6)]
        self.below = [self.digits({self.limbs[at]: 1, self.limbs[at + 1]: -1}, -1) for at in (0, 2)]
        self.atoms.signs.update(sign for _, sign in self.below)

    def limb(self) -> int:
        return self.atoms.new(0, TOP)

    def digits(self, form: Form, sign: int = 1) -> tuple[int, int]:
        """A limb, and what is carried out of it, or borrowed."""
        found = self.limb(), self.atoms.new(0, 1)
        self.atoms.define(found, (1, sign << BITS), form)
        return found

    def negated(self, difference: int, by: int) -> tuple[int, int]:
        """A difference negated where the sign number `by` says so, and the borrow: (x ^ mask) - mask."""
        limb, sign = self.below[difference][0], self.below[by][1]
        turned = self.limb()
        self.atoms.define((turned,), (1,), {limb: 1, sign: TOP, self.atoms.product(limb, sign): -2})
        return self.digits({turned: 1, sign: -TOP}, -1)


@pytest.mark.parametrize(("difference", "by"), [(0, 0), (1, 1), (0, 1), (1, 0)])
def test_a_borrow_is_the_sign_of_its_own_difference_and_of_no_other(difference: int, by: int) -> None:
    """Where both signs are known when the first one is needed.  0 - 0 with a mask of another difference borrows
    nothing, whatever that one's sign is."""
    numbers = Numbers()
    limb, borrow = numbers.negated(difference, by)
    assert numbers.atoms.settle({borrow: 1}, sought=True) == (difference == by)
    if difference == by:
        assert numbers.atoms.reduce({borrow: 1, numbers.below[by][1]: -1}, {}) == {}
        assert numbers.atoms.depths == {limb: 1}
    else:
        assert not numbers.atoms.depths


@pytest.mark.parametrize(("more", "nothing"), [(0, True), (1, False)])
def test_a_product_of_differences_takes_two_limbs_along_and_not_a_bit_more(more: int, nothing: bool) -> None:
    """(2^w - 1)^2 + 2 (2^w - 1) = 2^2w - 1, if the factors are known as limbs."""
    numbers = Numbers()
    atoms, factors = numbers.atoms, []
    for each in (0, 1):
        limb, borrow = numbers.negated(each, each)
        assert atoms.settle({borrow: 1}, sought=True)
        factors.append(limb)
    low, high = numbers.limb(), atoms.new(0, TOP - 1)
    atoms.define((low, high), (1, 1 << BITS), {atoms.product(*factors): 1})
    first, carry = numbers.digits({low: 1, numbers.limbs[4]: 1})
    _, second = numbers.digits({first: 1, numbers.limbs[5]: 1, ONE: more})
    _, last = numbers.digits({high: 1, carry: 1, second: 1})
    assert atoms.nothing({last: 1}, 100_000) == nothing
