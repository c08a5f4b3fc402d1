"""The search behind `schedules/answers/`: the widths of blocks that cost least.  Run by `make answers`.

For each size the best single width is taken first, then widths are changed one at a time as long as that helps.  No
chance is involved: the same tree gives the same file.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence

import click
from rich.progress import track

from . import answers, measure, methods
from .attempts import TIMES
from .compile import compile_plan
from .contract import OPS
from .errors import UserError
from .idioms import idioms
from .methods import Parameter
from .options import time_option
from .record import save
from .table import Core, Isa
from .tables import isa

Given = dict[str, str]  # parameters by name
Found = tuple[int, Given]  # cycles, and the parameters that give them
Price = Callable[[Given], int]  # cycles with these parameters

WIDEST = 9  # columns
MOST_VALUES = 12  # of a parameter that is one number
EMPTY: Given = {}
HOPELESS = 1.3  # times the cycles of the best method: parameters of slower ones are not searched
NEVER = 1 << 60  # cycles of what does not fit the registers
CYCLES = operator.itemgetter(0)  # of what is found


def tries(limbs: int) -> int:
    """Kernels compiled at most for one size: large ones take longer and gain less."""
    return 200 if limbs < 24 else 80 if limbs < 40 else 30


def cost(
    which: Isa, op: str, limbs: int, method: str, parameters: Given, *, goal: str = "speed", core: Core | None = None
) -> int | None:
    """Cycles of the body, or of a call where that is the goal, on a core, or else the default one; None if it cannot be
    compiled: registers or reach do not suffice."""
    core = core or which.core(which.default_core)
    known = functools.partial(answers.of_part, which, core=core)
    try:
        compiled = compile_plan(methods.plan(op, limbs, method, parameters, known), which, goal, core)
    except UserError:
        return None
    price = measure.price(compiled, core)
    return price.body if goal == "speed" else price.call


def body(which: Isa, op: str, limbs: int, method: str, given: Given, *, core: Core | None = None) -> int:
    """Cycles of the body, `NEVER` for what cannot be compiled."""
    return cost(which, op, limbs, method, given, core=core) or NEVER


def row(which: Isa, op: str, limbs: int, method: str, given: Given, *, core: Core | None = None) -> answers.Row:
    """Parameters that can be compiled, as an answer."""
    costs = {name: cost(which, op, limbs, method, given, goal=goal, core=core) or NEVER for goal, name in TIMES.items()}
    return {**given, **costs}


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
    which `fixed` has, and the default, lest a local best be followed.  None where all cost what the default does."""
    around, standard = int(fixed.get(parameter.name, 0)), int(parameter.standard(limbs))
    tried = {around - 1, around, around + 1, standard} if around else range(1, MOST_VALUES + 1)
    found = {value: price({**fixed, parameter.name: str(value)}) for value in sorted(tried) if 1 <= value <= 2 * limbs}
    least = min(found, key=lambda value: (found[value], value))
    if {*found.values()} == {found.get(standard)}:
        return found[least], {name: value for name, value in fixed.items() if name != parameter.name}
    return found[least], {**fixed, parameter.name: str(least)}


def tuned(limbs: int, method: str, before: Given, price: Price) -> Found:
    """The best parameters found: those of the method's own points, or one parameter after the other, from the answer
    `before`, which was for the size below.  Words that no point names stay at their default."""
    points = methods.points(method, limbs)
    if points != [EMPTY]:
        return min(((price(point), point) for point in points), key=lambda one: (one[0], list(one[1].items())))
    found: Found = (NEVER, before)
    for parameter in methods.method(method).PARAMETERS:
        if not (parameter.choices or parameter.text):
            search_one = widths if parameter.many else number
            found = search_one(price, limbs, parameter, found[1])
    return found


def best(
    which: Isa, op: str, limbs: int, names: Sequence[str], before: dict[str, Found], *, core: Core | None = None
) -> dict[str, Found]:
    """By method, (cycles of the body, parameters) of the best kernel found; `before`: the answers for the size below.

    Parameters are searched only for methods that are not far behind without; where the idioms know some to start with,
    these are tried; what they say is good on the core is taken as it is.
    """
    good: dict[str, list[Given]] = {}
    for name, given in idioms(which).preferred(op, limbs, core or which.core(which.default_core)):
        good.setdefault(name, []).append(given)
    first = {method: good.get(method, [EMPTY]) for method in names}
    found = {
        method: min(((body(which, op, limbs, method, given, core=core), given) for given in each), key=CYCLES)
        for method, each in first.items()
    }
    limit = HOPELESS * min(cycles for cycles, _ in found.values())
    for method, (cycles, _) in found.items():
        free = methods.points(method, limbs) != [EMPTY] or (methods.method(method).PARAMETERS and cycles <= limit)
        if free and method not in good:
            known = before.get(method, (0, EMPTY))[1]
            price = functools.partial(body, which, op, limbs, method, core=core)
            own = [(price(given), given) for given in idioms(which).starts(method, op, limbs)]
            found[method] = min(own, key=CYCLES) if own else tuned(limbs, method, known, price)
    return {method: one for method, one in found.items() if one[0] < NEVER}


def kept(which: Isa, op: str, method: str, found: Mapping[int, Mapping[str, Found]], core: Core) -> dict[int, Given]:
    """By limbs, the parameters found for a method; of one that seldom is the fastest, where it is faster than all that
    is known of others."""
    own = {limbs: every[method] for limbs, every in found.items() if method in every}
    if methods.rare(method):
        own = {limbs: one for limbs, one in own.items() if one[0] < others(which, op, limbs, method, core)}
    return {limbs: given for limbs, (_, given) in own.items()}


def others(which: Isa, op: str, limbs: int, method: str, core: Core) -> int:
    """Cycles of the body of the fastest kernel that is known at a size by another method."""
    known = answers.known(which, op, limbs * which.limb_bits, core)
    return min((int(row[answers.BODY]) for name, row in known if name != method), default=NEVER)


@click.command()
@click.option("--isa", "name", required=True, help="Instruction set.")
@click.option("--core", "core_name", help="Core to look for answers of its own for.  [default: the default one]")
@time_option
@click.option("--method", "names", multiple=True, help="Only these methods; what is known of others stays.")
@click.option("--least", default=16, show_default=True, help="Smallest size in bits.")
@click.option("--most", default=512, show_default=True, help="Largest size in bits.")
def main(name: str, core_name: str | None, names: tuple[str, ...], *, allow_variable_time: bool, **sizes: int) -> None:
    """Search, and write the answers' file."""
    which = isa(name)
    core = which.core(core_name or which.default_core)
    core = which.at_any_time(core) if allow_variable_time else core
    lengths = range(sizes["least"] // which.limb_bits, sizes["most"] // which.limb_bits + 1)
    for op in OPS:
        chosen = [m for m in methods.names(op) if not methods.searched(m) and (not names or m in names)]
        found: dict[int, dict[str, Found]] = {}
        for limbs in track(lengths, description=f"{name}, {op}"):
            found[limbs] = best(which, op, limbs, chosen, found.get(limbs - 1, {}), core=core) if chosen else {}
        for method in chosen:
            known = kept(which, op, method, found, core)
            rows = {n * which.limb_bits: [row(which, op, n, method, given, core=core)] for n, given in known.items()}
            save(which, method, op, rows, core)
    click.echo(f"wrote {answers.path(which, core)}")


if __name__ == "__main__":
    main()
