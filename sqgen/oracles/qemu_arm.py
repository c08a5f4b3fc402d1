"""QEMU as a judge of values on Cortex-M: calls a kernel the way C does, on emulated boards.

LLVM builds a firmware out of the kernel's `.S` and `.h`, its operands and a small main program that calls the kernel on
each and prints the results by semihosting.  QEMU does not model time, so nothing is said about cycles.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqgen.oracles import OracleFailed, OracleMissing


@dataclass(frozen=True)
class Board:
    """An emulated board: what LLVM calls its processor, and where it finds its vectors and its memory; `unit`: whether
    the main program switches its floating point unit on."""

    machine: str
    cpu: str
    code: int
    ram: int
    unit: bool = False


BOARDS = {
    "cortex-m0": Board("microbit", "cortex_m0", 0x0000_0000, 0x2000_0000),
    "cortex-m3": Board("mps2-an385", "cortex_m3", 0x0000_0000, 0x2000_0000),
    "cortex-m4": Board("mps2-an386", "cortex_m4", 0x0000_0000, 0x2000_0000),
    "cortex-m7": Board("mps2-an500", "cortex_m7", 0x0000_0000, 0x2000_0000),
    "cortex-m33": Board("mps2-an505", "cortex_m33+dsp", 0x1000_0000, 0x3800_0000),
    "cortex-m55": Board("mps3-an547", "cortex_m55+dsp", 0x0000_0000, 0x2000_0000),
}
BOARDS |= {f"{name}.fpu": replace(BOARDS[name], unit=True) for name in ("cortex-m4", "cortex-m7", "cortex-m33")}
SWITCH_ON = "*(volatile uint32_t *)0xe000ed88 |= 0xf << 20; /* CPACR */"
RAM_SIZE = 0x4000
TIMEOUT = 60  # seconds

_LINK = """
ENTRY(start)
MEMORY {{ code (rx) : ORIGIN = {code:#x}, LENGTH = 0x40000
          ram (rw) : ORIGIN = {ram:#x}, LENGTH = {ram_size:#x} }}
stack_top = ORIGIN(ram) + LENGTH(ram);
SECTIONS {{
  .text : {{ KEEP(*(.vectors)) *(.text*) *(.rodata*) }} > code
  .bss (NOLOAD) : {{ *(.bss*) *(.data*) }} > ram
  /DISCARD/ : {{ *(.ARM.exidx*) *(.ARM.attributes) *(.comment) }}
}}
"""

_MAIN = """
#include "kernel.h"

extern uint32_t stack_top[];
void start(void);
static void halt(void);

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {{
    stack_top, (void *)start, (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt,
    (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt, (void *)halt}};

static const uint32_t operands[CALLS][OPERANDS] = {{{operands}}};
static uint32_t operand[OPERANDS];
static uint32_t result[RESULT + 2];
static char line[8 * RESULT + 2];

static void semihost(int number, const void *argument) {{
    register int r0 __asm__("r0") = number;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}}

static void halt(void) {{
    semihost(0x18, (const void *)0x20023); /* a fault: a run-time error */
    for (;;)
        ;
}}

void start(void) {{
    {unit}
    for (int call = 0; call < CALLS; call++) {{
        for (int k = 0; k < OPERANDS; k++)
            operand[k] = operands[call][k];
        for (int k = 0; k < RESULT + 2; k++)
            result[k] = 0xa5a5a5a5;
        {call};
        if (result[0] != 0xa5a5a5a5 || result[RESULT + 1] != 0xa5a5a5a5)
            halt();
        for (int k = 0; k < 8 * RESULT; k++)
            line[k] = "0123456789abcdef"[result[RESULT - k / 8] >> (28 - 4 * (k % 8)) & 15];
        line[8 * RESULT] = '\\n';
        semihost(4, line); /* write up to the zero */
    }}
    semihost(0x18, (const void *)0x20026); /* an application's ordinary end */
    for (;;)
        ;
}}
"""


def run(core: str, files: Mapping[str, str], symbol: str, limbs: int, calls: Sequence[tuple[int, ...]]) -> list[int]:
    """The products that the kernel of some files (`.S` and `.h` by name) forms of operands of so many limbs.

    Raises OracleMissing without LLVM or QEMU; OracleFailed where the firmware does not build or end.
    """
    if importlib.util.find_spec("ziglang") is None:
        raise OracleMissing("ziglang not found; install the Python package ziglang (pip install ziglang)")
    if shutil.which("qemu-system-arm") is None:
        raise OracleMissing("qemu-system-arm not found; install the Debian package qemu-system-arm")
    board = BOARDS[core]
    with tempfile.TemporaryDirectory(prefix="sqgen-qemu-") as name:
        folder = Path(name)
        (folder / "kernel.S").write_text(next(text for file, text in files.items() if file.endswith(".S")))
        (folder / "kernel.h").write_text(next(text for file, text in files.items() if file.endswith(".h")))
        (folder / "main.c").write_text(_main(symbol, limbs, calls, board))
        (folder / "link.ld").write_text(_LINK.format(code=board.code, ram=board.ram, ram_size=RAM_SIZE))
        _build(folder, board)
        return _printed(folder / "firmware.elf", board, len(calls))


def _main(symbol: str, limbs: int, calls: Sequence[tuple[int, ...]], board: Board) -> str:
    """The C text of a firmware that makes these calls."""
    rows = []
    for call in calls:
        words = [number >> 32 * k & 0xFFFFFFFF for number in call for k in range(limbs)]
        rows.append("{" + ", ".join(f"{word:#010x}u" for word in words) + "}")
    count = len(calls[0])
    arguments = ", ".join(["result + 1", "operand", f"operand + {limbs}"][: 1 + count])
    defines = {"CALLS": len(calls), "OPERANDS": count * limbs, "RESULT": 2 * limbs}
    text = _MAIN.format(operands=", ".join(rows), call=f"{symbol}({arguments})", unit=SWITCH_ON * board.unit)
    return "".join(f"#define {name} {value}\n" for name, value in defines.items()) + text


def _build(folder: Path, board: Board) -> None:
    """Make `firmware.elf`, with all warnings."""
    command = [sys.executable, "-P", "-m", "ziglang", "cc", "-target", "thumb-freestanding-eabi", f"-mcpu={board.cpu}"]
    command += ["-Wall", "-Wextra", "-Werror", "-O1", "-fno-sanitize=all", "-ffreestanding", "-nostdlib"]
    command += ["-T", "link.ld", "main.c", "kernel.S", "-o", "firmware.elf"]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode:
        raise OracleFailed(f"the firmware does not build: {done.stderr.strip()[:500]}")


def _printed(firmware: Path, board: Board, count: int) -> list[int]:
    """What the firmware prints: a number a line."""
    command = ["qemu-system-arm", "-machine", board.machine, "-nographic", "-monitor", "none", "-serial", "none"]
    command += ["-semihosting-config", "enable=on,target=native", "-kernel", str(firmware)]
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=TIMEOUT, input=""
        )
    except subprocess.TimeoutExpired:
        raise OracleFailed(f"no end after {TIMEOUT} seconds") from None
    lines = (done.stdout + done.stderr).split()
    if done.returncode or len(lines) != count:
        raise OracleFailed(f"{len(lines)} results instead of {count}, exit code {done.returncode}: {done.stderr[:200]}")
    return [int(line, 16) for line in lines]
