"""docs/methods.md and its pictures: an entry for each method, in the words of its schedule's docstring.

python tools/pictures.py            name the files that are stale
python tools/pictures.py --write    write them, and remove pictures of methods that are gone
"""

from __future__ import annotations

import re
from pathlib import Path

import balance
import click

from sqgen import draw_svg, methods
from sqgen.contract import OPS
from sqgen.picture import picture_of
from sqgen.plan import Plan

DOCS = Path(__file__).resolve().parent.parent / "docs"
LIMBS = 10  # 80 bits where a limb has eight: each cell still shows when it is visited
SMALL = 3  # most for a parameter that is one number, so that ten limbs show what it does
SENTENCES = 3
TITLES = {"sqr": "Squaring", "mul": "Multiplication"}
HEAD = """# The methods

Made by `make pictures` from the schedules: the words are the first three sentences of a method's docstring, which
`sqgen methods NAME` prints whole; the picture is what the command below it draws with `--svg FILE`. Cell (i, j) stands
in column i + j, column 0 on the right. Colours are blocks, numbers the order of visits; in a square, discs count twice
and rings once. Below the cells lies the result, each limb in the colour of the block that stores it last. Keys in
brackets are those of [the bibliography](bibliography.md).
"""


BALANCE = """## Word balance

How a product is added where one instruction takes two words along, UMAAL on Cortex-M: `r1:r0 = a * b + r0 + r1`, which
never runs over. In each column wait words whose sum is what the column holds. UMULL makes of a product two of them;
UMAAL takes any two words of its column, and leaves one there and one in the column above. A column is done when one
word is left, whatever the order: no carry, no flag. A square has a second set of columns, for the sum that is doubled:
its words are multiplied by 2, and that product is added like any other.

![A 96-bit multiplication, each instruction with the words that wait in each column](pictures/word-balance.svg)

`sqgen --isa arm --bits 96 --op mul --dump code` is what it shows.
"""


def operation(name: str) -> str:
    """What the picture of a method shows: a product where it can do one."""
    return "mul" if "mul" in methods.method(name).OPS else "sqr"


def plan_of(name: str) -> Plan:
    """The small plan that is drawn."""
    numbers = [
        each
        for each in methods.method(name).PARAMETERS
        if not (each.many or each.choices or each.text or callable(each.default))
    ]
    given = {each.name: str(SMALL) for each in numbers if int(each.standard(LIMBS)) > SMALL}
    return methods.plan(operation(name), LIMBS, name, given)


def sentences(name: str) -> list[str]:
    """The first sentences of a method's docstring, without its pictures, which are indented, and its cost."""
    paragraphs = methods.picture(name).split("\n\n")
    prose = [text for text in paragraphs if not re.search(r"\ACost|^ ", text, re.MULTILINE)]
    words = " ".join(" ".join(prose).split())
    return re.split(r"(?<=[.!?])(?<!al\.)(?<!Fig\.) (?=[A-Z([])", words)[:SENTENCES]


def entry(name: str) -> str:
    """A method's part of the page."""
    plan = plan_of(name)
    # what chance found would be taken where nothing is said
    said = methods.defaults(name, LIMBS).items() if methods.searched(name) else plan.parameters
    parameters = "".join(f" -p {key}={value}" for key, value in said if value)
    command = f"sqgen show --method {name} --op {plan.op} --bits {8 * LIMBS}{parameters}"
    shape = f"{picture_of(plan).heading}, {picture_of(plan).count()}"
    text = re.sub(r"([*_<])", r"\\\1", " ".join(sentences(name)))
    return f"### {name}\n\n{text}\n\n![{shape}](pictures/{name}.svg)\n\n`{command}`\n"


def files() -> dict[Path, str]:
    """Everything that is made, by place."""
    parts = [HEAD]
    for op in reversed(OPS):
        parts += [f"## {TITLES[op]}\n", *(entry(name) for name in methods.names() if operation(name) == op)]
    pictures = {DOCS / "pictures" / f"{name}.svg": draw_svg.svg(plan_of(name)) for name in methods.names()}
    pictures[DOCS / "pictures" / "word-balance.svg"] = balance.svg()
    return {DOCS / "methods.md": "\n".join([*parts, BALANCE]), **pictures}


def stale() -> list[Path]:
    """Files that are not what they should be, or should not be there."""
    wanted = files()
    changed = [path for path, text in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    return changed + sorted(path for path in (DOCS / "pictures").glob("*.svg") if path not in wanted)


@click.command()
@click.option("--write", is_flag=True, help="Write the files.")
def main(*, write: bool) -> None:
    """Name the stale files, or write them."""
    wanted = files()
    for path in stale():
        click.echo(path.relative_to(DOCS.parent))
        if write and path in wanted:
            path.parent.mkdir(exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        elif write:
            path.unlink()


if __name__ == "__main__":
    main()
