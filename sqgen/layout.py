"""Where the instructions of all functions stand, one behind the other, and how calls get to what they do not reach."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from .code import Function, Label, Op
from .encode import Instr
from .table import Isa

ROOM = 64  # bytes that may come in between when jumps by the way are added
PROGRESS = 256  # bytes that a jump by the way must gain, lest jumps stand beside each other without end

Placed = tuple[str, Op]  # an operation, and the name of the function that it is of


@dataclass(frozen=True)
class Line:
    """One instruction of the kernel with what the listing says about it.

    `labels` are the places that it is, `target` the one it goes to, if any.
    """

    instr: Instr
    heading: str
    comment: str
    labels: tuple[str, ...] = ()
    target: str = ""


def layout(functions: Sequence[Function], isa: Isa) -> tuple[Line, ...]:
    """The functions one after the other, each place known; calls that do not reach go by way of a jump, which stands
    behind a function, or else in its midst and is jumped over."""
    found = _Layout(isa)
    found.insert(0, list(in_order(functions, isa)))
    far = found.far()
    while far is not None and found.by_the_way(far):  # if not, the assembler says by how much it misses
        far = found.far()
    return tuple(found.lines())


def in_order(functions: Sequence[Function], isa: Isa) -> Iterator[Placed]:
    """The operations as they stand in memory; a function begins with a label, and all are its own."""
    entry, *others = functions
    behind = True
    for op in entry.ops:
        if op.insn == "functions":
            behind = False
            for index, function in enumerate(others):  # one jump over each, lest they are too long for one over all
                yield "", Op(isa.jump, (Label(f"behind{index}"),))
                yield from _labelled(function)
                yield "", Op("label", (Label(f"_behind{index}"),))
        else:
            yield from _labelled(Function("", (op,), ()))
    if behind:
        for function in others:
            yield from _labelled(function)


def _labelled(function: Function) -> Iterator[Placed]:
    if function.name:
        yield function.name, Op("label", (Label(function.name),))
    for op in function.ops:
        if op.insn == "label":
            yield function.name, Op("label", (Label(f"{function.name}_{op.args[0]}"),))
        elif op.insn != "functions":  # which stand elsewhere, for the entry alone has others between its operations
            yield function.name, op


class _Layout:
    """Operations in order, with the address in bytes of each, and of each label.

    Functions have thousands of operations, and dozens of jumps are added one after the other: so what jumps and labels
    are is kept, by their indices.
    """

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.leading = {name for name, insn in isa.insns.items() if insn.control}
        self.code: list[Placed] = []
        self.sizes: list[int] = []  # in bytes
        self.jumps: list[int] = []
        self.labels: list[int] = []
        self.addresses: list[int] = []
        self.places: dict[str, int] = {}

    def insert(self, at: int, ops: Sequence[Placed]) -> None:
        """Let operations stand in front of the one that has stood there."""
        self.code[at:at] = ops
        self.sizes[at:at] = [0 if op.insn == "label" else self.isa.insns[op.insn].size for _, op in ops]
        labels = [index for index, (_, op) in enumerate(ops, at) if op.insn == "label"]
        jumps = [index for index, (_, op) in enumerate(ops, at) if op.insn in self.leading]
        self.labels = _between(self.labels, labels, at, len(ops))
        self.jumps = _between(self.jumps, jumps, at, len(ops))
        self.addresses = list(itertools.accumulate(self.sizes[:-1], initial=0))
        self.places = {}
        for index in self.labels:
            name = str(self.code[index][1].args[0])
            if name in self.places:
                raise ValueError(f"two places have the label {name}")
            self.places[name] = self.addresses[index]

    def target(self, index: int) -> str:
        """The label an operation goes to, "" for none: one of its own function's, or a function's."""
        name, op = self.code[index]
        target = next((arg.name for arg in op.args if isinstance(arg, Label)), "")
        own = f"{name}_{target}"
        return own if own in self.places else target

    def far(self) -> int | None:
        """The first jump, branch or call that does not reach what it goes to, None if all do."""
        for index in self.jumps:
            target = self.target(index)
            if target and self.places[target] not in self.reached(index):
                return index
        return None

    def reached(self, index: int) -> range:
        """The addresses that a jump, branch or call reaches."""
        insn = self.isa.insns[self.code[index][1].insn]
        operand = insn.operands[-1]
        middle = self.addresses[index] + insn.size + operand.bias
        return range(middle + operand.low * operand.scale, middle - operand.low * operand.scale)

    def by_the_way(self, far: int) -> bool:
        """Let a call go to a jump that leads on to where it goes; whether there is a place for one."""
        name, op = self.code[far]
        target = self.target(far)
        hop, over = Label(f"hop{len(self.code)}"), Label(f"over{len(self.code)}")
        jump = [("", Op("label", (hop,))), ("", Op(self.isa.jump, (Label(target),)))]
        at = self.nearest(self.ends(), far, self.places[target])
        if at is None:
            at = self.nearest(self.straight(), far, self.places[target])
            jump = [("", Op(self.isa.jump, (over,))), *jump, ("", Op("label", (over,)))]
        if at is None:
            return False
        self.code[far] = name, replace(op, args=(hop,))
        self.insert(at, jump)
        return True

    def nearest(self, indices: Iterable[int], far: int, target: int) -> int | None:
        """Of some indices in the code, one that a call reaches, as near to its target as can be."""
        reached = self.reached(far)
        found = [
            (abs(self.addresses[index] - target), index)
            for index in indices
            if self.addresses[index] in reached and self.addresses[index] + ROOM in reached
        ]
        nearest = min(found, default=None)
        return nearest[1] if nearest and nearest[0] + PROGRESS < abs(self.addresses[far] - target) else None

    def ends(self) -> Iterator[int]:
        """Where a jump may stand and nothing runs into it."""
        for before in self.jumps:
            control = self.isa.insns[self.code[before][1].insn].control[0]
            if control in ("jump", "return") and before + 1 < len(self.code):
                yield before + 1

    def straight(self) -> Iterator[int]:
        """Where a jump may stand that another one jumps over: no branch, which is short, leads across."""
        crossed = [False] * (len(self.code) + 1)
        for index in self.jumps:
            if self.isa.insns[self.code[index][1].insn].control[0] == "branch":
                low, high = sorted((self.addresses[index], self.places[self.target(index)]))
                first, end = bisect_left(self.addresses, low), bisect_left(self.addresses, high + 1)
                crossed[first:end] = [True] * (end - first)
        return (index for index in range(1, len(self.code)) if not crossed[index])

    def lines(self) -> Iterator[Line]:
        """The instructions, with the distances that they jump."""
        labels: list[str] = []
        for index, (_, op) in enumerate(self.code):
            if op.insn == "label":
                labels.append(str(op.args[0]))
                continue
            insn, target = self.isa.insns[op.insn], self.target(index)
            operands = tuple(arg for arg in op.args if isinstance(arg, str | int | tuple))
            if target:
                operands = (*operands, self.places[target] - self.addresses[index] - insn.size)
            yield Line(Instr(insn, operands), op.heading, op.comment, tuple(labels), target)
            labels = []


def _between(known: Sequence[int], new: Sequence[int], at: int, count: int) -> list[int]:
    """Indices that are known with new ones between them, where `count` operations came in."""
    first = bisect_left(known, at)
    return [*known[:first], *new, *(index + count for index in known[first:])]
