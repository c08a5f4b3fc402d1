"""Who stays in a register on cores with UMAAL: never worse than the allocator's own rule, as good as all ways tried one
by one, and right."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from functools import cache

import pytest
from arm import arm
from sqgen.isa import arm as idioms
from sqgen.isa import arm_stays

from sqgen import kernel, methods
from sqgen.code import Builder, Function, Memory, Op
from sqgen.spec import spec

POINTERS = {"a": "r1"}


def function(seed: int, limbs: int, steps: int, registers: int) -> Function:
    """Products of limbs by chance, each of which leaves a word that one of the next two takes."""
    rng, build = random.Random(seed), Builder(arm())
    a = [build.limb(f"a{i}", Memory("a", i)) for i in range(limbs)]
    two = build.limb("two", Memory("#", 2))
    build.mark("lend_itself", "a", "r1")
    word = build.limb("w")
    build.emit("mov_i", word, 0)
    for _ in range(steps):
        left = rng.choice(a)
        build.emit("umull", word, build.limb("h"), left, rng.choice([*a, two]))
    build.memory("store", word, Memory("r", 0))
    ops = [op for op in build.ops if op.insn != "store" or op.reads]
    return Function("", tuple(ops), tuple(f"r{4 + number}" for number in range(registers)))


def least(made: Function, registers: int) -> int:
    """Cycles of the best of all ways, tried one by one: any limbs may leave or come before any operation."""
    uses = arm_stays.Uses(made.ops, frozenset("a"))
    steps = [at for at, op in enumerate(made.ops) if op.reads or op.writes]
    limbs = list(uses.wanted)

    @cache
    def further(step: int, here: frozenset, gone: bool) -> int:  # type: ignore[type-arg]
        if step == len(steps):
            return 0
        at = steps[step]
        op, found = made.ops[at], 1 << 20
        wanted = {limb for limb in op.reads if limb in uses.wanted}
        for size in range(len(limbs) + 1):
            for stay in map(frozenset, itertools.combinations(limbs, size)):
                came = [limb for limb in stay - here if limb.home.base == "a"]
                if not wanted <= stay or (came and gone) or (stay - here - wanted and not wanted - here):
                    continue
                behind = [limb for limb in stay if limb in uses.upcoming[at + 1]]
                cost = len(stay - here) + bool(came)
                for last in (gone, True) if came else (gone,):
                    before, after = uses.words[at]
                    if max(len(stay) + before, len(behind) + after) <= registers + last:
                        found = min(found, cost + further(step + 1, frozenset(behind), last))
        return found

    return further(0, frozenset(), False)


@pytest.mark.parametrize("seed", range(24))
def test_it_is_as_good_as_all_ways_tried_one_by_one(seed: int) -> None:
    """Or better: a register is free as soon as a limb that leaves was used for the last time before that."""
    registers = 4 + seed % 3
    made = function(seed, 4, 9, registers)
    ops = arm_stays.Stays(made.ops, POINTERS, registers).marked()
    best = least(made, registers)
    assert (ops is None) == (best >= 1 << 20)
    found = arm_stays.cycles(Function("", tuple(ops or made.ops), made.pool))
    assert found <= best or found == arm_stays.NEVER
    assert arm_stays.cycles(arm_stays.settled(made, POINTERS)) == min(found, arm_stays.cycles(made))


def test_it_is_better_where_it_matters() -> None:
    found = [(arm_stays.settled(made, POINTERS), made) for made in (function(seed, 4, 9, 5) for seed in range(24))]
    gains = [arm_stays.cycles(made) - arm_stays.cycles(settled) for settled, made in found]
    assert min(gains) == 0 and max(gains) >= 2


def test_marks_are_of_limbs_and_pointers_alone_and_where_words_do_not_fit_there_are_none() -> None:
    made = function(1, 4, 9, 4)
    marked = arm_stays.Stays(made.ops, POINTERS, 4).marked()
    assert marked
    new = [op for op in marked if op not in made.ops]
    assert {op.insn for op in new} == {"forget", "release"}
    assert [op for op in marked if op in made.ops] == list(made.ops)
    assert arm_stays.Stays(made.ops, POINTERS, 1).marked() is None


def test_a_limb_that_is_loaded_by_a_pointer_that_is_none_any_more_is_never_taken() -> None:
    made = function(1, 4, 9, 4)
    early = [*made.ops[:2], Op("release", ("r1",)), *made.ops[2:]]
    assert arm_stays.cycles(Function("", tuple(early), made.pool)) == arm_stays.NEVER


def orders(op: str, n: int) -> Sequence[dict[str, str]]:
    """By chance, from the one that a method begins with."""
    rng, method = random.Random(f"{op} {n}"), methods.method("free-order")
    given = {"order": " ".join(map(str, method.read(op, n, "")))}  # type: ignore[attr-defined]
    for _ in range(12):
        given = method.changed(n, given, rng)  # type: ignore[attr-defined]
    return [given]


@pytest.mark.parametrize(("op", "n"), [("sqr", 6), ("sqr", 8), ("sqr", 10), ("mul", 5), ("mul", 7)])
def test_kernels_are_proved_and_take_no_longer(op: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in [*orders(op, n), {}]:
        asked = spec("arm", 32 * n, op=op, core="cortex-m4", method="free-order", parameters=given)
        found = kernel.make(asked).price
        with monkeypatch.context() as patch:
            patch.setattr(idioms, "settled", lambda function, pointers: function)
            assert found.call <= kernel.make(asked).price.call


def test_registers_that_are_to_be_left_alone_are_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idioms, "settled", None)  # is not called
    made = kernel.make(spec("arm", 256, core="cortex-m4", method="free-order", reserve=("r7",)))
    assert "r7" not in made.compiled.written


@pytest.mark.parametrize(("op", "bits", "method"), [("mul", 256, "rows"), ("sqr", 448, "sbd")])
def test_a_pointer_is_lent_no_earlier_than_it_may_be_where_limbs_wait_nearby(op: str, bits: int, method: str) -> None:
    """It was given a limb from there before the last limb was loaded by it, in the same operation, and where limbs come
    from memory that had waited nearby before the pointer was lent; the proof refused that (`make matrix`)."""
    made = kernel.make(spec("arm", bits, op=op, core="cortex-m4", method=method, parameters={"fpu": "1"}))
    assert made.spec.core.name == "cortex-m4.fpu" and made.verdict.fault is None
