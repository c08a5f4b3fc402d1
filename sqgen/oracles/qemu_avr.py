"""QEMU as a judge of values: calls a kernel the way C does, on an emulated ATmega1280.

avr-gcc builds a firmware out of the kernel, its inputs and a small main program that calls the kernel on each
input and prints the result over the serial port. QEMU does not model time, so nothing is said about cycles.
The part is the emulated one that is nearest to the ATmega128: 128 KiB of flash, return addresses of 2 bytes.
"""

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from sqgen.oracles import OracleFailed, OracleMissing

_PART = "atmega1280"
_MACHINE = "arduino-mega"
_END = "."
_INPUT_BYTES_PER_RUN = 30_000
"""For one firmware: an array may have 32767 bytes, and data in flash must lie below address 64 KiB."""

_PROTOTYPES = {
    1: "extern void KERNEL(uint8_t *r, const uint8_t *a);",
    2: "extern void KERNEL(uint8_t *r, const uint8_t *a, const uint8_t *b);",
}
_CALLS = {1: "KERNEL(result, operand);", 2: "KERNEL(result, operand, operand + SPLIT);"}

_FIRMWARE = """
#include <avr/io.h>
#include <avr/pgmspace.h>
#include <stdint.h>
#include <string.h>

{prototype}

static const uint8_t inputs[] PROGMEM = {{{inputs}}};
static uint8_t operand[OPERANDS];
static uint8_t result[RESULT];

static void put(char c) {{
    while (!(UCSR0A & _BV(UDRE0)))
        ;
    UDR0 = c;
}}

/* No string and no table anywhere: beyond 64 KiB of flash, initialised data is copied to RAM by way of RAMPZ,
 * and QEMU 7.2 keeps no value that is written there. */
static void put_digit(uint8_t nibble) {{
    put(nibble < 10 ? '0' + nibble : 'a' - 10 + nibble);
}}

int main(void) {{
    UCSR0B = _BV(TXEN0);
    for (uint16_t call = 0; call < CALLS; call++) {{
        memcpy_P(operand, inputs + call * OPERANDS, OPERANDS);
        memset(result, 0xa5, RESULT); /* a byte that the kernel forgets must not pass for a zero */
        {call}
        for (uint16_t i = 0; i < RESULT; i++) {{
            put_digit(result[i] >> 4);
            put_digit(result[i] & 15);
        }}
        put('\\n');
    }}
    put('{end}');
    put('\\n');
    for (;;)
        ;
}}
"""


def run(
    assembly: str, symbol: str, calls: Sequence[tuple[bytes, ...]], result_bytes: int, *, timeout: float = 60
) -> list[bytes]:
    """Calls `symbol` of `assembly` (a `.S` text) on the operands of each call; returns the results in order.

    A call has one operand, for `void SYMBOL(uint8_t *r, const uint8_t *a)`, or two, for
    `void SYMBOL(uint8_t *r, const uint8_t *a, const uint8_t *b)`; the lengths are the same in all calls.
    A result is the `result_bytes` bytes at r. `timeout` is in seconds and applies to every firmware, of which
    there are several when there are many calls.

    Raises OracleMissing without avr-gcc, avr-libc or QEMU; OracleFailed when the assembly does not build or
    the kernel does not come back.
    """
    _require("avr-gcc", "gcc-avr")
    _require("qemu-system-avr", "qemu-system-misc")
    results: list[bytes] = []
    for part in _firmware_loads(calls):
        with tempfile.TemporaryDirectory(prefix="sqgen-qemu-") as folder:
            firmware = _build(Path(folder), assembly, _main_program(symbol, part, result_bytes))
            results += _printed(firmware, len(part), timeout)
    return results


def _require(program: str, package: str) -> None:
    if shutil.which(program) is None:
        raise OracleMissing(f"qemu: {program} not found; install the Debian package {package}")


def _firmware_loads(calls: Sequence[tuple[bytes, ...]]) -> Iterator[Sequence[tuple[bytes, ...]]]:
    """Cuts the calls into runs whose inputs fit into one firmware."""
    shapes = {tuple(len(operand) for operand in operands) for operands in calls}
    if len(shapes) > 1 or any(len(shape) not in _CALLS for shape in shapes):
        raise ValueError("calls need one or two operands each, of the same lengths in all")
    if calls:
        per_run = max(1, _INPUT_BYTES_PER_RUN // sum(shapes.pop()))
        yield from (calls[start : start + per_run] for start in range(0, len(calls), per_run))


def _main_program(symbol: str, calls: Sequence[tuple[bytes, ...]], result_bytes: int) -> str:
    """The C text of a firmware that makes these calls."""
    operands = calls[0]
    inputs = b"".join(operand for call in calls for operand in call)
    defines = {
        "KERNEL": symbol,
        "CALLS": len(calls),
        "OPERANDS": sum(len(operand) for operand in operands),
        "SPLIT": len(operands[0]),
        "RESULT": result_bytes,
    }
    text = _FIRMWARE.format(
        prototype=_PROTOTYPES[len(operands)],
        inputs=",".join(str(byte) for byte in inputs),
        call=_CALLS[len(operands)],
        end=_END,
    )
    return "".join(f"#define {name} {value}\n" for name, value in defines.items()) + text


def _build(folder: Path, assembly: str, main_program: str) -> Path:
    """Compiles the firmware; returns the ELF file."""
    (folder / "kernel.S").write_text(assembly, encoding="utf-8")
    (folder / "main.c").write_text(main_program, encoding="utf-8")
    command = ["avr-gcc", f"-mmcu={_PART}", "-std=gnu99", "-Os", "-o", "firmware.elf", "main.c", "kernel.S"]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace", check=False)
    if done.returncode == 0:
        return folder / "firmware.elf"
    if "avr/io.h" in done.stderr or f"crt{_PART}.o" in done.stderr:
        raise OracleMissing("qemu: avr/io.h not found; install the Debian package avr-libc")
    lines = done.stderr.splitlines()
    errors = [line for line in lines if "rror: " in line or "undefined reference" in line]
    raise OracleFailed(f"avr-gcc for qemu: {(errors + lines)[0]}")


def _printed(firmware: Path, count: int, timeout: float) -> list[bytes]:
    """Runs the firmware until it says that it is done; returns the `count` results that it printed."""
    command = ["qemu-system-avr", "-machine", _MACHINE, "-bios", str(firmware)]
    command += ["-display", "none", "-monitor", "none", "-serial", "stdio"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, encoding="utf-8", errors="replace"
    )
    # Nothing ends QEMU from inside: the firmware halts in a loop, and so may a broken kernel.
    stopper = threading.Timer(timeout, process.kill)
    stopper.start()
    try:
        assert process.stdout is not None
        lines = _lines_until_end(process.stdout)
    finally:
        stopper.cancel()
        process.kill()
        _, complaint = process.communicate()
    if lines is None:
        reason = complaint.strip() or f"the kernel did not come back within {timeout:g} seconds"
        raise OracleFailed(f"qemu: {reason}")
    if len(lines) != count:
        raise OracleFailed(f"qemu: {len(lines)} results came back from {count} calls")
    try:
        return [bytes.fromhex(line) for line in lines]
    except ValueError as error:
        raise OracleFailed("qemu: the kernel ran wild, what was printed is no result") from error


def _lines_until_end(stream: Iterator[str]) -> list[str] | None:
    """The lines before the final one, or None if the stream ends without it."""
    lines: list[str] = []
    for line in stream:
        if line.strip() == _END:
            return lines
        lines.append(line.strip())
    return None
