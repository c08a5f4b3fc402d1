"""simavr as a judge of values, cycles, stack and behaviour under interrupts.

It calls routines and steps single instructions. The work is done by `simavr_driver.c`, which is compiled once
and kept in the user's cache folder. All addresses are byte addresses.
"""

import functools
import hashlib
import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqgen.oracles import OracleFailed, OracleMissing, OracleTooSmall

STOPS = ("returned", "limit", "crashed")
STEP_PC = 0x1000
"""Where `step` puts an instruction unless told otherwise: far enough from 0 for any relative jump."""
HANDLER = 64
"""Bytes below the stack pointer that an interrupt's handler is taken to need at the least: a 3-byte return address,
32 registers, SREG, and some room of its own."""

_SOURCE = Path(__file__).with_name("simavr_driver.c")
_CC = ("cc", "-std=gnu11", "-O2", f"-DHANDLER_BYTES={HANDLER}")
_LIBRARIES = ("-lsimavr", "-lelf")
_PACKAGES = "install the Debian packages libsimavr-dev and libelf-dev"
_SREG_I = 0x80
_CANNOT_LOAD, _TOO_LARGE = 127, 3
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Buffer:
    """Bytes that stand in data memory, from `address` upwards, before the run."""

    address: int
    data: bytes


@dataclass(frozen=True)
class Request:
    """One call: what is in registers and memory before it, and the (address, length) ranges wanted after it.

    Registers that are not listed, the SREG flags and memory outside the buffers hold junk, always the same.
    """

    registers: Mapping[int, int]
    memory: tuple[Buffer, ...] = ()
    read: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What one call did, from its first instruction up to and including the RET that leaves it.

    `cycles_at` maps a pc to all cycles spent in the instruction there; only the first outcome of a batch has
    it. `pc` and its keys count bytes from the start of the image. After "crashed", `pc` is the instruction at
    fault or the place outside the image that was jumped to, and `fault` says what is wrong. `low_sp` is the
    lowest stack pointer at any instruction boundary, the entry among them, but for those between the two OUTs
    of one move. `path` is a hash over the pc of every executed instruction, `touched` one over the addresses of data
    that it reads or writes, but for those that stand in the code, `last` the pc of the last
    instruction.
    """

    stop: str
    fault: str
    registers_before: tuple[int, ...]
    registers: tuple[int, ...]
    sreg_before: int
    sreg: int
    sp: int
    pc: int
    cycles: int
    instructions: int
    low_sp: int
    memory: tuple[bytes, ...]
    cycles_at: Mapping[int, int]
    path: str
    touched: str
    last: int


@dataclass(frozen=True)
class State:
    """The machine before or after one instruction.

    `code` is the instruction and whatever words follow it (a skip looks at the next one), 2 to 16 bytes, at
    `pc`. Afterwards `memory` holds the same ranges as before with their new contents, `cycles` what the
    instruction took, and `fault` simavr's complaint if there was one.
    """

    code: bytes
    registers: tuple[int, ...]
    sreg: int
    sp: int
    memory: tuple[Buffer, ...] = ()
    pc: int = STEP_PC
    cycles: int = 0
    fault: str = ""


def call(
    core: str,
    image: bytes,
    requests: Sequence[Request],
    *,
    sp: int,
    interrupts: bool = False,
    stack_floor: int | None = None,
    seed: int = 0,
    base: int = 0,
    entry: int = 0,
    step_limit: int = 1_000_000,
) -> list[Outcome]:
    """Calls the routine at `entry` bytes into `image` once for each request, on the simavr part `core`.

    `image` is put at flash address `base`. `sp` is the caller's stack pointer: the return address is pushed
    from there down, as CALL does (2 bytes, or 3 on parts with more than 128 KiB of flash), and cycles do not
    count the CALL. A run that has not come back after `step_limit` instructions stops with "limit". A sleep,
    a break, an unknown opcode, an access outside RAM and a jump out of the image stop it with "crashed".

    With `interrupts`, the I flag starts out set (else clear) and an interrupt strikes before every
    instruction at which it is set, except the one after the instruction that set it: everything from
    `stack_floor` up to and including the byte at SP becomes junk; at least HANDLER bytes up to SP do.
    The default floor is the end of the highest buffer or range that lies below `sp`, else the start of RAM.

    Raises OracleMissing without simavr, OracleFailed for an unknown part or a request that does not fit it.
    """
    floor = _free_space_below(sp, requests) if stack_floor is None else stack_floor
    befores = [_before(request, seed, index, interrupts) for index, request in enumerate(requests)]
    batch = [
        _head("C", core),
        struct.pack("<I", base),
        _sized(image),
        struct.pack("<IHBHQII", entry, sp, interrupts, floor, seed, step_limit, len(requests)),
    ]
    for request, before in zip(requests, befores, strict=True):
        batch += [before, _buffers(request.memory), struct.pack("<H", len(request.read))]
        batch += [struct.pack("<HH", *wanted) for wanted in request.read]
    answer = _Answer(_ask(batch))
    return [
        _outcome(answer, request, before, base, is_first=index == 0)
        for index, (request, before) in enumerate(zip(requests, befores, strict=True))
    ]


def step(core: str, states: Sequence[State]) -> list[State]:
    """Executes one instruction from each state on the simavr part `core`; returns the states after.

    Raises OracleMissing without simavr, OracleFailed for an unknown part or a state that does not fit it.
    """
    batch = [_head("S", core), struct.pack("<I", len(states))]
    for state in states:
        machine = struct.pack("<I32sBH", state.pc, bytes(state.registers), state.sreg, state.sp)
        batch += [_sized(state.code), machine, _buffers(state.memory)]
    answer = _Answer(_ask(batch))
    return [_state_after(answer, state) for state in states]


@functools.cache
def ram(core: str) -> tuple[int, int]:
    """First and last address of the RAM of the simavr part `core`.

    Raises OracleMissing without simavr, OracleFailed for an unknown part.
    """
    first, last = _Answer(_ask([_head("R", core)])).integers("<HH")
    return first, last


def _free_space_below(sp: int, requests: Iterable[Request]) -> int:
    """The end of the highest buffer or range below `sp`, from where up to `sp` all is free; 0 without any."""
    ends = [buffer.address + len(buffer.data) for request in requests for buffer in request.memory]
    ends += [address + length for request in requests for address, length in request.read]
    return max((end for end in ends if end <= sp), default=0)


def _before(request: Request, seed: int, index: int, interrupts: bool) -> bytes:
    """The 32 registers and SREG with which a request starts: junk but for what it lists and for I."""
    state = bytearray(hashlib.shake_128(f"{seed} {index}".encode()).digest(33))
    for register, value in request.registers.items():
        if not 0 <= register < 32:
            raise ValueError(f"no register r{register}")
        state[register] = value
    state[32] = state[32] | _SREG_I if interrupts else state[32] & ~_SREG_I
    return bytes(state)


def _head(mode: str, core: str) -> bytes:
    return mode.encode() + struct.pack("<B", len(core)) + core.encode()


def _sized(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def _buffers(buffers: tuple[Buffer, ...]) -> bytes:
    parts = [struct.pack("<H", buffer.address) + _sized(buffer.data) for buffer in buffers]
    return struct.pack("<H", len(buffers)) + b"".join(parts)


class _Answer:
    """A cursor over the driver's reply."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def take(self, count: int) -> bytes:
        if self._at + count > len(self._raw):
            raise OracleFailed("simavr driver: the answer ends early")
        self._at += count
        return self._raw[self._at - count : self._at]

    def integers(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def integer(self, layout: str) -> int:
        return self.integers(layout)[0]

    def text(self) -> str:
        """A message, without the colours that simavr puts around some of its own."""
        return _COLOUR.sub("", self.take(self.integer("<B")).decode(errors="replace")).strip()


def _outcome(answer: _Answer, request: Request, before: bytes, base: int, *, is_first: bool) -> Outcome:
    stop = answer.integer("<B")
    fault = answer.text()
    registers = tuple(answer.take(32))
    sreg, sp, pc, cycles, low_sp, instructions, path, touched, last = answer.integers("<BHIQHIQQI")
    memory = tuple(answer.take(length) for _, length in request.read)
    places = answer.integer("<I") if is_first else 0
    cycles_at = {pc: spent for pc, spent in (answer.integers("<IQ") for _ in range(places))}  # noqa: C416
    return Outcome(
        stop=STOPS[stop],
        fault=fault,
        registers_before=tuple(before[:32]),
        registers=registers,
        sreg_before=before[32],
        sreg=sreg,
        sp=sp,
        pc=pc - base,
        cycles=cycles,
        instructions=instructions,
        low_sp=low_sp,
        memory=memory,
        cycles_at=cycles_at,
        path=f"{path:016x}",
        touched=f"{touched:016x}",
        last=last,
    )


def _state_after(answer: _Answer, state: State) -> State:
    fault = answer.text()
    registers = tuple(answer.take(32))
    sreg, sp, pc, cycles = answer.integers("<BHIQ")
    memory = tuple(Buffer(buffer.address, answer.take(len(buffer.data))) for buffer in state.memory)
    return State(state.code, registers, sreg, sp, memory, pc, cycles, fault)


def _ask(batch: Iterable[bytes]) -> bytes:
    """Runs the driver on one batch; returns its reply."""
    done = subprocess.run([driver()], input=b"".join(batch), capture_output=True, check=False)
    complaint = _last_line(done.stderr.decode(errors="replace"))
    if done.returncode == _CANNOT_LOAD:
        raise OracleMissing(f"simavr: {complaint}; {_PACKAGES}")
    if done.returncode == _TOO_LARGE:
        raise OracleTooSmall(complaint)
    if done.returncode != 0:
        raise OracleFailed(complaint or f"simavr driver: ended with code {done.returncode}")
    return done.stdout


@functools.cache
def driver() -> Path:
    """The compiled driver, from the cache folder if it is there.

    Raises OracleMissing if the C compiler, the headers or the libraries are absent.
    """
    # The name comes from the preprocessed source: a new simavr may lay out its structures in another way.
    source = _compile("-E", "-P", str(_SOURCE))
    name = f"simavr-driver-{hashlib.sha256(source).hexdigest()[:32]}"
    try:
        cached = _cache_folder() / name
        if cached.is_file():
            return cached
        cached.parent.mkdir(parents=True, exist_ok=True)
        return _build(source, cached)
    except (OSError, RuntimeError):  # the folder cannot be written, or there is no home to put it in
        return _build(source, Path(_temporary_folder().name) / name)


def _cache_folder() -> Path:
    configured = os.environ.get("XDG_CACHE_HOME")
    return (Path(configured) if configured else Path.home() / ".cache") / "sqgen"


@functools.cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Holds a driver that cannot be cached; being cached itself, it lives as long as the process."""
    return tempfile.TemporaryDirectory(prefix="sqgen-")


def _build(source: bytes, target: Path) -> Path:
    """Compiles to a name of its own and renames, so that no other process ever sees half a driver."""
    with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as folder:
        built = Path(folder) / target.name
        _compile("-x", "c", "-o", str(built), "-", "-x", "none", *_LIBRARIES, source=source)
        os.replace(built, target)
    return target


def _compile(*arguments: str, source: bytes = b"") -> bytes:
    """Runs the C compiler; returns its stdout."""
    if shutil.which(_CC[0]) is None:
        raise OracleMissing("simavr: C compiler cc not found; install the Debian package gcc")
    english = os.environ | {"LC_ALL": "C"}
    done = subprocess.run([*_CC, *arguments], input=source, capture_output=True, check=False, env=english)
    if done.returncode == 0:
        return done.stdout
    complaint = done.stderr.decode(errors="replace")
    for needed in ("simavr/sim_avr.h", "simavr/sim_core.h", *_LIBRARIES):
        if needed in complaint:
            raise OracleMissing(f"simavr: {needed.removeprefix('simavr/')} not found; {_PACKAGES}")
    raise OracleFailed(f"simavr driver does not compile: {_last_line(complaint)}")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
