"""What holds the tables, one instruction at a time, for tables that were changed: the checks are the tests' own."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import test_arm_cycles
import test_arm_table
import test_avr_cycles
import test_exact
import test_msp430_meaning
import test_msp430_table
import test_table
from arm import arm

from sqgen.encode import encode
from sqgen.table import Isa

Check = Callable[[Isa, str], None]


class Seen(Exception):
    """A check objects."""


def _holds(call: Callable[[], object]) -> None:
    """Raises Seen where a test fails, in whatever way."""
    try:
        call()
    except Exception as failure:
        raise Seen from failure


def _with(module: Any, getter: str, isa: Isa, call: Callable[[], object], **more: Any) -> None:
    """A test of a module on another table."""
    before = {name: getattr(module, name) for name in (getter, *more)}
    for name, value in {getter: lambda: isa, **more}.items():
        setattr(module, name, value)
    clear = getattr(getattr(module, "forms", None), "cache_clear", lambda: None)
    try:
        clear()
        _holds(call)
    finally:
        for name, value in before.items():
            setattr(module, name, value)
        clear()


# ---- AVR ------------------------------------------------------------------------------------------------------------

FORMS = 100  # of an instruction, of all that there are


@functools.cache
def _avr_code(lines: tuple[str, ...]) -> bytes:
    return test_table.assembled(lines, "avr-gcc")


def _avr_encoding(isa: Isa, name: str) -> None:
    def same() -> None:
        insn = isa.insns[name]
        some = list(test_table.instances(insn, random.Random(name)))[:FORMS]
        assert _avr_code(tuple(instr.text() for instr in some)) == b"".join(map(encode, some))

    _holds(same)


def _avr_simavr(isa: Isa, name: str) -> None:
    def same() -> None:
        for core in ("atmega128", "atmega2560"):
            assert not test_table.differences(isa, isa.core(core), [name])

    _holds(same)


def _avr_manual(isa: Isa, name: str) -> None:
    _holds(lambda: test_avr_cycles.as_the_manual_says(isa, name))


# ---- ARM ------------------------------------------------------------------------------------------------------------


@functools.cache
def _arm_code(lines: tuple[str, ...], core: str) -> bytes:
    return test_arm_table.assembled(lines, arm().core(core), "GNU")


def _arm_encoding(isa: Isa, name: str) -> None:
    insn = isa.insns[name]

    def same() -> None:
        if insn.control[:1] == ("when",):
            test_arm_table.test_a_condition_is_what_the_assembler_makes_of_it(name, "GNU")
        elif any(operand.kind == "target" for operand in insn.operands):
            test_arm_table.test_a_jump_goes_where_the_assembler_says(name, "GNU")
        elif name not in test_arm_table.SECOND:
            some = test_arm_table.forms(name)
            lines = tuple(instr.text() for instr in some)
            assert _arm_code(lines, test_arm_table.core_for(insn).name) == b"".join(map(encode, some))

    _with(test_arm_table, "arm", isa, same)


def _arm_second(isa: Isa, name: str) -> None:
    def same() -> None:
        if name in test_arm_table.SECOND:
            with TemporaryDirectory() as folder:
                test_arm_table.test_an_encoding_that_assemblers_do_not_choose_is_disassembled_as_its_text(
                    name, Path(folder)
                )

    _with(test_arm_table, "arm", isa, same)


def _arm_emulator(isa: Isa, name: str) -> None:
    def same() -> None:
        test_arm_table.test_every_instruction_does_what_the_emulator_does(name)
        if name in test_arm_table.BRANCHES:
            test_arm_table.test_a_branch_is_taken_where_the_emulator_takes_it(name)
        if name in ("pop_pc", "pop_pcw", "bx"):
            test_arm_table.test_a_return_goes_to_the_address_that_the_emulator_goes_to(name)

    _with(test_arm_table, "arm", isa, same)


def _arm_manual(isa: Isa, name: str) -> None:
    _with(test_arm_cycles, "arm", isa, lambda: test_arm_cycles.test_cycles_are_those_of_the_manuals(name))


# ---- MSP430 ---------------------------------------------------------------------------------------------------------


@functools.cache
def _msp430_code(lines: tuple[str, ...]) -> bytes:
    return test_msp430_table.assembled(lines, "GNU")


def _msp430_encoding(isa: Isa, name: str) -> None:
    def same() -> None:
        if name in test_msp430_table.JUMPS:
            test_msp430_table.test_a_jump_goes_where_the_assembler_says(name)
        else:
            some = [instr for instr in test_msp430_table.forms(name) if instr.insn.name != "dint"]
            assert _msp430_code(tuple(instr.text() for instr in some)) == b"".join(map(encode, some))
            if name == "dint":
                assert _msp430_code(("dint", "nop"))[:2] == encode(test_msp430_table.forms(name)[0])

    _with(test_msp430_table, "msp430", isa, same)


def _msp430_simulator(isa: Isa, name: str) -> None:
    if name in test_msp430_meaning.BRANCHES:
        branch = test_msp430_meaning.test_a_branch_is_taken_where_the_simulator_takes_it
        _with(test_msp430_meaning, "msp430", isa, lambda: branch(name))
    if name in test_msp430_meaning.NAMES:
        call = test_msp430_meaning.test_each_instruction_means_what_the_simulator_does
        _with(test_msp430_meaning, "msp430", isa, call, NAMES=[name])


def _msp430_one_by_one(isa: Isa, name: str) -> None:
    def same() -> None:
        if name in test_msp430_meaning.SEVERAL:
            test_msp430_meaning.test_to_push_or_pop_several_is_to_do_it_one_by_one(name)
        if name in ("push_sr", "pop_sr"):
            call = test_msp430_meaning.test_a_status_register_that_is_given_back_changes_no_bit_that_nobody_names
            call()

    _with(test_msp430_meaning, "msp430", isa, same)


def _msp430_manual(isa: Isa, name: str) -> None:
    def same() -> None:
        for core in ("msp430", "msp430x"):
            if name in test_msp430_table.JUMPS:
                test_msp430_table.test_jumps_take_two_cycles_and_an_addition_to_the_program_counter_three(name, core)
            else:
                test_msp430_table.test_cycles_are_those_of_the_manuals_tables(name, core)

    _with(test_msp430_table, "msp430", isa, same)


def _exact(isa: Isa, name: str) -> None:
    if not isa.insns[name].control:
        _holds(lambda: test_exact.loses_nothing(isa, name))


CHECKS: Mapping[str, Mapping[str, Check]] = {
    "avr": {
        "avr-gcc": _avr_encoding,
        "simavr": _avr_simavr,
        "exact digits": _exact,
        "the manual's cycles": _avr_manual,
    },
    "arm": {
        "GNU as": _arm_encoding,
        "GNU objdump": _arm_second,
        "Unicorn": _arm_emulator,
        "exact digits": _exact,
        "the manuals' cycles": _arm_manual,
    },
    "msp430": {
        "assemblers": _msp430_encoding,
        "mspdebug": _msp430_simulator,
        "exact digits": _exact,
        "one by one": _msp430_one_by_one,
        "the guides' cycles": _msp430_manual,
    },
}
