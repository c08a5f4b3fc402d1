"""Files and folders of any name, in any locale."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from commandline import SQGEN, built, shell
from fuzz_judge import complaints

NAMES = ["a folder", "Größe", "数", "a\nline", "-o", "'\"$(touch x)`", "%s {0} {{ x }}", "*", "a;b", "\udcff"]
PLAIN = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}  # no character beyond ASCII
LOCALES = pytest.mark.parametrize("locale", [{}, PLAIN], ids=["UTF-8", "ASCII"])


def called(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The installed program, whose words may hold any bytes."""
    return subprocess.run(
        [SQGEN, *map(os.fsencode, words)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.many
@LOCALES
@pytest.mark.parametrize("name", NAMES)
def test_every_command_takes_files_of_any_name(tmp_path: Path, name: str, locale: dict[str, str]) -> None:
    made = called(tmp_path, "--isa", "avr", "--bits", "32", "--symbol", "k", "--out", name, **locale)
    assert (made.returncode, made.stderr) == (0, b"")
    folder = tmp_path / name
    assert {path.name for path in folder.iterdir()} == {"k.S", "k.h", "k.json"}
    picture = called(tmp_path, "show", "--method", "sbd", "--bits", "32", "--svg", f"./{name}/{name}.svg", **locale)
    assert (picture.returncode, picture.stderr) == (0, b"") and (folder / f"{name}.svg").is_file()
    built((folder / "k.S").read_text(), tmp_path / "k.o")
    shutil.move(tmp_path / "k.o", folder / f"{name}.o")
    shutil.copy(folder / "k.json", folder / f"{name}.json")
    proof = called(tmp_path, "prove", f"./{name}/{name}.o", "--isa", "avr", "--bits", "32", **locale)
    assert (proof.returncode, proof.stderr) == (0, b"")
    nothing = called(tmp_path, "prove", f"./{name}/no.o", "--isa", "avr", "--bits", "32", **locale)
    assert nothing.returncode == 5 and nothing.stderr.count(b"\n") == 1 and b"Traceback" not in nothing.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.many
@LOCALES
@pytest.mark.simulator
@pytest.mark.parametrize("name", ["a folder", "Größe", "-o", "a;b"])
@pytest.mark.parametrize("isa", ["avr", "arm", "msp430"])
def test_check_takes_a_source_of_any_name_in_a_temporary_folder_of_any_name(
    tmp_path: Path, isa: str, name: str, locale: dict[str, str]
) -> None:
    folder = tmp_path / name
    (folder / "temporary files").mkdir(parents=True)
    made = shell(f"--isa {isa} --bits 32 --symbol k --json --out .", cwd=folder)
    (folder / "k.S").rename(folder / f"{name}.S")
    (folder / "k.json").rename(folder / f"{name}.json")
    temporary = {"TMPDIR": str(folder / "temporary files")}
    done = called(tmp_path, "check", f"./{name}/{name}.S", "--runs", "6", **locale, **temporary)
    assert (done.returncode, complaints(done.stderr.decode())) == (0, "")
    assert json.loads(made.stdout)["symbol"].encode() in done.stdout
    assert not list((folder / "temporary files").iterdir())
