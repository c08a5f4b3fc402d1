"""What the tests of MSP430 share."""

from __future__ import annotations

import functools

from sqgen import kernel as kernel_module
from sqgen.kernel import Kernel
from sqgen.spec import spec
from sqgen.table import Isa
from sqgen.tables import isa


@functools.cache
def msp430() -> Isa:
    return isa("msp430")


@functools.cache
def made(op: str, bits: int, method: str = "auto", core: str = "msp430", **parameters: str) -> Kernel:
    """A proved kernel, as the command line makes it."""
    return kernel_module.make(spec("msp430", bits, op=op, method=method, core=core, parameters=parameters))
