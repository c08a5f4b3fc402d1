"""The idiom modules: `isa/<family>.py`, the only code that knows an instruction set by name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from .code import Code, Op
from .plan import Plan
from .table import Core, Isa
from .tables import TABLES


class Idioms(Protocol):
    """What an idiom module offers."""

    NEEDS: tuple[str, ...]  # instructions a core must have

    def forms(self, plan: Plan, core: Core) -> bool: ...  # whether it knows all steps of a plan
    def preferred(self, op: str, limbs: int, core: Core) -> list[tuple[str, dict[str, str]]]: ...
    # `reserve`: what code whose registers are chosen here leaves alone; where they are not, the allocator does
    def lower(self, plan: Plan, isa: Isa, core: Core, reserve: Sequence[str] = ()) -> Code: ...
    def address(self, ops: Sequence[Op], isa: Isa) -> list[Op]: ...
    def floor(self, op: str, limbs: int, core: Core) -> Mapping[str, int]: ...
    def room(
        self, core: Core
    ) -> int | None: ...  # bytes of code that any part with it can hold, None if that is no limit
    def starts(self, method: str, op: str, limbs: int) -> list[dict[str, str]]: ...
    def frame(self, saved: Sequence[str], core: Core, *, alone: bool = False) -> tuple[list[Op], list[Op]]: ...
    # clear registers, so many limbs below the stack pointer, all flags and devices
    def wipe(self, registers: Sequence[str], limbs: int, isa: Isa, core: Core) -> list[Op]: ...


def idioms(isa: Isa) -> Idioms:
    """The idiom module that lies beside the instruction set's table."""
    if isa.path.parent == TABLES:
        return cast(Idioms, importlib.import_module(f"sqgen.isa.{isa.name}"))
    name = f"sqgen_idioms_{isa.name}"  # a table from elsewhere, such as the tests' own
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, isa.path.with_suffix(".py"))
        if spec is None or spec.loader is None:
            raise ImportError(f"no idiom file beside {isa.path}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return cast(Idioms, sys.modules[name])
