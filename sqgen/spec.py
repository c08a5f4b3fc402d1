"""What a user asks for, checked: operation, size, core, method, goal and limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from . import methods
from .contract import Contract, contract
from .errors import UserError
from .idioms import idioms
from .table import Core, Isa
from .tables import isa

GOALS = ("speed", "size", "balanced")
_C_WORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    class delete namespace new operator private protected public template this throw try using virtual""".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Spec:
    """A request that makes sense.  `method` is a method's name or "auto"; limits are in bytes, None for none."""

    contract: Contract
    core: Core
    method: str
    parameters: tuple[tuple[str, str], ...]
    goal: str
    max_bytes: int | None
    max_stack: int | None
    symbol: str

    @property
    def bits(self) -> int:
        return self.contract.limbs * self.contract.isa.limb_bits

    def command(self) -> str:
        """The command that makes the same kernel again."""
        parts = [
            f"sqgen --isa {self.contract.isa.name} --core {self.core.name} --op {self.contract.op} --bits {self.bits}"
        ]
        parts.append(f"--method {self.method}")
        parts += [f"-p {name}={value}" for name, value in self.parameters]
        if self.goal != "speed":
            parts.append(f"--goal {self.goal}")
        if self.max_bytes is not None:
            parts.append(f"--max-bytes {self.max_bytes}")
        if self.max_stack is not None:
            parts.append(f"--max-stack {self.max_stack}")
        if self.symbol != default_symbol(self.contract):
            parts.append(f"--symbol {self.symbol}")
        return " ".join(parts)


def default_symbol(what: Contract) -> str:
    """`sqgen_<op><bits>_<isa>`."""
    return f"sqgen_{what.op}{what.limbs * what.isa.limb_bits}_{what.isa.name}"


def spec(
    which: Isa | str,
    bits: int,
    *,
    op: str = "sqr",
    core: str | None = None,
    method: str = "auto",
    parameters: Mapping[str, str] | None = None,
    goal: str = "speed",
    max_bytes: int | None = None,
    max_stack: int | None = None,
    symbol: str | None = None,
) -> Spec:
    """Check a request for an instruction set, or the one of that name.  Raises UserError that says what to change."""
    which = isa(which) if isinstance(which, str) else which
    what = contract(which, op, bits)
    chosen_core = which.core(core or which.default_core)
    which.require(chosen_core, idioms(which).NEEDS)
    if method != "auto" and op not in methods.method(method).OPS:
        raise UserError(f"method '{method}' cannot do {op}; these can: {', '.join(methods.names(op))}")
    given = dict(parameters or {})
    if method == "auto" and given:
        raise UserError("parameters belong to a method; name it with --method")
    if method != "auto":
        methods.values(method, given, 2 * what.limbs)
    if goal not in GOALS:
        raise UserError(f"unknown goal '{goal}'; known: {', '.join(GOALS)}")
    for name, limit in (("--max-bytes", max_bytes), ("--max-stack", max_stack)):
        if limit is not None and limit < 0:
            raise UserError(f"{name} is a number of bytes, not {limit}")
    name = symbol if symbol is not None else default_symbol(what)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in _C_WORDS or len(name) > 255:
        raise UserError(f"'{name[:40]}' is no C identifier; a symbol has letters, digits and _, and is no keyword")
    return Spec(what, chosen_core, method, tuple(sorted(given.items())), goal, max_bytes, max_stack, name)
