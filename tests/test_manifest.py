"""The manifest: as docs/manifest.schema.json says, and true."""

from __future__ import annotations

import copy
import hashlib
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from conftest import assemble, avr, kernel

from sqgen import emit, objects
from sqgen import kernel as kernels
from sqgen.cli import main
from sqgen.spec import spec

SCHEMA = json.loads((Path(__file__).parent.parent / "docs/manifest.schema.json").read_text())
CHECKER = jsonschema.Draft202012Validator(SCHEMA)
PROMISED = """schema symbol op bits isa core method parameters cycles bytes stack aliasing constant_time proof sha256
    instructions""".split()  # noqa: SIM905
KERNELS = [
    ("sqr", 16, "sbd", "atmega128"),
    ("sqr", 160, "sbd", "atmega2560"),
    ("sqr", 64, "sweeps", "atmega128"),
    ("sqr", 256, "streamed-karatsuba", "atmega128"),
    ("sqr", 104, "product-scanning", "atmega4809"),
    ("mul", 64, "product-scanning", "atmega328p"),
    ("mul", 32, "operand-scanning", "atxmega128a4u"),
]
EACH = pytest.mark.parametrize(("op", "bits", "method", "core"), KERNELS)


def manifest(op: str = "sqr", bits: int = 64, method: str = "sbd", core: str = "atmega128") -> dict[str, Any]:
    """The manifest as a reader sees it."""
    document: dict[str, Any] = json.loads(emit.manifest_text(kernel(op, bits, method, core)))
    return document


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@EACH
def test_manifests_are_as_the_schema_says_and_hold_what_is_promised(op: str, bits: int, method: str, core: str) -> None:
    made = manifest(op, bits, method, core)
    CHECKER.validate(made)
    assert set(PROMISED) <= set(made)
    assert set(made) == set(SCHEMA["required"]) == set(SCHEMA["properties"])
    assert (made["op"], made["bits"], made["method"], made["core"]) == (op, bits, method, core)
    assert made["symbol"] == f"sqgen_{op}{bits}_avr"


def test_a_method_in_another_form_than_its_default_is_named_in_the_manifest() -> None:
    made = json.loads(emit.manifest_text(kernel("sqr", 64, "sbd", block="3,4", sums="memory")))
    CHECKER.validate(made)
    assert made["parameters"] == {"block": "3,4", "sums": "memory"}
    assert "sums" not in manifest("sqr", 64, "sbd")["parameters"]


@EACH
def test_size_digest_and_counts_are_those_of_the_code_that_avr_gcc_makes(
    tmp_path: Path, op: str, bits: int, method: str, core: str
) -> None:
    made, source = manifest(op, bits, method, core), tmp_path / "k.S"
    source.write_text(emit.assembly(kernel(op, bits, method, core)))
    code = objects.read(assemble(source, tmp_path / "k.o", "avr-gcc"), avr(), made["symbol"])
    assert (made["bytes"], made["bytes"]) == (len(code.image), code.size)
    assert made["sha256"] == hashlib.sha256(code.image).hexdigest()
    assert sum(made["instructions"].values()) == len(kernel(op, bits, method, core).compiled.lines)


@EACH
def test_cycles_of_the_core_are_those_of_its_timing(op: str, bits: int, method: str, core: str) -> None:
    made = manifest(op, bits, method, core)
    timing = avr().core(core).timing
    assert made["cycles"].items() <= made["cycles_by_timing"][timing].items()
    assert set(made["cycles_by_timing"]) == set(avr().timings)
    assert all(cycles["body"] < cycles["call"] for cycles in made["cycles_by_timing"].values())


@EACH
def test_the_header_says_what_the_manifest_says(op: str, bits: int, method: str, core: str) -> None:
    made = manifest(op, bits, method, core)
    for text in (emit.header(kernel(op, bits, method, core)), emit.assembly(kernel(op, bits, method, core))):
        for value in (made["sha256"], made["proof"]["digest"], made["command"], made["generator"], made["method"]):
            assert value in text
        assert f"{made['stack']} bytes below the return address" in text
        assert f"{made['bytes']} bytes of code" in text
        for cycles in made["cycles_by_timing"].values():
            assert f"{cycles['call']:>8} {cycles['body']:>6}" in text
        for name, ranges in made["aliasing"].items():
            inside = any(first <= 0 <= last for first, last in ranges)
            refused = f"r == {name} is NOT allowed" if ranges else f"r and {name} must NOT overlap"
            assert (refused in text) == (not inside)


@pytest.mark.parametrize(
    "line",
    [
        "--isa avr --bits 64",
        "--isa avr --bits 64 --method sbd -p block=3,5 --core atmega2560 --symbol f",
        "--isa avr --bits 48 --op mul --goal size --max-bytes 2000 --max-stack 18",
        "--isa avr --bits 56 --goal balanced",
    ],
)
def test_the_command_in_the_manifest_makes_the_same_files_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    def run(folder: str, command: list[str]) -> dict[str, bytes]:
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        with pytest.raises(SystemExit) as stop:
            main([*command, "--quiet"])
        assert stop.value.code == 0
        return {path.name: path.read_bytes() for path in Path("out").iterdir()}

    first = run("first", shlex.split(line))
    document = next(json.loads(data) for name, data in first.items() if name.endswith(".json"))
    program, *again = shlex.split(document["command"])
    assert program == "sqgen"
    assert run("second", again) == first


@pytest.mark.parametrize("name", SCHEMA["required"])
def test_a_manifest_without_one_of_its_entries_is_refused(name: str) -> None:
    made = manifest()
    del made[name]
    assert not CHECKER.is_valid(made)


def changed(*path: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    """An edit: the entry at `path` becomes `to`."""

    def edit(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = to

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        changed("schema", to=2),
        changed("symbol", to="1x"),
        changed("op", to="div"),
        changed("op", to="mul"),
        changed("bits", to="64"),
        changed("bits", to=0),
        changed("isa", to=""),
        changed("core", to=None),
        changed("parameters", "block", to=4),
        changed("parameters", "block", to="4,"),
        changed("cycles", "body", to=-1),
        changed("cycles", "body", to=1.5),
        changed("cycles", "more", to=1),
        changed("cycles_by_timing", to={}),
        changed("cycles_by_timing", "avre", "confirmed_by", to=""),
        changed("bytes", to=0),
        changed("stack", to=-1),
        changed("aliasing", to={}),
        changed("aliasing", "b", to=[]),
        changed("aliasing", "a", to=[[1]]),
        changed("clobbers", to=["r0", "r0"]),
        changed("constant_time", to=False),
        changed("proof", "digest", to="0" * 63),
        changed("proof", "cases", to=0),
        changed("proof", "date", to="today"),
        changed("sha256", to="G" * 64),
        changed("sha256", to="A" * 64),
        changed("instructions", to={}),
        changed("instructions", "mul", to=0),
        changed("command", to="rm -rf /"),
        changed("generator", to="me"),
        changed("date", to="2026-01-01"),
    ],
)
def test_a_spoiled_manifest_is_refused(edit: Callable[[dict[str, Any]], None]) -> None:
    made = manifest()
    CHECKER.validate(made)
    spoiled = copy.deepcopy(made)
    edit(spoiled)
    assert not CHECKER.is_valid(spoiled)


def test_the_symbol_does_not_change_the_proof() -> None:
    named = kernels.make(spec("avr", 64, method="sbd", symbol="f"))
    assert (named.digest, named.sha256) == (kernel("sqr", 64, "sbd").digest, kernel("sqr", 64, "sbd").sha256)
