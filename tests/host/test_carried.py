"""Programs sent to a host by standard input or as an argument, on every supported Python; requests
and answers as JSON, with the standard and the hosts' dataclasses.
"""

import ast
import dataclasses
import os
import shlex
import subprocess
import sys
from functools import cached_property, partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any

import pytest

import sparkwright.host
from sparkwright.facts import programs
from sparkwright.facts.answers import parse
from sparkwright.findings.finding import Finding, Severity
from sparkwright.host import directories, lock, observe
from sparkwright.host.directories import Directory
from sparkwright.host.jobs import JobsRequest, JobStatus
from sparkwright.host.lib import disks, documents, light_dataclasses, records
from sparkwright.host.lib.records import Malformed, decode, encode
from sparkwright.host.observe import Observation, ObservationRequest
from sparkwright.host.watch import install
from sparkwright.host.watch.state import WatchReport, WatchState

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
#: Program that loads the sent modules and calls no function.
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
def test_every_program_loads_without_other_packages(python: str) -> None:
    assert "call(module.main" not in _LOAD
    assert {"observe", "jobs", "lock", "watch.install", "smoke.check"} <= set(PROGRAMS)
    for name in PROGRAMS:
        module = import_module(f"sparkwright.host.{name}")
        _python(python, _LOAD, programs.payload(module, {}))


@pytest.mark.parametrize("python", PYTHONS)
def test_a_host_is_observed_without_a_plan(python: str) -> None:
    request = encode(ObservationRequest())
    by_input = _python(python, programs.BY_STANDARD_INPUT, programs.payload(observe, request))
    by_argument = _python(python, programs.argument(observe, request))
    for text in (by_input, by_argument):
        seen = parse("l", text.split("\n"), Observation)
        assert seen.memory.total > 0
        assert set(seen.disks) == {"/opt/models", "/opt/sparkwright"}


def test_sent_programs_lack_docstrings_and_keep_their_lines(tmp_path: Path) -> None:
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
    """Make a module from this text, without running the text."""
    file = folder / "written.py"
    file.write_text(text)
    spec = spec_from_file_location("written", file)
    assert spec is not None
    return module_from_spec(spec)


def test_programs_run_on_python_3_10_and_import_only_host_programs() -> None:
    """The downloader has its own libraries, which are sent with the program."""
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


def test_a_file_in_place_of_a_directory_is_reported_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    request = (Directory(str(tmp_path / "file/below")),)
    done = subprocess.run(
        [sys.executable, "-IS", "-c", programs.BY_STANDARD_INPUT],
        input=programs.payload(directories, encode(request)),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == (
        f"{tmp_path}/file is not a directory: move it away, or choose another path\n"
    )


def test_a_shell_that_prints_before_and_after_changes_no_answer(tmp_path: Path) -> None:
    """The shell of sshd reads .bashrc for a command, too, and this .bashrc prints."""
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


def test_records_survive_encoding_and_decoding() -> None:
    request = JobsRequest(secrets={"/a": "b"}, wait=1.5)
    assert decode(JobsRequest, encode(request)) == request
    answers = {"a.service": JobStatus(True, False, {"state": "running", "rate": 3})}
    assert decode(dict[str, JobStatus], encode(answers)) == answers
    assert decode(tuple[str, ...], ["a", "b"]) == ("a", "b")


def test_texts_become_numbers_for_numeric_keys() -> None:
    listener = {"command": "nginx", "cgroup": "/"}
    kind = dict[int, observe.Listener]
    assert decode(kind, {"8000": listener}) == {8000: observe.Listener("nginx", "/")}


def test_unknown_keys_are_ignored_and_missing_keys_have_defaults() -> None:
    assert decode(lock.Owner, {"token": "t", "colour": "red"}) == lock.Owner("t")
    report = decode(WatchReport, {"at": 5, "findings": [], "ring": [{"of": "another kind"}]})
    assert report == WatchReport(5.0)


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        (lock.LockRequest, {}, "LockRequest: state is missing"),
        (lock.LockRequest, {"state": 5}, "LockRequest.state: 5 is not of type str"),
        (lock.Owner, {"pid": True}, "Owner.pid: True is not of type int"),
        (WatchState, {"at": 1, "ring": [{"at": "x"}]}, "WatchState.ring.at: 'x' is not of type"),
        (disks.Disk, [], r"Disk: \[\] is not of type dict"),
        (Finding, {"id": "a", "severity": "loud"}, "Finding.severity: 'loud' is not one of"),
    ],
)
def test_a_malformed_field_is_named(kind: type, data: Any, message: str) -> None:
    with pytest.raises(Malformed, match=message):
        decode(kind, data)


def test_lines_torn_by_a_power_cut_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('\n{"service": "a"}\n\n{torn\n[]\n')
    assert documents.lines(tmp_path / "history.jsonl") == [{"service": "a"}]


def test_a_severity_is_read_by_its_value() -> None:
    assert decode(Finding, {"id": "a", "severity": "error"}).severity is Severity.ERROR


def test_a_record_behaves_like_a_standard_dataclass() -> None:
    double = cached_property(lambda kept: kept.size * 2)
    annotations = {"size": "int", "names": "tuple[str, ...]"}
    members = {"__annotations__": annotations, "names": ("a",), "double": double}
    for make in (dataclasses.dataclass, records.dataclass):
        kind: Any = make(frozen=True)(type("Kept", (), dict(members)))
        assert [field.name for field in dataclasses.fields(kind)] == ["size", "names"]
        kept = kind(1)
        assert kept.double == 2
        assert repr(kept) == "Kept(size=1, names=('a',))"
        assert kept == kind(size=1) != kind(2)
        assert (hash(kept), kept == ("a",)) == (hash((1, ("a",))), False)
        assert dataclasses.asdict(dataclasses.replace(kept, size=2)) == {"size": 2, "names": ("a",)}
        for values, named in (((), {}), ((1, (), 3), {}), ((1,), {"colour": "red"})):
            with pytest.raises(TypeError):
                kind(*values, **named)
        for change in (partial(setattr, kept, "size", 2), partial(delattr, kept, "size")):
            with pytest.raises(AttributeError):
                change()


def test_records_behave_equally_with_the_hosts_dataclasses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract holds with the hosts' replacement of the standard library's dataclasses, too."""
    monkeypatch.setitem(sys.modules, "dataclasses", light_dataclasses)
    light_records = ModuleType(records.__name__)
    monkeypatch.setitem(sys.modules, records.__name__, light_records)
    exec(compile(programs.bare(records), "records", "exec"), light_records.__dict__)
    light = ModuleType("light")
    monkeypatch.setitem(sys.modules, "light", light)
    for item in (lock, observe):
        text = programs.bare(item).replace("sparkwright.host.lock", "light")
        exec(compile(text, "light", "exec"), light.__dict__)
    real = lock.LockRequest("/state", take=lock.Owner("t", pid=4))
    made = light.LockRequest("/state", take=light.Owner("t", pid=4))
    assert encode(made) == encode(real)
    assert light_dataclasses.replace(made, state="/b").state == "/b"
    assert light.ServiceState() == light.ServiceState()
    assert {field.name for field in dataclasses.fields(lock.LockRequest)} == set(
        light.LockRequest.__dataclass_fields__
    )
    with pytest.raises(TypeError, match="state is missing"):
        light.LockRequest()
