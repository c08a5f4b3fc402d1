"""What both proofs do with an instruction that needs a case of its own: it begins once more, with all as it was."""

from __future__ import annotations

from typing import Any

import pytest
from arm import arm
from arm import made as arm_made
from msp430 import made, msp430

from sqgen.contract import Contract
from sqgen.encode import Instr, assemble
from sqgen.forward import Machine
from sqgen.forward_numbers import Budget, Fork, Numbers, Value
from sqgen.held import Split
from sqgen.lemmas import Lemmas
from sqgen.linear import Form
from sqgen.mutants import NUMBER, changes
from sqgen.prove import _Proof, prove
from sqgen.runs import Runs
from sqgen.symbolic import State
from sqgen.timing import cost


def test_a_fork_takes_no_time_of_a_device() -> None:
    isa = msp430()
    instr = Instr(isa.insns["jc"], (0,))
    image, core = assemble([instr, instr]), isa.core("msp430x-mpy32")
    machine = Machine(image, Contract("sqr", 1, isa), core, 0, Budget(), branches=True)
    with pytest.raises(Fork) as fork:
        machine.step()
    for case in machine.cases(*fork.value.args):
        case.step()
        assert case.bus and case.bus.end == cost(isa, case.core, instr, None)


def test_a_fork_ends_no_condition() -> None:
    isa = arm()
    code = [Instr(isa.insns["it_cs"], ()), Instr(isa.insns["eors"], ("r0", "r1"))]
    machine = Machine(assemble(code), Contract("sqr", 2, isa), isa.core("cortex-m4"), 0, Budget())
    machine.step()
    wanted = machine.conditions
    assert wanted
    with pytest.raises(Fork) as fork:
        machine.step()
    assert machine.conditions == wanted
    assert [case.step() and not case.conditions for case in machine.cases(*fork.value.args)] == [True, True]


def test_a_split_takes_no_time_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = made("sqr", 64)
    runs = Runs(kernel.compiled.image, kernel.spec.contract, kernel.spec.core)
    proof = _Proof(runs, branches=False, lemmas=Lemmas(0))
    state = proof.start()
    digits = State.digits

    def split(self: State, value: Form, *rest: Any) -> Any:
        if self.bus and self.bus.end:
            raise Split(1)
        return digits(self, value, *rest)

    monkeypatch.setattr(State, "digits", split)
    found = proof.walk(state, 0)
    assert found is not None and state.bus
    spent = state.bus.end
    assert proof.walk(state, found[1]) == found
    assert state.bus.end == spent, "time passes when an instruction is begun again"


def test_a_stack_pointer_a_byte_off_is_refused() -> None:
    """Found by `tools/mutate.py`: it was counted in whole limbs."""
    isa = arm()
    kernel = arm_made("sqr", 64, "karatsuba-squaring")
    image, core = kernel.compiled.image, kernel.spec.core
    changed = [
        change.apply(image)
        for change in changes(isa, image)
        if change.how == NUMBER and change.old[0].insn.name in ("ldr_pop", "str_push")
    ]
    assert changed
    assert not any(prove(code, kernel.spec.contract, core).proved for code in changed)


def test_a_case_is_of_a_bit_and_never_of_a_number_that_may_be_something_else() -> None:
    """A bit by another name is decided by the bits that it is made of, or, if these are none, by itself."""
    numbers = Numbers(Budget())
    wide, other, one, two = (numbers.atom(*ends) for ends in ((-7, 5), (0, 7), (0, 1), (0, 1)))
    loose = numbers.tight(Value({(wide,): 1, (other,): 1}, 0, 1))
    assert loose.form == {(numbers.undecided(loose),): 1}
    both = numbers.tight(Value({(one,): 1, (two,): 1, (one, two): -2}, 0, 1))
    assert numbers.undecided(both) == two
    numbers.assume(two, 1)
    assert numbers.undecided(both) == one
    numbers.assume(one, 1)
    assert numbers.value(*both) == numbers.constant(0)
