"""Registers: pairs side by side, pointers lent when they are done, few registers where few do."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from conftest import avr, core
from sqgen.isa.avr_registers import POINTERS

from sqgen import answers, frame, methods
from sqgen.allocate import allocate, meeting
from sqgen.code import SPILLED, Builder, Code, CodeError, Function, Label, Memory, Op
from sqgen.idioms import idioms
from sqgen.placing import Task, best_place, place
from sqgen.replay import verify
from sqgen.residence import PressureError, Residence, residence, residences, traffic

WIDE = {"ends": "10,14,22,30", "orders": "v,i,i,j", "stages": "9,13,21,32"}


def lowered(bits: int, method: str, **parameters: str) -> Function:
    code: Code = idioms(avr()).lower(methods.plan("sqr", bits // 8, method, parameters), avr(), core())
    return code.functions[0]


def task(function: Function) -> Task:
    return Task.of(residence(function), frame.prices(avr(), "call"), avr().pairs())


@pytest.mark.parametrize("bits", [64, 128, 256])
def test_a_pointer_is_lent_only_after_the_last_load_from_its_buffer(bits: int) -> None:
    ops = allocate(lowered(bits, "sweeps"), frame.prices(avr(), "call"), avr().pairs()).ops
    last = max(index for index, op in enumerate(ops) if op.insn == "load")
    own = [op.insn not in ("point", "lend") and str(op.args) != "('r30', 'r22')" for op in ops]
    used = [index for index, op in enumerate(ops) if own[index] and {"r30", "r31"} & set(map(str, op.args))]
    assert min(used, default=len(ops)) > last


def test_no_two_stays_share_a_register_at_one_time() -> None:
    function = lowered(192, "sweeps")
    found, where = residence(function), place(task(function)).where
    by_register: dict[int, list[tuple[int, int]]] = {}
    for stay, register in zip(found.stays, where, strict=True):
        by_register.setdefault(register, []).append((stay.birth, stay.death))
    for times in by_register.values():
        ordered = sorted(times)
        assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(ordered))


@pytest.mark.parametrize(("bits", "method"), [(128, "sweeps"), (192, "sweeps"), (192, "streamed-karatsuba")])
def test_places_by_search_overlap_nowhere_and_cost_less(bits: int, method: str) -> None:
    function = lowered(bits, method, **answers.parameters(avr(), method, "sqr", bits))
    which = task(function)
    first_come = place(which)
    placed = best_place(which)
    assert placed.cost < first_come.cost
    moved = {stay: (2 * time, to) for time, stay, to in placed.moves}
    times: dict[int, list[tuple[int, int]]] = {}
    for stay, register in enumerate(placed.where):
        until, to = moved.get(stay, (which.deaths[stay], register))
        times.setdefault(register, []).append((which.births[stay], until))
        if stay in moved:
            times.setdefault(to, []).append((until, which.deaths[stay]))
    for each in times.values():
        assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(sorted(each)))
    verify(function, allocate(function, frame.prices(avr(), "call"), avr().pairs()))


def test_a_wider_search_of_places_is_no_worse() -> None:
    which = task(lowered(192, "sweeps"))
    narrow, wide = (best_place(replace(which, width=width)) for width in (1, 64))
    assert wide.cost < narrow.cost <= place(which).cost


@pytest.mark.parametrize(("ends", "framed"), [("9,13,22,30", False), ("22,30", True)])
def test_there_is_a_frame_only_where_limbs_do_not_fit_without(ends: str, framed: bool) -> None:
    stages = ends.replace("30", "32")
    function = lowered(256, "streamed-karatsuba", **{"middle-ends": ends, "middle-stages": stages})
    found = residence(function)
    assert any(place.base == SPILLED for stores in found.stores for _, place in stores) == framed
    assert ({"r28", "r29"} <= set(found.opening)) != framed


def test_a_limb_is_stored_where_its_last_use_frees_its_register() -> None:
    """Not where another limb needs it."""
    found = residence(lowered(192, "streamed-karatsuba"))
    ends = [(2 * at, found.stays[stay].death) for at, stores in enumerate(found.stores) for stay, _ in stores]
    assert ends and all(death <= time for time, death in ends)


@pytest.mark.parametrize("bits", [24, 32, 48, 128])
def test_no_more_registers_are_saved_than_pays(bits: int) -> None:
    which = task(lowered(bits, "sbd"))
    assert best_place(which).cost <= place(which).cost
    if bits == 32:
        assert best_place(which).saves < place(which).saves


def test_what_fits_no_register_is_refused_by_name() -> None:
    with pytest.raises(PressureError, match=r"limbs are live in \d+ registers at block of columns"):
        allocate(lowered(256, "sweeps", ends="62", stages="64"), {}, {})


def test_a_register_that_holds_another_limb_is_found() -> None:
    function = lowered(64, "sweeps")
    done = allocate(function, frame.prices(avr(), "call"), avr().pairs())
    at = next(index for index, op in enumerate(done.ops) if op.insn == "mul")
    first, second = done.ops[at].args
    wrong = (*done.ops[:at], Op("mul", (second, second)), *done.ops[at + 1 :])
    assert first != second
    verify(function, done)
    with pytest.raises(CodeError):
        verify(function, Function(done.name, wrong, done.pool))


def nested(bits: int) -> Function:
    given = {"levels": "2", "parts": "nested", "recombine": "unrolled"}
    code: Code = idioms(avr()).lower(methods.plan("mul", bits // 8, "karatsuba", given), avr(), core())
    return code.functions[0]


@pytest.mark.parametrize(("bits", "pointers"), [(96, "YX"), (160, "YX"), (256, "YXZ")])
def test_a_register_that_is_a_pointer_for_a_while_holds_no_limb_then(bits: int, pointers: str) -> None:
    which = Task.of(residence(nested(bits)), frame.prices(avr(), "speed"), avr().pairs())
    expected = {register for pointer in pointers for register in POINTERS[pointer]}
    assert {which.registers[register] for register in which.gaps} >= expected
    placed = best_place(which)
    moved = {stay: (2 * time, to) for time, stay, to in placed.moves}
    for stay, register in enumerate(placed.where):
        until, to = moved.get(stay, (which.deaths[stay], register))
        assert not which.gone(register, which.births[stay], until)
        assert not which.gone(to, until, which.deaths[stay]) or stay not in moved


def test_there_is_room_beside_the_pointers_that_are_taken_back() -> None:
    """Else a limb would have to be in one of them."""
    function = nested(256)
    found = residence(function)
    for time in {begin for gaps in found.gaps.values() for begin, _ in gaps}:
        there = [r for r, opening in found.opening.items() if opening <= time and not gone(found, r, time)]
        assert sum(stay.birth <= time < stay.death for stay in found.stays) <= len(there)


def gone(found: Residence, register: str, time: int) -> bool:
    return any(begin <= time < end for begin, end in found.gaps.get(register, ()))


def test_of_two_ways_to_evict_the_one_with_fewer_lost_pairs_is_taken() -> None:
    function, prices, pairs = nested(224), frame.prices(avr(), "speed"), avr().pairs()
    ways = residences(function)
    assert len(ways) == 2 and traffic(ways[0]) == traffic(ways[1])
    costs = [best_place(Task.of(way, prices, pairs)).cost for way in ways]
    assert costs[0] != costs[1]
    accesses = sum(op.insn in ("load", "store", "move") for op in allocate(function, prices, pairs).ops)
    own = sum(op.insn in ("load", "store") for op in function.ops)
    best = ways[costs.index(min(costs))]
    moves = len(best_place(Task.of(best, prices, pairs)).moves)
    assert accesses == own + sum(map(len, (*best.loads, *best.stores))) + moves


def test_what_is_forgotten_is_saved_first_if_its_value_is_nowhere_else() -> None:
    build = Builder(avr())
    limb, room = build.limb("x"), Memory("r", 0)
    build.emit("ldi", limb, 7)
    build.mark("room", limb, room)
    build.mark("forget", limb)
    build.memory("store", limb, Memory("r", 1))
    done = allocate(Function("f", tuple(build.ops), ("r16", "r17")), {}, {})
    assert [(op.insn, op.args[1]) for op in done.ops if op.insn in ("store", "load")] == [
        ("store", room),
        ("load", room),
        ("store", Memory("r", 1)),
    ]


def test_what_arrives_in_a_register_that_is_not_there_for_limbs_is_moved_at_once() -> None:
    build = Builder(avr())
    limb = build.limb("x", place=meeting("g", "give", 0))
    build.mark("rcall", Label("g"), limb, writes=[limb])
    build.memory("store", limb, Memory("r", 0))
    function = Function("f", tuple(build.ops), ("r16",))
    done = allocate(function, {}, {}, {meeting("g", "give", 0): "r28"})
    assert [(op.insn, op.args) for op in done.ops[:2]] == [("rcall", (Label("g"), "r28")), ("move", ("r16", "r28"))]
    verify(function, done)
    there = allocate(function, {}, {}, {meeting("g", "give", 0): "r16"})
    assert [op.insn for op in there.ops] == ["rcall", "store"]


def test_what_has_no_home_waits_nearby_before_it_waits_in_memory_and_places_are_used_again() -> None:
    """One register, two places nearby: three limbs in turn, the first of which is gone when the third comes."""
    build = Builder(avr())
    build.mark("nearby", "near", 2)
    one, two, three = (build.limb(name) for name in ("one", "two", "three"))
    build.emit("ldi", one, 1)
    build.emit("ldi", two, 2)
    build.memory("store", one, Memory("r", 0))
    build.emit("ldi", three, 3)
    build.memory("store", two, Memory("r", 1))
    build.memory("store", three, Memory("r", 2))
    before = Function("", tuple(build.ops), ("r16",))
    after = allocate(before, {}, {})
    verify(before, after)
    moves = [(op.insn, str(op.args[1])) for op in after.ops if "near" in str(op.args[1])]
    assert moves == [
        ("store", "near[0]"),
        ("store", "near[1]"),
        ("load", "near[0]"),
        ("store", "near[0]"),
        *(("load", f"near[{place}]") for place in (1, 0)),
    ]
