"""What compilers make of straight-line code for the same contract, measured like a kernel.

Nothing of theirs is taken on trust: their code is run on structured operands by the table and in the simulator, proved
where the prover can, and only then priced.  Code that is wrong, or does not come about, is a note.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from . import check, interpret, objects, programs, straight
from .contract import Contract
from .encode import DecodeError
from .errors import Exit, UserError
from .objects import CodeBytes
from .prove import prove
from .table import Compiler, Core
from .timing import Price, price

SYMBOL = "straight"
RUNS = 24  # operands tried in the simulator: six of equal limbs 0, 1, 7f, 80, fe, ff, then mixed ones
WALKS = 8  # operands tried by the table, the same ones


class Wrong(Exception):
    """A compiler's code leaves a wrong result, or does what no kernel may."""


@dataclass(frozen=True)
class Measure:
    """Right code: its cycles and bytes of stack, None where not known, and a remark."""

    price: Price | None = None
    stack: int | None = None
    proved: bool = False
    remark: str = ""


@dataclass
class Built:
    """What a compiler made at these levels, which all give the same bytes: a measure, or what is wrong with it."""

    compiler: str
    levels: list[str]
    size: int
    outcome: Measure | Wrong


@dataclass
class Bench:
    """Builds and measures for one contract; the same bytes are measured once."""

    what: Contract
    core: Core
    found: dict[tuple[str, bytes], Built] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, compiler: Compiler, level: str) -> None:
        """Build and measure at one level of optimisation."""
        if not programs.installed(compiler):
            self.note(f"{compiler.name}: not installed; install {compiler.package}")
            return
        name = programs.version(compiler)
        try:
            code = build(compiler, level, self.what, self.core)
        except UserError as error:
            self.note(f"{name} {level}: {error}")
            return
        if (name, code.image) in self.found:
            self.found[name, code.image].levels.append(level)
        else:
            self.found[name, code.image] = Built(name, [level], len(code.image), self.measure(code))

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def right(self) -> Iterator[tuple[Built, Measure]]:
        """The code that is right, with its measure."""
        return ((built, built.outcome) for built in self.found.values() if isinstance(built.outcome, Measure))

    def remarks(self) -> list[str]:
        """What there is no row for."""
        wrong = [built for built in self.found.values() if isinstance(built.outcome, Wrong)]
        return self.notes + [f"{built.compiler} {', '.join(built.levels)}: {built.outcome}" for built in wrong]

    def measure(self, code: CodeBytes) -> Measure | Wrong:
        """Cycles and stack, after runs by the table, the proof, and runs in the simulator."""
        try:
            paths = {walked(code, self.what, self.core, each) for each in interpret.operands(self.what, WALKS)}
            if len(paths) > 1:
                return Measure(remark="not priced: its path depends on the operands")
            seen = self.simulated(code)
        except (DecodeError, interpret.Crash) as error:
            return Measure(remark=f"not priced: the table cannot follow it ({error})")
        except Wrong as wrong:
            return wrong
        cost = price(self.what.isa, self.core, code.image, paths.pop(), code.entry)
        if seen and seen.call != cost.call:
            return Wrong(f"{seen.simulator} counts {seen.call} cycles where the table has {cost.call}")
        verdict = prove(code.image, self.what, self.core, code.entry)
        if verdict.proved:
            return Measure(cost, verdict.stack, True)
        return Measure(cost, seen.stack if seen else None, False, f"not proved: {verdict.fault}")

    def simulated(self, code: CodeBytes) -> check.Report | None:
        """What the simulator saw, None without one.  Raises Wrong."""
        try:
            return check.run(code.image, self.what, self.core, code.entry, RUNS)
        except UserError as error:
            if error.code is not Exit.TOOL:
                raise Wrong(str(error)) from None
            self.note(f"compilers' code is run by the table alone: {error}")
            return None


def build(compiler: Compiler, level: str, what: Contract, core: Core) -> CodeBytes:
    """The compiler's code for a contract.  Raises UserError where it makes none."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "straight.elf"
        if compiler.module:
            programs.compile_ir(compiler, level, core, straight.llvm_ir(what, SYMBOL), target)
        else:
            programs.compile_c(compiler, level, core, (SYMBOL, straight.c(what, SYMBOL)), target)
        try:
            return objects.read(target, what.isa, SYMBOL)
        except UserError as error:
            raise UserError(str(error).replace(str(target), target.name), error.code) from None


def walked(code: CodeBytes, what: Contract, core: Core, values: tuple[int, ...]) -> tuple[int, ...]:
    """The path for these operands.  Raises Wrong where the result is not their product, Crash, DecodeError."""
    result, path = interpret.trace(code.image, what, core, values, code.entry)
    if result != values[0] * values[-1]:
        shown = ", ".join(f"{name} = 0x{value:x}" for name, value in zip("ab", values, strict=False))
        raise Wrong(f"wrong result for {shown}")
    return path
