"""Text from a kernel: assembly, C header, manifest.  Templates lay out, everything is computed here."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2

from . import __version__, methods, unwind
from .contract import ranges
from .encode import Instr, encode
from .errors import UserError
from .kernel import Kernel
from .layout import Line
from .places import folder
from .table import Isa
from .tables import TABLES

SCHEMA = 1
GNU = "gnu"
SYNTAXES = {GNU: "S", "ti": "asm"}  # of assembly files, and how these end
WIDTH = 94  # columns of text in a file's head, beside its keys
COMMENT_COLUMN = 28


def manifest(kernel: Kernel) -> dict[str, Any]:
    """What a program wants to know of a kernel; docs/manifest.schema.json describes it."""
    spec, contract = kernel.spec, kernel.spec.contract
    plan = kernel.compiled.plan
    executed = dict(kernel.price.counts)
    return {
        "schema": SCHEMA,
        "symbol": spec.symbol,
        "op": contract.op,
        "bits": spec.bits,
        "isa": contract.isa.name,
        "core": spec.core.name,
        "method": plan.method,
        "parameters": dict(plan.parameters),
        "options": dict(spec.guarding),
        "cycles": {"body": kernel.price.body, "call": kernel.price.call},
        "cycles_by_timing": {
            timing.name: {"body": price.body, "call": price.call, "confirmed_by": timing.confirmed or None}
            for timing, price in kernel.prices
        },
        "bytes": kernel.size,
        "stack": kernel.verdict.stack,
        "interrupts_off": kernel.interrupts_off,
        "aliasing": {name: ranges(safe) for name, safe in kernel.verdict.overlap.items()},
        "clobbers": list(kernel.clobbers),
        "residue": kernel.residue.claim,
        "constant_time": not kernel.variable,
        "branches": kernel.verdict.branches,
        "proof": {"digest": kernel.digest, "cases": kernel.verdict.cases, "abi": contract.isa.abi.name},
        "sha256": kernel.sha256,
        "instructions": executed,
        "command": spec.command(),
        "generator": f"sqgen {__version__}",
    }


def manifest_text(kernel: Kernel) -> str:
    return json.dumps(manifest(kernel), indent=2) + "\n"


def aliasing(kernel: Kernel) -> list[str]:
    """What may overlap, as sentences."""
    contract = kernel.spec.contract
    size = contract.isa.limb_bits // 8
    lines = []
    for name, safe in kernel.verdict.overlap.items():
        least, greatest = 1 - contract.buffers["r"], contract.buffers[name] - 1
        if len(safe) == greatest - least + 1:
            lines.append(f"r and {name} may overlap in any way")
            continue
        if not safe:
            lines.append(f"r and {name} must NOT overlap")
            continue
        runs = [(first * size, last * size) for first, last in ranges(safe)]
        allowed = ", ".join(f"{first}" if first == last else f"{first}..{last}" for first, last in runs)
        equal = f"r == {name} is {'allowed' if 0 in safe else 'NOT allowed'}"
        lines.append(f"{equal}; r and {name} may overlap where r - {name} is {allowed} (bytes)")
    if contract.op == "mul":
        lines.append("a and b may overlap in any way")
    return lines


def left(kernel: Kernel) -> str:
    """What the operands leave behind, as a sentence."""
    spec = kernel.spec
    if spec.contract.wiped:
        devices = "".join(f", {spec.contract.isa.devices[name].title}" for name in spec.core.devices)
        return f"nothing made from operands: what it changes of the stack, registers, flags{devices} is cleared"
    return kernel.residue.text() + ("" if kernel.residue.nothing else "; wipe=1 clears it")


def facts(kernel: Kernel) -> dict[str, Any]:
    """Everything that the templates show."""
    spec, contract = kernel.spec, kernel.spec.contract
    isa, plan = contract.isa, kernel.compiled.plan
    method = methods.method(plan.method)
    limb_type = f"uint{isa.limb_bits}_t"
    operands = [name for name in contract.buffers if name != "r"]
    arguments = [f"{limb_type} *r", *(f"const {limb_type} *{name}" for name in operands)]
    return {
        "symbol": spec.symbol,
        "guard": f"{spec.symbol.upper()}_H",
        "prototype": f"void {spec.symbol}({', '.join(arguments)})",
        "formula": "r = a * a" if contract.op == "sqr" else "r = a * b",
        "what": f"{spec.bits}-bit {'squaring' if contract.op == 'sqr' else 'multiplication'}",
        "isa": isa.title,
        "core": spec.core.name,
        "notes": [textwrap.wrap(note, WIDTH) for note in isa.notes(spec.core)],
        "limb_type": limb_type,
        "result_limbs": contract.buffers["r"],
        "operand_limbs": contract.limbs,
        "operands": operands,
        "limb_bits": isa.limb_bits,
        "arguments": [
            (name, ":".join(reversed(g))) for name, g in zip(contract.buffers, isa.abi.arguments, strict=False)
        ],
        "abi": isa.abi.name,
        "aliasing": aliasing(kernel),
        "clobbers": ", ".join(kernel.clobbers),
        "left": textwrap.wrap(left(kernel), WIDTH),
        "stack": kernel.verdict.stack,
        "return_address": spec.core.pc_limbs * isa.limb_bits // 8,
        "bytes": kernel.size,
        "devices": [(contract.isa.devices[name].title, at) for name, at in spec.core.devices.items()],
        "masked": kernel.interrupts_off,
        "cycles": [
            (
                timing.title,
                price.call,
                price.body,
                f"confirmed in {timing.confirmed}" if timing.confirmed else timing.basis,
            )
            for timing, price in kernel.prices
        ],
        "method": textwrap.wrap(
            f"{', '.join([plan.method, *(f'{name}={value}' for name, value in plan.parameters)])}:"
            f" {method.TITLE} [{method.REFERENCE}]",
            WIDTH,
            break_long_words=False,
            break_on_hyphens=False,
        ),
        "command": spec.command(),
        "digest": kernel.digest,
        "cases": kernel.verdict.cases,
        "sha256": kernel.sha256,
        "generator": f"sqgen {__version__}",
        "paths": kernel.verdict.ways,
        "variable": ", ".join(name.upper() for name in kernel.variable),
        "counts": ", ".join(f"{count} {kind}" for kind, count in Counter(dict(kernel.price.counts)).most_common()),
        "lines": listings(kernel),
    }


def listings(kernel: Kernel) -> Iterator[str]:
    """Rows of assembly text for all instructions, with what a debugger needs behind them; a template that has no use
    for them does not make them."""
    isa, lines = kernel.spec.contract.isa, kernel.compiled.lines
    for line, directives in zip(lines, unwind.directives(lines, isa), strict=True):
        yield from listing(line, isa.comment, kernel.spec.symbol)
        yield from (f"    {each}" for each in directives)


def listing(line: Line, mark: str, symbol: str) -> list[str]:
    """Rows of assembly text for one instruction: its headings and labels, then itself with its comment; `mark` opens
    comments.  Labels are local to the file."""
    rows = [f"    {mark} {heading}" for heading in line.heading.splitlines()]
    rows += [f".L{symbol}_{label}:" for label in line.labels]
    if rows:
        rows.insert(0, "")
    text, comment = line.instr.text(), line.comment
    if line.target and line.instr.insn.words:
        (operand,) = line.instr.insn.operands
        text = line.instr.insn.syntax.format(**{operand.name: f".L{symbol}_{line.target}"})
    elif line.target:
        text = f"{line.instr.insn.name} .L{symbol}_{line.target}"
    if line.instr.insn.words:
        text, comment = as_words(line.instr), f"{text}{'; ' if comment else ''}{comment}"
    text = f"    {text}"
    rows.append(f"{text:<{COMMENT_COLUMN}}{mark} {comment}" if comment else text)
    return rows


def as_words(instr: Instr) -> str:
    """The code of an instruction as an assembler's directive."""
    unit, code = instr.insn.unit, encode(instr)
    words = (int.from_bytes(code[at : at + unit], "little") for at in range(0, len(code), unit))
    return f"{instr.insn.words} {', '.join(f'0x{word:0{2 * unit}x}' for word in words)}"


def templates(isa: Isa) -> Path:
    """The instruction set's template folder; beside its table, if that is not one of sqgen's own."""
    return (folder("templates") if isa.path.parent == TABLES else isa.path.parent) / isa.template


def _render(kernel: Kernel, template: str) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(templates(kernel.spec.contract.isa)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template(template).render(facts(kernel))


def assembly(kernel: Kernel, syntax: str = GNU) -> str:
    """The assembly file, in the syntax of GNU and LLVM, which is the `.S` file, or in another one."""
    return _render(kernel, f"kernel.{SYNTAXES[syntax]}.j2")


def require(isa: Isa, syntax: str) -> None:
    """UserError for a syntax that an instruction set's files cannot have."""
    able = [name for name, suffix in SYNTAXES.items() if (templates(isa) / f"kernel.{suffix}.j2").is_file()]
    if syntax not in able:
        raise UserError(f"'{syntax}' is no syntax of files for {isa.name}; there is {' and '.join(able)}")


def header(kernel: Kernel) -> str:
    """The `.h` file."""
    return _render(kernel, "kernel.h.j2")


def all_files(kernel: Kernel, syntax: str = GNU) -> dict[str, str]:
    """Every file of a kernel by name."""
    symbol = kernel.spec.symbol
    return {
        f"{symbol}.{SYNTAXES[syntax]}": assembly(kernel, syntax),
        f"{symbol}.h": header(kernel),
        f"{symbol}.json": manifest_text(kernel),
    }
