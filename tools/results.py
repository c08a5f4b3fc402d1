"""The parts of the README that the program computes: the example run, and the figures of `sweep.py` beside others'.

python tools/results.py            print the table of results
python tools/results.py --write    put all parts into README.md and docs/search.md, between their markers
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from sweep import known

from sqgen.idioms import idioms
from sqgen.kernel import make
from sqgen.public import Public, public
from sqgen.report import OPERATION, kernel_table
from sqgen.spec import spec
from sqgen.tables import isa

TOP = Path(__file__).resolve().parent.parent
RESULTS = "<!-- results: made by `make results` -->", "<!-- end of results -->"
FOUND = "<!-- found: made by `make results` -->", "<!-- end of found -->"
EXAMPLE = "<!-- example: made by `make results` -->", "<!-- end of example -->"
SIZES = {
    "sqr": (64, 96, 128, 160, 192, 224, 256, 384, 512, 768, 1024),
    "mul": (48, 64, 80, 96, 128, 160, 192, 224, 256, 384, 512, 768, 1024),
}


def example() -> str:
    """What the first command of the README prints, as an indented block."""
    kernel = make(spec("avr", 192, method="sbd"))
    files = [Path("out") / f"{kernel.spec.symbol}{suffix}" for suffix in (".S", ".h", ".json")]
    return "\n" + "".join(f"    {line}".rstrip() + "\n" for line in kernel_table(kernel, files).splitlines())


def table() -> str:
    """Markdown: what our kernels cost, the best known of others, the difference, the command that makes ours again."""
    rows = [
        "| | bits | body | bytes | stack | method | best public code | | with branches on signs | | repeat with |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for ours in known():
        if ours.bits in SIZES[ours.op]:
            others = [other for other in public(isa("avr"), ours.op) if other.bits == ours.bits]
            cells = [cell for signs in (False, True) for cell in beside(ours.body, others, signs=signs)]
            rows.append(
                f"| {OPERATION[ours.op]} | {ours.bits} | **{ours.body}** | {ours.bytes} | {ours.stack}"
                f" | {ours.method} | {' | '.join(cells)} | `{ours.command}` |"
            )
    return "\n" + "\n".join(rows) + "\n\n"


def beside(body: int, others: Sequence[Public], *, signs: bool) -> tuple[str, str]:
    """The fastest of others, and by how much ours differs."""
    best = next((other for other in others if other.signs == signs), None)
    if best is None:
        return "", ""
    return f"{best.body}, {best.who}, {best.basis}", f"{100 * (body - best.body) / best.body:+.1f} %"


def floors() -> str:
    """Markdown: our squarings beside the floor of schoolbook squaring."""
    rows = ["| bits | method | body | floor | above | call | bytes |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for ours in known():
        if ours.op == "sqr" and ours.bits % 32 == 0 and ours.bits <= 256:
            floor = sum(idioms(isa("avr")).floor("sqr", ours.bits // 8).values())
            figures = f"{ours.body} | {floor} | {ours.body - floor:+} | {ours.call} | {ours.bytes}"
            rows.append(f"| {ours.bits} | {ours.method} | {figures} |")
    return "\n" + "\n".join(rows) + "\n\n"


def between(text: str, markers: tuple[str, str], content: str) -> str:
    """The text with what lies between the markers replaced."""
    before, rest = text.split(markers[0])
    return f"{before}{markers[0]}\n{content}{markers[1]}{rest.split(markers[1])[1]}"


def filled(text: str) -> str:
    """The README with both parts fresh."""
    return between(between(text, EXAMPLE, example()), RESULTS, table())


def found(text: str) -> str:
    """docs/search.md with its table fresh."""
    return between(text, FOUND, floors())


@click.command()
@click.option("--write", is_flag=True, help="Put them into README.md and docs/search.md.")
def main(*, write: bool) -> None:
    """Print the table of results."""
    if write:
        for name, fill in (("README.md", filled), ("docs/search.md", found)):
            path = TOP / name
            path.write_text(fill(path.read_text()))
    else:
        click.echo(table())


if __name__ == "__main__":
    main()
