"""Tables for people: the one place that formats them."""

from __future__ import annotations

import csv
import io
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import methods
from .contract import OPS, Contract, Verdict
from .encode import decode
from .table import Core, Isa, Timing
from .timing import Price, price

if TYPE_CHECKING:
    from .compare import Comparison
    from .explain import Explanation
    from .judging import Judgement
    from .kernel import Kernel
    from .objects import CodeBytes
    from .plan import Plan
    from .verify import Verified

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


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: bool = False) -> str:
    """A table as plain text, the same on every terminal; `numbers`: all columns but the first are flush right."""
    from rich.box import SIMPLE  # noqa: PLC0415  (slow to import)
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=SIMPLE, pad_edge=False)
    table.add_column(heads[0], no_wrap=True)
    for head in heads[1:]:
        table.add_column(head, justify="right" if numbers else "left", no_wrap=numbers)
    for row in rows:
        table.add_row(*row)
    buffer = io.StringIO()
    Console(file=buffer, width=WIDTH, color_system=None, legacy_windows=False, markup=False).print(table)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).strip("\n") + "\n"


def plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of numbers for tools beside the program."""
    return _table(heads, rows, numbers=True)


def job(contract: Contract, core: Core) -> str:
    """`256-bit squaring for atmega128`."""
    return f"{contract.limbs * contract.isa.limb_bits}-bit {OPERATION[contract.op]} for {core.name}"


def _method(plan: Plan) -> str:
    """A method with its parameters as options."""
    return plan.method + "".join(f" -p {shlex.quote(f'{name}={value}')}" for name, value in plan.parameters)


def _cycles(cost: Price) -> str:
    return f"{cost.call} per call, {cost.body} without saves and return"


def _basis(timing: Timing, figures: str) -> str:
    """What cycles rest on."""
    if timing.confirmed:
        return f"{timing.confirmed} counts the same"
    known = "from the manual" if timing.basis == "model" else timing.basis
    return f"{known}; no simulator confirms {figures}"


def _stack(isa: Isa, size: int) -> str:
    """How much stack, and whether the return address is in it."""
    return f"{size} bytes" if isa.abi.link else f"{size} bytes below the return address"


def _time(variable: Sequence[str]) -> list[tuple[str, str]]:
    """What is to be said of instructions whose cycles depend on operands."""
    names = ", ".join(name.upper() for name in variable)
    return (
        [("time", f"NOT constant: the cycles of {names} depend on the operands; counted are the most")] if names else []
    )


def _cases(verdict: Verdict) -> str:
    ways = f", {verdict.ways:,} paths of as many cycles" if verdict.branches else ""
    return f"holds for every input, {verdict.cases} case{'s' if verdict.cases > 1 else ''}{ways}"


def kernel_table(kernel: Kernel, written: Sequence[Path]) -> str:
    """What a user sees after a run."""
    from .emit import aliasing, left  # noqa: PLC0415  (slow to import)

    spec, plan = kernel.spec, kernel.compiled.plan
    timing, cost = kernel.prices[0]
    overlap = "\n".join(line for text in aliasing(kernel) for line in textwrap.wrap(text, WIDTH - 12))
    rows = [
        ("method", f"{_method(plan)} ({methods.method(plan.method).TITLE})"),
        ("cycles", f"{_cycles(cost)}; {_basis(timing, 'it')}"),
        *_time(kernel.variable),
        ("bytes", f"{kernel.size} of code"),
        ("stack", _stack(spec.contract.isa, kernel.verdict.stack)),
        ("left", "\n".join(textwrap.wrap(left(kernel), WIDTH - 12))),
        ("proof", _cases(kernel.verdict)),
        ("overlap", overlap),
    ]
    if kernel.improvable:
        rows.append(("search", "nothing is kept for this size; --search 60 may find something faster"))
    if written:
        rows.append(("wrote", "\n".join(map(str, written))))
    return _facts(f"{spec.symbol}: {job(spec.contract, spec.core)}", rows)


def proof_table(code: CodeBytes, verdict: Verdict, core: Core) -> str:
    """A proof that held."""
    from .residue import residue  # noqa: PLC0415

    contract = verdict.contract
    insns = dict.fromkeys(decode(contract.isa, code.image, code.entry + at).insn for at in verdict.path)
    variable = [insn.name for insn in insns if not contract.isa.constant_time(insn, core)]
    remains = residue(code.image, contract, core, (verdict.path, *verdict.others), code.entry).text()
    rows = [
        ("proof", _cases(verdict)),
        ("left", "\n".join(textwrap.wrap(remains, WIDTH - 12))),
        ("cycles", _cycles(price(contract.isa, core, code.image, verdict.path, code.entry))),
        *_time(variable),
        ("stack", _stack(contract.isa, verdict.stack)),
        *((f"r == {name}", "allowed" if 0 in safe else "not allowed") for name, safe in verdict.overlap.items()),
    ]
    return _facts(f"{code.symbol}: {job(contract, core)}", rows)


def verified_table(found: Verified) -> str:
    """What the second proof found to be as the manifest says."""
    verdict, isa = found.verdict, found.contract.isa
    ways = f", {verdict.ways:,} paths of as many cycles" if verdict.ways > 1 else ""
    cases = f"{verdict.cases} case{'s' if verdict.cases > 1 else ''}"
    rows = [
        ("proof", f"the second one holds for every input, {cases}{ways}"),
        ("same", "code, cycles, stack, overlap, registers and digest are those of the manifest"),
        ("cycles", _cycles(found.price)),
        ("stack", _stack(isa, verdict.stack)),
    ]
    return _facts(f"{found.symbol}: {job(found.contract, found.core)}", rows)


def refusal(symbol: str, verdict: Verdict, example: tuple[int, ...] | None) -> str:
    """A proof that failed, in one line."""
    if example is None:
        return f"{symbol} is not proved: {verdict.fault}; no counterexample was found in a quick search"
    shown = ", ".join(f"{name} = 0x{value:x}" for name, value in zip("ab", example, strict=False))
    return f"{symbol} is wrong: {verdict.fault}; counterexample: {shown}"


def comparison_table(comparison: Comparison, svg: Path | None) -> str:
    """All methods and compilers for one job, and what is to be said about them."""
    every = comparison.rows()
    rows = [row for row in every if not row.public]
    heads = ("  method", "parameters", "body", "call", "bytes", "stack")
    widest = len(str(max(number for row in rows for number in (row.call or 0, row.bytes or 0))))
    cells = []
    for row in rows:
        method = row.method if row.made_by == "sqgen" else f"{row.made_by} {row.method}"
        words = textwrap.wrap(row.parameters.replace(",", ", "), WIDTH // 5)  # long lists are folded at their commas
        parameters = "\n".join(line.replace(", ", ",") for line in words)
        figures = (_figure(number).rjust(widest) for number in (row.body, row.call, row.bytes, row.stack))
        cells.append((f"{'*' if row.front else ' '} {method}", parameters, *figures))
    others = [
        (f"  {row.method}", _figure(row.body), _figure(row.call), _figure(row.bytes), row.note)
        for row in every
        if row.public
    ]
    timing = comparison.request.contract.isa.timings[comparison.request.core.timing]
    basis = _basis(timing, "them")
    remarks = [
        f"body, call: cycles without and with saves and return, {basis}; bytes: of code",
        "* no other proved row is as good in call, bytes and stack and better in one",
        *(f"{row.name}: {row.note}" for row in rows if row.note),
        *comparison.notes(),
        *([f"wrote {svg}"] if svg else []),
    ]
    wrapped = (line for text in remarks for line in textwrap.wrap(text, WIDTH, subsequent_indent="  "))
    public = [_table(("  public code", "body", "call", "bytes", "figures"), others)] if others else []
    lines = [comparison.heading, "", _table(heads, cells), *public, *wrapped]
    return "\n".join(lines) + "\n"


def _figure(number: int | None) -> str:
    return "-" if number is None else str(number)


def explanation_table(explanation: Explanation) -> str:
    """Where a kernel's cycles go."""
    from .explain import GROUPS  # noqa: PLC0415

    kernel, rows = explanation.kernel, []
    for name, roles in GROUPS.items():
        share, floor = explanation.group(name), explanation.floor.get(name, 0)
        if not share.count and not floor:
            continue
        rows.append((name, str(share.count), str(share.cycles), str(floor or ""), f"{share.cycles - floor:+}"))
        here = [(role, explanation.roles[role]) for role in roles if role in explanation.roles]
        if len(here) > 1:
            rows += [(f"  {role}", str(share.count), str(share.cycles), "", "") for role, share in here]
    body, call, least = kernel.price.body, kernel.price.call, sum(explanation.floor.values())
    rows.append(("body", "", str(body), str(least), f"{body - least:+}"))
    rows.append(("saved registers, return", "", str(call - body), "", ""))
    rows.append(("call", "", str(call), "", ""))
    heads = ("for", "instructions", "cycles", "floor", "above")
    parts = []
    for part in explanation.parts:
        each = f"{part.cycles / part.products:.2f}" if part.products else ""
        parts.append((part.heading, str(part.cycles), str(part.products or ""), each))
    remarks = [
        "floor: what schoolbook multiplication needs at least with all in registers; what is above it are ends of"
        " blocks and stages, limbs that are loaded again, and products that find no pair of registers.  Karatsuba's"
        " methods go below it in products, and pay with sums of parts.",
        *(["the parts of a loop or a called function are counted each time"] if not kernel.compiled.straight else []),
    ]
    wrapped = [line for text in remarks for line in textwrap.wrap(text, WIDTH)]
    title = f"{job(kernel.spec.contract, kernel.spec.core)}: {_method(kernel.compiled.plan)}"
    lines = [title, "", _table(heads, rows, numbers=True), *wrapped, ""]
    return "\n".join([*lines, _table(("part", "cycles", "products", "each"), parts, numbers=True)])


def check_table(judgement: Judgement) -> str:
    """What the simulator saw."""
    report = judgement.report
    ways = "one path for all operands" if report.paths == 1 else f"{report.paths} paths of as many cycles"
    against = "the same as the manifest's" if judgement.manifest else "no manifest to compare with"
    rows = [("values", f"right on {report.runs} operands, structured and random")]
    if report.interrupted:
        rows.append(("interrupts", f"right on {report.interrupted} runs with one before every instruction"))
    counted = f"{_cycles(Price(report.call, report.body, ()))}; {against}"
    rows.append(("cycles", counted if report.call else f"{report.simulator} counts none"))
    rows += [
        ("stack", _stack(judgement.isa, report.stack)),
        ("kept", "registers, stack pointer, memory around all buffers; " + ways),
    ]
    return _facts(f"{judgement.symbol} in {report.simulator}", rows)


def csv_text(records: Sequence[Mapping[str, object]]) -> str:
    """Records with the same keys as comma-separated values."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return buffer.getvalue()


def cores_table(isas: Sequence[Isa]) -> str:
    """All processors."""
    rows = []
    for isa in isas:
        for core in isa.cores.values():
            timing = isa.timings[core.timing]
            mark = " (default)" if core.name == isa.default_core else ""
            without = core.without if core.devices else (*core.without, *isa.devices)
            rows.append((isa.name, core.name + mark, timing.title, timing.confirmed or "-", ", ".join(without)))
    return _table(("isa", "core", "timing", "cycles confirmed by", "lacks"), rows)


def methods_table() -> str:
    """All methods and their parameters."""
    rows = []
    for name in methods.names():
        method = methods.method(name)
        parameters = "\n".join(parameter_line(p) for p in method.PARAMETERS)
        does = [op for op in OPS if methods.does(name, op)]
        rows.append((name, ", ".join(does), method.TITLE, method.REFERENCE, parameters))
    heads = ("method", "does", "what it is", "reference", "parameters, -p NAME=VALUE")
    return f"{_table(heads, rows)}\nwith every method: wipe: whether nothing made from operands is left: 0 or 1 [0]\n"


def parameter_line(parameter: methods.Parameter) -> str:
    """Name, what it is for, the words it may take if it takes words, and the default, if it is one for all sizes."""
    words = f": {' or '.join(parameter.choices)}" if parameter.choices else ""
    default = parameter.default if isinstance(parameter.default, str) else "by size"
    return f"{parameter.name}: {parameter.help}{words} [{default}]"
