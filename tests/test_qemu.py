"""QEMU judges as it says: it is shown small kernels whose outcome is known."""

from pathlib import Path

import pytest
from simavr_calls import SQUARE, judge_installed

from sqgen.oracles import OracleFailed, OracleMissing, qemu_avr


def test_every_square_is_right_in_qemu() -> None:
    with judge_installed():
        results = qemu_avr.run(SQUARE, "square", [(bytes([value]),) for value in range(256)], 2)
    assert [int.from_bytes(result, "little") for result in results] == [value * value for value in range(256)]


SUBTRACT = """
.global subtract
subtract:
    movw r30, r22
    ld   r18, Z
    movw r30, r20
    ldd  r19, Z+1
    sub  r18, r19
    movw r30, r24
    st   Z, r18
    ret
"""


def test_qemu_keeps_operands_apart_and_marks_bytes_that_were_not_written() -> None:
    with judge_installed():
        results = qemu_avr.run(SUBTRACT, "subtract", [(b"\x09", b"\xff\x02"), (b"\x10", b"\xff\x01")], 2)
    assert results == [b"\x07\xa5", b"\x0f\xa5"]


def test_qemu_takes_more_inputs_than_one_firmware_holds() -> None:
    values = [index % 256 for index in range(qemu_avr._INPUT_BYTES_PER_RUN + 10)]
    with judge_installed():
        results = qemu_avr.run(SQUARE, "square", [(bytes([value]),) for value in values], 2)
    assert [int.from_bytes(result, "little") for result in results] == [value * value for value in values]


def test_qemu_takes_kernels_that_reach_beyond_64_kib_of_flash() -> None:
    long = SQUARE.replace("mul  r18, r18", "mul r18, r18\n" + "nop\n" * 29_000)
    calls = [(bytes([value]) + bytes(99),) for value in range(256)]  # the inputs take 25 KiB
    with judge_installed():
        results = qemu_avr.run(long, "square", calls, 2)
    assert [int.from_bytes(result, "little") for result in results] == [value * value for value in range(256)]


def test_qemu_takes_no_calls() -> None:
    with judge_installed():
        assert qemu_avr.run(SQUARE, "square", [], 2) == []


@pytest.mark.parametrize(
    ("assembly", "complaint"),
    [
        (".global k\nk: rjmp k\n", "did not come back within 1 seconds"),
        (".global k\nk: frob r0\n", "unknown opcode `frob'"),
        (".global other\nother: ret\n", "undefined reference to `k'"),
    ],
)
def test_qemu_says_why_a_kernel_gave_no_result(assembly: str, complaint: str) -> None:
    with judge_installed(), pytest.raises(OracleFailed, match=complaint):
        qemu_avr.run(assembly, "k", [(b"\x01",)], 1, timeout=1)


def test_qemu_refuses_operands_of_differing_lengths() -> None:
    with judge_installed(), pytest.raises(ValueError, match="of the same lengths"):
        qemu_avr.run(SQUARE, "square", [(b"\x01",), (b"\x01\x02",)], 2)


@pytest.mark.parametrize(
    ("present", "missing", "package"),
    [((), "avr-gcc", "gcc-avr"), (("avr-gcc",), "qemu-system-avr", "qemu-system-misc")],
)
def test_missing_qemu_programs_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, present: tuple[str, ...], missing: str, package: str
) -> None:
    for program in present:
        (tmp_path / program).write_text("#!/bin/sh\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OracleMissing, match=f"{missing} not found; install the Debian package {package}"):
        qemu_avr.run(SQUARE, "square", [(b"\x01",)], 2)
