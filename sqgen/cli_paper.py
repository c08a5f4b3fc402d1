"""The command `sqgen paper`: options to a table of a paper, ours beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from .errors import UserError

if TYPE_CHECKING:
    from .paper import Table


def _keys(context: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    from . import paper as papers  # noqa: PLC0415  (imports are lazy to keep the start fast)

    return [CompletionItem(key) for key in papers.known() if key.startswith(start.upper())]


def _names(context: click.Context, parameter: click.Parameter, start: str) -> list[CompletionItem]:
    """Names of tables of any paper: click does not say which one while an option lacks its value."""
    from . import paper as papers  # noqa: PLC0415

    found = [each for key in papers.known() for table in papers.tables(key) for each in (table.name, *table.also)]
    return [CompletionItem(name) for name in dict.fromkeys(found) if name.startswith(start)]


@click.command(short_help="Reproduce a table of a paper, ours beside it.")
@click.argument("key", metavar="[PAPER]", required=False, shell_complete=_keys)
@click.option("--table", "name", metavar="N", shell_complete=_names, help="Number or name, as in 3 or 'Figure 6'.")
@click.option("--json", is_flag=True, help="Print JSON and nothing else.")
@click.option("--csv", is_flag=True, help="Print comma-separated values.")
@click.option("--markdown", is_flag=True, help="Print Markdown.")
def paper(key: str | None, name: str | None, **forms: bool) -> None:
    """List the tables of the papers that are reproduced here, or print those of one PAPER, a key of
    docs/bibliography.md, with ours measured now.

    \b
        sqgen paper
        sqgen paper SBD13 --table 3

    Below each line of the paper stands what our kernel of the same method has, compiled, proved and priced on the spot,
    and by how much it differs; below the table why.  Figures are those of the body: no CALL, RET, PUSH or POP of saved
    registers.  `others` are the cycles of all instructions that have no column.  What a paper's stored copy has only
    as an image is "?", and is not guessed; `derived` lines follow from the definition of the method.
    """
    from . import paper as papers  # noqa: PLC0415
    from .cli import _print  # noqa: PLC0415

    chosen = [form for form, given in forms.items() if given]
    if len(chosen) > 1:
        raise UserError("--json, --csv and --markdown each want the output for themselves; give one of them")
    if key is None and name is not None:
        raise UserError("say whose table, as in `sqgen paper SBD13 --table 3`")
    form = chosen[0] if chosen else "text"
    if key is None:
        _print(_listed([table for each in papers.known() for table in papers.tables(each)], form))
    else:
        _print(_reproduced(papers.find(key, name), form))


def _listed(tables: list[Table], form: str) -> str:
    """The list of tables."""
    from . import report, report_papers  # noqa: PLC0415

    records = [
        {"paper": t.paper, "table": t.names, "title": t.title, "holds": t.holds, "place": t.place} for t in tables
    ]
    if form == "json":
        return json.dumps(records, indent=2, ensure_ascii=False) + "\n"
    if form == "csv":
        return report.csv_text(records)
    return report_papers.papers_markdown(tables) if form == "markdown" else report_papers.papers_table(tables)


def _reproduced(tables: tuple[Table, ...], form: str) -> str:
    """Tables with ours beside them."""
    from . import report, report_papers, reproduce  # noqa: PLC0415
    from .progress import tracked  # noqa: PLC0415

    wanted = list(dict.fromkeys(request for table in tables for request in reproduce.requests(table)))
    measured = {request: reproduce.measure(request) for request in tracked(wanted, "kernels")}
    filled = [reproduce.fill(table, measured) for table in tables]
    if form == "json":
        return json.dumps([reproduce.document(each) for each in filled], indent=2, ensure_ascii=False) + "\n"
    if form == "csv":
        return report.csv_text([record for each in filled for record in reproduce.records(each)])
    render = report_papers.reproduction_markdown if form == "markdown" else report_papers.reproduction_table
    return "\n".join(map(render, filled))
