"""`sqgen check`: find out what a file claims to be, run it in the outside simulator, compare."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import check, objects
from .contract import contract
from .errors import Exit, UserError
from .programs import assemble
from .table import isa

CLAIMS = ("isa", "core", "op", "bits", "symbol")


@dataclass(frozen=True)
class Judgement:
    """What was run, what the simulator saw, and what the manifest claims ({} without one)."""

    symbol: str
    report: check.Report
    manifest: Mapping[str, Any]


def judge(file: Path, given: Mapping[str, Any], runs: int) -> Judgement:
    """Run `file`.  Raises UserError where it, its manifest or the simulator fails or disagrees."""
    manifest = _manifest(file)
    claims = {name: given[name] if given[name] is not None else manifest.get(name) for name in CLAIMS}
    for name in ("isa", "bits"):
        if claims[name] is None:
            raise UserError(f"'{file}' has no manifest beside it; say --{name}")
    which = isa(str(claims["isa"]))
    what = contract(which, claims["op"] or "sqr", int(str(claims["bits"])))
    core = which.core(claims["core"] or which.default_core)
    if file.suffix in (".S", ".s", ".json"):
        source = file.with_suffix(".S") if file.suffix == ".json" else file
        if not source.is_file():
            raise UserError(f"'{source}' does not exist; give a .S, object or ELF file", Exit.FILE)
        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "kernel.o"
            assemble(source, target, which, core)
            code = objects.read(target, which, claims["symbol"])
    else:
        code = objects.read(file, which, claims["symbol"])
    report = check.run(code.image, what, core, code.entry, runs)
    _compare(file, manifest if core.name == manifest.get("core") else {}, report)
    return Judgement(code.symbol, report, manifest)


def _manifest(file: Path) -> dict[str, Any]:
    """The manifest beside a file, {} if there is none."""
    path = file.with_suffix(".json")
    if not path.is_file():
        return {}
    try:
        manifest = json.loads(path.read_text())
        if not isinstance(manifest, dict):
            raise ValueError("no object")
        return manifest
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"'{path}' is no manifest: {error}", Exit.FILE) from None


def _compare(file: Path, manifest: Mapping[str, Any], report: check.Report) -> None:
    """Cycles and stack must be the manifest's."""
    if not manifest:
        return
    cycles = manifest.get("cycles", {})
    seen = {"call": (report.call, cycles.get("call")), "body": (report.body, cycles.get("body"))}
    seen["stack"] = (report.stack, manifest.get("stack"))
    for name, (measured, claimed) in seen.items():
        if measured != claimed:
            raise UserError(
                f"{report.simulator} counts {name} {measured} for '{file}', its manifest says {claimed}", Exit.DISAGREES
            )
