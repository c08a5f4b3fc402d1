"""The two halves of allocation on cores without long multiplication, each alone, and the price that searches use.

`replay` follows what they say: an event or an instruction that takes a value from where it is not is caught.
"""

from __future__ import annotations

import itertools
import random

import pytest
from sqgen.isa.arm_colour import LOW, Job, ascending, assign
from sqgen.isa.arm_fit import NONE, Fit, Fitted
from sqgen.isa.arm_values import Operation, Values, flat

HIGH = ("r12", "lr", "r8")
MANY = 12  # values that are live at once, more than there are low registers


def sums(count: int) -> Values:
    """So many numbers are loaded, each is added to the next one, then the sums in another order."""
    values = Values()
    pointer = values.new()
    limbs: list[int] = []
    for _ in range(count // 2):
        pointer, two = values.load(pointer, 2)
        limbs += two
    found = [values.one("add", *pair) for pair in itertools.pairwise(limbs)]
    while len(found) > 1:
        found = [values.one("eor", found[0], found[-1]), *found[1:-1]]
    values.store(pointer, found)
    return values


def fitted(values: Values, low: int, high: int, width: int = 6) -> tuple[list[Operation], Fitted | None]:
    operations = [op for unit in values.units for op in unit]
    return operations, Fit(operations, values.constants, [1], low, high).run(width)


def replay(operations: list[Operation], found: Fitted, low: int, high: int, constants: set[int]) -> int:
    """Cycles of the moves, each value taken from where it is."""
    lows, highs, stack, cost = {1}, set[int](), set[int](), 0
    for op, events in zip(operations, found.steps, strict=True):
        for what, value in events:
            match what:
                case "fetch":
                    assert value in highs | stack | constants
                    cost += 1 if value in highs | constants else 2
                    lows.add(value)
                case "high" | "spill":
                    assert value in lows
                    (highs if what == "high" else stack).add(value)
                    cost += 1 if what == "high" else 2
                case "double":
                    cost += 1
                    assert len(lows) < low
                    kept = value
                case "drop":
                    lows.remove(value)
                case "forget":
                    highs.remove(value)
                case "do":
                    assert lows >= set(op.reads)
                    doubled = ("double", value) in events
                    over = {value} if value != NONE and not doubled else set()
                    assert not doubled or kept == value
                    lows = (lows - over) | set(op.writes)
            assert len(highs) <= high
        rest = {value for later in operations[operations.index(op) + 1 :] for value in later.reads}
        lows &= rest
        assert len(lows) <= low
    return cost


@pytest.mark.parametrize(("low", "high"), [(8, 0), (8, 1), (8, 3), (6, 2), (5, 5)])
def test_every_value_is_where_it_is_taken_from_and_the_moves_are_counted(low: int, high: int) -> None:
    values = sums(MANY)
    operations, found = fitted(values, low, high)
    assert found
    assert replay(operations, found, low, high, set(values.constants)) == found.cost


def test_what_registers_hold_needs_no_moves() -> None:
    _, found = fitted(sums(2), 8, 0)
    assert found and found.cost == 0


def test_more_registers_never_cost_more() -> None:
    costs = [found.cost for high in range(4) if (found := fitted(sums(MANY), 8, high)[1])]
    assert costs == sorted(costs, reverse=True) and len(costs) == 4


def test_too_few_registers_are_refused() -> None:
    assert fitted(sums(4), 2, 5)[1] is None


def test_a_value_that_lives_on_is_copied_before_it_is_overwritten() -> None:
    """MULS writes over one of its operands; both are wanted again."""
    values = Values()
    pointer = values.new()
    pointer, (a, b) = values.load(pointer, 2)
    product = values.one("mul", a, b)
    values.store(pointer, [values.one("eor", values.one("eor", a, b), product)])
    operations, found = fitted(values, 8, 0)
    assert found and found.cost == 1  # the copy that MULS asks for; EOR may write over what dies
    assert sum(event.what == "double" for events in found.steps for event in events) == 1
    assert operations[1].tied == (0, 1)


def test_lists_are_stored_in_ascending_registers_or_in_several_goes() -> None:
    values = sums(MANY)
    operations, found = fitted(values, 8, 3)
    assert found
    ops, frame = assign(Job(operations, found, values.constants, {1: "r1"}, LOW, HIGH))
    assert frame == 0 or any(op.insn == "str_sp" for op in ops)
    for op in ops:
        if op.insn in ("ldm", "stm", "push", "pop"):
            registers = op.args[-1]
            assert isinstance(registers, tuple) and list(registers) == sorted(registers)


def test_the_same_code_gets_the_same_registers() -> None:
    def once() -> object:
        values = sums(MANY)
        operations, found = fitted(values, 8, 2)
        assert found
        return assign(Job(operations, found, values.constants, {1: "r1"}, LOW, HIGH[:2]))

    assert once() == once()


def test_registers_are_split_into_runs_that_ascend() -> None:
    assert ascending(["r1", "r3", "r2", "r5", "r4"]) == [("r1", "r3"), ("r2", "r5"), ("r4",)]
    assert ascending(["r0"]) == [("r0",)]


def test_the_price_of_a_search_is_what_the_beam_finds() -> None:
    """`arm_price` is the same beam on numbers: same cycles for random orders, widths and numbers of registers."""
    np = pytest.importorskip("numpy")
    from sqgen.isa.arm_moves import annealed  # noqa: PLC0415  (needs numpy)
    from sqgen.isa.arm_price import Table  # noqa: PLC0415

    values = sums(MANY)
    ops = flat(values.units)
    table = Table(ops, values.constants, values.count)
    rng = random.Random(1)
    head, tail = MANY // 2, len(ops)
    for low, high, width in [(8, 0, 1), (8, 1, 2), (7, 2, 4), (6, 3, 3)]:
        order = [*range(head), *rng.sample(range(head, head + MANY - 1), MANY - 1), *range(head + MANY - 1, tail)]
        operations = [ops[number] for number in order]
        found = Fit(operations, values.constants, [1], low, high).run(width)
        units = np.array(order)
        none, alone = np.zeros((tail, tail), np.bool_), np.array([[number, number] for number in range(tail)])
        cost, _ = annealed(
            units, units.copy(), none, alone, none[0], np.array([1]), table.ops, table.constant, table.used,
            table.hashes, low, high, width, 0, 1.0, 1.0, 1, np.array([1]),
        )  # fmt: skip
        assert found and cost == found.cost
