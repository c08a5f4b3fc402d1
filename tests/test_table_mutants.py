"""A table with one entry changed is seen to be wrong by some test: of a sample here, of all in `make mutate`."""

from __future__ import annotations

import mutate_tables
import pytest
from mutate_tables import NOBODY
from table_checks import CHECKS

EVERY = 40  # of the changes, one of so many


@pytest.mark.simulator
@pytest.mark.parametrize("name", CHECKS)
def test_a_sample_of_changes_is_seen(name: str) -> None:
    wanted = {mutation.name for mutation in list(mutate_tables.mutations(name))[::EVERY]}
    found = mutate_tables.run(name, lambda mutation: mutation.name in wanted)
    assert len(found) >= 10
    assert [mutation.name for mutation, seer in found if seer == NOBODY] == []


@pytest.mark.parametrize("name", CHECKS)
def test_every_instruction_is_changed_in_all_that_it_has(name: str) -> None:
    table = mutate_tables.raw(name)["insn"]
    fields = {(mutation.insn, mutation.field) for mutation in mutate_tables.mutations(name)}
    for insn, entry in table.items():
        assert {(insn, "encoding"), (insn, "cycles")} <= fields
        assert not entry.get("meaning") or (insn, "meaning") in fields


def test_what_nothing_checks_is_seen_by_nobody() -> None:
    table = mutate_tables.raw("avr")
    some = next(mutation for mutation in mutate_tables.mutations("avr") if mutation.field == "meaning")
    assert mutate_tables.seen_by(some, table, {}) in (NOBODY, mutate_tables.READER)
    found = {mutate_tables.seen_by(each, table, {}) for each in list(mutate_tables.mutations("avr"))[:40]}
    assert NOBODY in found
