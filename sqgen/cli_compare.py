"""The command `sqgen compare`: all methods for one job, and compilers, beside each other."""

from __future__ import annotations

from pathlib import Path

import click

from .errors import UserError
from .options import branches_option, cores, isas, op_option


@click.command(short_help="Compare all methods, and compilers.")
@click.option("--isa", required=True, metavar="NAME", shell_complete=isas, help="Instruction set.")
@click.option("--core", metavar="NAME", shell_complete=cores, help="Processor, see `sqgen cores`.")
@op_option
@click.option("--bits", type=int, required=True, metavar="N", help="Size of an operand in bits.")
@branches_option
@click.option("--svg", type=click.Path(path_type=Path), help="Write the plot, bytes over cycles, to this file.")
@click.option("--json", is_flag=True, help="Print JSON and nothing else.")
@click.option("--csv", is_flag=True, help="Print comma-separated values and nothing else.")
@click.option("--markdown", is_flag=True, help="Print a Markdown table and nothing else.")
def compare(
    isa: str, core: str | None, op: str, bits: int, *, allow_branches: bool, svg: Path | None, **forms: bool
) -> None:
    """Compare all methods for one operation and size, each with its best parameters: cycles, bytes and stack.

    \b
        sqgen compare --isa avr --bits 256 --op mul --svg compare.svg

    All kernels are made and proved now.  Rows with a * are the front: no other proved row is as good in all three and
    better in one.  Beside them stands what compilers make of straight-line code, column by column: avr-gcc, where it is
    installed, of C, and LLVM of LLVM IR, through llvmlite (pip install 'sqgen[llvm]'), in a process of its own.  Their
    code is run on structured operands, by the table and in the simulator, and proved where that is possible; code that
    is wrong has no row.  What is missing or went wrong is said below the table.
    """
    from . import draw_plot, files, report, rows  # noqa: PLC0415  (imports are lazy to keep the start fast)
    from .cli import _print  # noqa: PLC0415
    from .compare import Comparison  # noqa: PLC0415
    from .progress import tracked  # noqa: PLC0415
    from .spec import spec  # noqa: PLC0415

    chosen = [form for form, given in forms.items() if given]
    if len(chosen) > 1:
        raise UserError("--json, --csv and --markdown each want the output for themselves; give one of them")
    comparison = Comparison(spec(isa, bits, op=op, core=core, allow_branches=allow_branches))
    for job in tracked(comparison.jobs(), "kernels"):
        job.run()
    if svg:
        files.write_all(svg.parent, {svg.name: draw_plot.svg(comparison.heading, comparison.rows())})
    if "json" in chosen:
        _print(rows.as_json(comparison.facts()))
    elif "csv" in chosen:
        _print(rows.as_csv(comparison.records()))
    elif "markdown" in chosen:
        _print(rows.as_markdown(comparison.records()))
    else:
        _print(report.comparison_table(comparison, svg))
