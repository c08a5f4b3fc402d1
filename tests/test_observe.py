"""What a kernel does in the interpreter is what its manifest says, and a kernel that does anything else is seen.

First hand-broken kernels, each with the one thing that must be noticed; then kernels of all instruction sets.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import observe
import pytest
from commandline import source
from conftest import assemble_text, contract, core, kernel

from sqgen import check, emit, methods
from sqgen import kernel as kernels
from sqgen.errors import UserError
from sqgen.interpret import operands
from sqgen.kernel import Kernel
from sqgen.oracles.interpreter_judge import followed
from sqgen.prove import prove
from sqgen.spec import spec
from sqgen.timing import price

RUNS = 8
# X points into r, as far in as the lowest bits of a say.
INDEX = "movw r26, r24\n movw r30, r22\n ld r0, Z\n ldi r31, 7\n and r0, r31\n add r26, r0\n adc r27, r1"
# Lines put before a right 8-limb squaring on AVR (r in r25:r24, a in r23:r22; X, Z, r0 are free), and what is seen.
# .word 0xf008 is brcs over one instruction, 0xf010 over two: with a label a linker would have to fill it in.
FIRST = {
    "nop": "cycles, not",
    "movw r30, r22\n ldd r0, Z+8": "reads the byte at a +8",
    "movw r30, r22\n sbiw r30, 1\n ld r0, Z": "reads the byte at r",
    "movw r30, r24\n std Z+16, r1": "writes the byte at r +16",
    "movw r30, r24\n sbiw r30, 1\n st Z, r1": "writes the byte at",
    "movw r30, r22\n st Z, r1": "writes the byte at a +0",
    "inc r7": "r7 is not kept",
    "movw r30, r22\n ld r0, Z\n lsr r0\n .word 0xf010\n nop\n nop": "depends on the operands",
    "movw r30, r22\n ld r0, Z\n lsr r0\n .word 0xf008\n nop": "which instructions are executed depends on the operands",
    f"{INDEX}\n ld r0, X": "which addresses are touched depends on the operands",
    f"{INDEX}\n st X, r0": "which addresses are touched depends on the operands",
}
PLANTED = [lines for lines, says in FIRST.items() if "depends on the operands" in says]


def begun(lines: str) -> bytes:
    """A right kernel with lines before it."""
    name = "sqgen_sqr64_avr"
    return assembled(source().replace(f"{name}:\n", f"{name}:\n {lines}\n", 1))


def assembled(text: str) -> bytes:
    return assemble_text(text.replace(".section .text.sqgen_sqr64_avr,", ".section .text,"))


def seen(image: bytes, manifest: dict[str, Any]) -> set[str]:
    return set(observe.faults(image, contract("sqr", 8), core(), manifest, RUNS))


def claims() -> dict[str, Any]:
    return copy.deepcopy(emit.manifest(kernel("sqr", 64)))


@pytest.mark.parametrize(("lines", "says"), FIRST.items())
def test_a_kernel_that_does_more_than_it_says_is_seen(lines: str, says: str) -> None:
    found = seen(begun(lines), claims())
    assert any(says in each for each in found), found


def test_the_kernel_itself_does_what_it_says() -> None:
    assert seen(begun(""), claims()) == set()


@pytest.mark.parametrize("lines", PLANTED)
def test_a_planted_branch_or_lookup_is_refused_by_the_proof(lines: str) -> None:
    assert prove(begun(lines), contract("sqr", 8), core()).fault


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (f"{INDEX}\n ld r0, X", "addresses that it reads or writes depend"),
        (f"{INDEX}\n st X, r0", "addresses that it reads or writes depend"),
        (INDEX, ""),  # a secret in a pointer that nothing is read or written by
        ("movw r30, r22\n ld r0, Z\n lsr r0\n .word 0xf010\n nop\n nop", "path depends"),
    ],
    ids=["load", "store", "unused", "branch"],
)
def test_a_planted_lookup_or_branch_is_seen_in_the_simulator(lines: str, says: str) -> None:
    """Cycles and path are the same wherever X points: only the addresses of data show it."""
    found = in_simulator(begun(lines))
    assert says in found and bool(says) == bool(found)


def in_simulator(image: bytes) -> str:
    """What the simulator objects to, "" if nothing."""
    try:
        check.run(image, contract("sqr", 8), core(), runs=RUNS)
    except UserError as error:
        return str(error)
    return ""


def test_a_register_that_is_not_given_back_is_seen() -> None:
    saved = kernel("sqr", 64).compiled.lines[0].instr.text()
    assert saved.startswith("push ")
    text = re.sub(rf"(push|pop) +{saved.split()[1]}\b", "nop", source())
    assert any("is not kept" in each for each in seen(assembled(text), claims()))


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    manifest = claims()
    change(manifest)
    return manifest


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda manifest: manifest["clobbers"].remove("r18"), "changes r18"),
        (lambda manifest: manifest.update(stack=manifest["stack"] - 1), "bytes of stack"),
        (lambda manifest: manifest.update(stack=manifest["stack"] + 1), "bytes of stack"),
        (lambda manifest: manifest["cycles"].update(call=1), "cycles, not 1"),
    ],
)
def test_a_manifest_that_promises_too_much_is_seen(change: Callable[[dict[str, Any]], object], says: str) -> None:
    assert any(says in each for each in seen(begun(""), changed(change)))


def test_a_promised_overlap_that_is_not_safe_is_seen() -> None:
    two_stages = {"ends": "4,14", "orders": "i", "stages": "4,16"}  # limbs leave before the last ones are loaded
    made = kernel("sqr", 64, "sweeps", **two_stages)
    manifest = copy.deepcopy(emit.manifest(made))
    assert seen(made.compiled.image, manifest) == set()
    manifest["aliasing"].update(a=[[-15, 7]])
    assert any("the result is wrong" in each for each in seen(made.compiled.image, manifest))


KERNELS = [
    *(("avr", 64, op, name, "") for op in ("sqr", "mul") for name in methods.names(op)),
    *(
        ("arm", 128, op, name, c)
        for op in ("sqr", "mul")
        for name in methods.names(op)
        for c in ("cortex-m4", "cortex-m3")
    ),
    *(("arm", 192, op, "auto", name) for op in ("sqr", "mul") for name in ("cortex-m0", "cortex-m0plus")),
    *(("msp430", 128, op, name, "") for op in ("sqr", "mul") for name in methods.names(op)),
    *(("msp430", 128, op, "auto", "msp430x-mpy32") for op in ("sqr", "mul")),
]


def made(isa: str, bits: int, op: str, method: str, name: str) -> Kernel:
    """The kernel; skips what there is none of."""
    try:
        return kernels.make(spec(isa, bits, op=op, method=method, core=name or None))
    except UserError as error:
        pytest.skip(str(error))


@pytest.mark.many
@pytest.mark.parametrize("which", KERNELS, ids=lambda each: "-".join(map(str, each)))
def test_kernels_do_what_their_manifests_say(which: tuple[str, int, str, str, str]) -> None:
    one = made(*which)
    asked = one.spec
    assert list(observe.faults(one.compiled.image, asked.contract, asked.core, emit.manifest(one), RUNS)) == []


@pytest.mark.many
@pytest.mark.parametrize("which", KERNELS, ids=lambda each: "-".join(map(str, each)))
def test_the_interpreter_counts_what_the_path_costs(which: tuple[str, int, str, str, str]) -> None:
    """The runs of a code are made on one core (`matrix`); on others their paths are priced."""
    one = made(*which)
    asked, image = one.spec, one.compiled.image
    scene = observe.Scene(asked.contract, asked.core, {})
    scene.start(next(iter(operands(asked.contract, 1))))
    problem, path = followed(scene.machine, image, 0)
    cost = price(asked.contract.isa, asked.core, image, path).call
    assert not problem and scene.machine.cycles == cost == emit.manifest(one)["cycles"]["call"]
