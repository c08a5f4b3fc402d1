"""`tools/fuzz.py` without its fuzzer: damage is done where it is meant, nothing of it breaks a command, and a command
that broke would be noticed."""

from __future__ import annotations

import functools
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import fuzz
import fuzz_inputs
import fuzz_judge
import pytest
from fuzz_inputs import COMMANDS, DAMAGE, SEEDS, Input, damaged, lines, seeds

from sqgen.errors import Exit
from sqgen.tables import isa

TRIED = 12  # inputs of each instruction set and command

kept = functools.cache(seeds)


@pytest.mark.simulator
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", SEEDS)
def test_damaged_kernels_end_as_the_page_of_exit_codes_says(tmp_path: Path, name: str, command: str) -> None:
    rng, asked = random.Random(command), lines(name, command)
    for given in kept(name)[:2]:
        found = fuzz_judge.outcome(given, asked, tmp_path)
        assert (found.code, found.fault) == (Exit.OK, "")
    for _ in range(TRIED):
        given = damaged(rng.choice(kept(name)), command, rng, isa(name))
        assert fuzz_judge.outcome(given, asked, tmp_path).fault == ""


def test_an_input_is_what_was_packed_and_any_bytes_are_one() -> None:
    given = Input(3, b"{}", b"\x7fELF")
    assert Input.unpacked(given.packed()) == given
    for data in (b"", b"\1", b"\1\xff\xff\xff\xff", b"\1\xff\xff\xff\xff{"):
        Input.unpacked(data).packed()


@pytest.mark.parametrize("damage", list(dict.fromkeys(DAMAGE)))
def test_each_kind_of_damage_changes_files_and_is_done_to_any_bytes(damage: fuzz_inputs.Damage) -> None:
    whole = kept("avr")[3].object
    results = set()
    for seed in range(40):
        data = bytearray(whole)
        damage(data, random.Random(seed), isa("avr"))
        results.add(bytes(data))
        for rest in (b"", b"\0" * 60, whole[:40], bytes(data)[:300]):
            damage(bytearray(rest), random.Random(seed), isa("avr"))
    assert len(results - {whole}) > 15


def test_manifests_are_damaged_in_all_their_fields() -> None:
    text = kept("avr")[0].manifest
    before = json.loads(text)
    seen = set()
    for seed in range(600):
        after = json.loads(fuzz_inputs.said(text, random.Random(seed)))
        seen |= {name for name in before if name not in after or after[name] != before[name]}
    assert seen == set(before)


def writes(folder: Path) -> None:
    (folder / "left").touch()
    sys.exit(Exit.FILE)


def runs_on(folder: Path) -> None:
    while True:
        time.sleep(0.01)


def printing(text: str, code: int) -> Callable[[Path], None]:
    def end(folder: Path) -> None:
        print(text, end="", file=sys.stdout if code == 0 else sys.stderr)
        sys.exit(code)

    return end


def broken(folder: Path) -> None:
    raise ValueError("a bug")


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (printing("a table\n", 0), ""),
        (printing("still proving 'k.o'; Ctrl-C stops it\nError: no\n", 4), ""),
        (printing("", 0), "prints nothing"),
        (printing("Error: one\nError: two\n", 5), "no one line"),
        (printing("no\n", 5), "no one line"),
        (printing("Error: " + "a" * 3000 + "\n", 5), "no one line"),
        (printing("Error: no\n", 1), "exit code 1"),
        (broken, "ValueError: a bug"),
        (runs_on, "no end in"),
        (writes, "no one line"),
    ],
)
def test_a_command_that_ends_badly_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[[Path], None], says: str
) -> None:
    def main(words: Sequence[str]) -> None:
        command(tmp_path)

    monkeypatch.setattr(fuzz_judge, "main", main)
    monkeypatch.setattr(fuzz_judge, "LONGEST", 0.3)
    fault = fuzz_judge.outcome(Input(0, b"", b""), ["verify k.json k.o"], tmp_path).fault
    assert says in fault and bool(says) == bool(fault)


def test_what_takes_long_or_much_says_a_word() -> None:
    assert fuzz_judge.unsaid("", 1.0, 100) == ""
    assert "5.0 s" in fuzz_judge.unsaid("", 5.0, 100)
    assert "900 MB" in fuzz_judge.unsaid("", 1.0, 900)
    assert fuzz_judge.unsaid("still proving 'k.o'; Ctrl-C stops it\n", 5.0, 900) == ""


def test_a_wrong_kernel_that_was_accepted_is_noticed(tmp_path: Path) -> None:
    """As the first one would be if another operation were asked for."""
    (tmp_path / "k.o").write_bytes(kept("avr")[0].object)
    line = lines("avr", "prove")[0]
    assert "--op sqr" in line and fuzz_judge.refuted(line, tmp_path) == ""
    assert "wrong for" in fuzz_judge.refuted(line.replace("--op sqr", "--op mul"), tmp_path)


def test_what_was_tried_is_kept_of_every_instruction_set_and_command_and_nothing_was_wrong() -> None:
    found = json.loads(fuzz.STATE.read_text())
    assert set(found) == {f"{name}/{command}" for name in SEEDS for command in COMMANDS}
    for each in found.values():
        assert each["tried"] == sum(each["codes"].values()) > 100 and each["wrong"] == []
        assert {int(code) for code in each["codes"]} <= set(Exit)
    assert fuzz.text(found) == fuzz.STATE.read_text()
