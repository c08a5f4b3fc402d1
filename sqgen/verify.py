"""`sqgen verify`: an object file and the manifest that goes with it, checked again by somebody else.

The second proof (`forward_proof`) walks the function's own bytes and nothing beside them.  What it finds, and what the
table says of the path that it went, must be what the manifest says: code, size, cycles, stack, overlap, registers,
constant time, what is left of the operands, and at last the digest of the proof.  Nothing of the first proof is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import __version__, claims, guarding, objects
from .contract import Contract, contract, ranges
from .digest import proof_digest, sha256
from .encode import decode
from .errors import Exit, UserError
from .forward_proof import ForwardVerdict, prove_forward
from .residue import residue
from .table import Core
from .tables import isa
from .timing import Price, price

SCHEMA = 1
KINDS: Mapping[str, type] = {
    "schema": int,
    "symbol": str,
    "op": str,
    "bits": int,
    "isa": str,
    "core": str,
    "options": dict,
    "cycles": dict,
    "bytes": int,
    "stack": int,
    "aliasing": dict,
    "clobbers": list,
    "residue": dict,
    "constant_time": bool,
    "branches": bool,
    "proof": dict,
    "sha256": str,
}
PROOF: Mapping[str, type] = {"digest": str, "cases": int, "abi": str}


@dataclass(frozen=True)
class Verified:
    """What was checked, and what the second proof found."""

    symbol: str
    contract: Contract
    core: Core
    verdict: ForwardVerdict
    price: Price


def verify(manifest: Path, file: Path) -> Verified:
    """Check an object or ELF file against its manifest.

    Raises UserError: FILE, one of them cannot be understood; DISAGREES, the file is not as the manifest says;
    UNPROVED, the second proof fails.
    """
    said = _complete(manifest)
    which = isa(said["isa"])
    what = contract(which, said["op"], said["bits"])
    guarded = guarding.options(which, which.core(said["core"]), _words(manifest, said["options"]))
    what, core = guarded.contract(what), guarded.core
    core = core if said["constant_time"] else which.at_any_time(core)
    code = objects.read(file, which, said["symbol"])
    body = code.image[code.entry : code.entry + max(0, said["bytes"])]
    for name, mine in (("bytes", len(code.body) if code.size else len(body)), ("sha256", sha256(body))):
        if said[name] != mine:
            raise UserError(
                f"'{file}' has other code than '{manifest}' describes ({name}: {mine}, not {said[name]});"
                " give the two files of one run",
                Exit.DISAGREES,
            )
    if said["proof"]["abi"] != which.abi.name:
        raise UserError(f"'{manifest}' is for the ABI {said['proof']['abi']!r}, not {which.abi.name}", Exit.DISAGREES)
    verdict = prove_forward(body, what, core, branches=said["branches"])
    if not verdict.proved:
        raise UserError(_failure(file, body, what, core, verdict), Exit.UNPROVED)
    found = Verified(said["symbol"], what, core, verdict, price(which, core, body, verdict.paths[0]))
    _compare(manifest, said, _should_say(found, body, said["proof"]["cases"]))
    unsaid = set(verdict.written).difference(which.abi.callee_saved, map(str, said["clobbers"]))
    if unsaid:
        raise UserError(f"'{manifest}' does not say that {', '.join(sorted(unsaid))} are changed", Exit.DISAGREES)
    return found


def _complete(manifest: Path) -> dict[str, Any]:
    """The manifest with all that is needed.  Raises UserError."""
    said = claims.read(manifest, KINDS)
    missing = [name for name in KINDS if name not in said]
    missing += [name for name, kind in PROOF.items() if not claims.is_a(said.get("proof", {}).get(name), kind)]
    if missing:
        raise UserError(f"'{manifest}' is no manifest: it has no '{missing[0]}'", Exit.FILE)
    if said["schema"] != SCHEMA:
        raise UserError(f"'{manifest}' is of schema {said['schema']}; this sqgen reads {SCHEMA}", Exit.FILE)
    return said


def _words(manifest: Path, options: Mapping[str, Any]) -> dict[str, str]:
    if not all(isinstance(value, str) for value in options.values()):
        raise UserError(f"'{manifest}' is no manifest: its options are no words", Exit.FILE)
    return dict(options)


def _failure(file: Path, body: bytes, what: Contract, core: Core, verdict: ForwardVerdict) -> str:
    """Why it is not proved; whether the code is wrong, or beyond what the second proof can see."""
    from .runs import counterexample  # noqa: PLC0415

    example = counterexample(body, what, core)
    if example is None:
        return f"'{file}' cannot be checked: {verdict.why}; no counterexample was found, `sqgen prove` may know more"
    shown = ", ".join(f"{name} = 0x{value:x}" for name, value in zip("ab", example, strict=False))
    return f"'{file}' is wrong: {verdict.why}; counterexample: {shown}"


def _should_say(found: Verified, body: bytes, cases: int) -> dict[str, object]:
    """What the manifest should say.  Into how many cases the first proof split is its own affair."""
    what, core, verdict, cost = found.contract, found.core, found.verdict, found.price
    assert verdict.overlap is not None
    executed = sorted({at for path in verdict.paths for at in path})
    insns = dict.fromkeys(decode(what.isa, body, at).insn for at in executed)
    variable = [insn.name for insn in insns if not what.isa.constant_time(insn, core)]
    digest = proof_digest(
        what,
        core,
        body,
        cases=cases,
        stack=verdict.stack,
        overlap=verdict.overlap,
        paths=verdict.ways,
        variable=variable,
    )
    return {
        "cycles": {"body": cost.body, "call": cost.call},
        "stack": verdict.stack,
        "aliasing": {name: ranges(safe) for name, safe in verdict.overlap.items()},
        "residue": residue(body, what, core, verdict.paths).claim,
        "constant_time": not variable,
        "branches": len(verdict.paths) > 1,
        "digest": digest,
    }


def _compare(manifest: Path, said: Mapping[str, Any], found: Mapping[str, object]) -> None:
    """Everything must be as the manifest says.  Raises UserError for the first that is not."""
    for name, mine in found.items():
        its = said["proof"][name] if name == "digest" else said[name]
        if its == mine:
            continue
        if name == "digest":
            made_by = str(said.get("generator", "an unknown program"))[:40]
            raise UserError(
                f"the digest in '{manifest}' is not that of what was checked: it was changed, or made by {made_by!r}"
                f" from another table than this one of sqgen {__version__}",
                Exit.DISAGREES,
            )
        raise UserError(f"'{manifest}' says {name} {str(its)[:80]}, the code has {mine}", Exit.DISAGREES)
