"""The command line: options to a request, a kernel to files and a short table."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar

import click

from . import __version__
from .cli_compare import compare
from .cli_explain import explain
from .cli_paper import paper
from .cli_search import search
from .cli_verify import verify
from .errors import EXIT_MEANING, Exit, UserError
from .garbage import uncollected
from .options import branches_option, device_option, parameter_option, time_option
from .options import cores as _cores
from .options import goals as _goals
from .options import isas as _isas
from .options import methods as _methods
from .options import op_option as _op_option
from .options import ops as _ops

if TYPE_CHECKING:
    from .kernel import Kernel
    from .spec import Spec

F = TypeVar("F", bound=Callable[..., Any])
DUMPS = ("plan", "code", "registers", "bytes")
EXIT_TEXT = "\b\nExit codes:\n" + "\n".join(f"  {code.value:>3}  {text}" for code, text in EXIT_MEANING.items())


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; every expected failure is one line on stderr and a code of `Exit`."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    code: int = Exit.OK
    if isinstance(sys.stdout, io.TextIOWrapper):  # what a terminal cannot show is no reason to fail
        sys.stdout.reconfigure(errors="replace")
    try:
        _require_full(words)
        cli.main(args=words, prog_name="sqgen", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except UserError as error:
        code = _complain(str(error), error.code)
    except click.Abort:
        code = _complain("stopped", Exit.STOPPED)
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "sqgen"
        code = _complain(f"{error.format_message().rstrip('.')}; see `{where} -h`", Exit.USAGE)
    except MemoryError:
        code = _complain("there is not enough memory for this proof; nothing was written", Exit.UNPROVED)
    except OSError as error:
        _drop(sys.stdout)
        place = f"'{error.filename}'" if error.filename else "the output"
        code = _complain(f"cannot read or write {place}: {error.strerror or error}", Exit.FILE)
    except SystemExit:  # click's own end, after a completion or where the reader of a help text went away
        _drop(sys.stdout)
    sys.exit(code)


def _require_full(words: Sequence[str]) -> None:
    """UserError for an empty value: most likely an unset variable, not a wish for the default."""
    for word in words:
        name, equals, value = word.partition("=")
        if not word or (name.startswith("--") and equals and not value):
            raise UserError(f"the value of {name} is empty" if name else "an argument is empty")


def _print(text: str) -> None:
    """Print on stdout.  Raises OSError if it is closed or full; ends quietly if its reader went away."""
    if sys.stdout is None:
        raise OSError("stdout is closed")
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        _drop(sys.stdout)
        raise click.exceptions.Exit(Exit.OK) from None


def _drop(stream: TextIO | None) -> None:
    """Let what is still buffered for a stream go nowhere, so that the interpreter does not try again when it ends."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _complain(message: str, code: Exit) -> int:
    """One line on stderr, which may be closed or full as well."""
    try:
        click.echo("Error: " + " ".join(message.split()), err=True)
    except OSError:
        _drop(sys.stderr)
    return code


@click.group(invoke_without_command=True, epilog=EXIT_TEXT, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--isa", metavar="NAME", shell_complete=_isas, help="Instruction set.")
@click.option("--core", metavar="NAME", shell_complete=_cores, help="Processor, see `sqgen cores`.")
@_op_option
@click.option("--bits", type=int, metavar="N", help="Size of an operand in bits.")
@click.option(
    "--method", default="auto", show_default=True, metavar="NAME", shell_complete=_methods, help="See `sqgen methods`."
)
@parameter_option
@click.option("--symbol", metavar="NAME", help="Name of the function.  [default: sqgen_<op><bits>_<isa>]")
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the files.  [default: out]")
@click.option(
    "--goal",
    default="speed",
    show_default=True,
    metavar="speed|call|balanced|size",
    shell_complete=_goals,
    help="What `auto` looks for: see README.",
)
@click.option("--max-bytes", type=int, metavar="N", help="Most bytes of code.")
@click.option("--max-stack", type=int, metavar="N", help="Most bytes of stack, the return address not counted.")
@click.option("--search", type=float, metavar="SECONDS", help="Look for a faster one for so long, on all processors.")
@branches_option
@time_option
@click.option("--reserve", multiple=True, metavar="REGISTER", help="Leave a kept register alone; may be repeated.")
@click.option(
    "--syntax",
    default="gnu",
    show_default=True,
    metavar="gnu|ti",
    help="Of the assembly file.  TI's is for MSP430; no tool here has assembled it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the manifest and nothing else.")
@click.option("--stdout", "as_assembly", is_flag=True, help="Print the assembly and nothing else.")
@click.option("--dump", type=click.Choice(DUMPS), help="Print one stage of the compilation and nothing else.")
@click.option("--quiet", is_flag=True, help="Write the files and print nothing.")
@click.version_option(__version__, message="sqgen %(version)s")
@click.pass_context
def cli(context: click.Context, /, **options: Any) -> None:
    """Make an assembly function that squares or multiplies big integers: proved, timed, constant-time.

    \b
        sqgen --isa avr --bits 192 --method sbd

    writes out/sqgen_sqr192_avr.S, .h and .json.  With --json, --stdout or --dump nothing is written unless --out is
    given.
    """
    given = [parameter for parameter in context.command.params if _is_given(context, parameter)]
    if context.invoked_subcommand is not None:
        if given:
            command = f"sqgen {context.invoked_subcommand}"
            raise UserError(f"{given[0].opts[-1]} is an option of making a kernel; see `{command} -h` for its own")
        return
    if not given:
        _print(context.get_help() + "\n")
        return
    _make(options)


def _is_given(context: click.Context, parameter: click.Parameter) -> bool:
    return context.get_parameter_source(str(parameter.name)) is click.core.ParameterSource.COMMANDLINE


def _make(options: dict[str, Any]) -> None:
    """The main job."""
    for name in ("isa", "bits"):
        if options[name] is None:
            raise UserError(f"say --{name}, as in `sqgen --isa avr --bits 192`")
    printed = [name for name in ("as_json", "as_assembly", "dump") if options[name]]
    if len(printed) > 1:
        raise UserError("--json, --stdout and --dump each want the output for themselves; give one of them")
    from . import emit  # noqa: PLC0415
    from .spec import spec  # noqa: PLC0415
    from .tables import isa as isa_of  # noqa: PLC0415

    chosen = (
        "op",
        "core",
        "method",
        "parameters",
        "goal",
        "max_bytes",
        "max_stack",
        "symbol",
        "allow_branches",
        "allow_variable_time",
        "reserve",
    )
    emit.require(isa_of(options["isa"]), options["syntax"])
    asked = spec(options["isa"], options["bits"], **{name: options[name] for name in chosen})
    if options["search"] is not None:
        from .longer import searched  # noqa: PLC0415

        asked = searched(asked, options["search"])
    _deliver(asked, options)


@uncollected()
def _deliver(asked: Spec, options: dict[str, Any]) -> None:
    """Make a kernel, write its files and print what is wanted."""
    from . import emit, files, kernel  # noqa: PLC0415

    made = kernel.make(asked)
    written: list[Path] = []
    printed = options["as_json"] or options["as_assembly"] or options["dump"]
    if not printed or options["out"]:
        written = files.write_all(options["out"] or Path("out"), emit.all_files(made, options["syntax"]))
    if options["as_json"]:
        _print(emit.manifest_text(made))
    elif options["as_assembly"]:
        _print(emit.assembly(made, options["syntax"]))
    elif options["dump"]:
        _print(_dump(made, options["dump"]))
    elif not options["quiet"]:
        from . import report  # noqa: PLC0415

        _print(report.kernel_table(made, written))


def _dump(made: Kernel, stage: str) -> str:
    """A stage of the compilation as text."""
    from .emit import listing  # noqa: PLC0415

    if stage == "plan":
        return made.compiled.plan.text()
    if stage == "code":
        return made.compiled.code.text()
    if stage == "registers":
        return made.compiled.registers.text()
    rows, at = [], 0
    for line in made.compiled.lines:
        text = listing(line, made.spec.contract.isa.comment, made.spec.symbol)
        size = line.instr.insn.size
        rows += text[:-1]
        rows.append(f"{at:05x}  {made.compiled.image[at : at + size].hex(' '):<12}{text[-1].strip()}")
        at += size
    return "\n".join(rows) + "\n"


@cli.command(short_help="Prove a function in an object or ELF file.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--isa", required=True, metavar="NAME", shell_complete=_isas, help="Instruction set.")
@click.option("--core", metavar="NAME", shell_complete=_cores, help="Processor, see `sqgen cores`.")
@_op_option
@click.option("--bits", type=int, required=True, metavar="N", help="Size of an operand in bits.")
@click.option("--symbol", metavar="NAME", help="The function, where the file has several.")
@device_option
@branches_option
@time_option
def prove(file: Path, isa: str, core: str | None, **asked: Any) -> None:
    """Prove that a function in an object or ELF FILE, whoever made it, squares or multiplies for all inputs."""
    from . import guarding, objects, progress, report  # noqa: PLC0415
    from .contract import contract  # noqa: PLC0415
    from .prove import prove as prove_bytes  # noqa: PLC0415
    from .tables import isa as isa_of  # noqa: PLC0415

    which = isa_of(isa)
    what = contract(which, asked["op"], asked["bits"])
    chosen = which.core(core or which.default_core)
    chosen = which.at_any_time(chosen) if asked["allow_variable_time"] else chosen
    guarded = guarding.options(which, chosen, asked["parameters"])
    what, chosen = guarded.contract(what), guarded.core
    with progress.word(f"proving '{file}'"):
        code = objects.read(file, which, asked["symbol"])
        verdict = prove_bytes(code.image, what, chosen, code.entry, branches=asked["allow_branches"])
        objects.require_linked(file, which, code, {at for path in (verdict.path, *verdict.others) for at in path})
        if verdict.fault:
            from .runs import counterexample  # noqa: PLC0415

            example = counterexample(code.image, what, chosen, code.entry)
            raise UserError(report.refusal(code.symbol, verdict, example), Exit.UNPROVED)
    _print(report.proof_table(code, verdict, chosen))


@cli.command(short_help="Run a kernel in the outside simulator.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--isa", metavar="NAME", shell_complete=_isas, help="Instruction set.  [default: the manifest's]")
@click.option("--core", metavar="NAME", shell_complete=_cores, help="Processor.  [default: the manifest's]")
@click.option("--op", metavar="sqr|mul", shell_complete=_ops, help="Operation.  [default: the manifest's]")
@click.option("--bits", type=int, metavar="N", help="Size of an operand in bits.  [default: the manifest's]")
@click.option("--symbol", metavar="NAME", help="The function.  [default: the manifest's]")
@click.option("--runs", type=click.IntRange(1, 100_000), default=300, show_default=True, help="Operands tried.")
@branches_option
def check(file: Path, runs: int, allow_branches: bool, **given: Any) -> None:
    """Run a kernel, a .S, .o or ELF FILE, in the outside simulator and compare with its manifest beside it.

    Values on structured and random operands, cycles, stack, registers, memory around the buffers, and all again with
    an interrupt before every instruction.
    """
    from . import progress, report  # noqa: PLC0415
    from .judging import judge  # noqa: PLC0415

    with progress.word(f"running '{file}'"):
        found = judge(file, given, runs, branches=allow_branches)
    _print(report.check_table(found))


@cli.command()
@click.option("--isa", metavar="NAME", shell_complete=_isas, help="Only this instruction set.")
def cores(isa: str | None) -> None:
    """List the processors."""
    from . import report  # noqa: PLC0415
    from .tables import isa as isa_of  # noqa: PLC0415
    from .tables import isa_names  # noqa: PLC0415

    _print(report.cores_table([isa_of(name) for name in ([isa] if isa else isa_names())]))


@cli.command("methods", short_help="List the methods, or explain one.")
@click.argument("name", required=False, shell_complete=_methods)
def list_methods(name: str | None) -> None:
    """List the methods and their parameters, or explain the method NAME."""
    from . import methods, report  # noqa: PLC0415

    _print(methods.picture(name) + "\n" if name else report.methods_table())


@cli.command(short_help="Draw the order in which a method visits the cells.")
@click.option("--method", required=True, metavar="NAME", shell_complete=_methods, help="See `sqgen methods`.")
@click.option("--limbs", type=int, metavar="N", help="Length of an operand in limbs.")
@click.option("--bits", type=int, metavar="N", help="Size of an operand in bits, with --isa.")
@click.option(
    "--isa",
    default="avr",
    show_default=True,
    metavar="NAME",
    shell_complete=_isas,
    help="Whose limbs --bits counts in.",
)
@click.option("--op", metavar="sqr|mul", shell_complete=_ops, help="Operation.  [default: the method's first]")
@parameter_option
@click.option("--svg", type=click.Path(path_type=Path), help="Write the picture to this file.")
def show(method: str, op: str | None, parameters: dict[str, str], svg: Path | None, **size: Any) -> None:
    """Draw the order in which a method visits the cells of the triangle or rhombus, and its blocks."""
    from . import answers, draw_svg, draw_text, files, methods  # noqa: PLC0415
    from .contract import contract  # noqa: PLC0415
    from .tables import isa as isa_of  # noqa: PLC0415

    which = isa_of(size["isa"])
    if (size["limbs"] is None) == (size["bits"] is None):
        raise UserError("say either --bits or --limbs, as in `sqgen show --method sbd --bits 160`")
    op = op or methods.method(method).OPS[0]
    what = contract(which, op, size["bits"] if size["limbs"] is None else size["limbs"] * which.limb_bits)
    given = parameters or answers.parameters(which, method, op, what.limbs * which.limb_bits)
    plan = methods.plan(op, what.limbs, method, given)
    if svg:
        files.write_all(svg.parent, {svg.name: draw_svg.svg(plan)})
        _print(f"wrote {svg}\n")
    else:
        _print(draw_text.terminal(plan))


cli.add_command(paper)
cli.add_command(compare)
cli.add_command(search)
cli.add_command(explain)
cli.add_command(verify)
