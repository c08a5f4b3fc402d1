"""What the first proof says of `-p wipe=1`: on return, nothing made from operands is left anywhere but in the result.

What is left in a place is free of operands if it was there, or made of what was there, before any limb of them was
read, and is the same in all cases of the proof: a number, say, or what a register held at entry.  Every limb is looked
at that the function has written to the stack, wherever its pointer was then.
"""

from __future__ import annotations

from collections.abc import Iterator

from .forms import Atoms
from .held import Cell, Return, Value, ZeroTest
from .linear import ONE, Form
from .symbolic import State
from .table import Isa

Content = tuple[frozenset[tuple[int, int]], ...]  # of a place: forms, as pairs of atom and coefficient
FOREIGN: Content = ()  # somebody else's


class Wiped:
    """Looks at what all cases of a proof leave.  `operands` are the atoms of their limbs."""

    def __init__(self, isa: Isa, atoms: Atoms) -> None:
        self.isa, self.atoms = isa, atoms
        self.operands: set[int] = set()
        self.first: dict[str, Content] = {}

    def leftover(self, state: State) -> str:
        """Where something is left that may be made from operands, "" for nowhere."""
        found: dict[str, Content] = {}
        for where, value in self.places(state):
            content = self.content(state, value)
            if content is None or self.first.get(where, content) != content:
                return where
            found[where] = content
        self.first = found
        return ""

    def places(self, state: State) -> Iterator[tuple[str, Value | Cell]]:
        """All that a function may have left: where, and what."""
        for name in self.isa.wipeable:
            yield f"in {name}", state.slots[self.isa.slots[name]]
        top = -state.below()
        now = {number: cell for (buffer, number), cell in state.memory.items() if buffer == "stack" and number <= top}
        for number, cell in sorted({**state.left, **now}.items()):
            yield f"on the stack, {(top - number + 1) * self.isa.limb_bits // 8} bytes below its end", cell

    def content(self, state: State, value: Value | Cell) -> Content | None:
        """What a place holds, if that is free of operands."""
        if isinstance(value, Return):
            return FOREIGN
        if value is None:
            return None
        forms = value.forms if isinstance(value, ZeroTest) else (value,)
        reduced = [self.atoms.reduce(form, state.fixed) for form in forms]
        if all(form.keys() <= self.atoms.foreign for form in reduced if form):
            reduced = [form for form in reduced if not form]
        return tuple(frozenset(form.items()) for form in reduced) if all(map(self.old, reduced)) else None

    def old(self, form: Form) -> bool:
        """Whether it is made of what was there before a limb of the operands was read."""
        before = self.atoms.before
        return all(atom == ONE or (atom < before and atom not in self.operands) for atom in form)

    def nothing(self, value: Value) -> bool:
        """Whether a limb of a device holds nothing, or what others left who found that."""
        return isinstance(value, dict) and value.keys() <= self.atoms.foreign
