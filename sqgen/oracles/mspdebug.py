"""mspdebug's simulator: calls of a function on a 16-bit MSP430 with the 16-bit multiplier at 0x130.

It knows neither MSP430X nor the 32-bit multiplier, has a result at once, and counts operands from the constant
generator too dear: #1 by two cycles, #2, #4, #8 and #-1 by one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import OracleFailed, OracleMissing

CODE, HALT, END = 0x1100, 0x10F0, 0xFFE0  # addresses of the function, of what it returns to, of the vectors
RAM = 0x0400
LINE = 16  # bytes of a line of a program, in TI's format
ROW = 64  # bytes written by one command
TIMEOUT, EACH = 20, 0.4  # seconds that all calls may take together, and for each
REGISTERS = ("sp", *(f"r{number}" for number in range(4, 16)))


@dataclass(frozen=True)
class Call:
    """How things stand before a call: registers, and memory from `RAM` on, and the status register, which allows
    interrupts where nothing is said.  `entry`: where the call goes, from the code's entry."""

    registers: Mapping[str, int]
    memory: bytes
    status: int = 8
    entry: int = 0


@dataclass(frozen=True)
class After:
    """How they stand behind it, with the instructions executed and the cycles that the simulator counts."""

    registers: Mapping[str, int]
    status: int
    memory: bytes
    instructions: int
    cycles: int


def run(image: bytes, entry: int, calls: Sequence[Call]) -> list[After]:
    """Call the function at `entry` of the code again and again.  Raises OracleMissing, OracleFailed."""
    if shutil.which("mspdebug") is None:
        raise OracleMissing("mspdebug not found; install the Debian package mspdebug")
    with tempfile.TemporaryDirectory() as folder:
        program, script = Path(folder, "code.txt"), Path(folder, "script")
        rows = [image[at : at + LINE].hex(" ").upper() for at in range(0, len(image), LINE)]
        program.write_text("\n".join([f"@{CODE:04X}", *rows, f"@{HALT:04X}", "FF 3F", "q", ""]), encoding="utf-8")
        lines = ["simio add hwmult mul", "simio add tracer count", f"prog {program.name}", f"setbreak 0x{HALT:04x}"]
        for call in calls:
            lines += commands(call, entry)
        script.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        most = TIMEOUT + EACH * len(calls)
        command = ["mspdebug", "-q", "-n", "sim", f"read {script.name}"]  # a name with a space would be two
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=most,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise OracleFailed(f"no end after {most:.0f} seconds") from None
    found = list(parsed(done.stdout))
    if done.returncode or len(found) != len(calls):
        raise OracleFailed((done.stderr.strip().splitlines() or ["it stopped early"])[-1])
    return found


def commands(call: Call, entry: int) -> Iterator[str]:
    """One call as the simulator's commands."""
    for at in range(0, len(call.memory), ROW):
        yield f"mw 0x{RAM + at:04x} {call.memory[at : at + ROW].hex(' ')}"
    for name in REGISTERS:
        yield f"set {name} 0x{call.registers[name]:04x}"
    yield f"set sr {call.status}"
    yield f"set pc 0x{CODE + entry + call.entry:04x}"
    yield "simio config count clear"
    yield "run"
    yield f"md 0x{RAM:04x} {len(call.memory)}"
    yield "simio info count"


def parsed(text: str) -> Iterator[After]:
    """What the simulator printed, call by call."""
    for part in text.split("=> run")[1:]:
        shown = part.partition("=> md")
        registers = {
            name.lower(): int(value, 16) for name, value in re.findall(r"\(\s*(\w+): ([0-9a-f]{5})\)", shown[0])
        }
        rows = re.findall(r"^\s+[0-9a-f]{5}: ((?:[0-9a-f]{2} )+)", shown[2], re.MULTILINE)
        counts = dict(re.findall(r"^(Instruction count|MCLK):\s+(\d+)$", shown[2], re.MULTILINE))
        if registers.get("pc") != HALT or len(counts) < 2:
            return
        memory = bytes.fromhex("".join(rows))
        yield After(registers, registers["sr"], memory, int(counts["Instruction count"]), int(counts["MCLK"]))
