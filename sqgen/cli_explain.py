"""The command `sqgen explain`: where a kernel's cycles go."""

from __future__ import annotations

from typing import Any

import click

from .options import branches_option, cores, goals, isas, methods, op_option, parameter_option


@click.command(short_help="Say where a kernel's cycles go.")
@click.option("--isa", required=True, metavar="NAME", shell_complete=isas, help="Instruction set.")
@click.option("--core", metavar="NAME", shell_complete=cores, help="Processor, see `sqgen cores`.")
@op_option
@click.option("--bits", type=int, required=True, metavar="N", help="Size of an operand in bits.")
@click.option(
    "--method", default="auto", show_default=True, metavar="NAME", shell_complete=methods, help="See `sqgen methods`."
)
@parameter_option
@click.option(
    "--goal", default="speed", show_default=True, metavar="NAME", shell_complete=goals, help="As for a kernel."
)
@branches_option
def explain(isa: str, bits: int, **asked: Any) -> None:
    """Say where a kernel's cycles go: the floor for its products, and what it spends above that.

    \b
        sqgen explain --isa avr --bits 160

    The kernel is made and proved as by `sqgen` itself, and run once; each instruction is counted for what it does with
    the values that it takes.
    """
    from . import explain as explaining  # noqa: PLC0415  (imports are lazy to keep the start fast)
    from . import kernel, report  # noqa: PLC0415
    from .cli import _print  # noqa: PLC0415
    from .spec import spec  # noqa: PLC0415

    _print(report.explanation_table(explaining.explain(kernel.make(spec(isa, bits, **asked)))))
