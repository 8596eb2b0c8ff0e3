"""How programs get to a host: by standard input and by argument, on every Python that counts."""

import ast
import os
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

import pytest

import sparkwright.host
from sparkwright.facts import programs
from sparkwright.facts.answers import parse
from sparkwright.host import directories, observe
from sparkwright.host.directories import Directory
from sparkwright.host.lib.records import encode
from sparkwright.host.observe import Observation, ObservationRequest
from sparkwright.host.watch import install

_NAMES = [
    package.name
    for package in walk_packages(sparkwright.host.__path__, "sparkwright.host.")
    if not package.ispkg
]
PROGRAMS = [
    name.removeprefix("sparkwright.host.")
    for name in _NAMES
    if "request" in getattr(getattr(import_module(name), "main", None), "__annotations__", {})
]
PYTHONS = sorted(
    {
        str(path)
        for version in ("3.10*", "3.12*", "3.13*")
        for path in Path.home().glob(f".pyenv/versions/{version}/bin/python3")
    }
    | {sys.executable}
)
#: Loads what is sent and calls nothing.
_LOAD = programs.BY_STANDARD_INPUT.replace(
    'json.dumps(call(module.main, payload["request"]))', "str(module.main)"
)


def _python(path: str, text: str, given: str = "") -> str:
    done = subprocess.run(
        [path, "-IS", "-c", text], input=given, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("python", PYTHONS)
def test_every_program_loads_bare(python: str) -> None:
    assert "call(module.main" not in _LOAD
    assert {"observe", "jobs", "lock", "watch.install", "smoke.check"} <= set(PROGRAMS)
    for name in PROGRAMS:
        module = import_module(f"sparkwright.host.{name}")
        _python(python, _LOAD, programs.payload(module, {}))


@pytest.mark.parametrize("python", PYTHONS)
def test_an_observation_needs_no_plan(python: str) -> None:
    request = encode(ObservationRequest())
    by_input = _python(python, programs.BY_STANDARD_INPUT, programs.payload(observe, request))
    by_argument = _python(python, programs.argument(observe, request))
    for text in (by_input, by_argument):
        seen = parse("l", text.split("\n"), Observation)
        assert seen.memory.total > 0
        assert set(seen.disks) == {"/opt/models", "/opt/sparkwright"}


def test_what_is_sent_has_no_words_and_keeps_its_lines(tmp_path: Path) -> None:
    text = '"""A.\n\nB."""\n\n# gone\nA = """\n# kept\n"""\n\n\nclass B(E):\n    """Only."""\n'
    sent = programs.bare(_module(tmp_path, text))
    assert sent == '\'\'\n\n\n\n\nA = """\n# kept\n"""\n\n\nclass B(E):\n    \'\'\n'
    compile(sent, "sent", "exec")
    whole, sent = programs.source(install), programs.bare(install)
    assert len(sent) < len(whole)
    assert [line for line in sent.splitlines() if line.startswith(("def ", "import "))] == [
        line for line in whole.splitlines() if line.startswith(("def ", "import "))
    ]


def _module(folder: Path, text: str) -> ModuleType:
    """A module of this text; it is not run."""
    file = folder / "written.py"
    file.write_text(text)
    spec = spec_from_file_location("written", file)
    assert spec is not None
    return module_from_spec(spec)


def test_programs_are_of_3_10_and_import_nothing_of_ours_but_each_other() -> None:
    """The downloader has libraries of its own, which are brought with it."""
    for name in _NAMES:
        tree = ast.parse(programs.source(import_module(name)), feature_version=(3, 10))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            of = node.module if isinstance(node, ast.ImportFrom) else None
            for item in [of] if of else [alias.name for alias in node.names]:
                ours = item.startswith("sparkwright.host.") or item == "sparkwright.host"
                brought = name.startswith("sparkwright.host.fetch.") and "sparkwright" not in item
                expected = item.partition(".")[0] in sys.stdlib_module_names
                assert ours or expected or brought, f"{name} imports {item}"


def test_an_old_python_is_reported() -> None:
    text = programs.BY_STANDARD_INPUT.replace("sys.version_info < (3, 10)", "True")
    done = subprocess.run(
        [sys.executable, "-IS", "-c", text], input="", capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "is too old: 3.10 is needed" in done.stderr


def test_a_file_in_the_place_of_a_directory_is_told_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    request = (Directory(str(tmp_path / "file/below")),)
    done = subprocess.run(
        [sys.executable, "-IS", "-c", programs.BY_STANDARD_INPUT],
        input=programs.payload(directories, encode(request)),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == (
        f"{tmp_path}/file is not a directory: move it away, or take another place\n"
    )


def test_a_shell_that_prints_before_and_after_changes_no_answer(tmp_path: Path) -> None:
    """As .bashrc does, which sshd's shell reads for a command, too."""
    start = tmp_path / "start-up"
    start.write_text("echo 'Welcome!'; echo '{}'; trap 'echo bye' EXIT; printf 'no line break'\n")
    text = programs.argument(observe, encode(ObservationRequest()))
    done = subprocess.run(
        ["bash", "-c", f"{shlex.quote(sys.executable)} -IS -c {shlex.quote(text)}"],
        env={**os.environ, "BASH_ENV": str(start)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("Welcome!\n{}\nno line break")
    assert done.stdout.endswith("bye\n")
    assert parse("l", done.stdout.split("\n"), Observation).memory.total > 0
