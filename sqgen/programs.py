"""Outside programs: the one place that runs them."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from .errors import Exit, UserError
from .table import Assembler, Compiler, Core, Isa

TIMEOUT = 60  # seconds
PYTHON = (sys.executable, "-P")  # -P: no module of ours by accident, and none that lies in the user's folder
LLVM_CHILD = (*PYTHON, str(Path(__file__).with_name("llvm_child.py")))


def installed(tool: Assembler | Compiler) -> bool:
    if tool.module:
        return importlib.util.find_spec(tool.module) is not None
    return shutil.which(tool.command[0]) is not None


def assemble(source: Path, target: Path, isa: Isa, core: Core, name: str | None = None) -> None:
    """Assemble `source` into the object file `target` with the assembler `name`, or the first there is.

    Raises UserError where none is installed, or it refuses the source.
    """
    known = [assembler for assembler in isa.assemblers if name in (None, assembler.name)]
    chosen = next((assembler for assembler in known if installed(assembler)), None)
    if not known:
        raise UserError(f"no assembler for {isa.name} is known", Exit.TOOL)
    if chosen is None:
        packages = " or ".join(assembler.package for assembler in known)
        raise UserError(f"no assembler for {isa.name} is installed; install {packages}", Exit.TOOL)
    cpu = chosen.names.get(core.name, core.name)
    words = [word.format(core=cpu, source=source.resolve(), object=target.resolve()) for word in chosen.command]
    done = _run(chosen.name, [*PYTHON, "-m", chosen.module, *words] if chosen.module else words)
    if done.returncode:
        raise UserError(f"{chosen.name} refuses '{source}': {_complaint(done)}", Exit.FILE)


def compile_c(compiler: Compiler, level: str, core: Core, function: tuple[str, str], target: Path) -> None:
    """An ELF file `target` of a function (symbol, C text).  Raises UserError (TOOL) where the compiler refuses it."""
    symbol, text = function
    source = target.with_suffix(".c")
    source.write_text(text, encoding="utf-8")
    known = {"core": core.name, "level": level, "symbol": symbol, "source": source.name, "object": target.name}
    done = _run(compiler.name, [word.format(**known) for word in compiler.command], folder=target.parent)
    if done.returncode:
        raise UserError(f"refused: {_complaint(done)}", Exit.TOOL)


def compile_ir(compiler: Compiler, level: str, core: Core, text: str, target: Path) -> None:
    """An object file `target` of LLVM IR, made in a child process.  Raises UserError (TOOL) where that refuses it or
    crashes."""
    done = _run(compiler.name, [*LLVM_CHILD, compiler.triple, core.name, level], text.encode())
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        raise UserError(f"{name} in the code generator: {_complaint(done)} (crashed)", Exit.TOOL)
    if done.returncode:
        raise UserError(f"refused: {_complaint(done)}", Exit.TOOL)
    target.write_bytes(done.stdout)


def version(compiler: Compiler) -> str:
    """The compiler's name with its version, as far as it says one."""
    if compiler.module:
        return f"{compiler.name} ({compiler.module} {importlib.metadata.version(compiler.module)})"
    lines = _text(_run(compiler.name, [compiler.command[0], "-dumpversion"]).stdout).split()
    return " ".join([compiler.name, *lines[:1]])


def _run(
    name: str, command: Sequence[str], given: bytes = b"", folder: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end.  Raises UserError (TOOL) where it cannot be started or does not end."""
    try:
        return subprocess.run(command, input=given, cwd=folder, capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise UserError(f"{name} failed: no end after {TIMEOUT} seconds", Exit.TOOL) from None
    except OSError as error:
        raise UserError(f"{name} failed: {error}", Exit.TOOL) from None


def _complaint(done: subprocess.CompletedProcess[bytes]) -> str:
    """The line of stderr that says what is wrong, shortened."""
    lines = [" ".join(line.split()) for line in _text(done.stderr).splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "it says nothing")
    return textwrap.shorten(first, 300, placeholder=" ...")


def _text(stream: bytes) -> str:
    return stream.decode(errors="replace")
