"""What the commands share: options, and completions whose values come from the tables, read when a shell asks."""

from __future__ import annotations

from collections.abc import Callable
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
