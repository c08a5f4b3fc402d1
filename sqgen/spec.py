"""What a user asks for, checked: operation, size, core, method, goal and limits."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import methods
from .contract import Contract, contract
from .errors import UserError
from .idioms import idioms
from .table import Core, Isa
from .tables import isa

GOALS = ("speed", "call", "balanced", "size")
# Words that a C or C++ compiler, <stdint.h> or the assembler has taken.
_TAKEN = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const const_cast
    consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double dynamic_cast
    else enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not
    not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short
    signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef
    typeid typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor xor_eq main
    _Alignas _Alignof _Atomic _BitInt _Bool _Complex _Generic _Imaginary _Noreturn _Static_assert _Thread_local
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t uintmax_t""".split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Spec:
    """A request that makes sense.  `method` is a method's name or "auto"; limits are in bytes, None for none.

    `allow_branches`: the code may branch on secrets, in arms that take equally long; `reserve`: registers that it
    leaves alone.
    """

    contract: Contract
    core: Core
    method: str
    parameters: tuple[tuple[str, str], ...]
    goal: str
    max_bytes: int | None
    max_stack: int | None
    symbol: str
    allow_branches: bool = False
    reserve: tuple[str, ...] = ()

    @property
    def bits(self) -> int:
        return self.contract.limbs * self.contract.isa.limb_bits

    def command(self) -> str:
        """The command that makes the same kernel again."""
        parts = [
            f"sqgen --isa {self.contract.isa.name} --core {self.core.name} --op {self.contract.op} --bits {self.bits}"
        ]
        parts.append(f"--method {self.method}")
        parts += [f"-p {shlex.quote(f'{name}={value}')}" for name, value in self.parameters]
        if self.goal != "speed":
            parts.append(f"--goal {self.goal}")
        if self.max_bytes is not None:
            parts.append(f"--max-bytes {self.max_bytes}")
        if self.max_stack is not None:
            parts.append(f"--max-stack {self.max_stack}")
        if self.allow_branches:
            parts.append("--allow-branches")
        parts += [f"--reserve {register}" for register in self.reserve]
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
    allow_branches: bool = False,
    reserve: Sequence[str] = (),
) -> Spec:
    """Check a request for an instruction set, or the one of that name.  Raises UserError that says what to change."""
    which = isa(which) if isinstance(which, str) else which
    what = contract(which, op, bits)
    chosen_core = which.core(core or which.default_core)
    which.require(chosen_core, idioms(which).NEEDS)
    if method != "auto" and not methods.does(method, op):
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
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in _TAKEN or name in which.reserved or len(name) > 255:
        raise UserError(
            f"'{name[:40]}' is no C identifier; a symbol has letters, digits and _, and is no keyword or macro"
        )
    return Spec(
        what,
        chosen_core,
        method,
        tuple(sorted(given.items())),
        goal,
        max_bytes,
        max_stack,
        name,
        allow_branches,
        reserved(which, reserve),
    )


def reserved(which: Isa, registers: Sequence[str]) -> tuple[str, ...]:
    """Registers to be left alone, in the table's order.  UserError for one that a kernel cannot do without."""
    needed = {part for group in which.abi.arguments for part in group} | {*which.abi.zero_on_return}
    able = [register for register in which.registers if register in which.abi.callee_saved and register not in needed]
    for register in registers:
        if register not in able:
            raise UserError(f"'{register}' cannot be reserved; these can: {', '.join(able)}")
    return tuple(register for register in able if register in registers)
