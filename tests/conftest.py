"""What the tests share: the instruction set, kernels made once, and the rule for tools that are not installed."""

from __future__ import annotations

import functools
import gc
import hashlib
import itertools
import os
import re
import signal
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import hostile
import pytest

from sqgen import kernel as kernel_module
from sqgen import methods, programs
from sqgen.compile import Compiled, compile_plan
from sqgen.contract import Contract
from sqgen.encode import Instr
from sqgen.errors import Exit, UserError
from sqgen.idioms import idioms
from sqgen.kernel import Kernel
from sqgen.methods import plan
from sqgen.oracles import OracleMissing
from sqgen.spec import spec
from sqgen.table import Core, Isa
from sqgen.tables import isa

pytest_plugins = ["commandline"]  # its fixtures

TESTS = Path(__file__).parent
Line = tuple[str | int, ...]  # an instruction: its name in the table, and its operands
# Bits above which a method that keeps much in registers does not fit them; the others go to 1024.
LARGEST = {("mul", "rows"): 128, ("sqr", "rows"): 152, ("sqr", "streamed-karatsuba"): 352}
SOME, ONE_OF = 4, 8  # cases that are run of a test marked `many`: so many, and of more one of so many


def missing(message: str) -> None:
    """A tool is not installed: a failure in CI, a visible skip elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


def pytest_configure() -> None:
    """Programs that tests start can be interrupted, even if the tests are a script's job in background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of tests that have `many` cases some are run each time, always the same; the rest are for `make sweep`."""
    tests: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("many") and not item.get_closest_marker("sweep"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for item in itertools.chain.from_iterable(map(rest, tests.values())):
        item.add_marker("sweep")


def rest(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Those that are not among the some that have most words in their names, such as a core, a method and a size, which
    none before them has."""
    ordered = sorted(cases, key=lambda case: hashlib.sha256(case.nodeid.encode()).digest())
    left = {case: {*re.findall(r"[^-\s(),']+", case.nodeid.partition("[")[2])} for case in ordered}
    seen: set[str] = set()
    for _ in range(min(max(SOME, len(cases) // ONE_OF), len(cases))):
        seen |= left.pop(max(left, key=lambda case: len(left[case] - seen)))
    return list(left)


def pytest_collection_finish() -> None:
    """Thousands of tests and what they import stay to the end: looked through for cycles again and again, which other
    work with many objects causes, they take a fifth of the time of all tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tried", type=Path, help="Write to this file how many bad inputs were tried; needs -n 0.")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    path = session.config.getoption("--tried")
    if path and exitstatus == pytest.ExitCode.OK:
        hostile.write(path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):  # type: ignore[no-untyped-def]
    """A missing outside tool skips the test with the package to install, and fails it in CI."""
    try:
        return (yield)
    except OracleMissing as error:
        missing(str(error))
    except UserError as error:
        if error.code != Exit.TOOL:
            raise
        missing(str(error))


@functools.cache
def avr() -> Isa:
    return isa("avr")


def instrs(lines: Iterable[Line]) -> list[Instr]:
    """AVR instructions, each written as its name in the table and its operands."""
    return [Instr(avr().insns[str(name)], tuple(operands)) for name, *operands in lines]


def formed(name: str, op: str) -> bool:
    """Whether the method can do an operation, and AVR's idioms know its steps."""
    return methods.does(name, op) and idioms(avr()).forms(plan(op, 8, name, {}), core())


@functools.cache
def core() -> Core:
    return avr().core("atmega128")


@functools.cache
def compiled(op: str, limbs: int, method: str, **parameters: str) -> Compiled:
    """A kernel before its proof, with the method's default parameters unless given."""
    return compile_plan(plan(op, limbs, method, parameters), avr())


@functools.cache
def kernel(op: str, bits: int, method: str = "auto", core: str = "atmega128", **parameters: str) -> Kernel:
    """A proved kernel, as the command line makes it."""
    return kernel_module.make(spec("avr", bits, op=op, method=method, core=core, parameters=parameters))


def contract(op: str, limbs: int) -> Contract:
    return Contract(op, limbs, avr())


def assemble(source: Path, target: Path, name: str | None = None) -> Path:
    """Assemble with the assembler `name`; skips or fails where it is missing."""
    programs.assemble(source, target, avr(), core(), name)
    return target


def assemble_text(text: str, name: str | None = None) -> bytes:
    """Machine code of some assembly text: the bytes of its .text section."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "code.S"
        source.write_text(text)
        target = assemble(source, Path(folder) / "code.o", name)
        binary = Path(folder) / "code.bin"
        subprocess.run(["avr-objcopy", "-O", "binary", "-j", ".text", target, binary], check=True)
        return binary.read_bytes()
