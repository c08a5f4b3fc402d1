"""Registers: pairs side by side, pointers lent when they are done, few registers where few do."""

from __future__ import annotations

import itertools

import pytest
from conftest import avr, core

from sqgen import answers, frame, methods
from sqgen.allocate import Task, allocate, best_place, place, verify
from sqgen.code import SPILLED, Code, CodeError, Function, Op
from sqgen.idioms import idioms
from sqgen.residence import PressureError, residence

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
    narrow, wide = best_place(which, width=1), best_place(which, width=64)
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
