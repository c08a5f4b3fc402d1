"""Damaged kernels for `sqgen prove`, `verify` and `check`, by the ten thousand, led by what code they reach (atheris).

python tools/fuzz.py                               each instruction set and command for a minute
python tools/fuzz.py --isa avr --command prove --seconds 600

Whatever they are given, they end with a documented code, one line on stderr, no traceback, and say a word where they
take more than two seconds or 500 MB; a kernel that `prove` accepts is right in runs.  Inputs that reach new code are
kept in build/fuzz, and the next run begins with them; what was tried goes to docs/fuzz.json, what is wrong to
build/fuzz/found, and the command fails.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import click
from fuzz_inputs import COMMANDS, SEEDS, Input, damaged, lines, seeds

from sqgen import files
from sqgen.errors import Exit
from sqgen.report import plain_table
from sqgen.tables import isa

TOP = Path(__file__).resolve().parent.parent
STATE = TOP / "docs" / "fuzz.json"
FOLDER = TOP / "build" / "fuzz"
LARGEST = 1 << 16  # bytes of an input
OWN = 0.1  # share of the damage that is left to the fuzzer


@dataclass
class Tally:
    """What became of the inputs: how many, how they ended, how long and how much at most, and what was wrong."""

    seconds: int
    codes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    megabytes: int = 0
    wrong: dict[str, str] = field(default_factory=dict)

    def entry(self) -> dict[str, Any]:
        """For the file; seconds."""
        return {
            "tried": self.codes.total(),
            "codes": dict(sorted(self.codes.items(), key=lambda item: int(item[0]))),
            "seconds": self.seconds,
            "slowest": round(self.slowest, 1),
            "megabytes": self.megabytes,
            "wrong": sorted(self.wrong),
        }


def job(name: str, command: str, seconds: int) -> NoReturn:
    """Fuzz one command with kernels of one instruction set, in this process, which ends with it."""
    import atheris  # noqa: PLC0415  (an extra)

    with atheris.instrument_imports(include=["sqgen"]):
        import fuzz_judge  # noqa: PLC0415

        import sqgen.verify  # noqa: F401, PLC0415
    which, asked = isa(name), lines(name, command)
    corpus = FOLDER / f"{name}-{command}"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(name)):
        (corpus / f"seed{number}").write_bytes(seed.packed())
    tally, end = Tally(seconds), time.monotonic() + seconds
    place = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))

    def one(data: bytes) -> None:
        found = fuzz_judge.outcome(Input.unpacked(data), asked, place)
        tally.codes[str(found.code)] += 1
        tally.slowest, tally.megabytes = max(tally.slowest, found.seconds), max(tally.megabytes, found.megabytes)
        if found.fault and found.fault not in tally.wrong:
            tally.wrong[found.fault] = keep(name, command, data)
        if time.monotonic() > end:
            print(json.dumps({**tally.entry(), "found": tally.wrong}), flush=True)
            os._exit(0)

    def mutate(data: bytes, largest: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < OWN:
            return bytes(atheris.Mutate(data, largest))
        return damaged(Input.unpacked(data), command, rng, which).packed()[:largest]

    options = [f"-max_len={LARGEST}", "-len_control=0", "-timeout=0", "-rss_limit_mb=0", "-verbosity=0"]
    options.append("-report_slow_units=100000")
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=mutate)
    atheris.Fuzz()
    raise AssertionError("the fuzzer has ended before its time")


def keep(name: str, command: str, data: bytes) -> str:
    """Where an input is kept with which something was wrong."""
    given = Input.unpacked(data)
    folder = FOLDER / "found" / f"{name}-{command}-{hashlib.sha256(data).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    asked = lines(name, command)
    (folder / "k.o").write_bytes(given.object)
    (folder / "k.json").write_bytes(given.manifest)
    (folder / "line").write_text(f"sqgen {asked[given.line % len(asked)]}\n")
    return str(folder.relative_to(TOP))


def text(found: dict[str, Any]) -> str:
    """A line for each instruction set and command."""
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(found[key])}" for key in sorted(found)) + "\n}\n"


def table(found: dict[str, Any]) -> str:
    """What was tried, and how it ended."""
    codes = [str(code.value) for code in Exit if any(str(code.value) in each["codes"] for each in found.values())]
    rows = []
    for key, each in sorted(found.items()):
        figures = each["tried"], *(each["codes"].get(code, 0) for code in codes), each["slowest"], each["megabytes"]
        rows.append((key, *map(str, figures)))
    return plain_table(("inputs", "tried", *(f"exit {code}" for code in codes), "slowest, s", "most, MB"), rows)


@click.command()
@click.option("--isa", "names", multiple=True, default=list(SEEDS), help="Only these instruction sets.")
@click.option("--command", "commands", multiple=True, default=COMMANDS, help="Only these commands.")
@click.option("--seconds", default=60, show_default=True, help="For each of both.")
@click.option("--alone", is_flag=True, hidden=True)
def main(*, names: Sequence[str], commands: Sequence[str], seconds: int, alone: bool) -> None:
    """Give damaged kernels to the commands that read files."""
    if alone:
        job(names[0], commands[0], seconds)
    found = json.loads(STATE.read_text()) if STATE.exists() else {}
    wrong: list[str] = []
    for name in names:
        for command in commands:
            asked = [f"--isa={name}", f"--command={command}", f"--seconds={seconds}", "--alone"]
            done = subprocess.run([sys.executable, __file__, *asked], stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise click.ClickException(f"the fuzzer of {name}/{command} ended with {done.returncode}")
            entry = json.loads(done.stdout.splitlines()[-1])
            wrong += [f"{place}: {what}" for what, place in entry.pop("found").items()]
            found[f"{name}/{command}"] = entry
            files.write_all(STATE.parent, {STATE.name: text(found)})
    click.echo(table(found), nl=False)
    if wrong:
        raise click.ClickException("these should not be:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
