"""The proof on Cortex-M: calls by a link register, the stack, what must be refused."""

from __future__ import annotations

import pytest
from arm import arm, made

from sqgen.contract import Contract
from sqgen.encode import Instr, assemble
from sqgen.forward_proof import prove_forward
from sqgen.interpret import Crash, call, operands
from sqgen.prove import prove
from sqgen.table import OperandValue

Program = list[tuple[str, tuple[OperandValue, ...]]]

SAVE: Program = [("str_push", ("lr", 4))]
RESTORE: Program = [("ldr_pop", ("lr", 4)), ("bx", ("lr",))]


def code(program: Program) -> bytes:
    return assemble([Instr(arm().insns[name], arguments) for name, arguments in program])


def calling(before: Program, after: Program) -> bytes:
    """A function that calls a proved 64-bit multiplication, which stands behind it."""
    distance = len(code(after))
    return code([*before, ("bl", (distance,)), *after]) + made("mul", 64, "product-scanning").compiled.image


def contract() -> Contract:
    return Contract("mul", 2, arm())


def test_a_function_that_calls_another_one_is_proved_and_runs() -> None:
    image, core = calling(SAVE, RESTORE), arm().core("cortex-m4")
    verdict = prove(image, contract(), core)
    assert verdict.proved, verdict.fault
    assert verdict.stack == 4 + made("mul", 64, "product-scanning").verdict.stack
    assert prove_forward(image, contract(), core).proved
    for values in operands(contract(), 20):
        assert call(image, contract(), core, values) == values[0] * values[1]


def test_a_return_address_may_be_popped_into_the_program_counter() -> None:
    image, core = calling([("push", (("r4", "lr"),))], [("pop_pc", (("r4",),))]), arm().core("cortex-m4")
    assert prove(image, contract(), core).proved
    assert prove_forward(image, contract(), core).proved


REFUSED: dict[str, tuple[Program, Program, str]] = {
    "the link register is lost": ([], [("bx", ("lr",))], "returns to another address"),
    "the link register is not restored": (
        SAVE,
        [("ldr_pop", ("r3", 4)), ("bx", ("lr",))],
        "returns to another address",
    ),
    "the stack is not restored": (SAVE, [("ldr_spw", ("lr", 0)), ("bx", ("lr",))], "stack pointer not where it was"),
    "a kept register is changed": ([*SAVE, ("mov", ("r4", "r0"))], RESTORE, "r4 is not restored"),
    "the frame is read after it was given up": (
        SAVE,
        [("ldr_pop", ("r3", 4)), ("ldr_pop", ("lr", 4)), ("bx", ("lr",))],
        "caller's stack",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    before, after, message = REFUSED[name]
    image, core = calling(before, after), arm().core("cortex-m4")
    fault = prove(image, contract(), core).fault
    assert fault and message in fault.message
    assert not prove_forward(image, contract(), core).proved


def test_a_function_that_returns_elsewhere_crashes_in_the_interpreter() -> None:
    with pytest.raises(Crash, match="return address"):
        call(calling([], [("bx", ("lr",))]), contract(), arm().core("cortex-m4"), (1, 1))


def test_a_store_below_the_stack_pointer_is_refused() -> None:
    program: Program = [("sub_sp", (8,)), ("add_sp", (8,)), ("str_spw", ("r0", 0)), ("bx", ("lr",))]
    fault = prove(code(program), contract(), arm().core("cortex-m4")).fault
    assert fault and "caller's stack" in fault.message
    program = [
        ("mov", ("r3", "r0")),
        ("str_push", ("r0", 4)),
        ("ldr_pop", ("r3", 4)),
        ("ldr_spw", ("r2", 0)),
        ("bx", ("lr",)),
    ]
    fault = prove(code(program), contract(), arm().core("cortex-m4")).fault
    assert fault and "caller's stack" in fault.message


@pytest.mark.parametrize(("core", "proved"), [("cortex-m3", False), ("cortex-m4", True)])
def test_a_long_multiplication_is_refused_where_its_time_depends_on_operands(core: str, proved: bool) -> None:
    """[CM3]: UMULL takes 3 to 5 cycles; [CM4]: 1."""
    program: Program = [("umull", ("r3", "r12", "r0", "r1")), ("bx", ("lr",))]
    fault = prove(code(program), contract(), arm().core(core)).fault
    assert fault and ("not constant-time on cortex-m3" in fault.message) != proved


def test_an_instruction_that_a_core_lacks_is_refused() -> None:
    fault = prove(code([("umaal", ("r3", "r12", "r0", "r1"))]), contract(), arm().core("cortex-m3")).fault
    assert fault and "cortex-m3 has no such instruction" in fault.message
