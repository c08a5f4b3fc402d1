"""simavr judges as it says: it is shown small kernels, good and broken, whose outcome is known."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from simavr_calls import (
    SP,
    SQUARE,
    image_of,
    judge_installed,
    run,
    run_one,
    square_request,
    squares,
)

from sqgen.oracles import OracleFailed, OracleMissing, simavr
from sqgen.oracles.simavr import Buffer, Request

# A byte parked below the stack pointer, which the AVR gives no protection from handlers.
SQUARE_WITH_RED_ZONE = """
    in   r28, 0x3d
    in   r29, 0x3e
    sbiw r28, 8
    movw r30, r22
    ld   r18, Z
    st   Y, r18
    ld   r18, Y
    mul  r18, r18
    movw r30, r24
    st   Z+, r0
    st   Z, r1
    clr  r1
    ret
"""

ENTER_FRAME = "in r30, 0x3d\n in r31, 0x3e\n sbiw r30, 32\n in r0, 0x3f\n"
LEAVE_FRAME = "in r30, 0x3d\n in r31, 0x3e\n adiw r30, 32\n in r0, 0x3f\n"
# SP goes 0x1003 -> 0x0fe3: with the low byte written first it is 0x10e3 between, above the return address.
NAKED_MOVE = "out 0x3d, r30\n out 0x3e, r31\n"
# What avr-gcc writes: interrupts come back on only after the instruction that follows OUT SREG.
GUARDED_MOVE = "cli\n out 0x3e, r31\n out 0x3f, r0\n out 0x3d, r30\n"


# ---- simavr: calls ----


@pytest.mark.parametrize("part", ["atmega128", "atmega328p", "atmega1280", "atmega2560"])
def test_every_square_is_right_in_simavr(part: str) -> None:
    outcomes = run(SQUARE, [square_request(value) for value in range(256)], part=part, sp=0x8FF)
    assert squares(outcomes) == [value * value for value in range(256)]
    assert {outcome.stop for outcome in outcomes} == {"returned"}


def test_cycles_run_from_the_first_instruction_to_ret() -> None:
    outcome = run(SQUARE, [square_request(7)])[0]
    assert outcome.cycles == 1 + 2 + 2 + 1 + 2 + 2 + 1 + 4
    assert outcome.instructions == 8
    assert outcome.cycles_at == {0: 1, 2: 2, 4: 2, 6: 1, 8: 2, 10: 2, 12: 1, 14: 4}


def test_cycles_at_come_with_the_first_outcome_only() -> None:
    first, second = run(SQUARE, [square_request(7), square_request(8)])
    assert first.cycles_at and not second.cycles_at


def test_cycles_at_sum_over_a_loop() -> None:
    outcome = run_one("ldi r16, 3\n 1: dec r16\n brne 1b\n ret")
    assert outcome.cycles_at == {0: 1, 2: 3, 4: 2 + 2 + 1, 6: 4}
    assert outcome.cycles == sum(outcome.cycles_at.values())


def test_return_addresses_have_three_bytes_on_atmega2560() -> None:
    outcome = run("ret", part="atmega2560")[0]
    assert (outcome.stop, outcome.cycles, outcome.sp, outcome.low_sp) == ("returned", 5, SP, SP - 3)


def test_low_sp_counts_the_return_address_and_pushes() -> None:
    outcome = run_one("push r2\n push r3\n rcall 1f\n pop r3\n pop r2\n ret\n 1: ret")
    assert (outcome.sp, outcome.low_sp) == (SP, SP - 2 - 2 - 2)


@pytest.mark.parametrize("move", [NAKED_MOVE, GUARDED_MOVE])
def test_low_sp_ignores_a_half_written_stack_pointer(move: str) -> None:
    outcome = run_one(ENTER_FRAME + move + LEAVE_FRAME + move + "ret")
    assert (outcome.stop, outcome.sp, outcome.low_sp) == ("returned", SP, SP - 2 - 32)


def test_low_sp_sees_a_move_of_the_low_byte_alone() -> None:
    # The first POP follows the OUT at once: the depth must be taken before it.
    outcome = run_one("in r30, 0x3d\n subi r30, 3\n out 0x3d, r30\n pop r0\n pop r0\n pop r0\n ret")
    assert (outcome.stop, outcome.low_sp) == ("returned", SP - 2 - 3)


def test_unlisted_registers_hold_junk_that_is_reported() -> None:
    outcome = run_one("ldi r16, 1\n ret", {2: 77})
    assert outcome.registers_before[2] == outcome.registers[2] == 77
    assert outcome.registers[16] == 1
    untouched = [register for register in range(32) if register != 16]
    assert all(outcome.registers[register] == outcome.registers_before[register] for register in untouched)
    assert len(set(outcome.registers_before)) > 16


def test_uninitialised_memory_is_junk_and_the_same_in_every_run() -> None:
    request = Request({}, read=((0x400, 64),))
    first, second = run("ret", [request, request])
    assert first.memory == second.memory
    assert len(set(first.memory[0])) > 32


def test_one_call_leaves_nothing_behind_for_the_next() -> None:
    store = "ldi r16, 0x5a\n sts 0x0400, r16\n out 0x1b, r16\n ret"
    peek = Request({}, (Buffer(0x400, b"\x11"),), ((0x400, 1), (0x3B, 1)))
    assert [outcome.memory for outcome in run(store, [peek, peek])] == [(b"\x5a", b"\x5a")] * 2
    look = run("in r16, 0x1b\n ret", [Request({})] * 2)
    assert [outcome.registers[16] for outcome in look] == [0, 0]


def test_path_tells_branches_apart() -> None:
    skip_if_zero = "tst r24\n breq 1f\n nop\n 1: ret"
    zero, one, two = run(skip_if_zero, [Request({24: value}) for value in (0, 1, 2)])
    assert zero.cycles == one.cycles  # a taken branch costs what the NOP does: only the path shows it
    assert zero.path != one.path == two.path


def test_an_image_away_from_address_zero_reports_the_same() -> None:
    with judge_installed():
        code = image_of(SQUARE)
        near, far = (simavr.call("atmega128", code, [square_request(9)], sp=SP, base=base)[0] for base in (0, 0x8000))
    assert (near.memory, near.path, near.cycles_at) == (far.memory, far.path, far.cycles_at)


def test_entry_counts_from_the_image_start() -> None:
    with judge_installed():
        code = image_of("ldi r16, 1\n ldi r17, 2\n ret")
        outcome = simavr.call("atmega128", code, [Request({16: 0})], sp=SP, entry=2)[0]
    assert (outcome.registers[16], outcome.registers[17]) == (0, 2)


# ---- simavr: calls that go wrong ----


def test_an_endless_loop_stops_at_the_limit() -> None:
    outcome = run("1: rjmp 1b", step_limit=1000)[0]
    assert (outcome.stop, outcome.instructions, outcome.cycles) == ("limit", 1000, 2000)


@pytest.mark.parametrize(
    ("assembly", "pc", "fault"),
    [
        ("nop\n .word 0x0001\n ret", 2, "Invalid Opcode"),
        ("sleep\n ret", 0, "sleep instruction"),
        ("break\n ret", 0, "break instruction"),
        ("nop", 2, "pc left the image"),
        ("rjmp .+100", 102, "pc left the image"),
        ("ldi r30, 0\n ldi r31, 0xf0\n ld r0, Z\n ret", 4, "Invalid read address"),
        ("ldi r30, 0\n ldi r31, 0xf0\n st Z, r0\n ret", 4, "Invalid write address"),
    ],
)
def test_a_crash_says_where_and_why(assembly: str, pc: int, fault: str) -> None:
    outcome = run_one(assembly)
    assert (outcome.stop, outcome.pc) == ("crashed", pc)
    assert fault in outcome.fault


def test_a_crash_does_not_spoil_the_next_call() -> None:
    crash_if_zero = "tst r24\n brne 1f\n sleep\n 1: ret"
    outcomes = run(crash_if_zero, [Request({24: value}) for value in (1, 0, 1)])
    assert [outcome.stop for outcome in outcomes] == ["returned", "crashed", "returned"]
    assert outcomes[2].fault == ""


def test_an_unbalanced_stack_is_seen() -> None:
    assert run_one("pop r18\n pop r19\n push r19\n push r18\n ret").sp == SP
    assert run_one("push r18\n ret").stop == "crashed"


@pytest.mark.parametrize(
    ("part", "sp", "request_", "message"),
    [
        ("atmega9", SP, Request({}), "atmega9: simavr has no such part"),
        ("atmega128", 0x10, Request({}), "stack pointer lies outside RAM"),
        ("atmega128", 0x1100, Request({}), "stack pointer lies outside RAM"),
        ("atmega128", SP, Request({}, (Buffer(0x10FF, b"ab"),)), "beyond RAM"),
        ("atmega128", SP, Request({}, read=((0xFFFF, 2),)), "beyond the data space"),
    ],
)
def test_a_request_that_does_not_fit_the_part_is_refused(part: str, sp: int, request_: Request, message: str) -> None:
    with judge_installed(), pytest.raises(OracleFailed, match=message):
        simavr.call(part, b"\x08\x95", [request_], sp=sp)


def test_a_register_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no register r32"):
        simavr.call("atmega128", b"\x08\x95", [Request({32: 0})], sp=SP)


# ---- simavr: interrupts ----


def test_a_sound_kernel_is_the_same_under_interrupts() -> None:
    requests = [square_request(value) for value in range(256)]
    calm, disturbed = run(SQUARE, requests), run(SQUARE, requests, interrupts=True)
    assert squares(disturbed) == [value * value for value in range(256)]
    assert [(o.cycles, o.path, o.low_sp) for o in calm] == [(o.cycles, o.path, o.low_sp) for o in disturbed]


def test_a_red_zone_works_only_without_interrupts() -> None:
    requests = [square_request(value) for value in range(256)]
    expected = [value * value for value in range(256)]
    assert squares(run(SQUARE_WITH_RED_ZONE, requests)) == expected
    assert squares(run(SQUARE_WITH_RED_ZONE, requests, interrupts=True)) != expected


def test_the_interrupt_flag_is_set_exactly_in_interrupt_mode() -> None:
    assert run_one("ret", interrupts=True).sreg & 0x80
    assert not run_one("ret").sreg & 0x80


def test_no_interrupt_strikes_between_cli_and_sei() -> None:
    guarded = SQUARE_WITH_RED_ZONE.replace("st   Y", "cli\n st Y").replace("mul ", "sei\n mul ")
    outcomes = run(guarded, [square_request(value) for value in range(256)], interrupts=True)
    assert squares(outcomes) == [value * value for value in range(256)]


def test_the_instruction_after_sei_is_not_interrupted_but_the_one_after_that_is() -> None:
    park = "in r28, 0x3d\n in r29, 0x3e\n sbiw r28, 8\n ldi r18, 0x11\n cli\n st Y, r18\n sei\n"
    assert run_one(park + "ld r24, Y\n ret", interrupts=True).registers[24] == 0x11
    assert run_one(park + "nop\n ld r24, Y\n ret", interrupts=True).registers[24] != 0x11


def test_sei_with_interrupts_already_on_casts_no_shadow() -> None:
    park = "in r28, 0x3d\n in r29, 0x3e\n sbiw r28, 8\n ldi r18, 0x11\n cli\n st Y, r18\n sei\n"
    assert run_one(park + "sei\n ld r24, Y\n ret", interrupts=True).registers[24] != 0x11


def test_an_interrupt_between_the_halves_of_sp_strikes_at_the_momentary_sp() -> None:
    move_twice = "{0}" + NAKED_MOVE + "{1}" + NAKED_MOVE + "ret"
    naked = move_twice.format(ENTER_FRAME, LEAVE_FRAME)
    assert run_one(naked).stop == "returned"
    assert run_one(naked, interrupts=True).stop != "returned"
    guarded = naked.replace(NAKED_MOVE, GUARDED_MOVE)
    assert run_one(guarded, interrupts=True).stop == "returned"


def test_interrupts_spare_the_buffers_below_the_stack_and_what_is_on_it() -> None:
    calm = Request({}, (Buffer(0x400, bytes(range(64))), Buffer(SP + 1, bytes(range(64)))), ((0x400, 64), (SP + 1, 64)))
    outcome = run("push r2\n nop\n pop r18\n ret", [calm], interrupts=True)[0]
    assert outcome.memory == (bytes(range(64)), bytes(range(64)))
    assert outcome.registers[18] == outcome.registers_before[2]


def test_a_stack_floor_bounds_the_junk() -> None:
    request = Request({}, read=((SP - 300, 300),))
    with judge_installed():
        image = image_of("nop\n ret")
        before = simavr.call("atmega128", image, [request], sp=SP)[0].memory[0]
        after = simavr.call("atmega128", image, [request], sp=SP, interrupts=True, stack_floor=SP - 200)[0].memory[0]
    assert before[:100] == after[:100]
    assert before[100:] != after[100:]
    assert sum(a == b for a, b in zip(before[100:298], after[100:298], strict=True)) < 10


def test_junk_follows_the_seed() -> None:
    request = Request({}, read=((SP - 100, 50),))

    def junk(seed: int) -> bytes:
        image = image_of("nop\n ret")
        outcomes = simavr.call("atmega128", image, [request], sp=SP, interrupts=True, stack_floor=0x100, seed=seed)
        return outcomes[0].memory[0]

    with judge_installed():
        assert junk(1) == junk(1) != junk(2)


# ---- simavr: what is missing ----


@pytest.fixture
def fresh_driver() -> Iterator[None]:
    """Makes `simavr.driver` look again, now and after the test."""
    simavr.driver.cache_clear()
    yield
    simavr.driver.cache_clear()


@pytest.mark.usefixtures("fresh_driver")
def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OracleMissing, match="cc not found; install the Debian package gcc"):
        simavr.step("atmega128", [])


@pytest.mark.usefixtures("fresh_driver")
@pytest.mark.parametrize(
    ("complaint", "named"),
    [
        ("fatal error: simavr/sim_avr.h: No such file or directory", "sim_avr.h"),
        ("ld: cannot find -lelf: No such file or directory", "-lelf"),
    ],
)
def test_missing_headers_and_libraries_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, complaint: str, named: str
) -> None:
    (tmp_path / "cc").write_text(f"#!/bin/sh\necho '{complaint}' >&2\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OracleMissing, match=f"simavr: {named} not found; install .* libsimavr-dev and libelf-dev"):
        simavr.driver()


@pytest.mark.usefixtures("fresh_driver")
def test_the_driver_is_built_once_into_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with judge_installed():
        built = simavr.driver()
        stamp = built.stat().st_mtime_ns
        simavr.driver.cache_clear()
        assert simavr.driver() == built
    assert list((tmp_path / "sqgen").iterdir()) == [built]
    assert built.stat().st_mtime_ns == stamp


@pytest.mark.usefixtures("fresh_driver")
def test_without_a_cache_folder_the_driver_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/no-such-folder")
    assert squares(run(SQUARE, [square_request(12)])) == [144]
