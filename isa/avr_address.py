"""After allocation: how AVR code reaches memory, and the frame that spilled limbs get.

Each buffer has a pointer register that walks over it: X steps by itself, Y and Z reach 63 limbs ahead, and step by
themselves where they have to walk on in any case.  Moving one otherwise destroys the carry, so the idioms touch the
first limb of a run before the run begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from sqgen.code import ANY_FLAGS, PUSHED, SPILLED, Arg, Memory, Op
from sqgen.errors import UserError
from sqgen.table import Isa

from .avr_registers import POINTERS

REACH = 63  # of a displacement, and of ADIW
STORES = ("st_", "std_")
SCRATCH = ("r24", "r25")  # free where a function begins


def address(ops: Sequence[Op], isa: Isa) -> list[Op]:
    """Instructions in place of `load`, `store`, `walk` and the marks; moves of aligned pairs joined to MOVW."""
    return _join_moves(_Addressing(ops, isa).run(), isa)


class _Addressing:
    def __init__(self, ops: Sequence[Op], isa: Isa) -> None:
        self.ops, self.isa = ops, isa
        self.frame = len({op.args[1] for op in ops if op.insn in ("load", "store") and _base(op) == SPILLED})
        self.pushed = 0  # limbs on the stack
        self.unwinding = False
        self.walkers: dict[str, _Walker] = {}
        self.out: list[Op] = []
        self.arms: list[_Arm] = []
        self.forked: dict[str, int] = {}  # where the pointers are at the fork
        self.later = 0  # cycles from there to the other arm, more than to the first one

    def run(self) -> list[Op]:
        heading = ""
        for index, op in enumerate(self.ops):
            headed = replace(op, heading="\n".join(filter(None, (heading, op.heading)))) if heading else op
            made = self.one(index, headed)
            heading = "" if made else headed.heading
            self.out += made
        return self.out

    def one(self, index: int, op: Op) -> list[Op]:
        """What becomes of one operation."""
        marks = {
            "load": self.access,
            "store": self.access,
            "point": self.point,
            "walk": self.walk,
            "near": self.near,
            "enter": self.enter,
            "leave": self.leave,
            "spill": self.reach_frame,
            "look": self.look,
            "unwind": self.unwind,
            "need": self.nothing,
            "release": self.nothing,
            "retake": self.nothing,
            "accept": self.nothing,
            "give": self.nothing,
            "rcall": self.call,
            "lend": self.nothing,
            "room": self.nothing,
            "move": self.move,
            "own": self.nothing,
            "forget": self.nothing,
            "spare": self.nothing,
            "fork": self.fork,
            "arm": self.arm,
            "join": self.join,
            "wait": self.wait,
        }
        return marks[op.insn](index, op) if op.insn in marks else [op]

    def nothing(self, index: int, op: Op) -> list[Op]:
        return []

    def move(self, index: int, op: Op) -> list[Op]:
        return [replace(op, insn="mov")]

    def call(self, index: int, op: Op) -> list[Op]:
        """Which registers go in and out has done its duty."""
        return [replace(op, args=op.args[:1])]

    def access(self, index: int, op: Op) -> list[Op]:
        if self.arms:
            self.arms[-1].accesses.append((op.insn, op.args[1]))
        if _base(op) == PUSHED:
            return [self.on_stack(op)]
        return self.walkers[_base(op)].access(op)

    def point(self, index: int, op: Op) -> list[Op]:
        where = cast(Memory, op.args[1])
        self.walkers[where.base] = _Walker(str(op.args[0]), where.offset, *self.upcoming(index + 1, where.base))
        return []

    def walk(self, index: int, op: Op) -> list[Op]:
        where = cast(Memory, op.args[0])
        return self.walkers[where.base].to(where.offset, op)

    def near(self, index: int, op: Op) -> list[Op]:
        first, last = cast(Memory, op.args[0]), cast(Memory, op.args[1])
        return self.walkers[first.base].near(first.offset, last.offset, op)

    def enter(self, index: int, op: Op) -> list[Op]:
        return _reserve(self.frame, op) if self.frame else []

    def leave(self, index: int, op: Op) -> list[Op]:
        """Give the frame back, by way of its own pointer: limbs may be left in all other registers."""
        if not self.frame:
            return []
        return [*self.walkers[SPILLED].to(self.frame - 1, op), *set_stack_pointer(self.walkers[SPILLED].pointer)]

    def look(self, index: int, op: Op) -> list[Op]:
        return stack_pointer_to("Y", op.heading)

    def unwind(self, index: int, op: Op) -> list[Op]:
        self.unwinding = True
        return []

    def on_stack(self, op: Op) -> Op:
        """A limb pushed, popped, or looked at by Y, which is equal to the stack pointer."""
        limb, offset = str(op.args[0]), cast(Memory, op.args[1]).offset
        if op.insn == "load" and not self.unwinding:
            return replace(op, insn="ldd_y", args=(limb, self.pushed - offset))
        self.pushed += 1 if op.insn == "store" else -1
        assert offset == self.pushed - (op.insn == "store"), "limbs come from the stack in the opposite order"
        return replace(op, insn="push" if op.insn == "store" else "pop", args=(limb,))

    def upcoming(self, index: int, base: str) -> tuple[deque[int], int | None]:
        """Offsets of the accesses to a buffer until its pointer is set anew, and where it walks after the last one."""
        offsets: deque[int] = deque()
        end = None
        elsewhere = False  # in the other way that the code goes
        for op in self.ops[index:]:
            elsewhere = op.insn == "arm" or (elsewhere and op.insn != "join")
            if elsewhere:
                continue
            if op.insn in ("load", "store") and _base(op) == base:
                offsets.append(cast(Memory, op.args[1]).offset)
                end = None
            elif op.insn == "walk" and cast(Memory, op.args[0]).base == base:
                end = cast(Memory, op.args[0]).offset
            elif op.insn == "point" and cast(Memory, op.args[1]).base == base:
                break
        return offsets, end

    def fork(self, index: int, op: Op) -> list[Op]:
        self.forked = {base: walker.at for base, walker in self.walkers.items()}
        self.arms = [_Arm(len(self.out))]
        self.later = cast(int, op.args[0])
        return []

    def arm(self, index: int, op: Op) -> list[Op]:
        """The other way, with the pointers where they were."""
        self.arms[-1].ends(len(self.out), self.walkers)
        self.arms.append(_Arm(len(self.out)))
        for base, at in self.forked.items():
            self.walkers[base] = _Walker(self.walkers[base].pointer, at, *self.upcoming(index + 1, base))
        return []

    def join(self, index: int, op: Op) -> list[Op]:
        """Both ways take as long, and have done the same to memory.  Raises UserError where that cannot be."""
        one, other = self.arms
        other.ends(len(self.out), self.walkers)
        if one.accesses != other.accesses or one.pointers != other.pointers:
            raise UserError("signs=branched: both arms would not use memory alike here; take signs=branch-free")
        first, second = (_join_moves(self.out[arm.first : arm.end], self.isa) for arm in (one, other))
        longer = _cycles(first, self.isa) - _cycles(second, self.isa) - self.later
        waiting = self.wait(0, Op("wait", (abs(longer),), comment="as long as the other arm"))
        if longer < 0:
            first[-2:-2] = waiting  # before the jump out of it, and the label of the other one
        else:
            second += waiting
        self.out[one.first :] = [*first, *second]
        self.arms = []
        return []

    def wait(self, index: int, op: Op) -> list[Op]:
        (cycles,) = op.args
        assert isinstance(cycles, int)
        return [Op("nop", (), comment=op.comment if not count else "") for count in range(cycles)]

    def reach_frame(self, index: int, op: Op) -> list[Op]:
        """Y points below the frame, if there is one."""
        if not self.frame:
            return []
        self.walkers[SPILLED] = _Walker("Y", -1, *self.upcoming(index + 1, SPILLED))
        return stack_pointer_to("Y", op.heading)


@dataclass
class _Arm:
    """One of two ways: where its instructions are, what it has done to memory, and where it leaves the pointers."""

    first: int
    end: int = 0
    accesses: list[tuple[str, Arg]] = field(default_factory=list)
    pointers: dict[str, int] = field(default_factory=dict)

    def ends(self, end: int, walkers: Mapping[str, _Walker]) -> None:
        self.end, self.pointers = end, {base: walker.at for base, walker in walkers.items()}


def _cycles(ops: Sequence[Op], isa: Isa) -> int:
    """Cycles of an arm, and in it of the way that ends with a jump: what that passes over takes as long."""
    core, cycles, over = isa.core(isa.default_core), 0, None
    for op in ops:
        if over is None and op.insn in isa.insns:
            cycles += isa.cycles(isa.insns[op.insn], core)
            over = op.args if op.insn == "rjmp" else None
        elif op.insn == "label" and op.args == over:
            over = None
    return cycles


def _base(op: Op) -> str:
    return cast(Memory, op.args[1]).base


class _Walker:
    """A pointer register, and the limb of its buffer that it points at.

    `upcoming` are the offsets of the accesses to come, `end` where it walks after them, if it does.
    """

    def __init__(self, pointer: str, at: int, upcoming: deque[int], end: int | None) -> None:
        self.pointer, self.at, self.upcoming, self.end = pointer, at, upcoming, end

    def access(self, op: Op) -> list[Op]:
        """The instructions for one load or store."""
        offset = self.upcoming.popleft()
        reach = 0 if self.pointer == "X" else REACH
        moves: list[Op] = []
        if not 0 <= offset - self.at <= reach:
            moves = self.to(self.goal(offset, reach))
        short = {"load": "ld", "store": "st"}[op.insn]
        limb = str(op.args[0])
        if self.pointer == "X":
            step = (self.upcoming[0] if self.upcoming else self.end) == offset + 1
            self.at += step
            moves.append(Op(f"{short}_x{'p' if step else ''}", (limb,)))
        elif offset == self.at and self.leaves_behind():
            self.at += 1
            moves.append(Op(f"{short}_{self.pointer.lower()}p", (limb,)))
        else:
            moves.append(Op(f"{short}d_{self.pointer.lower()}", (limb, offset - self.at)))
        if op.heading:
            moves[0] = replace(moves[0], heading=op.heading)
        return moves

    def leaves_behind(self) -> bool:
        """Whether the pointer walks beyond where it is, and nothing before that wants the limb that it points at."""
        return self.end is not None and min(*self.upcoming, self.end, self.end) > self.at

    def near(self, first: int, last: int, op: Op) -> list[Op]:
        """Move, where need be, so that all limbs from `first` to `last` are within reach; X to where it goes first."""
        if self.pointer == "X":
            return self.to(self.upcoming[0] if self.upcoming and first <= self.upcoming[0] <= last else first, op)
        return [] if first >= self.at and last <= self.at + REACH else self.to(self.goal(first, REACH), op)

    def goal(self, offset: int, reach: int) -> int:
        """Where to move for an access that is out of reach, so that as many as possible after it are within."""
        low = high = offset
        for coming in self.upcoming:
            if max(high, coming) - min(low, coming) > reach:
                break
            low, high = min(low, coming), max(high, coming)
        return low

    def to(self, offset: int, op: Op | None = None) -> list[Op]:
        """Move the pointer there."""
        moved = moves(self.pointer, offset - self.at)
        self.at = offset
        if moved and op:
            moved[0] = replace(moved[0], heading=op.heading)
        return moved


def moves(pointer: str, distance: int) -> list[Op]:
    """Add to a pointer: one ADIW or SBIW if that reaches, else SUBI, SBCI, which take as long as two."""
    low, high = POINTERS.get(pointer, SCRATCH)
    if not distance:
        return []
    if abs(distance) <= REACH:
        return [Op("adiw" if distance > 0 else "sbiw", (low, abs(distance)))]
    return [Op("subi", (low, -distance & 0xFF)), Op("sbci", (high, -distance >> 8 & 0xFF), takes=ANY_FLAGS)]


def stack_pointer_to(pointer: str, heading: str = "") -> list[Op]:
    low, high = POINTERS.get(pointer, SCRATCH)
    return [Op("in_spl", (low,), heading=heading), Op("in_sph", (high,))]


def _reserve(size: int, op: Op) -> list[Op]:
    """Lower the stack pointer by `size` bytes."""
    return [*stack_pointer_to("scratch", op.heading), *moves("scratch", -size), *set_stack_pointer("scratch")]


def set_stack_pointer(pointer: str) -> list[Op]:
    """Write the stack pointer, with interrupts off while it is half written."""
    low, high = POINTERS.get(pointer, SCRATCH)
    return [
        Op("in_sreg", ("r0",), takes=ANY_FLAGS),
        Op("cli", ()),
        Op("out_sph", (high,)),
        Op("out_sreg", ("r0",), comment="one more instruction runs before the first interrupt"),
        Op("out_spl", (low,)),
    ]


def reserve(size: int) -> list[Op]:
    """As above, for a frame of known size."""
    return _reserve(size, Op("enter", ()))


def _join_moves(ops: Sequence[Op], isa: Isa) -> list[Op]:
    """MOV of an even register followed by MOV of the odd ones above becomes MOVW, which may wait until a limb has left
    the register; but not where code goes two ways, which take as long as each other."""
    out: list[Op] = []
    behind: set[Arg] = set()  # labels
    ahead: set[Arg] = set()  # those that were jumped to
    for op in ops:
        insn = isa.insns.get(op.insn)
        if op.insn == "label":
            behind.update(op.args)
            ahead.difference_update(op.args)
        elif insn and (insn.control[:1] == ("branch",) or (ahead and insn.control[:1] == ("jump",))):
            ahead.update(set(op.args) - behind)
        first = None if ahead else _low_half(out, op, isa)
        if first is None:
            out.append(op)
            continue
        low = out.pop(first)
        if first < len(out):  # one that stored comes first now
            out[first] = replace(out[first], heading=low.heading)
        out.append(replace(op, insn="movw", args=low.args, heading="" if first < len(out) else low.heading))
    return out


def _low_half(out: Sequence[Op], op: Op, isa: Isa) -> int | None:
    """Where the MOV stands that makes a MOVW with one that follows."""
    pair = isa.classes["pair"].registers
    if op.insn != "mov" or op.heading:
        return None
    at = len(out) - 1
    while at >= 0 and out[at].insn.startswith(STORES) and not out[at].heading:
        at -= 1
    if at < 0 or out[at].insn != "mov" or not set(pair).issuperset(out[at].args):
        return None
    low, low_from = map(str, out[at].args)
    stored = any(low in each.args for each in out[at + 1 :])
    return at if op.args == (_above(low, isa), _above(low_from, isa)) and not stored else None


def _above(register: str, isa: Isa) -> str:
    return isa.registers[isa.registers.index(register) + 1]
