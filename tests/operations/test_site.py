"""A site's run: planned between reading and connecting, or stopped before any host is touched."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyinfra.api import util
from pyinfra.api.config import Config
from pyinfra.api.inventory import Inventory
from pyinfra.api.state import State
from pyinfra.context import ctx_state

from sparkwright.config.keys import Keys
from sparkwright.config.secrets import Secret
from sparkwright.config.settings import RolloutSettings
from sparkwright.facts import hooks
from sparkwright.facts.memory import memory
from sparkwright.findings.finding import Finding, Severity
from sparkwright.operations.connections import Connections
from sparkwright.run import site
from sparkwright.run.state import run_of
from sparkwright.site.desired import DesiredFleet, DesiredHost
from tests.unit.builders import plan, wanted

GROUP = {"ssh_user": "spark"}


@dataclass
class Pyinfra:
    """A run of pyinfra, from reading config.py to its end.

    Attributes:
        planned: what planning was given: hosts, data of everybody, stray group_data.
        atexit: what is called at the end, the last first.
        gc: what was done with the garbage collector.
    """

    tmp: Path
    planned: list[Any] = field(default_factory=list)
    atexit: list[Callable[[], None]] = field(default_factory=list)
    gc: list[str] = field(default_factory=list)
    violations: tuple[Finding, ...] = ()
    state: State = field(default_factory=State)
    parameters: dict[str, Any] = field(
        default_factory=lambda: {
            "inventory": "inventory/lab.py", "group_data": (), "operations": ("deploy.py",),
            "yes": True, "dry": False, "json_output": False, "limit": (), "exclude": (),
        }
    )  # fmt: skip

    def read(self, *limit: str, **parameters: Any) -> State:
        """Read config.py, then inventory and group_data, and be about to connect."""
        self.parameters |= parameters
        names = ["spark-1", "spark-2"]
        groups = {"sparks": (names, GROUP), "rtx50": ([], {"ssh_user": "x"})}
        inventory = Inventory(
            (names if self.parameters["inventory"] else [], {}),
            override_data=parameters.get("override", {}), **groups,
        )  # fmt: skip
        with ctx_state.use(self.state):
            site.install()
            self.state.init(
                inventory, Config(),
                initial_limit=[inventory.get_host(name) for name in limit] or None,
            )  # fmt: skip
        return self.state

    def desired(self, inputs: Any, everyone: Any, stray: Any, *, dry: bool) -> DesiredFleet:
        self.planned = [list(inputs), everyone, list(stray)]
        return DesiredFleet(
            {
                one.name: DesiredHost(
                    wanted(plan(host=one.name)),
                    self.violations,
                    Keys({}, Secret("k")),
                    None,
                    None,
                    None,
                )
                for one in inputs
            },
            RolloutSettings(),
        )


@pytest.fixture
def pyinfra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pyinfra:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory/lab.py").write_text("sparks = ['spark-1', 'spark-2']\n")
    for name in ("stack", "getframeinfo"):  # put back what install() replaces
        monkeypatch.setattr(util, name, getattr(util, name))
    found = Pyinfra(tmp_path)
    monkeypatch.setattr(hooks, "command_line", lambda: found.parameters)
    monkeypatch.setattr(site, "desired_fleet", found.desired)
    monkeypatch.setattr(site, "atexit", SimpleNamespace(register=found.atexit.append))
    collector = SimpleNamespace(
        freeze=lambda: found.gc.append("freeze"), enable=lambda: found.gc.append("enable")
    )
    monkeypatch.setattr(site, "gc", collector)
    return found


def _stopped(pyinfra: Pyinfra, capsys: pytest.CaptureFixture[str], **parameters: Any) -> str:
    """Standard error of a run that ends before anything is planned."""
    with pytest.raises(SystemExit) as raised:
        pyinfra.read(**parameters)
    assert raised.value.code == 2
    assert pyinfra.planned == []
    assert not pyinfra.state.initialised
    return capsys.readouterr().err


def test_a_run_is_planned_before_the_first_connection(pyinfra: Pyinfra) -> None:
    state = pyinfra.read()
    inputs, everyone, stray = pyinfra.planned
    assert [one.name for one in inputs] == ["spark-1", "spark-2"]
    assert inputs[0].data["ssh_user"] == "spark"
    assert (list(everyone), stray) == (["spark-1", "spark-2"], [])
    host = state.inventory.get_host("spark-1")
    run = run_of(host)
    assert run is run_of(state.inventory.get_host("spark-2"))
    assert (run.inventory, run.dry) == ("inventory/lab.py", False)
    assert run.rollout.batches == [["spark-1"], ["spark-2"]]
    assert run.hosts["spark-1"].memory is memory(host)
    assert any(isinstance(one, Connections) for one in state.callback_handlers)
    assert pyinfra.gc == ["freeze", "enable"]
    assert state.should_raise_failed_hosts is not None
    assert state.should_raise_failed_hosts(state) is False


def test_the_report_is_written_at_the_end(
    pyinfra: Pyinfra, capsys: pytest.CaptureFixture[str]
) -> None:
    pyinfra.read()
    assert capsys.readouterr().out == ""
    freeze, report = pyinfra.atexit
    report()
    assert "spark-1" in capsys.readouterr().out
    assert (pyinfra.tmp / ".sparkwright/last-run.json").exists()
    # atexit calls the last one first: collecting garbage is given up after the report.
    freeze()
    assert pyinfra.gc[-1] == "freeze"


def test_a_limited_run_plans_the_hosts_of_the_limit_and_knows_of_all(pyinfra: Pyinfra) -> None:
    pyinfra.read("spark-2", limit=("spark-2",))
    inputs, everyone, _ = pyinfra.planned
    assert [one.name for one in inputs] == ["spark-2"]
    assert list(everyone) == ["spark-1", "spark-2"]


def test_where_a_setting_comes_from(pyinfra: Pyinfra) -> None:
    pyinfra.read(override={"image_tag": "x"})
    origin = pyinfra.planned[0][0].origin
    assert origin("image_tag") == "--data"
    assert origin("ssh_user") == "group_data/sparks.py"
    assert origin("services") == "inventory/lab.py"


@pytest.mark.parametrize("operations", [("fact", "server.Arch"), ("exec",), ("files.put",), ()])
def test_what_asks_for_no_role_needs_no_plan(pyinfra: Pyinfra, operations: Any) -> None:
    state = pyinfra.read(operations=operations, yes=False)
    assert pyinfra.planned == []
    assert not any(isinstance(one, Connections) for one in state.callback_handlers)
    pyinfra.atexit[1]()  # and no report


@pytest.mark.parametrize("operations", [("roles.preflight.preflight",), ("fleet.py",)])
def test_a_role_and_a_deploy_file_of_any_name_need_one(pyinfra: Pyinfra, operations: Any) -> None:
    state = pyinfra.read(operations=operations)
    assert run_of(state.inventory.get_host("spark-1")).hosts.keys() == {"spark-1", "spark-2"}


def test_a_limit_that_names_nobody(pyinfra: Pyinfra, capsys: pytest.CaptureFixture[str]) -> None:
    error = _stopped(pyinfra, capsys, limit=("spark-3", "spark-*"))
    assert "1 problem, nothing was touched" in error
    assert "command line: --limit spark-3" in error
    assert "did you mean 'spark-2'?" in error or "did you mean 'spark-1'?" in error


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"exclude": ("rtx50",)}, "command line: --exclude rtx50"),
        ({"limit": ("rtx50", "spark-9")}, "2 problems"),
        ({"inventory": ""}, "'' gives no hosts"),
        ({"inventory": "inventory/lb.py"}, "this file does not exist"),
        ({"group_data": ("elsewhere",)}, "command line: --group-data elsewhere"),
        ({"yes": False}, "pyinfra would ask before it changes anything, and nobody can answer"),
    ],
)
def test_mistakes_of_the_command_line(
    pyinfra: Pyinfra, capsys: pytest.CaptureFixture[str], parameters: Any, words: str
) -> None:
    assert words in _stopped(pyinfra, capsys, **parameters)


@pytest.mark.parametrize("option", ["yes", "dry", "json_output"])
def test_who_confirms_or_looks_needs_no_terminal(pyinfra: Pyinfra, option: str) -> None:
    pyinfra.read(**{"yes": False, option: True})
    assert pyinfra.planned


def test_a_terminal_can_be_asked(pyinfra: Pyinfra, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    pyinfra.read(yes=False)
    assert pyinfra.planned


def test_a_broken_file_of_the_user_has_its_line_and_no_traceback(
    pyinfra: Pyinfra, capsys: pytest.CaptureFixture[str]
) -> None:
    (pyinfra.tmp / "inventory/lab.py").write_text("sparks = [\n")
    assert "inventory/lab.py: line 1" in _stopped(pyinfra, capsys)


def test_rules_that_are_passed_are_told(
    pyinfra: Pyinfra, capsys: pytest.CaptureFixture[str]
) -> None:
    pyinfra.violations = (Finding("marlin", Severity.WARNING, observed="0", expected="1"),)
    pyinfra.read()
    assert "warning: marlin" in capsys.readouterr().err


def test_an_operation_outside_of_a_site_says_what_is_missing() -> None:
    host = SimpleNamespace(connector_data={})
    with pytest.raises(RuntimeError, match=r"config\.py was not read"):
        run_of(host)  # type: ignore[arg-type]
