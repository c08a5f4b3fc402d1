"""The parts of the README that the program computes: the example run, and our cycles beside `docs/published.toml`.

python tools/results.py            print the table of results
python tools/results.py --write    put both parts into README.md, between their markers
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from sqgen.kernel import make
from sqgen.report import kernel_table
from sqgen.spec import spec

TOP = Path(__file__).resolve().parent.parent
RESULTS = "<!-- results: made by `make results` -->", "<!-- end of results -->"
EXAMPLE = "<!-- example: made by `make results` -->", "<!-- end of example -->"
TITLES = {"sqr": "squaring", "mul": "multiplication"}


def example() -> str:
    """What the first command of the README prints, as an indented block."""
    kernel = make(spec("avr", 192, method="sbd"))
    files = [Path("out") / f"{kernel.spec.symbol}{suffix}" for suffix in (".S", ".h", ".json")]
    return "\n" + "".join(f"    {line}".rstrip() + "\n" for line in kernel_table(kernel, files).splitlines())


def table() -> str:
    """Markdown: operation, size, our cycles and bytes, the best known of others, the difference."""
    with (TOP / "docs" / "published.toml").open("rb") as file:
        published: dict[str, list[dict[str, Any]]] = tomllib.load(file)
    paper = {row["bits"]: row["cycles"] for row in published["paper"]}
    rows = [
        "| | bits | sqgen | bytes | method | best public code known to us | difference | [SBD13] |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for op, title in TITLES.items():
        for other in published[op]:
            kernel = make(spec("avr", other["bits"], op=op))
            ours = kernel.price.body
            change = f"{100 * (ours - other['cycles']) / other['cycles']:+.1f} %"
            printed = paper.get(other["bits"], "") if op == "sqr" else ""
            rows.append(
                f"| {title} | {other['bits']} | **{ours}** | {kernel.size} | {kernel.compiled.plan.method} |"
                f" {other['cycles']}, {other['who']} ({other['basis']}) | {change} | {printed} |"
            )
    return "\n" + "\n".join(rows) + "\n\n"


def between(text: str, markers: tuple[str, str], content: str) -> str:
    """The text with what lies between the markers replaced."""
    before, rest = text.split(markers[0])
    return f"{before}{markers[0]}\n{content}{markers[1]}{rest.split(markers[1])[1]}"


def filled(text: str) -> str:
    """The README with both parts fresh."""
    return between(between(text, EXAMPLE, example()), RESULTS, table())


@click.command()
@click.option("--write", is_flag=True, help="Put both parts into README.md.")
def main(*, write: bool) -> None:
    """Print the table of results."""
    if write:
        readme = TOP / "README.md"
        readme.write_text(filled(readme.read_text()))
    else:
        click.echo(table())


if __name__ == "__main__":
    main()
