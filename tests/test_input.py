"""Nothing that a user, a file or a folder says is executed, and none of it becomes a line of what is written."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commandline import ROOT, SMALL, STEM, built, shell, source, tree
from fuzz_judge import complaints
from hostile import VALUES, tried
from hypothesis import given, settings
from hypothesis import strategies as st

from sqgen import methods
from sqgen.answers import FIGURES
from sqgen.errors import Exit, UserError
from sqgen.methods import names, values

# ---- texts that would be code where they are printed ----------------------------------------------------------------

PAYLOADS = [
    "*/ .byte 0 /*",
    "x\n.byte 0",
    "x\r.byte 0",
    "x\u2028.byte 0",
    "x\x85.byte 0",
    "x\v.byte 0",
    "x\\\n.byte 0",
    "x; .byte 0",
    '", "proof": "',
    "{{ 7 * 7 }}",
    "{% raw %}",
    "%s%n",
    "$(touch x)",
    "`touch x`",
    "#include <x>",
    ")\nexecute_process(COMMAND touch x)",
    "<script>",
    "??/\n.byte 0",
    "x\x00",
    "../../x",
]
OPTIONS = [
    *(f"{SMALL} {option}" for option in ("--symbol", "--core", "--op", "--goal", "--method", "--reserve", "--syntax")),
    *("--bits 64 --isa", "--isa avr --bits", f"{SMALL} --max-bytes", f"{SMALL} --search"),
]
PAIRS = [
    ("--isa avr --bits 16 --method free-order", "order=0.0 {}"),
    ("--isa avr --bits 64 --method sbd", "block={}"),
    ("--isa avr --bits 64 --method sbd", "block=4,{}"),
    ("--isa avr --bits 64 --method sbd", "sums={}"),
    ("--isa avr --bits 64 --method sbd", "{}=4"),
    ("--isa msp430 --bits 64", "mpy_base={}"),
    ("--isa msp430 --bits 64", "mpy_base=0x4c0{}"),
    ("--isa msp430 --bits 64", "interrupts={}"),
    ("--isa arm --bits 64", "fpu={}"),
]


@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
def test_no_text_of_an_option_becomes_code(refused: Callable[..., str], payload: str) -> None:
    for option in OPTIONS:
        refused(Exit.USAGE, option, payload)
    for line, pair in PAIRS:
        refused(Exit.USAGE, f"{line} -p", pair.format(payload))
        refused(Exit.USAGE, f"show {line.partition('--method')[1]} sbd --bits 64 -p", pair.format(payload))


@given(
    st.text(max_size=12), st.sampled_from([(name, p.name) for name in names() for p in methods.method(name).PARAMETERS])
)
@settings(max_examples=400, deadline=None)
def test_a_value_that_is_taken_is_plain(text: str, which: tuple[str, str]) -> None:
    name, parameter = which
    tried(VALUES)
    try:
        values(name, {parameter: text}, 16)
    except UserError:
        return
    assert re.fullmatch("[A-Za-z0-9 .,+=_-]*", text, re.ASCII)


def test_all_answers_are_plain() -> None:
    for path in (ROOT / "schedules/answers").glob("*.toml"):
        for row in _rows(tomllib.loads(path.read_text())):
            assert all(methods.PLAIN.fullmatch(str(row[key])) for key in row if key not in FIGURES)


def _rows(found: object) -> Iterator[dict[str, object]]:
    """The rows of a file of answers."""
    if isinstance(found, dict) and "call" in found:
        yield found
    elif isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            yield from _rows(each)


# ---- what is executed and opened ------------------------------------------------------------------------------------

FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "breakpoint", "input"}
FORBIDDEN_MODULES = {
    "pickle",
    "marshal",
    "shelve",
    "dill",
    "socket",
    "urllib",
    "http",
    "ftplib",
    "smtplib",
    "ssl",
    "yaml",
}
FORBIDDEN_MEMBERS = {"system", "popen", "mktemp", "execv", "execve", "execvp", "spawnv", "literal_eval", "from_string"}


@pytest.mark.parametrize("folder", ["sqgen", "isa", "schedules", "papers", "templates"])
def test_no_source_evaluates_unpickles_starts_a_shell_or_talks_to_a_network(folder: str) -> None:
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            words: set[str] = set()
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                words = {node.func.id} & FORBIDDEN_CALLS
            elif isinstance(node, ast.Import | ast.ImportFrom):
                modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
                words = {module.split(".")[0] for module in modules} & FORBIDDEN_MODULES
            elif isinstance(node, ast.Attribute):
                words = {node.attr} & FORBIDDEN_MEMBERS
            elif isinstance(node, ast.keyword) and node.arg == "shell":
                words = {"shell="}
            found += [f"{path.name}:{getattr(node, 'lineno', '?')} {word}" for word in words]
    assert found == []


WATCHED = """
import json, sys
seen = []
FORBIDDEN = {"os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "subprocess.Popen", "pickle.find_class",
    "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request", "ftplib.connect",
    "webbrowser.open", "code.__new__"}
def watch(event, arguments):
    if event in FORBIDDEN:
        seen.append([event, str(arguments)[:200]])
    elif event == "open" and isinstance(arguments[0], str):
        seen.append([str(arguments[1]), arguments[0]])
    elif event == "exec":
        seen.append(["exec", arguments[0].co_filename])
from sqgen.__main__ import main
sys.addaudithook(watch)
try:
    main()
finally:
    json.dump(seen, open(".seen.json", "w"))
"""
QUIET = [
    (SMALL, {f"out/{STEM}.S", f"out/{STEM}.h", f"out/{STEM}.json"}),
    ("--isa arm --bits 64 --json", set()),
    ("--isa msp430 --bits 64 --dump bytes", set()),
    ("prove k.o --isa avr --bits 64", set()),
    ("explain --isa avr --bits 32", set()),
    ("paper SBD13 --table 2", set()),
    ("cores", set()),
    ("methods sbd", set()),
    ("show --method sbd --bits 64 --svg x.svg", {"x.svg"}),
    ("check k.o --isa arm --bits 64 --runs 3", set()),
]


@pytest.mark.parametrize(("line", "writes"), QUIET, ids=[line for line, _ in QUIET])
def test_a_command_opens_and_starts_nothing_but_what_it_needs(tmp_path: Path, line: str, writes: set[str]) -> None:
    if "k.o" in line:
        built(source(), tmp_path / "k.o")
    before = set(tree(tmp_path))
    command = [sys.executable, "-c", WATCHED, *line.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in ((0,) if "check" not in line else (Exit.FILE,)), done.stderr
    libraries = tuple({os.path.realpath(each) for each in (sys.prefix, sys.base_prefix, ROOT)} | {sys.prefix, "/proc"})
    for event, name in json.loads((tmp_path / ".seen.json").read_text()):
        place = os.path.join(tmp_path, name)
        inside = place.startswith(str(tmp_path))
        if event == "exec":  # modules, templates, and what dataclasses and named tuples are made of
            assert name.startswith("<") or (place.startswith(libraries) and not inside), name
        elif event.startswith("r"):
            assert place.startswith(libraries) or name == "k.o", name
        else:
            assert event[:1] in ("w", "N") and (inside or place.startswith(libraries)), (event, name)
    after = {str(Path(name).relative_to(tmp_path)) for name in set(tree(tmp_path)) - before if Path(name).is_file()}
    assert after == writes | {".seen.json"}


@pytest.mark.parametrize("isa", ["avr", "arm", "msp430"])
@pytest.mark.simulator
def test_modules_in_the_users_folder_are_not_imported(tmp_path: Path, isa: str) -> None:
    shell(f"--isa {isa} --bits 32 --symbol k --out .", cwd=tmp_path).check_returncode()
    for name in ("ziglang", "subprocess", "llvmlite", "unicorn", "click", "json", "sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text("open('executed', 'w').close()\n")
    for line in ("check k.S --runs 3", f"compare --isa {isa} --bits 32"):
        done = shell(line, cwd=tmp_path)
        assert (done.returncode, complaints(done.stderr)) == (0, "")
    assert not (tmp_path / "executed").exists()


def test_no_command_of_a_manifest_is_run(refused: Callable[..., str], here: Path) -> None:
    shell(f"{SMALL} --out .", cwd=here).check_returncode()
    built((here / f"{STEM}.S").read_text(), here / "k.o")
    claims = json.loads((here / f"{STEM}.json").read_text())
    claims |= {"command": "touch executed", "isa": "../avr", "core": "$(touch executed)"}
    (here / "k.json").write_text(json.dumps(claims))
    refused(Exit.USAGE, "check k.o")
    assert not (here / "executed").exists()
