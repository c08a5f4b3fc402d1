"""The devices of a core while code runs: what time it is, when a result is there, and whether nobody else is at them.

An interrupt handler may use a device, too.  So where interrupts may come a device must not be touched, and afterwards
holds what nobody knows; where they are turned off, it is left alone from `interrupt_delay` instructions behind that.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from . import timing
from .device import WRITTEN, Device, Port
from .encode import Instr
from .meaning import Meaning
from .table import Core, Isa


class Misuse(Exception):
    """Code does to a device what it must not."""


class Host(Protocol):
    """The domain that the devices' states are kept in."""

    def read(self, slot: int) -> Any: ...
    def write(self, slot: int, value: Any) -> None: ...


@dataclass(frozen=True)
class Place:
    """A port of a device at an address."""

    device: Device
    port: Port
    meaning: Meaning
    written: int  # the slot of what is written
    shows: int  # the slot that a read shows, -1 for none
    ready: tuple[tuple[int, int], ...]  # when they can be read behind a write, by slot
    forgotten: tuple[int, ...]  # the slots of which nothing is known behind a write


def connect(isa: Isa, core: Core, *, alone: bool = False) -> Bus | None:
    """The devices of a core, None if it has none; `alone`: the caller sees to it that nobody else uses them."""
    return Bus(isa, core, alone=alone) if core.devices else None


class Bus:
    """The devices of a core, and the time in cycles.

    It is copied as it is: what changes is replaced.
    """

    def __init__(self, isa: Isa, core: Core, *, alone: bool) -> None:
        self.isa, self.core, self.alone = isa, core, alone
        self.places: dict[int, Place] = {}
        self.slots: tuple[int, ...] = ()  # of all states
        for name, base in core.devices.items():
            device = isa.devices[name]
            self.slots += tuple(isa.slots[slot] for slot in device.slots)
            self.places.update({base + port.at: self.place(device, port) for port in device.ports})
        self.top = max(self.places) + isa.limb_bits // 8  # where memory begins
        self.now, self.end = 0, 0  # when the instruction at hand begins, and when it ends
        self.instr: Instr | None = None
        self.idle: dict[str, int] = {}  # device -> the first cycle in which it can be written
        self.ready: dict[int, int] = {}  # slot -> the first cycle in which it can be read
        self.quiet = 0  # instructions, up to this one, before which interrupts were off
        self.used = False  # since interrupts could come the last time
        self.forgotten: tuple[int, ...] = ()  # by what the instruction at hand wrote

    def place(self, device: Device, port: Port) -> Place:
        """A port, its names put in."""
        slots = self.isa.slots
        written = slots[device.slots[-1]]
        places = {**{name: (slot,) for name, slot in slots.items()}, WRITTEN: (written,)}
        meaning = Meaning(port.statements, places, {}, self.isa.widths)
        shows = slots[port.reads] if port.reads else -1
        ready = tuple((slots[name], cycles) for name, cycles in port.ready.items())
        return Place(device, port, meaning, written, shows, ready, tuple(slots[name] for name in port.forgets))

    def begin(self, instr: Instr, *, interruptible: bool) -> Sequence[int]:
        """An instruction begins, before which an interrupt may come or not; the slots that nobody knows any more."""
        self.now = self.end
        self.end += timing.cost(self.isa, self.core, instr, self.instr)
        self.instr = instr
        self.quiet = 0 if interruptible else self.quiet + 1
        forgotten, self.forgotten = self.forgotten, ()
        if self.private or not self.used:
            return forgotten
        self.used = False
        return self.slots

    def apart(self) -> Bus:
        """The same for code that is walked by itself: nothing is under way, and somebody may have been there."""
        found = copy.copy(self)
        found.now, found.end, found.instr = 0, 0, None
        found.idle, found.ready, found.forgotten = {}, {}, ()
        found.quiet, found.used = min(self.quiet, self.isa.interrupt_delay + 1), True
        return found

    def suits(self, before: Bus, first: Instr) -> bool:
        """Whether code that was walked by itself, from `before` on, is right now: nothing is under way, interrupts are
        off for as long, and its first instruction takes as long."""
        still = all(cycle <= self.end for cycle in (*self.idle.values(), *self.ready.values()))
        costs = {timing.cost(self.isa, self.core, first, latest) for latest in (self.instr, before.instr)}
        return still and self.quiet >= before.quiet and len(costs) == 1

    def went(self, after: Bus) -> None:
        """Time passes as it did for code that was walked by itself, `after` which the devices are these."""
        start = self.end
        self.now, self.end, self.instr = start + after.now, start + after.end, after.instr
        self.idle = {name: start + cycle for name, cycle in after.idle.items()}
        self.ready = {slot: start + cycle for slot, cycle in after.ready.items()}
        self.forgotten = (*self.forgotten, *after.forgotten)
        self.quiet, self.used = after.quiet, after.used

    @property
    def private(self) -> bool:
        """Whether nobody else can be at the devices."""
        return self.alone or self.quiet > self.isa.interrupt_delay

    def load(self, address: int, host: Host) -> Any:
        """What a read of a port shows.  Raises Misuse."""
        place = self.find(address)
        name = place.port.name
        if place.shows < 0:
            raise Misuse(f"reads {name} of {place.device.title}, which is there to be written")
        assert self.instr
        if self.now + self.instr.insn.loads_in < self.ready.get(place.shows, 0):
            raise Misuse(f"reads {name} of {place.device.title} before the result is there")
        return host.read(place.shows)

    def store(self, address: int, value: Any, host: Host) -> None:
        """A write to a port.  Raises Misuse."""
        place = self.find(address)
        if place.shows >= 0:
            raise Misuse(f"writes {place.port.name} of {place.device.title}, which is there to be read")
        if self.end < self.idle.get(place.device.name, 0):
            raise Misuse(f"writes {place.port.name} of {place.device.title} while that is busy")
        self.used = True
        host.write(place.written, value)
        place.meaning.run(host)  # type: ignore[arg-type]
        self.ready = {**self.ready, **{slot: self.end + cycles for slot, cycles in place.ready}}
        self.idle = {**self.idle, place.device.name: self.end + place.port.busy}
        self.forgotten = place.forgotten

    def find(self, address: int) -> Place:
        """The port at an address.  Raises Misuse."""
        if address not in self.places:
            raise Misuse(f"there is nothing at address 0x{address:04x}")
        place = self.places[address]
        if not self.private:
            raise Misuse(f"uses {place.device.title} where an interrupt may come, whose handler may use it, too")
        return place
