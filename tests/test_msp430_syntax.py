"""Files for TI's assembler, which nothing here runs: translated back they assemble to the bytes that were proved."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
from commandline import Call
from msp430 import made, msp430

from sqgen import emit, objects, programs

BACK = (
    (r'\.sect "(.*)"', r'.section .text.f,"ax",@progbits'),
    (r"\.align 2", ".balign 2"),
    (r"\.def (.*)", r".global \1"),
)


def translated(text: str) -> str:
    """TI's dialect as GNU's, line by line; every line must be one that TI's manual has."""
    lines = []
    for line in text.splitlines():
        if line.startswith(";") or not line.strip() or line.strip() in (".endasmfunc", ".end"):
            continue
        if label := re.fullmatch(r"(\w+):( \.asmfunc)?", line):
            lines += [f".type {label[1]}, @function"] * bool(label[2]) + [f"{label[1]}:"]
            continue
        assert line.startswith("    "), f"only labels begin in column one: {line}"
        lines.append(functools.reduce(lambda done, pair: re.sub(pair[0], pair[1], done), BACK, line))
    (symbol,) = re.findall(r"\.def (\w+)", text)
    return "\n".join([*lines, f".size {symbol}, .-{symbol}", ""])


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("op", "bits", "core"), [("sqr", 128, "msp430"), ("mul", 256, "msp430x"), ("sqr", 512, "msp430")]
)
def test_a_file_for_tis_assembler_holds_the_same_code(op: str, bits: int, core: str, tmp_path: Path) -> None:
    kernel = made(op, bits, core=core)
    text = emit.assembly(kernel, "ti")
    (tmp_path / "kernel.S").write_text(translated(text))
    programs.assemble(tmp_path / "kernel.S", tmp_path / "kernel.o", msp430(), kernel.spec.core)
    code = objects.read(tmp_path / "kernel.o", msp430(), None)
    assert (code.symbol, code.body) == (kernel.spec.symbol, kernel.compiled.image)
    assert "/*" not in text and ".L" not in text and "--syntax ti" in text


def test_the_file_is_named_as_that_assembler_wants_it(sqgen: Call, here: Path) -> None:
    assert sqgen("--isa msp430 --bits 64 --syntax ti").code == 0
    assert {path.name for path in (here / "out").iterdir()} == {
        f"sqgen_sqr64_msp430.{end}" for end in ("asm", "h", "json")
    }


@pytest.mark.parametrize(("isa", "syntax"), [("avr", "ti"), ("msp430", "iar")])
def test_a_syntax_that_there_is_not_is_refused_in_one_line(sqgen: Call, isa: str, syntax: str) -> None:
    told = sqgen(f"--isa {isa} --bits 64 --syntax {syntax}")
    assert told.code == 2 and told.err.startswith(f"Error: '{syntax}' is no syntax of files for {isa}; there is gnu")
