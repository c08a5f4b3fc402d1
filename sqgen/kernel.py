"""A request to a proved kernel: the way of the data, from one end to the other."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from . import answers, methods
from .attempts import TIMES
from .choosing import choose
from .compile import Compiled
from .contract import Verdict
from .digest import proof_digest, sha256
from .errors import Exit, UserError
from .prove import longest, prove
from .residue import Residue, residue
from .spec import Spec
from .table import Timing
from .timing import Price, most_among, prices


@dataclass(frozen=True)
class Kernel:
    """A proved kernel.  `prices` holds the cycles by timing column, the requested core's own first; columns in which
    its paths differ, if it has several, are left out."""

    spec: Spec
    compiled: Compiled
    verdict: Verdict
    prices: tuple[tuple[Timing, Price], ...]
    clobbers: tuple[str, ...]

    @property
    def price(self) -> Price:
        return self.prices[0][1]

    @property
    def size(self) -> int:
        """Bytes of code."""
        return len(self.compiled.image)

    @property
    def improvable(self) -> bool:
        """Whether `--search` may better it: it was asked to be fast, and its size has not been searched."""
        spec, what = self.spec, self.spec.contract
        if spec.goal not in TIMES or spec.limited or spec.parameters:
            return False
        known = [name for name, _ in answers.known(what.isa, what.op, spec.bits, spec.core)]
        if spec.method == "auto":
            return not known
        return spec.method not in known and bool(methods.method(spec.method).PARAMETERS)

    @property
    def sha256(self) -> str:
        """Of the code."""
        return sha256(self.compiled.image)

    @property
    def variable(self) -> tuple[str, ...]:
        """Instructions in it whose cycles depend on operands, on the core that it is made for."""
        isa = self.spec.contract.isa
        used = (isa.insns[name] for name in compiled_insns(self.compiled))
        return tuple(insn.name for insn in used if not isa.constant_time(insn, self.spec.core))

    @functools.cached_property
    def interrupts_off(self) -> int:
        """Cycles for which it keeps interrupts off at most: from behind the instruction that turns them off to the end
        of the one that gives them back."""
        spec, verdict = self.spec, self.verdict
        isa, image = spec.contract.isa, self.compiled.image
        return max(most_among(isa, spec.core, image, path, verdict.masked) for path in (verdict.path, *verdict.others))

    @functools.cached_property
    def residue(self) -> Residue:
        """What may be left of the operands on return."""
        paths = (self.verdict.path, *self.verdict.others)
        return residue(self.compiled.image, self.spec.contract, self.spec.core, paths)

    @property
    def digest(self) -> str:
        """Of what was proved: the contract, the code, the table it was read by, and the verdict."""
        return proof_digest(
            self.spec.contract,
            self.spec.core,
            self.compiled.image,
            cases=self.verdict.cases,
            stack=self.verdict.stack,
            overlap=self.verdict.overlap,
            paths=self.verdict.ways,
            variable=self.variable,
        )


def make(spec: Spec) -> Kernel:
    """The best kernel for the request, proved.  Raises UserError: limits nobody meets, or a failed proof."""
    compiled = choose(spec)
    return described(spec, compiled, proved(spec, compiled))


def proved(spec: Spec, compiled: Compiled) -> Verdict:
    """What the proof says of code.  Raises UserError if it fails, or the code is longer than what is walked."""
    made, most = len(compiled.lines), longest(spec.contract)
    if made > most and not compiled.plan.branches:  # of arms not all are executed
        raise UserError(
            f"method '{compiled.plan.method}' makes {made:,} instructions here, and a proof walks at most {most:,};"
            " take --method auto, or a smaller size",
            Exit.LIMITS,
        )
    verdict = prove(compiled.image, spec.contract, spec.core, branches=spec.allow_branches)
    if verdict.fault:
        raise UserError(
            f"the proof failed at {verdict.fault}; this is a fault of sqgen, please report it", Exit.UNPROVED
        )
    return verdict


def described(spec: Spec, compiled: Compiled, verdict: Verdict) -> Kernel:
    """Code and its proof with what they cost."""
    isa = spec.contract.isa
    used = [isa.insns[name] for name in compiled_insns(compiled)]
    by_timing = {
        core.timing: core
        for core in isa.cores.values()
        if all(insn.name not in core.lacks and isa.constant_time(insn, core) for insn in used)
    }
    by_timing = {spec.core.timing: spec.core, **{k: v for k, v in by_timing.items() if k != spec.core.timing}}
    cores = list(by_timing.values())
    costs = prices(isa, cores, compiled.image, verdict.path)
    others = [prices(isa, cores, compiled.image, path) for path in verdict.others]
    arms = [[prices(isa, cores, compiled.image, path) for path in paths] for paths in verdict.arms]
    equal = [
        all(other[column].cycles == cost.cycles for other in others)
        and all(one[column].call == paths[0][column].call for paths in arms for one in paths)
        for column, cost in enumerate(costs)
    ]
    clobbers = tuple(register for register in compiled.written if register not in isa.abi.callee_saved)
    columns = zip(by_timing, costs, equal, strict=True)
    by_column = tuple((isa.timings[timing], cost) for timing, cost, same in columns if same)
    return Kernel(spec, compiled, verdict, by_column, clobbers)


def compiled_insns(compiled: Compiled) -> list[str]:
    """Names of the instructions in a kernel, in order of first use."""
    return list(dict.fromkeys(line.instr.insn.name for line in compiled.lines))
