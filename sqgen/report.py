"""Tables for people: the one place that formats them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from . import methods
from .contract import Verdict
from .emit import aliasing
from .judging import Judgement
from .kernel import Kernel
from .objects import CodeBytes
from .table import Core, Isa
from .timing import price

WIDTH = 100


def _text(table: Table) -> str:
    """A table as plain text, the same on every terminal."""
    buffer = io.StringIO()
    Console(file=buffer, width=WIDTH, color_system=None, legacy_windows=False).print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n") + "\n"


def _facts(rows: Sequence[tuple[str, str]], title: str) -> str:
    """Name and value in two columns under a title."""
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return f"{title}\n{_text(table)}"


def kernel_table(kernel: Kernel, written: Sequence[Path]) -> str:
    """What a user sees after a run."""
    spec, plan = kernel.spec, kernel.compiled.plan
    timing, price_here = kernel.prices[0]
    basis = (
        f"the table's; {timing.confirmed} counts alike" if timing.confirmed else "model: from the manual, no simulator"
    )
    parameters = "".join(f" {name}={value}" for name, value in plan.parameters)
    rows = [
        ("method", f"{plan.method}{parameters}"),
        ("cycles", f"{price_here.call} with saves and return, {price_here.body} without ({basis})"),
        ("code", f"{kernel.size} bytes"),
        ("stack", f"{kernel.verdict.stack} bytes"),
        ("proof", f"holds for all inputs ({kernel.verdict.cases} case{'s' if kernel.verdict.cases > 1 else ''})"),
        *(("aliasing" if index == 0 else "", text) for index, text in enumerate(aliasing(kernel))),
        *(("wrote" if index == 0 else "", str(path)) for index, path in enumerate(written)),
    ]
    return _facts(rows, f"{spec.symbol}: {spec.bits}-bit {spec.contract.op} for {spec.core.name}")


def proof_table(code: CodeBytes, verdict: Verdict, core: Core) -> str:
    """A proof that held."""
    contract = verdict.contract
    cost = price(contract.isa, core, code.image, verdict.path, code.entry)
    bits = contract.limbs * contract.isa.limb_bits
    rows = [
        ("proof", f"holds for all inputs ({verdict.cases} case{'s' if verdict.cases > 1 else ''})"),
        ("cycles", f"{cost.call} with saves and return, {cost.body} without, on {core.name} by the table"),
        ("stack", f"{verdict.stack} bytes"),
        *((f"r == {name}", "allowed" if 0 in safe else "not allowed") for name, safe in verdict.overlap.items()),
    ]
    return _facts(rows, f"{code.symbol}: {bits}-bit {contract.op} for {contract.isa.name}")


def refusal(symbol: str, verdict: Verdict, example: tuple[int, ...] | None) -> str:
    """A proof that failed, in one line."""
    if example is None:
        return f"{symbol} is not proved: {verdict.fault}; no counterexample was found in a quick search"
    shown = ", ".join(f"{name} = 0x{value:x}" for name, value in zip("ab", example, strict=False))
    return f"{symbol} is wrong: {verdict.fault}; counterexample: {shown}"


def check_table(judgement: Judgement) -> str:
    """What the simulator saw."""
    report = judgement.report
    against = "the same as the manifest" if judgement.manifest else "no manifest to compare with"
    rows = [
        ("values", f"right on {report.runs} operands, structured and random"),
        ("interrupts", f"right on {report.interrupted} runs with one before every instruction"),
        ("cycles", f"{report.call} with saves and return, {report.body} without ({against})"),
        ("stack", f"{report.stack} bytes below the return address"),
        ("kept", "registers, stack pointer, memory around all buffers; one path for all operands"),
    ]
    return _facts(rows, f"{judgement.symbol} in {report.simulator}")


def cores_table(isas: Sequence[Isa]) -> str:
    """All processors."""
    table = Table(box=SIMPLE, pad_edge=False)
    for name in ("isa", "core", "timing", "cycles confirmed by", "lacks"):
        table.add_column(name)
    for isa in isas:
        for core in isa.cores.values():
            timing = isa.timings[core.timing]
            mark = " (default)" if core.name == isa.default_core else ""
            table.add_row(isa.name, core.name + mark, timing.title, timing.confirmed or "model", ", ".join(core.lacks))
    return _text(table)


def methods_table() -> str:
    """All methods and their parameters."""
    table = Table(box=SIMPLE, pad_edge=False)
    for name in ("method", "does", "what it is", "reference", "parameters (-p NAME=VALUE)"):
        table.add_column(name)
    for name in methods.names():
        method = methods.method(name)
        parameters = "\n".join(f"{p.name}: {p.help} [{p.default}]" for p in method.PARAMETERS)
        table.add_row(name, ", ".join(method.OPS), method.TITLE, method.REFERENCE, parameters)
    return _text(table)
