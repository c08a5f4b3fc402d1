"""Tables for people: the one place that formats them."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import methods
from .contract import OPS, Verdict
from .table import Core, Isa
from .timing import Price, price

if TYPE_CHECKING:
    from .compare import Comparison
    from .judging import Judgement
    from .kernel import Kernel
    from .objects import CodeBytes

WIDTH = 100
OPERATION = {"sqr": "squaring", "mul": "multiplication"}


def _facts(title: str, rows: Sequence[tuple[str, str]]) -> str:
    """Names and values in two columns under a title; a value may have several lines."""
    column = max(len(name) for name, _ in rows) + 4
    lines = [title, ""]
    for name, value in rows:
        first, *rest = value.splitlines() or [""]
        lines += [f"  {name}".ljust(column) + first, *(" " * column + line for line in rest)]
    return "\n".join(lines) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as plain text, the same on every terminal."""
    from rich.box import SIMPLE  # noqa: PLC0415  (slow to import)
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column(heads[0], no_wrap=True)
    for head in heads[1:]:
        table.add_column(head)
    for row in rows:
        table.add_row(*row)
    buffer = io.StringIO()
    Console(file=buffer, width=WIDTH, color_system=None, legacy_windows=False, markup=False).print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n") + "\n"


def _cycles(cost: Price) -> str:
    return f"{cost.call} per call, {cost.body} without saves and return"


def _cases(verdict: Verdict) -> str:
    return f"holds for every input, {verdict.cases} case{'s' if verdict.cases > 1 else ''}"


def kernel_table(kernel: Kernel, written: Sequence[Path]) -> str:
    """What a user sees after a run."""
    from .emit import aliasing  # noqa: PLC0415  (slow to import)

    spec, plan = kernel.spec, kernel.compiled.plan
    timing, cost = kernel.prices[0]
    basis = f"{timing.confirmed} counts the same" if timing.confirmed else "from the manual; no simulator confirms it"
    parameters = "".join(f" -p {name}={value}" for name, value in plan.parameters)
    overlap = "\n".join(line for text in aliasing(kernel) for line in textwrap.wrap(text, WIDTH - 12))
    rows = [
        ("method", f"{plan.method}{parameters} ({methods.method(plan.method).TITLE})"),
        ("cycles", f"{_cycles(cost)}; {basis}"),
        ("bytes", f"{kernel.size} of code"),
        ("stack", f"{kernel.verdict.stack} bytes below the return address"),
        ("proof", _cases(kernel.verdict)),
        ("overlap", overlap),
    ]
    if written:
        rows.append(("wrote", "\n".join(map(str, written))))
    return _facts(f"{spec.symbol}: {spec.bits}-bit {OPERATION[spec.contract.op]} for {spec.core.name}", rows)


def proof_table(code: CodeBytes, verdict: Verdict, core: Core) -> str:
    """A proof that held."""
    contract = verdict.contract
    bits = contract.limbs * contract.isa.limb_bits
    rows = [
        ("proof", _cases(verdict)),
        ("cycles", _cycles(price(contract.isa, core, code.image, verdict.path, code.entry))),
        ("stack", f"{verdict.stack} bytes below the return address"),
        *((f"r == {name}", "allowed" if 0 in safe else "not allowed") for name, safe in verdict.overlap.items()),
    ]
    return _facts(f"{code.symbol}: {bits}-bit {OPERATION[contract.op]} for {core.name}", rows)


def refusal(symbol: str, verdict: Verdict, example: tuple[int, ...] | None) -> str:
    """A proof that failed, in one line."""
    if example is None:
        return f"{symbol} is not proved: {verdict.fault}; no counterexample was found in a quick search"
    shown = ", ".join(f"{name} = 0x{value:x}" for name, value in zip("ab", example, strict=False))
    return f"{symbol} is wrong: {verdict.fault}; counterexample: {shown}"


def comparison_table(comparison: Comparison, svg: Path | None) -> str:
    """All methods and compilers for one job, and what is to be said about them."""
    rows = comparison.rows()
    heads = ("  method", "parameters", "body", "call", "bytes", "stack")
    widest = len(str(max(number for row in rows for number in (row.call or 0, row.bytes))))
    cells = []
    for row in rows:
        method = row.method if row.made_by == "sqgen" else f"{row.made_by} {row.method}"
        figures = ("-" if number is None else str(number) for number in (row.body, row.call, row.bytes, row.stack))
        words = textwrap.wrap(row.parameters.replace(",", ", "), WIDTH // 5)  # long lists are folded at their commas
        parameters = "\n".join(line.replace(", ", ",") for line in words)
        cells.append((f"{'*' if row.front else ' '} {method}", parameters, *(text.rjust(widest) for text in figures)))
    timing = comparison.request.contract.isa.timings[comparison.request.core.timing]
    basis = f"{timing.confirmed} counts the same" if timing.confirmed else "from the manual; no simulator confirms them"
    remarks = [
        f"body, call: cycles without and with saves and return, {basis}; bytes: of code",
        "* no other proved row is as good in call, bytes and stack and better in one",
        *(f"{row.name}: {row.note}" for row in rows if row.note),
        *comparison.notes(),
        *([f"wrote {svg}"] if svg else []),
    ]
    wrapped = (line for text in remarks for line in textwrap.wrap(text, WIDTH, subsequent_indent="  "))
    lines = [comparison.heading, "", _table(heads, cells), *wrapped]
    return "\n".join(lines) + "\n"


def check_table(judgement: Judgement) -> str:
    """What the simulator saw."""
    report = judgement.report
    against = "the same as the manifest's" if judgement.manifest else "no manifest to compare with"
    rows = [
        ("values", f"right on {report.runs} operands, structured and random"),
        ("interrupts", f"right on {report.interrupted} runs with one before every instruction"),
        ("cycles", f"{_cycles(Price(report.call, report.body, ()))}; {against}"),
        ("stack", f"{report.stack} bytes below the return address"),
        ("kept", "registers, stack pointer, memory around all buffers; one path for all operands"),
    ]
    return _facts(f"{judgement.symbol} in {report.simulator}", rows)


def cores_table(isas: Sequence[Isa]) -> str:
    """All processors."""
    rows = []
    for isa in isas:
        for core in isa.cores.values():
            timing = isa.timings[core.timing]
            mark = " (default)" if core.name == isa.default_core else ""
            rows.append((isa.name, core.name + mark, timing.title, timing.confirmed or "-", ", ".join(core.lacks)))
    return _table(("isa", "core", "timing", "cycles confirmed by", "lacks"), rows)


def methods_table() -> str:
    """All methods and their parameters."""
    rows = []
    for name in methods.names():
        method = methods.method(name)
        parameters = "\n".join(parameter_line(p) for p in method.PARAMETERS)
        does = [op for op in OPS if methods.does(name, op)]
        rows.append((name, ", ".join(does), method.TITLE, method.REFERENCE, parameters))
    return _table(("method", "does", "what it is", "reference", "parameters, -p NAME=VALUE"), rows)


def parameter_line(parameter: methods.Parameter) -> str:
    """Name, what it is for, the words it may take if it takes words, and the default."""
    words = f": {' or '.join(parameter.choices)}" if parameter.choices else ""
    return f"{parameter.name}: {parameter.help}{words} [{parameter.default}]"
