"""What the tests of Cortex-M share."""

from __future__ import annotations

import functools
from pathlib import Path

from sqgen import emit, programs
from sqgen import kernel as kernel_module
from sqgen.kernel import Kernel
from sqgen.spec import spec
from sqgen.table import Isa
from sqgen.tables import isa


@functools.cache
def arm() -> Isa:
    return isa("arm")


@functools.cache
def made(op: str, bits: int, method: str = "auto", core: str = "cortex-m4", **parameters: str) -> Kernel:
    """A proved kernel, as the command line makes it."""
    return kernel_module.make(spec("arm", bits, op=op, method=method, core=core, parameters=parameters))


def assemble(kernel: Kernel, folder: Path, assembler: str) -> Path:
    """The object file of a kernel's `.S`."""
    (folder / "kernel.S").write_text(emit.assembly(kernel))
    programs.assemble(folder / "kernel.S", folder / "kernel.o", arm(), kernel.spec.core, assembler)
    return folder / "kernel.o"
