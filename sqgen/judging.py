"""`sqgen check`: find out what a file claims to be, run it in the outside simulator, compare."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import check, claims, guarding, objects
from .contract import contract
from .digest import sha256
from .errors import Exit, UserError
from .idioms import idioms
from .objects import CodeBytes
from .programs import assemble
from .table import Core, Isa
from .tables import isa

CLAIMS = {"isa": str, "core": str, "op": str, "bits": int, "symbol": str}
MEASURES = {"options": dict, "cycles": dict, "stack": int, "sha256": str}


@dataclass(frozen=True)
class Judgement:
    """What was run, what the simulator saw, and what the manifest claims ({} without one)."""

    isa: Isa
    symbol: str
    report: check.Report
    manifest: Mapping[str, Any]


def judge(file: Path, given: Mapping[str, Any], runs: int, *, branches: bool = False) -> Judgement:
    """Run `file`.  Raises UserError where it, its manifest or the simulator fails or disagrees.

    `given` has the names of `CLAIMS`; what is None there is the manifest's to say.  `branches`: operands may have paths
    of their own, of as many cycles.
    """
    manifest = _manifest(file)
    said: dict[str, Any] = {name: manifest.get(name) if given[name] is None else given[name] for name in CLAIMS}
    for name in ("isa", "bits"):
        if said[name] is None:
            if not file.exists():
                raise UserError(f"'{file}' does not exist; give a .S, object or ELF file", Exit.FILE)
            raise UserError(f"'{file}' has no manifest beside it; say --{name}")
    which = isa(said["isa"])
    what = contract(which, said["op"] or "sqr", said["bits"])
    core = which.core(said["core"] or which.default_core)
    which.require(core, idioms(which).NEEDS)
    guarded = guarding.options(
        which, core, {str(name): str(value) for name, value in manifest.get("options", {}).items()}
    )
    what, core = guarded.contract(what), guarded.core
    code = _code(file, which, core, said["symbol"])
    report = check.run(code.image, what, core, code.entry, runs, branches=branches)
    if core.name == manifest.get("core"):
        _compare(file, manifest, code, report)
    else:
        manifest = {}
    return Judgement(which, code.symbol, report, manifest)


def _code(file: Path, which: Isa, core: Core, symbol: str | None) -> CodeBytes:
    """The function in an object or ELF file, or in a `.S` that is assembled first; a `.json` stands for its `.S`."""
    if file.suffix not in (".S", ".s", ".json"):
        return objects.read(file, which, symbol)
    source = file.with_suffix(".S") if file.suffix == ".json" else file
    if not source.is_file():
        raise UserError(f"'{source}' is no file; give a .S, object or ELF file", Exit.FILE)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "kernel.o"
        assemble(source, target, which, core)
        try:
            return objects.read(target, which, symbol)
        except UserError as error:
            raise UserError(str(error).replace(str(target), str(source)), error.code) from None


def _manifest(file: Path) -> dict[str, Any]:
    """The manifest beside a file, {} if there is none."""
    path = file.with_name(f"{file.stem}.json") if file.name else file
    return claims.read(path, CLAIMS | MEASURES, needed=False)


def _compare(file: Path, manifest: Mapping[str, Any], code: CodeBytes, report: check.Report) -> None:
    """Cycles, stack and code must be the manifest's."""
    cycles = manifest.get("cycles", {})
    seen = {
        "call cycles": (report.call, cycles.get("call")),
        "body cycles": (report.body, cycles.get("body")),
        "bytes of stack": (report.stack, manifest.get("stack")),
    }
    for name, (measured, claimed) in seen.items():
        if (measured or name == "bytes of stack") and measured != claimed:
            raise UserError(
                f"{report.simulator} counts {measured} {name} for '{file}', its manifest says {claimed}", Exit.DISAGREES
            )
    if sha256(code.body) != manifest.get("sha256"):
        raise UserError(f"the code of '{file}' is not the code that its manifest describes", Exit.DISAGREES)
