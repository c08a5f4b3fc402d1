"""Kernels that sqgen did not write: `kernels/*.S`, and longer ones by the generators below.

They do what other people's kernels do and sqgen's own need not: masks, parked carries, signed differences, frames,
loops and calls.  Each is linked, so that the bytes are those that would run.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from conftest import TESTS, assemble, avr, contract, core

from sqgen import objects
from sqgen.contract import Contract, Verdict
from sqgen.oracles import OracleMissing
from sqgen.prove import prove

SOURCES = {path.stem: path for path in sorted((TESTS / "kernels").glob("*.S"))}


@dataclass(frozen=True)
class Foreign:
    """A kernel with its contract: `entry` is where it starts in `image` (bytes)."""

    contract: Contract
    image: bytes
    entry: int

    def prove(self) -> Verdict:
        return prove(self.image, self.contract, core(), self.entry)


@functools.cache
def foreign(name: str) -> Foreign:
    """A kernel of `SOURCES` or `GENERATED`, assembled and linked."""
    text = SOURCES[name].read_text() if name in SOURCES else GENERATED[name]()
    return link(text)


def link(text: str) -> Foreign:
    """Assemble and link a source; the comment with its C prototype says what it promises."""
    found = re.search(r"void ((sqr|mul)(\d+))\(", text)
    assert found, "the source has no prototype"
    if shutil.which("avr-ld") is None:
        raise OracleMissing("avr-ld not found; install the Debian package binutils-avr")
    with tempfile.TemporaryDirectory() as folder:
        source, linked = Path(folder) / "kernel.S", Path(folder) / "kernel.elf"
        source.write_text(text)
        target = assemble(source, Path(folder) / "kernel.o", "avr-gcc")
        subprocess.run(["avr-ld", "-m", "avr51", "-Ttext", "0", "-e", "0", "-o", linked, target], check=True)
        code = objects.read(linked, avr(), found[1])
    return Foreign(contract(found[2], int(found[3]) // 8), code.image, code.entry)


def function(prototype: str, body: Sequence[str], saved: Sequence[int]) -> str:
    """A function that saves these registers, and Y."""
    name = prototype.removeprefix("void ").partition("(")[0]
    saves = [f"push r{register}" for register in (*saved, 28, 29)]
    restores = [save.replace("push", "pop") for save in reversed(saves)]
    lines = [f"; {prototype}", f".global {name}", f"{name}:", *saves, *body, "clr r1", *restores, "ret"]
    return "\n".join(lines) + "\n"


# r2-r4 the sum of the column, r5 always zero, r6 and r7 temporary, r8-r11 masks: parked carries and signs
ZERO, TEMPORARY, OTHER = "r5", "r6", "r7"
SAVED = tuple(range(2, 18))
FIRST = [f"r{register}" for register in range(12, 18)]
SECOND = [f"r{register}" for register in range(18, 24)]


def columns(first: Sequence[str], second: Sequence[str], take: Callable[[int, str], list[str]]) -> list[str]:
    """Product scanning: `take` gets every finished limb as (column, register)."""
    total = ["r2", "r3", "r4"]
    lines = [f"clr {register}" for register in total]
    for column in range(2 * len(first) - 1):
        for i, left in enumerate(first):
            if 0 <= column - i < len(second):
                lines += [f"mul {left}, {second[column - i]}", f"add {total[0]}, r0", f"adc {total[1]}, r1"]
                lines += [f"adc {total[2]}, {ZERO}"]
        lines += [*take(column, total[0]), f"clr {total[0]}"]
        total = [*total[1:], total[0]]
    return [*lines, *take(2 * len(first) - 1, total[0])]


def streamed_square(limbs: int) -> str:
    """Subtractive Karatsuba of two halves; the middle square is never stored.

    With X = 2^(8k), lo^2 = A + X B, hi^2 = C + X D and |lo - hi|^2 = M0 + X M1 the result is
    A + X (A + BC - M0) + X^2 (BC + D - M1) + X^3 D, where BC = B + C and its carry goes into D.
    """
    k = limbs // 2
    low, high = FIRST[:k], SECOND[:k]
    carry, borrow, sign = "r8", "r9", "r10"

    def second_half(column: int, limb: str) -> list[str]:
        if column < k:  # add B to C
            parked = [f"lsr {carry}"] if column else []
            chain = [f"ldd {TEMPORARY}, Z+{k + column}", f"{'adc' if column else 'add'} {TEMPORARY}, {limb}"]
            return [*parked, *chain, f"sbc {carry}, {carry}", f"std Z+{2 * k + column}, {TEMPORARY}"]
        parked = [f"lsr {carry}", f"adc {limb}, {ZERO}", f"sbc {carry}, {carry}"]
        return [*parked, f"std Z+{2 * k + column}, {limb}"]

    def middle(column: int, limb: str) -> list[str]:
        other = column if column < k else 2 * k + column  # A, then D
        first = column == 0
        return [
            f"ldd {TEMPORARY}, Z+{2 * k + column % k}",
            *([] if first else [f"lsr {borrow}"]),
            f"{'sub' if first else 'sbc'} {TEMPORARY}, {limb}",
            f"sbc {borrow}, {borrow}",
            f"ldd {OTHER}, Z+{other}",
            *([] if first else [f"lsr {carry}"]),
            f"{'add' if first else 'adc'} {OTHER}, {TEMPORARY}",
            f"sbc {carry}, {carry}",
            f"std Z+{k + column}, {OTHER}",
        ]

    lines = ["movw r26, r22", "movw r30, r24", f"clr {ZERO}"]
    lines += [f"ld {register}, X+" for register in (*low, *high)]
    lines += columns(low, low, lambda column, limb: [f"std Z+{column}, {limb}"])
    lines += columns(high, high, second_half)
    lines += [f"{'sbc' if i else 'sub'} {low[i]}, {high[i]}" for i in range(k)] + [f"sbc {sign}, {sign}"]
    lines += [f"eor {limb}, {sign}" for limb in low]
    lines += [f"{'sbc' if i else 'sub'} {low[i]}, {sign}" for i in range(k)]
    lines += columns(low, low, middle)
    lines += [f"sub {borrow}, {carry}", f"mov {sign}, {borrow}", f"lsl {sign}", f"sbc {sign}, {sign}"]
    for i in range(k):  # carry - borrow, sign-extended
        lines += [f"ldd {TEMPORARY}, Z+{3 * k + i}", f"{'adc' if i else 'add'} {TEMPORARY}, {sign if i else borrow}"]
        lines += [f"std Z+{3 * k + i}, {TEMPORARY}"]
    return function(f"void sqr{8 * limbs}(uint8_t *r, const uint8_t *a)", lines, SAVED)


def signed_product(limbs: int) -> str:
    """Karatsuba with signed differences d = lo(a) - hi(a), e = hi(b) - lo(b), modulo X = 2^(8k), their borrows kept as
    masks: the middle is L + H + d e - X (e & sign of d) - X (d & sign of e) + X^2 (both signs).

    The middle is streamed: each limb of d e meets those of L and H, the upper ones of L having waited on the stack.
    """
    k = limbs // 2
    first, second = FIRST[:k], SECOND[:k]
    sign_d, sign_e, *parked = ["r8", "r9", "r10", "r11", "r24", "r25", "r26"]

    def chain(mask: str, operation: str, limb: str, begins: bool) -> list[str]:
        """TEMPORARY + or - limb, its carry parked in the mask."""
        carry_in = {"add": "adc", "sub": "sbc"}[operation]
        head = [f"{operation} {TEMPORARY}, {limb}"] if begins else [f"lsr {mask}", f"{carry_in} {TEMPORARY}, {limb}"]
        return [*head, f"sbc {mask}, {mask}"]

    def middle(column: int, limb: str) -> list[str]:
        lines = [f"ldd {TEMPORARY}, Z+{column}" if column < k else f"pop {TEMPORARY}"]
        lines += chain(parked[0], "add", limb, column == 0)
        lines += [f"ldd {OTHER}, Z+{2 * k + column}", *chain(parked[1], "add", OTHER, column == 0)]
        if column >= k:
            for sign, values, mask in ((sign_d, second, parked[2]), (sign_e, first, parked[3])):
                lines += [f"mov {OTHER}, {values[column - k]}", f"and {OTHER}, {sign}"]
                lines += chain(mask, "sub", OTHER, column == k)
        lines += [f"ldd {OTHER}, Z+{k + column}", *chain(parked[4], "add", OTHER, column == 0)]
        return [*lines, f"std Z+{k + column}, {TEMPORARY}"]

    lines = ["movw r26, r22", "movw r28, r20", "movw r30, r24", f"clr {ZERO}"]
    for half in range(2):  # L, H
        lines += [f"ld {register}, X+" for register in first]
        lines += [f"ldd {register}, Y+{half * k + i}" for i, register in enumerate(second)]
        lines += columns(first, second, lambda column, limb, at=2 * k * half: [f"std Z+{at + column}, {limb}"])  # type: ignore[misc]
    lines += [f"sbiw r26, {2 * k}"]
    for i in range(k):
        lines += [
            f"ld {TEMPORARY}, X+",
            f"{'sbc' if i else 'sub'} {TEMPORARY}, {first[i]}",
            f"mov {first[i]}, {TEMPORARY}",
        ]
    lines += [f"sbc {sign_d}, {sign_d}"]
    for i in range(k):
        lines += [f"ldd {TEMPORARY}, Y+{i}", f"{'sbc' if i else 'sub'} {second[i]}, {TEMPORARY}"]
    lines += [f"sbc {sign_e}, {sign_e}"]
    for i in reversed(range(k)):
        lines += [f"ldd {TEMPORARY}, Z+{k + i}", f"push {TEMPORARY}"]
    lines += columns(first, second, middle)
    lines += [f"and {sign_d}, {sign_e}", f"clr {OTHER}", f"sub {OTHER}, {sign_d}"]
    for mask, operation in zip(parked, ("sub", "sub", "add", "add", "sub"), strict=True):
        lines += [f"{operation} {OTHER}, {mask}"]
    lines += [f"mov {sign_e}, {OTHER}", f"lsl {sign_e}", f"sbc {sign_e}, {sign_e}"]
    for i in range(k):  # what is left above, sign-extended
        lines += [f"ldd {TEMPORARY}, Z+{3 * k + i}", f"{'adc' if i else 'add'} {TEMPORARY}, {sign_e if i else OTHER}"]
        lines += [f"std Z+{3 * k + i}, {TEMPORARY}"]
    return function(f"void mul{8 * limbs}(uint8_t *r, const uint8_t *a, const uint8_t *b)", lines, SAVED)


GENERATED: dict[str, Callable[[], str]] = {
    f"{maker.__name__}_{8 * limbs}": functools.partial(maker, limbs)
    for maker, sizes in ((streamed_square, (4, 8, 12)), (signed_product, (4, 6, 8, 12)))
    for limbs in sizes
}
NAMES = [*SOURCES, *GENERATED]
