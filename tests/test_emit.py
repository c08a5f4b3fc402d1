"""The emitted files as a firmware author meets them: compilers take them without a word, people can read them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import kernel, missing

from sqgen import emit
from sqgen.kernel import Kernel

KERNELS = [("sqr", 64, "sbd", "atmega128"), ("sqr", 256, "auto", "atmega128"), ("mul", 512, "auto", "atmega2560")]
EACH = pytest.mark.parametrize("asked", KERNELS, ids=["sqr64", "sqr256", "mul512"])
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


@pytest.fixture
def made(asked: tuple[str, int, str, str]) -> Kernel:
    return kernel(*asked)


def accepted(folder: Path, program: str, *options: str) -> None:
    """The compiler has nothing to say."""
    if shutil.which(program) is None:
        missing(f"{program} is not installed")
    done = subprocess.run([program, *options], cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@EACH
@pytest.mark.parametrize("compiler", ["gcc", "avr-gcc"])
@pytest.mark.parametrize("standard", ["c90", "c99", "gnu11"])
def test_the_header_is_clean_c_even_when_included_twice(
    tmp_path: Path, made: Kernel, compiler: str, standard: str
) -> None:
    (tmp_path / "k.h").write_text(emit.header(made))
    symbol = made.spec.symbol
    (tmp_path / "use.c").write_text(
        f'#include "k.h"\n#include "k.h"\nint use(void);\nint use(void) {{ return !{symbol}; }}\n'
    )
    accepted(tmp_path, compiler, f"-std={standard}", *WARNINGS, "-Wno-address", "-c", "use.c")


@EACH
def test_the_header_is_clean_cpp_with_c_linkage(tmp_path: Path, made: Kernel) -> None:
    symbol, operands = made.spec.symbol, ", a" * (len(made.spec.contract.buffers) - 1)
    (tmp_path / "k.h").write_text(emit.header(made))
    (tmp_path / "use.cpp").write_text(
        f'#include "k.h"\nvoid use(uint8_t *r, const uint8_t *a) {{ {symbol}(r{operands}); }}\n'
    )
    accepted(tmp_path, "avr-g++", "-std=c++11", *WARNINGS, "-c", "use.cpp")
    names = subprocess.run(["avr-nm", "use.o"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert re.search(rf"U _?{symbol}$", names, re.MULTILINE)


@EACH
def test_the_assembly_passes_preprocessor_and_assembler_without_a_warning(tmp_path: Path, made: Kernel) -> None:
    (tmp_path / "k.S").write_text(emit.assembly(made))
    accepted(tmp_path, "avr-gcc", f"-mmcu={made.spec.core.name}", *WARNINGS, "-Wa,--fatal-warnings", "-c", "k.S")
    if shutil.which("gcc"):  # any other preprocessor, too: it sees the part that is left out
        accepted(tmp_path, "gcc", "-E", "-Wall", "-Werror", "-o", "k.s", "k.S")


@pytest.mark.parametrize("part", ["attiny84", "at90s8515"])
def test_the_assembly_refuses_a_part_without_mul_by_name(tmp_path: Path, part: str) -> None:
    if shutil.which("avr-gcc") is None:
        missing("avr-gcc is not installed")
    (tmp_path / "k.S").write_text(emit.assembly(kernel("sqr", 64)))
    command = ["avr-gcc", f"-mmcu={part}", "-c", "k.S"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode and "sqgen_sqr64_avr needs the MUL and MOVW instructions" in done.stderr


@EACH
def test_files_are_plain_text_of_readable_width(made: Kernel) -> None:
    for name, text in emit.all_files(made).items():
        assert text.isascii() and text.endswith("\n") and not text.endswith("\n\n")
        assert not re.search(r"[\t\r]|[ \t]$", text, re.MULTILINE)
        assert name.endswith(".json") or max(map(len, text.splitlines())) <= 110


@EACH
def test_files_name_their_licence_and_the_header_has_guards(made: Kernel) -> None:
    source, header = emit.assembly(made), emit.header(made)
    guard = f"{made.spec.symbol.upper()}_H"
    for text in (source, header):
        assert text.startswith("/* SPDX-License-Identifier: MIT-0\n")
        assert text.count("*/") == text.count("/*")
    assert f"#ifndef {guard}\n#define {guard}\n" in header
    assert 'extern "C" {' in header and "const uint8_t *a" in header


@EACH
def test_comments_in_the_code_hold_nothing_that_a_preprocessor_takes_for_its_own(made: Kernel) -> None:
    code = emit.assembly(made).split("#if", 1)[1].split("#else")[0]
    comments = [line.split(";", 1)[1] for line in code.splitlines() if ";" in line]
    assert comments
    assert not [comment for comment in comments if re.search(r"""['"\\`]|/\*|//|^\s*#""", comment)]


@EACH
def test_only_directives_that_every_assembler_shares_are_used(made: Kernel) -> None:
    words = set(re.findall(r"^\s*(\.\w+)\b(?!:)", emit.assembly(made), re.MULTILINE))
    assert words == {".section", ".global", ".type", ".size", ".error"}
