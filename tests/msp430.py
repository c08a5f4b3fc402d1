"""What the tests of MSP430 share."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from sqgen import kernel as kernel_module
from sqgen.encode import Instr, assemble
from sqgen.forward_proof import prove_forward
from sqgen.kernel import Kernel
from sqgen.prove import prove
from sqgen.spec import spec
from sqgen.table import Isa
from sqgen.tables import isa

CORES = ("msp430", "msp430x", "msp430x-mpy32")  # those that have a multiplier


@functools.cache
def msp430() -> Isa:
    return isa("msp430")


@functools.cache
def made(op: str, bits: int, method: str = "auto", core: str = "msp430", **parameters: str) -> Kernel:
    """A proved kernel, as the command line makes it."""
    return kernel_module.make(spec("msp430", bits, op=op, method=method, core=core, parameters=parameters))


def refused(kernel: Kernel, instrs: Sequence[Instr]) -> str:
    """What the proof says of a kernel's code that was changed; the second one refuses it, too."""
    image, contract, core = assemble(instrs), kernel.spec.contract, kernel.spec.core
    fault = prove(image, contract, core).fault
    assert fault is not None and not prove_forward(image, contract, core).proved
    return fault.message


def code_of(kernel: Kernel) -> list[Instr]:
    return [line.instr for line in kernel.compiled.lines]


def index_of(instrs: Sequence[Instr], name: str, nth: int = 0) -> int:
    """Where the n-th instruction of a name stands."""
    return [index for index, instr in enumerate(instrs) if instr.insn.name == name][nth]


def of(name: str, *operands: str | int) -> Instr:
    return Instr(msp430().insns[name], operands)
