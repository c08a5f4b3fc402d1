"""A kernel under the outside simulator that its table names."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import cast

from .contract import Contract
from .errors import Exit, UserError
from .table import Core

RUNS = 300


@dataclass(frozen=True)
class Report:
    """What the simulator saw on all runs: `call` and `body` cycles, 0 if it counts none, `stack` in bytes below the
    return address.

    `simulator` did `runs` plain runs and `interrupted` ones with an interrupt before every instruction, on `paths`
    different paths.
    """

    simulator: str
    runs: int
    interrupted: int
    call: int
    body: int
    stack: int
    paths: int = 1


def run(
    image: bytes, contract: Contract, core: Core, entry: int = 0, runs: int = RUNS, *, branches: bool = False
) -> Report:
    """Run a kernel many times; `branches`: operands may have paths of their own, of as many cycles.

    Raises UserError: there is no simulator for the core, or it is not installed (TOOL), or the core has no room for the
    code (LIMITS), or it saw something wrong (DISAGREES).
    """
    name = contract.isa.timings[core.timing].judge
    if not name:
        raise UserError(f"there is no outside simulator for {core.name}; its cycles are a model", Exit.TOOL)
    judge = importlib.import_module(f"sqgen.oracles.{name}_judge")
    return cast(Report, judge.run(image, contract, core, entry, runs, branches=branches))
