"""Outside programs: the one place that runs them."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from .errors import Exit, UserError
from .table import Assembler, Core, Isa

TIMEOUT = 60  # seconds


def installed(assembler: Assembler) -> bool:
    if assembler.module:
        return importlib.util.find_spec(assembler.module) is not None
    return shutil.which(assembler.command[0]) is not None


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
    words = [word.format(core=core.name, source=source.resolve(), object=target.resolve()) for word in chosen.command]
    command = [sys.executable, "-m", chosen.module, *words] if chosen.module else words
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"{chosen.name} failed: {error}", Exit.TOOL) from None
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line.lower()), done.stderr.strip())
        raise UserError(f"{chosen.name} refuses '{source}': {first}", Exit.FILE)
