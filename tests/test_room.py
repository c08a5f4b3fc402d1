"""Code that a part has no room for: another kernel is taken, or it is refused; nobody is told of a fault of sqgen."""

from __future__ import annotations

import re
import shutil
import subprocess

import matrix
import pytest
from commandline import Call
from sqgen.isa import avr, msp430_cells

from sqgen import check, kernel, walk
from sqgen.errors import Exit, UserError
from sqgen.oracles import OracleMissing, mspdebug, simavr, simavr_judge
from sqgen.spec import spec
from sqgen.tables import isa

NEWER = {"attiny1614", "atmega4809", "avr128da48"}  # parts that avr-libc 2.0.0 does not know


def test_flash_is_what_avr_libc_says_and_every_part_that_multiplies_has_some() -> None:
    which = isa("avr")
    assert set(avr.FLASH) == {name for name, core in which.cores.items() if not core.lacks & set(avr.NEEDS)}
    if shutil.which("avr-gcc") is None:
        raise OracleMissing("avr-gcc not found; install the Debian packages gcc-avr and avr-libc")
    for name in set(avr.FLASH) - NEWER:
        command = ["avr-gcc", f"-mmcu={name}", "-E", "-P", "-include", "avr/io.h", "-"]
        said = subprocess.run(command, input="FLASHEND", capture_output=True, text=True, check=True).stdout
        first, *others = (int(each, 0) for each in re.findall(r"0x[0-9A-Fa-f]+|\d+", said.splitlines()[-1]))
        last = first + others[0] - others[1] if others else first  # XMEGA: start + size - 1
        assert last + 1 == avr.room(which.core(name)), name


@pytest.mark.simulator
def test_auto_takes_what_the_part_has_room_for_and_the_matrix_tells_parts_apart() -> None:
    jobs = [matrix.Job("avr", core, "mul", 512, "auto") for core in ("atmega8", "atmega328p")]
    small, large = matrix.together(dict.fromkeys(jobs))[::-1]
    assert small["job"]["core"] == "atmega8" and small["verdict"] == large["verdict"] == matrix.RIGHT
    assert small["counted"] and small["cycles"] > large["cycles"]
    made = kernel.make(spec("avr", 512, op="mul", core="atmega8"))
    assert made.size <= 8192 and made.price.call == small["cycles"]


@pytest.mark.parametrize("limit", ["", " --max-bytes 20000"])
def test_a_method_whose_code_is_too_long_is_refused_with_advice(sqgen: Call, limit: str) -> None:
    refused = sqgen(f"--isa avr --core atmega8 --op mul --bits 256 --method operand-scanning{limit}")
    assert refused.code == Exit.LIMITS and len(refused.err.splitlines()) == 1
    assert "more than the flash of atmega8 holds, which is 8192; take another method" in refused.err


@pytest.mark.parametrize("more", ["", " --allow-branches"])
def test_code_that_is_longer_than_a_proof_is_refused(sqgen: Call, monkeypatch: pytest.MonkeyPatch, more: str) -> None:
    """As operand scanning of 33 limbs is on Cortex-M0, after half a minute; it does not branch if it may."""
    monkeypatch.setattr(kernel, "longest", lambda _: 200)
    refused = sqgen(f"--isa avr --op mul --bits 64 --method operand-scanning{more}")
    assert refused.code == Exit.LIMITS and len(refused.err.splitlines()) == 1
    assert re.search(r"makes \d+ instructions here, and a proof walks at most 200; take --method auto", refused.err)


def test_msp430_code_that_grows_without_end_is_refused(sqgen: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = sqgen("--isa msp430 --op mul --bits 512 --method rows")
    assert refused.code == Exit.LIMITS and "the flash of msp430 holds" in refused.err
    monkeypatch.setattr(msp430_cells, "FLASH", range(100))  # so much before its registers are chosen takes seconds
    early = sqgen("--isa msp430 --op mul --bits 96 --method row-blocks")
    assert early.code == Exit.LIMITS and "makes more code here than any part can hold" in early.err


@pytest.mark.simulator
def test_mspdebug_runs_code_that_nearly_fills_the_flash_and_no_more() -> None:
    made = kernel.make(spec("msp430", 416, op="mul", method="rows"))
    assert 0.9 * (mspdebug.END - mspdebug.CODE) < made.size <= mspdebug.END - mspdebug.CODE
    asked = made.spec.contract, made.spec.core, 0, 4
    assert check.run(made.compiled.image, *asked, branches=False).simulator == "mspdebug"
    with pytest.raises(UserError, match="it has room for") as refused:
        check.run(bytes(mspdebug.END - mspdebug.CODE + 2), *asked, branches=False)
    assert refused.value.code == Exit.LIMITS


@pytest.mark.simulator
def test_simavr_runs_what_fits_the_ram_with_an_interrupt_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest product of the smallest part: once a handler wrote over a guard of b (found by `make matrix`)."""
    made = kernel.make(spec("avr", 1024, op="mul", core="atmega8"))
    asked = made.compiled.image, made.spec.contract, made.spec.core, 0, 4
    first, last = simavr.ram("atmega8")
    left = last + 1 - first - 4 * simavr_judge.GUARD - 512 - made.verdict.stack - 2  # r, a, b; the return address
    assert simavr.HANDLER <= left < 2 * simavr.HANDLER
    assert check.run(*asked, branches=False).interrupted
    monkeypatch.setattr(simavr, "HANDLER", left)
    assert check.run(*asked, branches=False).interrupted
    monkeypatch.setattr(simavr, "HANDLER", left + 1)
    with pytest.raises(UserError, match="atmega8 has 1024 bytes of RAM, 1 fewer than it takes") as refused:
        check.run(*asked, branches=False)
    assert refused.value.code == Exit.LIMITS


def test_code_that_is_longer_than_a_proof_walks_is_refused_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 832 bits on M0's products by operand scanning are (found by `make matrix`)."""
    asked = spec("arm", 64, op="mul", method="operand-scanning", core="cortex-m0")
    made = kernel.make(asked)
    count = len(made.compiled.lines)
    beside = count - walk.steps_per_product(4) * asked.contract.limbs**2
    monkeypatch.setattr(walk, "STEPS_BESIDE", beside)
    assert kernel.make(asked).sha256 == made.sha256
    monkeypatch.setattr(walk, "STEPS_BESIDE", beside - 1)
    with pytest.raises(UserError, match=f"makes {count} instructions here.* at most {count - 1};") as refused:
        kernel.make(asked)
    assert refused.value.code == Exit.LIMITS
