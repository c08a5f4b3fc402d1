"""What the commands share: options, and completions whose values come from the tables, read when a shell asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


def isas(context: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    from .tables import isa_names  # noqa: PLC0415  (imports are lazy to keep the start fast)

    return [CompletionItem(name) for name in isa_names() if name.startswith(start)]


def cores(context: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    from .tables import isa, isa_names  # noqa: PLC0415

    given = context.params.get("isa")
    names = [name for name in isa_names() if given in (None, name)]
    return [CompletionItem(core) for name in names for core in isa(name).cores if core.startswith(start)]


def methods(context: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    from . import methods  # noqa: PLC0415

    return [CompletionItem(name) for name in ("auto", *methods.names()) if name.startswith(start)]


def ops(context: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    from .contract import OPS  # noqa: PLC0415

    return [CompletionItem(op) for op in OPS if op.startswith(start)]


def goals(context: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    from .spec import GOALS  # noqa: PLC0415

    return [CompletionItem(goal) for goal in GOALS if goal.startswith(start)]


def op_option(command: F) -> F:
    """Adds `--op`."""
    option = click.option(
        "--op", default="sqr", show_default=True, metavar="sqr|mul", shell_complete=ops, help="Operation."
    )
    return option(command)


def pairs(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` options as a dictionary."""
    pairs: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise click.BadParameter(f"'{text}' is not NAME=VALUE", context, parameter)
        if name in pairs:
            raise click.BadParameter(f"'{name}' is given twice", context, parameter)
        pairs[name] = value
    return pairs


def parameter_option(command: F) -> F:
    text = (
        "A parameter of the method, see `sqgen methods`; wipe=1, to leave nothing made from operands behind; or an"
        " option of the core's devices, see docs/timing.md."
    )
    option = click.option("-p", "parameters", multiple=True, metavar="NAME=VALUE", callback=pairs, help=text)
    return option(command)


def device_option(command: F) -> F:
    """Adds the same, for what code says nothing of."""
    text = (
        "What is claimed: wipe=1, that nothing made from operands is left behind; and what is true of the core's"
        " devices: interrupts=caller, or where they are, such as mpy_base=0x04c0."
    )
    option = click.option("-p", "parameters", multiple=True, metavar="NAME=VALUE", callback=pairs, help=text)
    return option(command)


def time_option(command: F) -> F:
    text = "Permit instructions whose cycles depend on secrets; the worst case is what counts."
    return click.option("--allow-variable-time", is_flag=True, help=text)(command)


def branches_option(command: F) -> F:
    text = "Permit branches on secrets in arms that take equally long."
    return click.option("--allow-branches", is_flag=True, help=text)(command)
