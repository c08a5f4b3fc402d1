"""Assembly for simavr, called, as the tests of the judge and of its single steps need it."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from sqgen.oracles import OracleMissing, simavr
from sqgen.oracles.simavr import Buffer, Outcome, Request

RESULT, OPERAND, SP = 0x300, 0x200, 0x1005
POINTERS = {24: RESULT & 0xFF, 25: RESULT >> 8, 22: OPERAND & 0xFF, 23: OPERAND >> 8, 1: 0}

SQUARE = """
.global square
square:
    movw r30, r22
    ld   r18, Z
    mul  r18, r18
    movw r30, r24
    st   Z+, r0
    st   Z, r1
    clr  r1
    ret
"""


@contextmanager
def judge_installed() -> Iterator[None]:
    """Skips the test when a judge is missing; fails it where CI is set: nothing may be missing there."""
    try:
        yield
    except OracleMissing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@functools.cache
def image_of(assembly: str, part: str = "atmega128") -> bytes:
    """Assembles and links to address 0; returns the flash image."""
    if shutil.which("avr-gcc") is None:
        raise OracleMissing("avr-gcc not found; install the Debian package gcc-avr")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "kernel.S").write_text(assembly + "\n")
        link = ["avr-gcc", f"-mmcu={part}", "-nostdlib", "-Wl,-Ttext=0", "-o", "kernel.elf", "kernel.S"]
        subprocess.run(link, cwd=place, check=True, capture_output=True)
        copy = ["avr-objcopy", "-O", "binary", "-j", ".text", "kernel.elf", "kernel.bin"]
        subprocess.run(copy, cwd=place, check=True)
        return (place / "kernel.bin").read_bytes()


def square_request(value: int) -> Request:
    return Request(POINTERS, (Buffer(OPERAND, bytes([value])),), ((RESULT, 2),))


def run(
    assembly: str,
    requests: Sequence[Request] = (Request(POINTERS),),
    *,
    part: str = "atmega128",
    sp: int = SP,
    interrupts: bool = False,
    step_limit: int = 10_000,
) -> list[Outcome]:
    with judge_installed():
        image = image_of(assembly, part)
        return simavr.call(part, image, requests, sp=sp, interrupts=interrupts, step_limit=step_limit)


def run_one(assembly: str, registers: dict[int, int] | None = None, *, interrupts: bool = False) -> Outcome:
    return run(assembly, [Request(registers or {})], interrupts=interrupts)[0]


def squares(outcomes: Sequence[Outcome]) -> list[int]:
    return [int.from_bytes(outcome.memory[0], "little") for outcome in outcomes]
