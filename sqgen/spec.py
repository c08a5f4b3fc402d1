"""What a user asks for, checked: operation, size, core, method, goal and limits."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import guarding, methods
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

    `allow_branches`: the code may branch on secrets, in arms that take equally long; `allow_variable_time`: it may have
    instructions whose cycles depend on them; `reserve`: registers that it leaves alone; `guarding`: options of
    the core's devices.
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
    allow_variable_time: bool = False
    reserve: tuple[str, ...] = ()
    guarding: tuple[tuple[str, str], ...] = ()

    @property
    def limited(self) -> bool:
        """Whether code or stack may have only so many bytes."""
        return self.max_bytes is not None or self.max_stack is not None

    @property
    def bits(self) -> int:
        return self.contract.limbs * self.contract.isa.limb_bits

    def command(self) -> str:
        """The command that makes the same kernel again."""
        parts = [
            f"sqgen --isa {self.contract.isa.name} --core {self.core.name} --op {self.contract.op} --bits {self.bits}"
        ]
        parts.append(f"--method {self.method}")
        parts += [f"-p {name}={value}" for name, value in self.guarding]
        parts += [f"-p {shlex.quote(f'{name}={value}')}" for name, value in self.parameters]
        if self.goal != "speed":
            parts.append(f"--goal {self.goal}")
        if self.max_bytes is not None:
            parts.append(f"--max-bytes {self.max_bytes}")
        if self.max_stack is not None:
            parts.append(f"--max-stack {self.max_stack}")
        if self.allow_branches:
            parts.append("--allow-branches")
        if self.allow_variable_time:
            parts.append("--allow-variable-time")
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
    allow_variable_time: bool = False,
    reserve: Sequence[str] = (),
) -> Spec:
    """Check a request for an instruction set, or the one of that name.  Raises UserError that says what to change."""
    which = isa(which) if isinstance(which, str) else which
    what = contract(which, op, bits)
    name, given = optional(which, core or which.default_core, parameters or {})
    chosen_core = which.core(name)
    if bits > chosen_core.max_bits:
        raise UserError(f"{bits} is out of range; kernels for {chosen_core.name} go to {chosen_core.max_bits} bits")
    which.require(chosen_core, idioms(which).NEEDS)
    chosen_core = which.at_any_time(chosen_core) if allow_variable_time else chosen_core
    if method != "auto" and not methods.does(method, op):
        raise UserError(f"method '{method}' cannot do {op}; these can: {', '.join(methods.names(op))}")
    guarded = guarding.taken(which, chosen_core, given)
    what, chosen_core = guarded.contract(what), guarded.core
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
        allow_variable_time,
        reserved(which, reserve),
        guarded.options,
    )


def optional(which: Isa, core: str, parameters: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The core's name with the instruction set's own options among the parameters, and the parameters without these.

    Raises UserError for an option that is neither 0 nor 1, or that the core cannot have.
    """
    given = dict(parameters)
    which.core(core)
    for option in which.options:
        value = given.pop(option, "0")
        if value not in ("0", "1"):
            raise UserError(f"'{option}' is 0 or 1, not '{value}'")
        if value == "1":
            core = which.optional(core, option)
    return core, given


def reserved(which: Isa, registers: Sequence[str]) -> tuple[str, ...]:
    """Registers to be left alone, in the table's order.  UserError for one that a kernel cannot do without."""
    needed = {part for group in which.abi.arguments for part in group} | {*which.abi.zero_on_return}
    able = [register for register in which.registers if register in which.abi.callee_saved and register not in needed]
    for register in registers:
        if register not in able:
            raise UserError(f"'{register}' cannot be reserved; these can: {', '.join(able)}")
    return tuple(register for register in able if register in registers)
