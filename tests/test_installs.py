"""The package is the same from a wheel, from a source archive and from a checkout, also where none may write."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from commandline import ROOT
from test_determinism import expected, outputs
from test_faults import ORDINARY

from sqgen import __version__

LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "out", "dist", "*.egg-info", "__pycache__", ".*_cache")
HOOKS = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def built(what: str, tree: Path, target: Path) -> Path:
    """`sdist` or `wheel` of a source tree, by its build backend."""
    command = [sys.executable, "-c", HOOKS, f"build_{what}", str(target)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return target / done.stdout.splitlines()[-1]


def unpacked(wheel: Path, folder: Path) -> Path:
    """What pip makes of a wheel of pure Python, but for the program's script."""
    with zipfile.ZipFile(wheel) as stream:
        stream.extractall(folder)
    return folder


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Path]]:
    """Where the package lies, by how it came there."""
    top = tmp_path_factory.mktemp("installs")
    shutil.copytree(ROOT, top / "checkout", ignore=LEFT_OUT)
    archive = built("sdist", top / "checkout", top)
    with tarfile.open(archive) as stream:
        stream.extractall(top / "unpacked", filter="data")
    (source,) = (top / "unpacked").iterdir()
    wheels = {name: top / name for name in ("from checkout", "from sdist")}
    for folder in wheels.values():
        folder.mkdir()
    yield {
        "checkout": top / "checkout",
        "sdist": source,
        "wheel": unpacked(built("wheel", top / "checkout", wheels["from checkout"]), top / "wheel"),
        "wheel of the sdist": unpacked(built("wheel", source, wheels["from sdist"]), top / "wheel of the sdist"),
    }
    for path in (top, *top.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)


KINDS = pytest.mark.parametrize("kind", ["checkout", "sdist", "wheel", "wheel of the sdist"])


@KINDS
def test_the_package_is_the_same_wherever_it_comes_from(places: dict[str, Path], tmp_path: Path, kind: str) -> None:
    assert outputs(sys.executable, folder=tmp_path, place=places[kind]) == expected()


@KINDS
def test_a_package_that_may_not_be_written_to_works(places: dict[str, Path], tmp_path: Path, kind: str) -> None:
    for path in (places[kind], *places[kind].rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    attempt = [*ORDINARY, sys.executable, "-c", f"open({str(places[kind] / 'new')!r}, 'w')"]
    assert b"PermissionError" in subprocess.run(attempt, capture_output=True, check=False).stderr
    assert outputs(*ORDINARY, sys.executable, folder=tmp_path, place=places[kind]) == expected()


def test_wheels_hold_the_same_files_and_nothing_of_the_tests(places: dict[str, Path]) -> None:
    names = [
        {str(path.relative_to(places[kind])) for path in places[kind].rglob("*") if path.is_file()}
        for kind in ("wheel", "wheel of the sdist")
    ]
    names = [{name for name in each if "__pycache__" not in name} for each in names]
    assert names[0] == names[1]
    assert {"sqgen/__main__.py", "sqgen/isa/avr.toml", "sqgen/templates/arm/kernel.S.j2"} <= names[0]
    assert {name.split("/")[0] for name in names[0]} == {"sqgen", f"sqgen-{__version__}.dist-info"}
