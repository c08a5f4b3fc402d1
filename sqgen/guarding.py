"""Options that go with every method: what is left behind on return, and, on a core with devices, who keeps interrupt
handlers from these, and where they are.

    wipe=1              nothing made from operands is left on the stack, in registers, flags and devices
    wipe=0              it is left where it is: the default
    interrupts=guard    the kernel turns interrupts off while it uses a device, and gives them back
    interrupts=caller   it does not: the caller sees to it
    guard=column        it turns them off for a column, or a row, at a time
    guard=call          it turns them off once: the default

A device's address goes by the name that the table gives it (`base`).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, replace

from .contract import Contract
from .errors import UserError
from .table import Core, Isa

WIPE, NO, YES = "wipe", "0", "1"
INTERRUPTS, GUARD, CALLER = "interrupts", "guard", "caller"
COLUMN, CALL = "column", "call"
LOWEST, HIGHEST = 0x0100, 0x0FC0  # where a device can be: among the peripherals


@dataclass(frozen=True)
class Guarding:
    """The core as the options say, whether the caller keeps interrupt handlers away, whether nothing of the operands is
    left behind, and the options that differ from what they are where nothing is said."""

    core: Core
    alone: bool = False
    wiped: bool = False
    options: tuple[tuple[str, str], ...] = ()

    def contract(self, what: Contract) -> Contract:
        """The contract as the options say."""
        return replace(what, alone=self.alone, wiped=self.wiped)


def taken(isa: Isa, core: Core, given: MutableMapping[str, str]) -> Guarding:
    """What the options among the parameters say, which are taken out of these.  Raises UserError for other values."""
    wiped = word(given, WIPE, NO, YES) == YES
    wipe = ((WIPE, YES),) if wiped else ()
    if not core.devices:
        return Guarding(core, wiped=wiped, options=wipe)
    alone = word(given, INTERRUPTS, GUARD, CALLER) == CALLER
    brief = word(given, GUARD, CALL, COLUMN) == COLUMN
    if alone and brief:
        raise UserError(f"{GUARD}={COLUMN} turns interrupts off, {INTERRUPTS}={CALLER} leaves them alone; choose one")
    devices = {name: base(given, isa.devices[name].base, at) for name, at in core.devices.items()}
    moved = {isa.devices[name].base: at for name, at in devices.items() if at != core.devices[name]}
    said = ((INTERRUPTS, CALLER if alone else ""), (GUARD, COLUMN if brief else ""))
    options = (*wipe, *(each for each in said if each[1]), *((name, f"0x{at:04x}") for name, at in moved.items()))
    return Guarding(replace(core, devices=devices, brief=brief), alone, wiped, options)


def word(given: MutableMapping[str, str], name: str, default: str, other: str) -> str:
    """An option that is one of two words."""
    found = given.pop(name, default)
    if found not in (default, other):
        raise UserError(f"parameter '{name}' is {default} or {other}, not '{found}'")
    return found


def base(given: MutableMapping[str, str], name: str, default: int) -> int:
    """An option that is an address."""
    text = given.pop(name, hex(default))
    try:
        found = int(text, 0)
    except ValueError:
        found = -1
    if not LOWEST <= found <= HIGHEST or found % 2:
        raise UserError(
            f"parameter '{name}' is an even address from 0x{LOWEST:04x} to 0x{HIGHEST:04x}, such as"
            f" 0x{default:04x}, not '{text}'"
        )
    return found


def options(isa: Isa, core: Core, given: Mapping[str, str]) -> Guarding:
    """The same of options alone.  UserError for what is none."""
    left = dict(given)
    found = taken(isa, core, left)
    for name in left:
        devices = (INTERRUPTS, GUARD, *(isa.devices[device].base for device in core.devices)) if core.devices else ()
        raise UserError(f"'{name}' is no option of {core.name}; there are {', '.join([WIPE, *devices])}")
    return found
