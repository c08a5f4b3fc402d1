"""What the program computes in documents: the README's example run, and the figures of `figures.py` beside others'.

python tools/results.py            print the tables of results
python tools/results.py --write    put them and the example into the documents, between their markers

The README has what is asked first: the fastest on AVR, short code at one size, and what is known of others elsewhere.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import click
from figures import BRANCHING, MUL_SIZES, SURVEYS, Figures, Job, known

from sqgen.contract import OPS
from sqgen.idioms import idioms
from sqgen.kernel import make
from sqgen.public import Public, public
from sqgen.report import OPERATION, kernel_table
from sqgen.spec import spec
from sqgen.tables import isa

TOP = Path(__file__).resolve().parent.parent
SIZES = {
    "sqr": (64, 96, 128, 160, 192, 224, 256, 384, 512, 768, 1024),
    "mul": MUL_SIZES,
}
MSP430_SIZES = {"sqr": (128, 160, 192, 256, 384, 512, 1024), "mul": (128, 160, 192, 256, 384, 512, 1024)}
SMALL_SIZES = (128, 160, 256, 512, 1024)
FIRST_SIZES = (256,)  # of short code in the README
CORTEX_SIZES = {"sqr": (128, 160, 192, 224, 256, 384, 512, 1024, 2048), "mul": (128, 256, 512, 1024)}


def example() -> str:
    """What the first command of the README prints, as an indented block."""
    kernel = make(spec("avr", 192, method="sbd"))
    files = [Path("out") / f"{kernel.spec.symbol}{suffix}" for suffix in (".S", ".h", ".json")]
    return "\n" + "".join(f"    {line}".rstrip() + "\n" for line in kernel_table(kernel, files).splitlines())


def markdown(heads: str, rows: Iterable[str]) -> str:
    """A table between empty lines."""
    lines = [heads, "| --- " * (heads.count("|") - 1) + "|", *rows]
    return "\n" + "\n".join(lines) + "\n\n"


def table() -> str:
    """Markdown: what our kernels cost, the best known of others, the difference, ours where branches on signs are
    allowed beside others that branch, the command that makes ours again."""
    branching = {(ours.op, ours.bits): ours for ours in known(BRANCHING)}
    return markdown(
        "| | bits | body | bytes | stack | method | best public code | |"
        " with `--allow-branches` | best that branches | | repeat with |",
        (
            f"| {OPERATION[ours.op]} | {ours.bits} | **{ours.body}** | {ours.bytes} | {ours.stack}"
            f" | {ours.method} | {beside(ours, fastest('avr', ours))}"
            f" | {with_branches(branching.get((ours.op, ours.bits)))} | {again('avr', ours)} |"
            for ours in known(SURVEYS["avr"])
            if ours.bits in SIZES[ours.op]
        ),
    )


def small(sizes: Sequence[int] = SMALL_SIZES) -> str:
    """Markdown: what few bytes cost, and the smallest code of others."""
    avr = isa("avr")
    rows = []
    for op in OPS:
        others = [each for each in public(avr, op) if each.bytes]
        for bits, goal in itertools.product(sizes, ("balanced", "size")):
            kernel = make(spec("avr", bits, op=op, goal=goal))
            command = Job(avr.name, kernel.spec.core.name, op, bits).command
            least = min((each for each in others if each.bits == bits), key=lambda each: each.bytes or 0, default=None)
            other = f"{least.bytes}, {least.cycles} cycles, {least.who}, {least.note}" if least else ""
            rows.append(
                f"| {OPERATION[op]} | {bits} | **{kernel.size}** | {kernel.price.body} | {kernel.verdict.stack}"
                f" | {kernel.compiled.plan.method} | {other} | `{command} --goal {goal}` |"
            )
    return markdown("| | bits | bytes | body | stack | method | smallest public code | repeat with |", rows)


def by_core(name: str, sizes: Mapping[str, Sequence[int]], *, compared: bool = False) -> str:
    """Markdown: calls on each core of an instruction set; those alone that others can be `compared` with."""
    return markdown(
        "| core | | bits | call | bytes | stack | method | best public code | | repeat with |",
        (
            f"| {ours.core} | {OPERATION[ours.op]} | {ours.bits} | **{ours.call}** | {ours.bytes} | {ours.stack}"
            f" | {ours.method} | {beside(ours, best)} | {again(name, ours)} |"
            for ours in known(SURVEYS[name])
            if ours.bits in sizes[ours.op]
            for best in [fastest(name, ours)]
            if best or not compared
        ),
    )


def again(name: str, ours: Figures) -> str:
    """The command that makes a kernel again."""
    return f"`{Job(name, ours.core, ours.op, ours.bits).command}`"


def fastest(name: str, ours: Figures, *, leaks: bool = False) -> Public | None:
    """The fastest of others at that size, on that core; None where none is known."""
    others = public(isa(name), ours.op, isa(name).core(ours.core))
    return next((each for each in others if each.bits == ours.bits and bool(each.leaks) == leaks), None)


def beside(ours: Figures, best: Public | None) -> str:
    """The fastest of others, and by how much ours differs: two cells."""
    if best is None:
        return " | "
    own = ours.body if best.counts == "body" else ours.call
    return f"{best.cycles}, {best.who}, {best.basis} | {100 * (own - best.cycles) / best.cycles:+.1f} %"


def with_branches(ours: Figures | None) -> str:
    """Ours where branches on signs are allowed, and the fastest of others that branch: three cells."""
    return f"**{ours.body}** | {beside(ours, fastest('avr', ours, leaks=True))}" if ours else " | | "


def floors() -> str:
    """Markdown: our squarings beside the floor of schoolbook squaring."""
    avr = isa("avr")
    rows = []
    for ours in known(SURVEYS["avr"]):
        if ours.op == "sqr" and ours.bits % 32 == 0 and ours.bits <= 256:
            floor = sum(idioms(avr).floor("sqr", ours.bits // 8, avr.core(avr.default_core)).values())
            figures = f"{ours.body} | {floor} | {ours.body - floor:+} | {ours.call} | {ours.bytes}"
            rows.append(f"| {ours.bits} | {ours.method} | {figures} |")
    return markdown("| bits | method | body | floor | above | call | bytes |", rows)


CORTEX = functools.partial(by_core, "arm", CORTEX_SIZES)
MSP430 = functools.partial(by_core, "msp430", MSP430_SIZES)
PARTS: Mapping[str, Mapping[str, Callable[[], str]]] = {  # by document: its parts, by the names in their markers
    "README.md": {
        "example": example,
        "results": table,
        "small": functools.partial(small, FIRST_SIZES),
        "cortex": functools.partial(CORTEX, compared=True),
        "msp430": functools.partial(MSP430, compared=True),
    },
    "docs/results.md": {"results": table, "small": small, "cortex": CORTEX, "msp430": MSP430},
    "docs/search.md": {"found": floors},
}


def between(text: str, markers: tuple[str, str], content: str) -> str:
    """The text with what lies between the markers replaced."""
    before, rest = text.split(markers[0])
    return f"{before}{markers[0]}\n{content}{markers[1]}{rest.split(markers[1])[1]}"


def filled(document: str, text: str) -> str:
    """The text of a document with all its parts fresh."""
    for name, part in PARTS[document].items():
        text = between(text, (f"<!-- {name}: made by `make results` -->", f"<!-- end of {name} -->"), part())
    return text


@click.command()
@click.option("--write", is_flag=True, help="Put them into README.md, docs/results.md and docs/search.md.")
def main(*, write: bool) -> None:
    """Print the tables of results."""
    if not write:
        click.echo("".join(part() for part in PARTS["docs/results.md"].values()))
        return
    for document in PARTS:
        path = TOP / document
        path.write_text(filled(document, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
