"""Registers: pairs side by side, pointers lent when they are done, hints followed, few registers where few do."""

from __future__ import annotations

import itertools

import pytest
from conftest import avr

from sqgen import frame, methods
from sqgen.allocate import Task, allocate, best_place, place, verify
from sqgen.code import Code, CodeError, Function, Op
from sqgen.idioms import idioms
from sqgen.residence import PressureError, residence

WIDE = {"ends": "10,14,22,30", "orders": "v,i,i,j", "stages": "9,13,21,32"}


def lowered(bits: int, method: str, **parameters: str) -> Function:
    code: Code = idioms(avr()).lower(methods.plan("sqr", bits // 8, method, parameters), avr())
    return code.functions[0]


def task(function: Function) -> Task:
    return Task.of(residence(function), frame.prices(avr()), avr().pairs())


@pytest.mark.parametrize("bits", [64, 128, 256])
def test_a_pointer_is_lent_only_after_the_last_load_from_its_buffer(bits: int) -> None:
    ops = allocate(lowered(bits, "sweeps"), frame.prices(avr()), avr().pairs()).ops
    last = max(index for index, op in enumerate(ops) if op.insn == "load")
    own = [op.insn not in ("point", "lend") and str(op.args) != "('r30', 'r22')" for op in ops]
    used = [index for index, op in enumerate(ops) if own[index] and {"r30", "r31"} & set(map(str, op.args))]
    assert min(used, default=len(ops)) > last


def test_no_two_stays_share_a_register_at_one_time() -> None:
    function = lowered(192, "sweeps")
    found, where = residence(function), place(task(function), {}).where
    by_register: dict[int, list[tuple[int, int]]] = {}
    for stay, register in zip(found.stays, where, strict=True):
        by_register.setdefault(register, []).append((stay.birth, stay.death))
    for times in by_register.values():
        ordered = sorted(times)
        assert all(earlier[1] <= later[0] for earlier, later in itertools.pairwise(ordered))


def test_a_hint_is_followed_where_its_register_is_free() -> None:
    which = task(lowered(128, "sweeps", **WIDE))
    single = next(stay for stay, mate in enumerate(which.mates) if mate < 0 and stay not in which.mates)
    for register in range(5, 9):
        assert place(which, {single: register}).where[single] == register


@pytest.mark.parametrize("bits", [24, 32, 48, 128])
def test_no_more_registers_are_saved_than_pays(bits: int) -> None:
    which = task(lowered(bits, "sbd"))
    assert best_place(which, {}).cost <= place(which, {}).cost
    if bits == 32:
        assert best_place(which, {}).saves < place(which, {}).saves


def test_what_fits_no_register_is_refused_by_name() -> None:
    with pytest.raises(PressureError, match=r"limbs are live in \d+ registers at block of columns"):
        allocate(lowered(256, "sweeps", ends="62", stages="64"), {}, {})


def test_a_register_that_holds_another_limb_is_found() -> None:
    function = lowered(64, "sweeps")
    done = allocate(function, frame.prices(avr()), avr().pairs())
    at = next(index for index, op in enumerate(done.ops) if op.insn == "mul")
    first, second = done.ops[at].args
    wrong = (*done.ops[:at], Op("mul", (second, second)), *done.ops[at + 1 :])
    assert first != second
    verify(function, done)
    with pytest.raises(CodeError):
        verify(function, Function(done.name, wrong, done.pool))
