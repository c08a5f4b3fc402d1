"""The search behind `schedules/answers/`: the widths of blocks that cost least.  Run by `make answers`.

For each size the best single width is taken first, then widths are changed one at a time as long as that helps.  No
chance is involved: the same tree gives the same file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click
from rich.progress import track

from . import answers, methods
from .allocate import PressureError
from .compile import compile_plan
from .contract import OPS
from .files import write_all
from .methods import Parameter
from .table import Isa
from .tables import isa

Given = dict[str, str]  # parameters by name
Found = tuple[int, Given]  # cycles, and the parameters that give them
Price = Callable[[Given], int]  # cycles with these parameters

WIDEST = 9  # columns
MOST_VALUES = 12  # of a parameter that is one number
EMPTY: Given = {}
HOPELESS = 1.3  # times the cycles of the best method: parameters of slower ones are not searched
NEVER = 1 << 60  # cycles of what does not fit the registers


def tries(limbs: int) -> int:
    """Kernels compiled at most for one size: large ones take longer and gain less."""
    return 200 if limbs < 24 else 80 if limbs < 40 else 30


def cost(which: Isa, op: str, limbs: int, method: str, parameters: Given) -> int | None:
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


def search(price: Price, limbs: int, name: str, fixed: Given) -> tuple[int, tuple[int, ...]]:
    """(cycles, widths) of the best blocks of a square found; `fixed`: the method's other parameters."""
    seen: dict[tuple[int, ...], int] = {}

    def try_widths(widths: tuple[int, ...]) -> int:
        whole = spelled(widths, limbs)
        if whole not in seen:
            text = ",".join(map(str, widths))
            seen[whole] = price({**fixed, name: text})
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


def widths(price: Price, limbs: int, parameter: Parameter, fixed: Given) -> Found:
    """The best blocks found, for a parameter that is a list of widths."""
    cycles, found = search(price, limbs, parameter.name, fixed)
    return cycles, {**fixed, parameter.name: ",".join(map(str, short(found, limbs)))}


def number(price: Price, limbs: int, parameter: Parameter, fixed: Given) -> Found:
    """The best value found, for a parameter that is a number: all of them at first, then those near the last answer,
    which `fixed` has, and the default, lest a local best be followed."""
    around = int(fixed.get(parameter.name, 0))
    tried = {around - 1, around, around + 1, int(parameter.standard(limbs))} if around else range(1, MOST_VALUES + 1)
    cycles, value = min(
        (price({**fixed, parameter.name: str(value)}), value) for value in tried if 1 <= value <= 2 * limbs
    )
    return cycles, {**fixed, parameter.name: str(value)}


def tuned(which: Isa, op: str, limbs: int, method: str, before: Given) -> Found:
    """The best parameters found, one after the other, from the answer `before`, which was for the size below.

    Words are no matter of search: they stay at their default.
    """

    def price(parameters: Given) -> int:
        return cost(which, op, limbs, method, parameters) or NEVER

    found: Found = (NEVER, before)
    for parameter in methods.method(method).PARAMETERS:
        if not parameter.choices:
            search_one = widths if parameter.many else number
            found = search_one(price, limbs, parameter, found[1])
    return found


def searched(method: str) -> bool:
    """Whether the method has a parameter that is searched."""
    return any(not parameter.choices for parameter in methods.method(method).PARAMETERS)


def best(which: Isa, op: str, limbs: int, before: dict[str, Found]) -> dict[str, Found]:
    """By method, (cycles of a call, parameters) of the best kernel found; `before`: the answers for the size below.

    Parameters are searched only for methods that are not far behind without.
    """
    found = {method: (cost(which, op, limbs, method, {}) or NEVER, EMPTY) for method in methods.names(op)}
    limit = HOPELESS * min(cycles for cycles, _ in found.values())
    for method, (cycles, _) in found.items():
        if searched(method) and cycles <= limit:
            found[method] = tuned(which, op, limbs, method, before.get(method, (0, EMPTY))[1])
    return found


@click.command()
@click.option("--isa", "name", required=True, help="Instruction set.")
@click.option("--most", default=512, show_default=True, help="Largest size in bits.")
def main(name: str, most: int) -> None:
    """Search, and write the answers' file."""
    which = isa(name)
    sizes = range(2, most // which.limb_bits + 1)
    fastest: list[str] = []
    tables: list[str] = []
    for op in OPS:
        found: dict[int, dict[str, Found]] = {}
        for limbs in track(sizes, description=f"{name}, {op}"):
            found[limbs] = best(which, op, limbs, found.get(limbs - 1, {}))
        fastest += ["", f"[fastest.{op}]"]
        for limbs, rows in found.items():
            winner = min(rows, key=lambda method: (rows[method][0], len(rows[method][1]), method))
            fastest.append(f'{limbs * which.limb_bits} = "{winner}"')
        for method in methods.names(op):
            tables += rows_of(which, method, op, {limbs: rows[method] for limbs, rows in found.items()})
    path = answers.path(which)
    lines = ["# Found by `make answers`; sqgen/answers.py reads it.", *fastest, *tables]
    write_all(path.parent, {path.name: "\n".join(lines) + "\n"})
    click.echo(f"wrote {path}")


def rows_of(which: Isa, method: str, op: str, found: dict[int, Found]) -> list[str]:
    """A method's part of the file: the sizes for which parameters were found."""
    rows = []
    for limbs, (cycles, parameters) in found.items():
        if parameters:
            inside = ", ".join(f'{key} = "{value}"' for key, value in parameters.items())
            rows.append(f"{limbs * which.limb_bits} = {{ {inside} }}  # {cycles} cycles a call")
    return ["", f"[{method}.{op}]", *rows] if rows else []


if __name__ == "__main__":
    main()
