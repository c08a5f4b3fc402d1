"""`sqgen verify`: the second proof, on an object file, says what the manifest says, or the command says no."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import STEM, Call, built, source
from conftest import avr

from sqgen import emit, objects, programs, progress, verify
from sqgen import kernel as kernel_module
from sqgen.digest import sha256
from sqgen.errors import Exit
from sqgen.forward_proof import ForwardVerdict
from sqgen.kernel import Kernel
from sqgen.spec import Spec, spec

KERNELS = [
    spec("avr", 64),
    spec("avr", 40, op="mul", core="atmega2560"),
    spec("arm", 256),
    spec("arm", 64, op="mul", core="cortex-m3"),
    spec("arm", 64, core="cortex-m0"),
    spec("msp430", 64, op="mul", parameters={"interrupts": "caller", "mpy_base": "0x4c0"}),
    spec("msp430", 64, core="msp430x-mpy32"),
]


def files(kernel: Kernel, folder: Path) -> tuple[Path, Path]:
    """The manifest and the object of a kernel."""
    stem = folder / kernel.spec.symbol
    manifest, text = stem.with_suffix(".json"), stem.with_suffix(".S")
    manifest.write_text(emit.manifest_text(kernel))
    text.write_text(emit.assembly(kernel))
    programs.assemble(text, stem.with_suffix(".o"), kernel.spec.contract.isa, kernel.spec.core)
    return manifest, stem.with_suffix(".o")


def small(folder: Path) -> tuple[Path, Path]:
    return files(kernel_module.make(spec("avr", 16, op="mul", core="atmega128")), folder)


@pytest.mark.parametrize("wanted", KERNELS, ids=lambda wanted: f"{wanted.core.name}-{wanted.symbol}")
def test_the_second_proof_finds_what_the_manifest_of_every_core_says(sqgen: Call, here: Path, wanted: Spec) -> None:
    kernel = kernel_module.make(wanted)
    manifest, code = files(kernel, here)
    run = sqgen(f"verify {manifest} {code}")
    assert run.code == 0, run
    assert f"{kernel.price.call} per call, {kernel.price.body} without" in run.out


def test_branches_and_variable_time_that_were_permitted_are_as_the_manifest_says(sqgen: Call, here: Path) -> None:
    signs = {"signs": "branched"}
    branched = spec("avr", 48, op="mul", method="karatsuba", parameters=signs, allow_branches=True)
    both = {**signs, "levels": "1", "parts": "inline"}
    in_place = spec("avr", 64, op="mul", method="karatsuba", parameters=both, allow_branches=True)
    variable = spec("arm", 64, core="cortex-m3", allow_variable_time=True)
    for wanted, said in ((branched, "2 paths"), (in_place, "3 paths"), (variable, "1 case")):
        manifest, code = files(kernel_module.make(wanted), here)
        run = sqgen(f"verify {manifest} {code}")
        assert run.code == 0, run
        assert said in run.out


LIES = [
    ("sha256", "0" * 64, "other code"),
    ("bytes", 4, "other code"),
    ("bytes", -4, "other code"),
    ("stack", 3, "says stack 3, the code has"),
    ("cycles", {"body": 1, "call": 2}, "says cycles"),
    ("aliasing", {"a": [[0, 0]], "b": []}, "says aliasing"),
    ("clobbers", ["r0"], "are changed"),
    ("constant_time", False, "says constant_time"),
    ("branches", True, "says branches"),
    ("core", "atmega2560", "says cycles"),  # where a return takes longer
    ("proof", {"digest": "0" * 64, "cases": 1, "abi": "avr-gcc"}, "digest"),
    ("proof", {"digest": "0" * 64, "cases": 1, "abi": "other"}, "ABI"),
]


def change(manifest: Path, field: str, value: object) -> None:
    """Let the manifest say something else."""
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {field: value}))


@pytest.mark.parametrize(("field", "lie", "says"), LIES)
def test_a_manifest_that_says_something_else_is_refused(
    refused: Callable[..., str], here: Path, field: str, lie: object, says: str
) -> None:
    manifest, code = small(here)
    change(manifest, field, lie)
    assert says in refused(Exit.DISAGREES, f"verify {manifest} {code}")


def test_every_number_that_the_digest_is_of_is_held(refused: Callable[..., str], here: Path) -> None:
    """The cases of the first proof are of no concern to the second, but nobody may change them."""
    manifest, code = small(here)
    said = json.loads(manifest.read_text())
    said["proof"]["cases"] += 1
    manifest.write_text(json.dumps(said))
    assert "digest" in refused(Exit.DISAGREES, f"verify {manifest} {code}")


@pytest.mark.parametrize("name", verify.KINDS)
def test_a_manifest_is_whole_or_none(refused: Callable[..., str], here: Path, name: str) -> None:
    manifest, code = small(here)
    said = json.loads(manifest.read_text())
    said[name] = None
    manifest.write_text(json.dumps(said))
    assert f"'{name}' is not of type" in refused(Exit.FILE, f"verify {manifest} {code}")
    del said[name]
    manifest.write_text(json.dumps(said))
    assert f"no '{name}'" in refused(Exit.FILE, f"verify {manifest} {code}")


@pytest.mark.parametrize(
    ("field", "value", "says"), [("schema", 2, "schema"), ("proof", {}, "digest"), ("options", {"guard": 1}, "options")]
)
def test_a_manifest_of_another_kind_is_refused(
    refused: Callable[..., str], here: Path, field: str, value: object, says: str
) -> None:
    manifest, code = small(here)
    change(manifest, field, value)
    assert says in refused(Exit.FILE, f"verify {manifest} {code}")


def test_what_does_not_belong_together_is_refused(refused: Callable[..., str], here: Path) -> None:
    manifest, code = small(here)
    other = built(source(), here / "other.o")
    assert f"no function '{manifest.stem}'" in refused(Exit.FILE, f"verify {manifest} {other}")
    renamed = built(source(manifest.stem), here / "renamed.o")
    assert "other code" in refused(Exit.DISAGREES, f"verify {manifest} {renamed}")
    arm = files(kernel_module.make(spec("arm", 64)), here)[1]
    assert "EM_ARM" in refused(Exit.FILE, f"verify {manifest} {arm}")
    for nothing in (here, here / "missing", Path("/dev/zero")):
        assert str(nothing) in refused(Exit.FILE, f"verify {manifest} {nothing}")
        assert str(nothing) in refused(Exit.FILE, f"verify {nothing} {code}")


def test_wrong_code_is_refused_though_the_manifest_describes_it(refused: Callable[..., str], here: Path) -> None:
    """Whoever changes code can change the sum in the manifest as well."""
    manifest, _ = small(here)
    text = manifest.with_suffix(".S").read_text().replace("    adc", "    add", 1)
    code = built(text, here / "changed.o")
    said = json.loads(manifest.read_text())
    said["sha256"] = sha256(objects.read(code, avr(), said["symbol"]).body)
    manifest.write_text(json.dumps(said))
    line = refused(Exit.UNPROVED, f"verify {manifest} {code}")
    assert "is wrong" in line and "counterexample: a = 0x" in line


def test_code_beyond_the_second_proof_is_not_called_wrong(
    refused: Callable[..., str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest, code = small(here)
    monkeypatch.setattr(verify, "prove_forward", lambda *_, **__: ForwardVerdict(False, "too many cases", 0))
    assert "cannot be checked: too many cases" in refused(Exit.UNPROVED, f"verify {manifest} {code}")


def test_who_waits_is_told_why(sqgen: Call, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(source(), here / "k.o")
    monkeypatch.setattr(progress, "WORDLESS", 0.0)  # after the fixture
    run = sqgen(f"prove k.o --isa avr --bits 64 --symbol {STEM}")
    assert run.code == 0
    assert run.err == "still proving 'k.o'; Ctrl-C stops it\n"


@pytest.mark.usefixtures("threadless")
def test_where_no_thread_can_be_started_only_the_word_is_missing(
    sqgen: Call, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(source(), here / "k.o")
    monkeypatch.setattr(progress, "WORDLESS", 0.0)
    run = sqgen(f"prove k.o --isa avr --bits 64 --symbol {STEM}")
    assert (run.code, run.err) == (0, "")
