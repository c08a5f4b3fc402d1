"""`-p wipe=1` at the command line: in header and manifest, for `check`, `prove` and `verify`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import SMALL, STEM, Call, built
from conftest import core
from leavings import made
from test_manifest import CHECKER

from sqgen import check, emit
from sqgen.contract import Contract
from sqgen.encode import Instr, assemble
from sqgen.errors import Exit
from sqgen.forward_proof import prove_forward
from sqgen.kernel import Kernel
from sqgen.prove import prove
from sqgen.tables import isa

CLAIMED = "nothing made from operands"
LEFT = "what was made from operands may be in r0, r18"


def files(kernel: Kernel) -> None:
    """What it is written to, and its object file, in the folder at hand."""
    for name, text in emit.all_files(kernel).items():
        Path(name).write_text(text)
    built(emit.assembly(kernel), Path("k.o"))


def squaring(wipe: str) -> Kernel:
    return made("avr", "sqr", 64, wipe=wipe)


def changed(change: Callable[[dict[str, object]], None]) -> None:
    """The manifest in the folder at hand with something else in it."""
    path = Path(f"{STEM}.json")
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def test_header_manifest_and_table_say_what_is_left(sqgen: Call, here: Path) -> None:
    run = sqgen(f"{SMALL} -p wipe=1")
    assert run.code == 0 and CLAIMED in run.out
    header, manifest = (Path("out", f"{STEM}.{suffix}").read_text() for suffix in ("h", "json"))
    document = json.loads(manifest)
    CHECKER.validate(document)
    assert CLAIMED in header and LEFT not in header
    assert document["options"] == {"wipe": "1"} and "-p wipe=1" in document["command"]
    assert document["residue"] == {"stack": 0, "registers": [], "flags": False, "devices": []}
    assert emit.manifest_text(squaring("1")) == manifest
    plain = sqgen(f"{SMALL} --json")
    document = json.loads(plain.out)
    assert document["options"] == {} and document["residue"]["registers"][:2] == ["r0", "r18"]
    assert LEFT in emit.header(squaring("0")) and CLAIMED not in emit.header(squaring("0"))
    assert LEFT in sqgen(SMALL).out
    multiplier = emit.header(made("msp430", "sqr", 64))
    assert "the 16-bit multiplier" in multiplier.split("Left")[1].split("Interrupts")[0]


def test_both_proofs_take_the_claim_from_the_command_line(sqgen: Call, refused: Callable[..., str], here: Path) -> None:
    files(squaring("1"))
    found = sqgen("prove k.o --isa avr --bits 64 -p wipe=1")
    assert found.code == 0 and CLAIMED in found.out
    assert sqgen(f"verify {STEM}.json k.o").code == 0
    files(squaring("0"))
    assert LEFT in sqgen("prove k.o --isa avr --bits 64").out
    assert "what was made from operands may be left in r0" in refused(
        Exit.UNPROVED, "prove k.o --isa avr --bits 64 -p wipe=1"
    )
    changed(lambda document: document.update(options={"wipe": "1"}))
    assert "what was made from operands may be left in r0" in refused(Exit.UNPROVED, f"verify {STEM}.json k.o")


@pytest.mark.parametrize(
    ("wipe", "lie", "says"),
    [
        ("0", {"residue": {"stack": 0, "registers": [], "flags": False, "devices": []}}, "says residue"),
        ("1", {"residue": {"stack": 1, "registers": [], "flags": False, "devices": []}}, "says residue"),
        ("1", {"options": {}}, "digest"),
        ("1", {"options": {"wipe": "0"}}, "digest"),
        ("1", {"options": {"wipe": "2"}}, "is 0 or 1"),
    ],
)
def test_a_manifest_that_says_something_else_is_refused(
    refused: Callable[..., str], here: Path, wipe: str, lie: dict[str, object], says: str
) -> None:
    files(squaring(wipe))
    changed(lambda document: document.update(lie))
    code = Exit.USAGE if "is 0" in says else Exit.DISAGREES
    assert says in refused(code, f"verify {STEM}.json k.o")


@pytest.mark.parametrize("value", ["2", "yes", "-1"])
def test_another_value_is_refused(refused: Callable[..., str], value: str) -> None:
    assert "parameter 'wipe' is 0 or 1" in refused(Exit.USAGE, f"{SMALL} -p wipe={value}")
    assert "parameter 'wipe' is 0 or 1" in refused(Exit.USAGE, f"{SMALL} --method sbd -p wipe={value}")


def test_limits_count_what_clearing_takes(sqgen: Call, refused: Callable[..., str], here: Path) -> None:
    sizes = [squaring(wipe).size for wipe in "01"]
    assert sizes[0] < sizes[1]
    method = squaring("0").compiled.plan.method
    limited = f"{SMALL} --method {method} --max-bytes {sizes[1] - 1} --json"
    first, second = sqgen(limited), sqgen(f"{limited} -p wipe=1")
    assert first.code == 0
    assert second.code == Exit.LIMITS or json.loads(second.out)["bytes"] < sizes[1]


@pytest.mark.simulator
@pytest.mark.parametrize(
    "request_",
    [
        ("avr", "sqr", 64, "auto", "atmega128"),
        ("avr", "mul", 192, "auto", "atmega128"),
        ("avr", "sqr", 512, "auto", "atmega2560"),
        ("msp430", "mul", 256, "auto", "msp430"),
        ("msp430", "sqr", 128, "product-scanning", "msp430x-mpy32"),
        ("arm", "sqr", 256, "auto", "cortex-m3"),
        ("arm", "mul", 256, "auto", "cortex-m0"),
    ],
)
def test_cycles_and_stack_of_the_manifest_are_the_simulators(request_: tuple[str, str, int, str, str]) -> None:
    """simavr counts cycles, the interpreter by the table; of the others only values and stack are looked at."""
    kernel = made(*request_, wipe="1")
    report = check.run(kernel.compiled.image, kernel.spec.contract, kernel.spec.core, runs=20)
    assert report.stack == kernel.verdict.stack
    assert (report.call, report.body) in ((kernel.price.call, kernel.price.body), (0, 0))
    assert report.call or request_[0] != "avr"


def test_a_number_that_operands_have_chosen_is_something_left() -> None:
    """In each case of a proof it is a number; that it is not the same one in all is what both proofs must see."""
    insns, what = isa("avr").insns, Contract("sqr", 2, isa("avr"), wiped=True)
    kernel = made("avr", "sqr", 16, wipe="1")
    unused = next(name for name in ("r18", "r19", "r20", "r21") if name not in kernel.compiled.written)
    chosen = [
        ("movw", "r30", "r22"),
        ("ld_zp", unused),
        ("add", unused, unused),
        ("ldi", unused, 1),
        ("brcc", 2),
        ("ldi", unused, 2),
    ]
    for more, left in (((), True), ((("ldi", unused, 3),), False)):
        lines = [Instr(insns[name], tuple(operands)) for name, *operands in [*chosen, *more]]
        image = assemble(lines) + kernel.compiled.image
        first = prove(image, what, core(), branches=True)
        second = prove_forward(image, what, core(), branches=True)
        assert first.cases == 2 and first.proved == second.proved == (not left)
        if left:
            assert first.fault and f"left in {unused}" in first.fault.message
            assert f"what is left in {unused} depends on the operands" in second.why
