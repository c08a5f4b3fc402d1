"""Changes of code are what they are called, none that is wrong is accepted on any core, and the tool says so."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import mutate
import pytest
from arm import arm
from conftest import avr, compiled, contract, core
from msp430 import msp430
from mutate import BOTH, ONE, REFUSED, SIZES, WRONG

from sqgen import mutants
from sqgen.encode import Instr, assemble, disassemble
from sqgen.interpret import broken_promise
from sqgen.kernel import make
from sqgen.mutants import DOUBLED, DROPPED, KINDS, LIST, ORDER, SWAPPED, TO_CARRY, TO_PLAIN
from sqgen.spec import spec
from sqgen.table import Isa

SAMPLE, PAIRS = 16, 4  # changes of one kernel in a normal run
EVERY = 8  # of the kernels, one of so many
LARGE, FEWER = 12, 6  # above so many limbs, of changes one of so many


@pytest.mark.parametrize("name", [name for _, name in SIZES])
def test_no_wrong_change_of_a_sample_is_accepted(name: str) -> None:
    some = [*list(mutate.subjects([name], sample=SAMPLE))[::EVERY], *mutate.in_forms([name], SAMPLE)]
    found = [tallied(subject, FEWER if subject.contract.limbs > LARGE else 1) for subject in some]
    assert found
    assert [line for tally in found for line in tally.wrong] == []
    total = sum((Counter(counts) for tally in found for counts in tally.counts.values()), Counter[str]())
    assert total[REFUSED] > 0.6 * total.total() > 0  # of longer operands half of the products are of zeros
    assert total[BOTH] > 0


def tallied(subject: mutate.Subject, one_of: int) -> mutate.Tally:
    return mutate.tally(replace(subject, sample=SAMPLE // one_of), PAIRS // one_of)


def test_an_accepted_change_that_is_wrong_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Believer:
        proved = True

    monkeypatch.setattr(mutate, "prove", lambda *_, **__: Believer)
    subject = next(mutate.subjects(["cortex-m4"], sample=30))
    tally = mutate.tally(subject, 2)
    assert len(tally.wrong) > 20 and sum(counts.get(WRONG, 0) for counts in tally.counts.values()) == len(tally.wrong)
    assert tally.wrong[0].startswith("cortex-m4/") and " -> " in tally.wrong[0]


def test_the_table_counts_each_change_once_in_each_of_its_lines() -> None:
    counts = {"dropped": {REFUSED: 7, BOTH: 2}, "pairs": {ONE: 1}}
    shown = mutate.table({"cortex-m4/sqr/a/64": {"counts": counts}, "msp430/sqr/a/64": {"counts": counts}})
    rows = [line.split() for line in shown.splitlines()]
    assert ["cortex-m4,", "dropped", "9", "7", "2", "0", "0"] in rows
    assert ["all,", "all", "20", "14", "4", "2", "0"] in rows


def test_what_was_found_counts_for_the_same_code_provers_and_table_only(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = next(mutate.subjects(["cortex-m4"]))
    found = {subject.name: {**mutate.basis(subject), "counts": {}}}
    assert mutate.is_known(subject, found) and not mutate.is_known(subject, {})
    for key in ("sha256", "prover", "second", "table"):
        assert not mutate.is_known(subject, {subject.name: {**found[subject.name], key: "another"}})
    monkeypatch.setattr(mutate, "prover", lambda which=mutate.FIRST: "another")
    assert not mutate.is_known(subject, found)


def test_where_only_the_second_proof_is_another_one_it_alone_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = next(mutate.subjects(["atmega128"], sample=10 * SAMPLE))
    done = mutate.tally(subject, PAIRS)
    assert len(done.accepted) == sum(counts.get(BOTH, 0) + counts.get(ONE, 0) for counts in done.counts.values()) > 0
    entry = {**mutate.basis(subject), **{key: value for key, value in vars(done).items() if key != "name"}}
    before = mutate.half_known(subject, {subject.name: {**entry, "second": "another"}})
    assert before == done
    for key in ("sha256", "prover", "table"):
        assert mutate.half_known(subject, {subject.name: {**entry, key: "another"}}) is None
    assert mutate.half_known(subject, {subject.name: mutate.basis(subject)}) is None  # nobody kept which they are

    class Doubter:
        proved = False

    monkeypatch.setattr(mutate, "prove", lambda *_, **__: pytest.fail("the first proof is not asked"))
    assert mutate.again(subject, PAIRS, done) == done
    monkeypatch.setattr(mutate, "prove_forward", lambda *_, **__: Doubter)
    doubted = mutate.again(subject, PAIRS, done).counts
    assert sum(counts.get(ONE, 0) for counts in doubted.values()) == len(done.accepted)
    assert not any(counts.get(BOTH) for counts in doubted.values())


def test_what_was_found_is_kept_in_one_order() -> None:
    one, two = ({"sha256": name, "counts": {}, "wrong": []} for name in "ab")
    assert mutate.text({"b": two, "a": one}) == mutate.text({"a": one, "b": two})


def code(isa: Isa, *lines: tuple[str | int | tuple[str, ...], ...]) -> bytes:
    return assemble([Instr(isa.insns[str(name)], tuple(operands)) for name, *operands in lines])


def kinds(isa: Isa, image: bytes) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for change in mutants.changes(isa, image):
        assert change.apply(image) != image
        found.setdefault(change.how, []).append("; ".join(instr.text() for instr in change.new))
    return found


def test_changes_of_a_few_instructions() -> None:
    found = kinds(avr(), code(avr(), ("add", "r2", "r3"), ("adc", "r4", "r5"), ("ret",)))
    assert "adc r2, r3" in found[TO_CARRY] and "add r4, r5" in found[TO_PLAIN]
    assert found[ORDER] == ["add r3, r2", "adc r5, r4"]
    assert found[DROPPED] == ["", "", ""] and found[DOUBLED][0] == "add r2, r3; add r2, r3"
    assert found[SWAPPED] == ["adc r4, r5; add r2, r3", "ret; adc r4, r5"]
    assert set(found) <= set(KINDS)


def test_lists_lose_and_gain_a_register() -> None:
    assert kinds(arm(), code(arm(), ("push", ("r4", "r6"))))[LIST] == ["push {r6}", "push {r4}", "push {r4, r6, r7}"]


def test_code_that_jumps_stays_where_it_is() -> None:
    image = code(msp430(), ("mov_i", "r5", 300), ("jne", -6), ("ret",))
    for change in mutants.changes(msp430(), image):
        assert len(change.apply(image)) == len(image)
    assert kinds(msp430(), image)[DROPPED][0] == "nop; nop" and DOUBLED not in kinds(msp430(), image)


def test_pairs_are_the_same_ones_every_time_and_do_not_touch() -> None:
    image = compiled("sqr", 2, "sbd").image
    found = list(mutants.pairs(avr(), image, 50, "seed"))
    assert found == list(mutants.pairs(avr(), image, 50, "seed")) != list(mutants.pairs(avr(), image, 50, "other"))
    assert len(found) == 50 and all(first.last <= second.first for second, first in found)
    assert list(mutants.pairs(avr(), code(avr(), ("ret",)), 5, "seed")) == []


def test_runs_see_what_the_contract_forbids() -> None:
    """Each of the checks that judge an accepted change fires on code that was broken for it."""
    image, what = compiled("sqr", 2, "sbd").image, contract("sqr", 2)
    assert broken_promise(image, what, core(), 20) == ""
    ret = code(avr(), ("ret",))
    assert image.endswith(ret)

    def after(*lines: tuple[str | int, ...]) -> str:
        return broken_promise(image[: -len(ret)] + code(avr(), *lines) + ret, what, core(), 20)

    assert after(("inc", "r3")) == "r3 is not kept"
    assert after(("inc", "r1")) == "r1 is not kept"
    assert after(("push", "r2")) == "SPL is not kept"
    assert after(("cli",)) == "I is not kept"
    assert "memory beside" in after(("ldi", "r30", 1), ("ldi", "r31", 0), ("st_zp", "r2"))
    assert broken_promise(image[:-2], what, core(), 1) == "the code runs past its end"
    assert "result is wrong" in broken_promise(ret, what, core(), 5)


def test_functions_find_limbs_in_registers_where_they_are_to_be_attacked_for_it() -> None:
    forms = [(key, form) for key, some in mutate.FORMS.items() for form in some if "signs" not in form[3]]
    assert forms
    for (name, which), (op, method, bits, given) in forms:
        found = make(spec(name, bits, op=op, method=method, core=which, parameters=given)).compiled
        ops = [each for function in found.code.functions for each in function.ops]
        assert any(each.insn == "accept" and each.args for each in ops), (method, bits)


def test_an_arm_that_takes_longer_is_wrong_though_its_product_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    (subject, *_) = mutate.in_forms(["atmega128"])
    at = next(at for at, instr in disassemble(avr(), subject.image) if instr.insn.name == "nop")
    slow = subject.image[:at] + assemble([Instr(avr().insns["rjmp"], (0,))]) + subject.image[at + 2 :]
    assert subject.branches and subject.outcome(slow) == REFUSED
    monkeypatch.setattr(mutate, "prove", lambda *_, **__: SimpleNamespace(proved=True))
    assert subject.outcome(slow) == WRONG and subject.outcome(subject.image) == BOTH
