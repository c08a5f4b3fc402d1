"""The digest of a proof: one number for what was shown, of which bytes, by which table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from .contract import Contract
from .table import Core


def sha256(code: bytes) -> str:
    return hashlib.sha256(code).hexdigest()


def moved(contract: Contract, core: Core) -> bool:
    """Whether a device is not where the table has it."""
    return bool(core.devices) and core.devices != contract.isa.core(core.name).devices


def proof_digest(
    contract: Contract,
    core: Core,
    code: bytes,
    *,
    cases: int,
    stack: int,
    overlap: Mapping[str, Sequence[int]],
    paths: int,
    variable: Sequence[str],
) -> str:
    """Of the contract, the code, the table it was read by, and what was found: cases, bytes of stack, displacements at
    which buffers may overlap, how many paths there are, instructions whose cycles depend on operands."""
    statement = {
        "op": contract.op,
        "limbs": contract.limbs,
        "abi": contract.isa.abi.name,
        "core": core.name,
        "table": contract.isa.digest,
        "code": sha256(code),
        "cases": cases,
        "stack": stack,
        "overlap": {name: list(safe) for name, safe in overlap.items()},
        **({"paths": paths} if paths > 1 else {}),
        **({"variable": list(variable)} if variable else {}),
        **({"alone": True} if contract.alone else {}),
        **({"wiped": True} if contract.wiped else {}),
        **({"devices": dict(core.devices)} if moved(contract, core) else {}),
    }
    return hashlib.sha256(json.dumps(statement, sort_keys=True).encode()).hexdigest()
