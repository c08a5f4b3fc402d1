"""The search behind `schedules/answers/`: the widths of blocks that cost least.  Run by `make answers`.

For each size the best single width is taken first, then widths are changed one at a time as long as that helps.  No
chance is involved: the same tree gives the same file.
"""

from __future__ import annotations

from collections.abc import Iterator

import click
from rich.progress import track

from . import answers, methods
from .allocate import PressureError
from .compile import compile_plan
from .files import write_all
from .table import Isa
from .tables import isa

WIDEST = 9  # columns


def tries(limbs: int) -> int:
    """Kernels compiled at most for one size: large ones take longer and gain less."""
    return 200 if limbs < 24 else 80 if limbs < 40 else 30


def cost(which: Isa, op: str, limbs: int, method: str, parameters: dict[str, str]) -> int | None:
    """Cycles of a call on the default core, None if it does not fit the registers."""
    try:
        compiled = compile_plan(methods.plan(op, limbs, method, parameters), which)
    except PressureError:
        return None
    core = which.core(which.default_core)
    return sum(which.cycles(line.instr.insn, core) for line in compiled.lines)


def neighbours(widths: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Block widths a little different from these."""
    for index in range(len(widths)):
        for change in (2, -2, 1, -1):
            if 1 <= widths[index] + change <= 2 * WIDEST:
                yield (*widths[:index], widths[index] + change, *widths[index + 1 :])
    for index in range(len(widths)):
        yield (*widths[:index], *widths[index + 1 :])


def spelled(widths: tuple[int, ...], limbs: int) -> tuple[int, ...]:
    """The widths of all blocks of a square, one by one."""
    found, left, index = [], 2 * limbs - 1, 0
    while left > 0:
        found.append(min(left, widths[min(index, len(widths) - 1)]))
        left -= found[-1]
        index += 1
    return tuple(found)


def short(widths: tuple[int, ...], limbs: int) -> tuple[int, ...]:
    """The shortest way to write the same blocks: the last width is repeated."""
    while len(widths) > 1 and spelled(widths[:-1], limbs) == spelled(widths, limbs):
        widths = widths[:-1]
    return widths


def search(which: Isa, limbs: int) -> tuple[int, tuple[int, ...]]:
    """(cycles, widths) of the best blocks found for `sbd`."""
    seen: dict[tuple[int, ...], int] = {}

    def try_widths(widths: tuple[int, ...]) -> int:
        whole = spelled(widths, limbs)
        if whole not in seen:
            text = ",".join(map(str, widths))
            seen[whole] = cost(which, "sqr", limbs, "sbd", {"block": text}) or 1 << 60
        return seen[whole]

    best = min((try_widths((width,)), (width,)) for width in range(1, min(WIDEST, 2 * limbs) + 1))
    current = (best[0], spelled(best[1], limbs))
    improved = True
    while improved and len(seen) < tries(limbs):
        improved = False
        for widths in neighbours(current[1]):
            if widths and len(seen) < tries(limbs) and try_widths(widths) < current[0]:
                current = (try_widths(widths), spelled(widths, limbs))
                improved = True
                break
    return current if current[0] < best[0] else best


@click.command()
@click.option("--isa", "name", required=True, help="Instruction set.")
@click.option("--most", default=512, show_default=True, help="Largest size in bits.")
def main(name: str, most: int) -> None:
    """Search, and write the answers' file."""
    which = isa(name)
    sizes = range(2, most // which.limb_bits + 1)
    rows, sbd_wins, columns_win = [], True, True
    for limbs in track(sizes, description=f"{name}: widths of blocks"):
        cycles, widths = search(which, limbs)
        widths = short(widths, limbs)
        rows.append(
            f'{limbs * which.limb_bits} = {{ block = "{",".join(map(str, widths))}" }}  # {cycles} cycles a call'
        )
        columns = cost(which, "sqr", limbs, "product-scanning", {})
        sbd_wins = sbd_wins and (columns is None or cycles <= columns)
        rows_cost = cost(which, "mul", limbs, "operand-scanning", {})
        columns = cost(which, "mul", limbs, "product-scanning", {})
        columns_win = columns_win and columns is not None and (rows_cost is None or columns <= rows_cost)
    lines = ["# Found by `make answers`; sqgen/answers.py reads it.", "", "[fastest]"]
    lines += ['sqr = "sbd"'] if sbd_wins else []
    lines += ['mul = "product-scanning"'] if columns_win else []
    path = answers.path(which)
    write_all(path.parent, {path.name: "\n".join([*lines, "", "[sbd.sqr]", *rows]) + "\n"})
    click.echo(f"wrote {path}")


if __name__ == "__main__":
    main()
