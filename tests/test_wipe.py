"""`-p wipe=1`: on return nothing made from operands is left but the result; and without it, what is left is said.

Both proofs show it, runs on different operands end in the same state, and code that leaves a place out is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from leavings import able, differing, made

from sqgen import methods, wiping
from sqgen.code import Op
from sqgen.compile import framed
from sqgen.forward_proof import prove_forward
from sqgen.idioms import idioms
from sqgen.kernel import Kernel
from sqgen.prove import prove
from sqgen.tables import isa, isa_names

Request = tuple[str, str, int, str, str | None, dict[str, str]]
SIZES = {"avr": 48, "msp430": 64, "arm": 128}  # bits
DEFAULTS = (
    ("avr", "atmega128"),
    ("msp430", "msp430"),
    ("msp430", "msp430x-mpy32"),
    ("arm", "cortex-m4"),
    ("arm", "cortex-m3"),
    ("arm", "cortex-m0"),
)


METHODS: list[Request] = [
    (name, op, SIZES[name], method, core, {})
    for name, core in DEFAULTS
    for op in ("sqr", "mul")
    for method in methods.names(op)
    if able(isa(name), op, SIZES[name] // isa(name).limb_bits, method, core)
]
CORES: list[Request] = [
    (name, op, SIZES[name], "auto", core.name, {})
    for name in isa_names()
    for core in isa(name).cores.values()
    if not set(idioms(isa(name)).NEEDS) & set(core.lacks) and (core.devices or not isa(name).devices)
    for op in ("sqr", "mul")
]
# What has a stack of its own, several functions, loops, masks, registers of the floating point unit, a device.
OTHERS: list[Request] = [
    ("avr", "mul", 192, "auto", None, {}),
    ("avr", "mul", 64, "karatsuba", None, {"parts": "calls"}),
    ("avr", "mul", 128, "karatsuba", None, {"parts": "calls", "recombine": "looped"}),
    ("avr", "mul", 64, "karatsuba", None, {"signs": "branched"}),
    ("avr", "sqr", 512, "auto", None, {}),
    ("msp430", "sqr", 128, "product-scanning", None, {"guard": "column"}),
    ("msp430", "sqr", 128, "product-scanning", None, {"interrupts": "caller"}),
    ("msp430", "mul", 256, "auto", None, {}),
    ("msp430", "mul", 64, "auto", "msp430x-mpy32", {"guard": "column"}),
    ("msp430", "mul", 32, "auto", "msp430x-mpy32", {}),
    ("msp430", "mul", 512, "karatsuba", None, {"levels": "2", "parts": "calls"}),
    ("msp430", "sqr", 128, "column-loops", None, {}),
    ("arm", "sqr", 256, "auto", None, {"fpu": "1"}),
    ("arm", "sqr", 256, "auto", "cortex-m3", {}),
    ("arm", "sqr", 256, "auto", "cortex-m0", {}),
    ("arm", "mul", 512, "auto", "cortex-m0", {}),
    ("arm", "sqr", 512, "row-blocks", None, {"fpu": "1"}),
    ("arm", "mul", 128, "row-loops", None, {}),
]
# The same, but such as the second proof sees in a second or so.
BROKEN: list[Request] = [
    ("avr", "sqr", 16, "karatsuba-squaring", None, {"parts": "calls"}),
    ("msp430", "sqr", 128, "product-scanning", None, {"guard": "column"}),
    ("msp430", "mul", 64, "auto", "msp430x-mpy32", {"interrupts": "caller"}),
    ("msp430", "mul", 64, "rows", "msp430x-mpy32", {}),
    ("arm", "sqr", 256, "auto", None, {"fpu": "1"}),
    ("arm", "sqr", 128, "auto", "cortex-m3", {}),
    ("arm", "mul", 64, "auto", "cortex-m0", {}),
]
EVERY = [*METHODS, *CORES, *OTHERS]


def plain(request: Request) -> Kernel:
    *asked, parameters = request
    return made(*asked, **parameters)


def wiped(request: Request) -> Kernel:
    *asked, parameters = request
    return made(*asked, **parameters, wipe="1")


def named(request: Request) -> str:
    *asked, parameters = request
    return "-".join([*map(str, asked), *(f"{name}={value}" for name, value in parameters.items())])


def short(request: Request) -> Request:
    """The same of two words, where the second proof sees no more: for Cortex-M0."""
    name, op, bits, method, core, parameters = request
    return name, op, min(bits, 2 * isa(name).limb_bits), method, core, parameters


def refusals(image: bytes, kernel: Kernel) -> tuple[str, str]:
    """What both proofs say of code that is to leave nothing; "" if it is proved."""
    what, core, branches = kernel.spec.contract, kernel.spec.core, kernel.spec.allow_branches
    what = replace(what, wiped=True)
    first, second = prove(image, what, core, branches=branches), prove_forward(image, what, core, branches=branches)
    return str(first.fault or ""), "" if second.proved else second.why


# ---- nothing is left ------------------------------------------------------------------------------------------------


@pytest.mark.many
@pytest.mark.parametrize("request_", EVERY, ids=named)
def test_runs_on_different_operands_end_in_the_same_state_but_for_the_result(request_: Request) -> None:
    kernel = wiped(request_)
    assert kernel.spec.contract.wiped and kernel.verdict.proved
    assert differing(kernel) == (set(), set(), set())
    assert kernel.residue.nothing
    assert differing(plain(request_)) != (set(), set(), set())


@pytest.mark.many
@pytest.mark.parametrize("request_", [*METHODS, *map(short, CORES)], ids=named)
def test_the_second_proof_shows_it_too(request_: Request) -> None:
    first, second = refusals(wiped(request_).compiled.image, wiped(request_))
    assert (first, second) == ("", "")


@pytest.mark.many
@pytest.mark.parametrize("request_", [*METHODS, *BROKEN], ids=named)
def test_without_it_both_proofs_refuse(request_: Request) -> None:
    for says in refusals(plain(request_).compiled.image, plain(request_)):
        assert "made from operands may be left" in says


@pytest.mark.many
@pytest.mark.parametrize("request_", EVERY, ids=named)
def test_what_is_left_without_it_is_said(request_: Request) -> None:
    """Whatever differs between runs is among it."""
    kernel = plain(request_)
    which, said, found = kernel.spec.contract.isa, kernel.residue, differing(kernel)
    assert found.stack <= set(said.stack) and not found.others
    assert found.slots & {*which.registers, *which.special} <= set(said.registers)
    assert said.flags or not found.slots & set(which.flags)
    of_devices = {slot for name in kernel.spec.core.devices for slot in which.devices[name].slots}
    assert said.devices or not found.slots & of_devices
    assert not kernel.spec.contract.wiped and "wipe" not in dict(kernel.spec.guarding)


@pytest.mark.many
@pytest.mark.parametrize("request_", OTHERS, ids=named)
def test_little_is_said_to_be_left_that_runs_do_not_show(request_: Request) -> None:
    """Of a flag that is saved with others all bytes are said to be made of it."""
    kernel = plain(request_)
    found = differing(kernel, 16)
    assert len(found.stack) >= len(kernel.residue.stack) - 4
    unseen = set(kernel.residue.registers) - found.slots
    assert 3 * len(unseen) <= len(kernel.residue.registers)


# ---- left out, and refused ------------------------------------------------------------------------------------------


def last(kernel: Kernel) -> list[Op]:
    """The operations that clear."""
    return wiping.ops(kernel.compiled, kernel.spec.core)


def ended(kernel: Kernel, operations: Sequence[Op]) -> Kernel:
    """A kernel that does these last; nobody has proved it."""
    return replace(kernel, compiled=framed(kernel.compiled, kernel.spec.core, operations))


@pytest.mark.parametrize("request_", BROKEN, ids=named)
def test_a_kernel_that_leaves_out_any_of_it_is_refused_by_both_proofs(request_: Request) -> None:
    kernel = plain(request_)
    operations, refused = last(kernel), 0
    assert refusals(ended(kernel, operations).compiled.image, kernel) == ("", "")
    for index, op in enumerate(operations):
        if op.insn in ("label", "brne", "jne"):
            continue
        broken = ended(kernel, [*operations[:index], *operations[index + 1 :]])
        says = refusals(broken.compiled.image, kernel)
        assert all(says) or differing(broken) == (set(), set(), set()), (op, says)
        refused += all(says)
    assert refused >= len(operations) // 2


def needed(kernel: Kernel) -> int:
    """Limbs of the stack below saved registers, down to the lowest in which something is left."""
    which, core = kernel.spec.contract.isa, kernel.spec.core
    saved = [name for name in kernel.compiled.written if name in which.abi.saved]
    before, _ = idioms(which).frame(saved, core, alone=kernel.compiled.alone)
    return -(-max(kernel.residue.stack) // (which.limb_bits // 8)) - wiping.pushed(before, which, core)


def clearing(kernel: Kernel, limbs: int) -> Kernel:
    """A kernel that clears all registers, and so many limbs of the stack; nobody has proved it."""
    which = kernel.spec.contract.isa
    registers = [name for name in which.wipeable if name in kernel.clobbers]
    return ended(kernel, idioms(which).wipe(registers, limbs, which, kernel.spec.core))


@pytest.mark.parametrize("request_", [each for each in BROKEN if "fpu" not in each[5]], ids=named)
def test_a_slot_of_the_stack_fewer_is_refused_by_both_proofs(request_: Request) -> None:
    kernel = plain(request_)
    assert refusals(clearing(kernel, needed(kernel)).compiled.image, kernel)[1] == ""
    broken = clearing(kernel, needed(kernel) - 1)
    assert all("on the stack" in says for says in refusals(broken.compiled.image, kernel))
    assert differing(broken).stack


@pytest.mark.parametrize("request_", [each for each in OTHERS if each[2] == 512 and each[0] != "arm"], ids=named)
def test_what_functions_leave_that_are_shown_once_is_seen_wherever_they_are_called(request_: Request) -> None:
    kernel = plain(request_)
    what = replace(kernel.spec.contract, wiped=True)
    fault = prove(clearing(kernel, needed(kernel) - 1).compiled.image, what, kernel.spec.core).fault
    assert fault and "on the stack" in fault.message
