"""``sparkwright up``: the site, the inventory, the plan and the order of the steps; hosts and their
logins are faked here."""

import json
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import Result

from sparkwright.bootstrap import gpu_question
from sparkwright.bootstrap.decide import Decision
from sparkwright.bootstrap.steps import StepPlan
from sparkwright.catalog.gpus import VRAM
from sparkwright.cli import up
from sparkwright.cli.lib.hosts import given
from sparkwright.cli.lock import LockReport
from sparkwright.config import skeleton
from sparkwright.config.inventory import read_inventory, with_host
from sparkwright.config.secrets import Secret
from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.findings.user_error import UserError
from sparkwright.host.removal import RemovalAnswer
from sparkwright.resolve.lock import Lock, render_lock
from sparkwright.run.bootstrap import Readiness
from sparkwright.site.endpoints import endpoint_of
from sparkwright.site.fleet import plan_fleet
from sparkwright.text.sizes import GIB
from tests.tables import Tables
from tests.unit.builders import ROOT, catalog, probe, wanted
from tests.unit.cli.answering import Asked, answering, exits, run

TABLES = Tables(__file__)
PASSWORD = "a-secret-of-hers"


@dataclass
class Login:
    """A box whose login succeeds at once."""

    name: str
    data: Mapping[str, Any]
    ask: Any
    password: Secret | None = None
    made_key: Path | None = None

    def open(self) -> None:
        self.password = Secret(PASSWORD)

    @property
    def address(self) -> str:
        aliases = {"alias": "192.168.1.7"}
        address = str(self.data.get("ssh_hostname", self.name))
        return aliases.get(address, address)


@dataclass
class World:
    """Fakes that the command uses.

    Attributes:
        gpus: name of a host -> the GPU's name for `init`, and the GPU's name in nvidia-smi.
        findings: findings of each host.
        done: completed steps, in order.
        pinned: host -> services that were pinned last.
    """

    gpus: dict[str, tuple[str | None, str]] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    done: list[Any] = field(default_factory=list)
    pinned: dict[str, list[str]] = field(default_factory=dict)
    code: int = 0
    speed: int = 0

    def names(self) -> list[str]:
        return [item if isinstance(item, str) else item[0] for item in self.done]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, here: Path) -> World:
    """An empty folder, and boxes that are Sparks."""
    result = World()

    def gpu_of(name: str, data: Mapping[str, Any]) -> gpu_question.Box:
        gpu, shown = result.gpus.get(name, ("gb10", "NVIDIA GB10"))
        return gpu_question.Box(name, gpu, shown)

    def answer(asked: Asked) -> dict[str, Any]:
        (host,) = asked.hosts.limit
        result.done.append((asked.name, asked.hosts, asked.options))
        data = asked.hosts.read()[0]
        services = plan_fleet([data]).hosts[host].plan
        step = StepPlan("docker", ("install docker.io \x1b[2J",))
        ready = Readiness(wanted(services), probe(), Decision((step,)), result.findings,
                          22 * GIB, 9 * GIB, 800 * GIB, result.speed, "huggingface.co")  # fmt: skip
        return {host: ready}

    def deploy(arguments: list[str], **_: Any) -> SimpleNamespace:
        result.done.append(("deploy", arguments))
        return SimpleNamespace(returncode=result.code)

    def locked(hosts: Any) -> list[LockReport]:
        result.done.append("lock")
        result.pinned = {
            name: [service.name for service in host.plan.services] for name, host in hosts.items()
        }
        lock = render_lock(Lock(images={}, models={}))
        Path("fleet.lock").write_text(f"{lock}# of {len(hosts)} hosts\n")
        return [LockReport("fleet.lock", "written", [])]

    def question(planned: Mapping[str, Any], prompt: str) -> bool:
        result.done.append(("question", *planned))
        return True

    monkeypatch.setattr(up, "Login", Login)
    monkeypatch.setattr(up, "gpu_of", gpu_of)
    monkeypatch.setattr(up, "locked", locked)
    monkeypatch.setattr(up, "offered", lambda _: iter([question]))
    monkeypatch.setattr(subprocess, "run", deploy)
    answering(monkeypatch, answer)
    return result


def _up(*arguments: str) -> Result:
    return run("up", *arguments)


def _inventory() -> dict[str, Mapping[str, Any]]:
    hosts = read_inventory(Path("inventory/lab.py"), group_data=False)
    return {host.name: host.data for host in hosts}


def test_a_second_box_joins_the_site_once(world: World) -> None:
    world.gpus["rtx-1"] = ("rtx-pro-6000", "RTX PRO 6000")
    _up("spark-1", "--yes")
    assert _up("me@spark-1", "rtx-1", "192.168.1.9", "spark-1.lan", "--yes").exit_code == 0
    inventory = _inventory()
    assert list(inventory) == ["spark-1", "192.168.1.9", "spark-1.lan", "rtx-1"]
    (service,) = inventory["rtx-1"]["services"].values()
    assert service["recipe"] == "qwen36-35b-a3b-nvfp4-rtx-pro-6000"
    before = Path("inventory/lab.py").read_text()
    world.done.clear()
    assert _up("rtx-1", "--yes").exit_code == 0
    assert Path("inventory/lab.py").read_text() == before
    # An interrupted run continues.
    assert world.names() == ["lock", "readiness", "bootstrapped", "deploy", "question"]


@pytest.mark.parametrize("speed", [0, 54_000_000])
def test_the_plan_shows_the_time_at_the_measured_speed(world: World, speed: int) -> None:
    """A plan without a measured speed has no time."""
    world.speed = speed
    lines = [line for line in _up("spark-1", "--yes").output.splitlines() if "  time " in line]
    expected = (
        "  time      about 10 min at 54.0 MB/s, as the box received from huggingface.co just now"
    )
    assert lines == ([expected] if speed else [])


def test_hosts_of_the_example_are_removed(world: World) -> None:
    """Hosts of an earlier `init` are removed, unless a deploy of the site ran."""
    _up("nova", "--yes")
    _, quotes, hosts = (ROOT / skeleton.INVENTORY).read_text().rpartition('"""')
    example = f"{quotes}Mine.{quotes}{hosts}"
    Path("inventory/lab.py").write_text(example)
    assert _up("me@spark-1", "--yes").exit_code == 0
    assert _inventory() == {"spark-1": {"ssh_user": "me"}}
    Path("inventory/lab.py").write_text(example)
    Path(".sparkwright").mkdir(exist_ok=True)
    Path(".sparkwright/last-run.json").touch()
    assert _up("spark-3", "--yes").exit_code == 0
    assert list(_inventory()) == ["spark-1", "spark-2", "spark-3", "rtx-1"]


def test_clients_reach_an_alias_of_ssh_config_at_its_address(world: World) -> None:
    assert "http://192.168.1.7:8000/v1" in _up("alias", "--yes").output
    assert _inventory() == {"alias": {"lan_address": "192.168.1.7"}}


def test_up_makes_a_site_elsewhere_with_the_named_recipe(world: World, tmp_path: Path) -> None:
    recipe = next(name for name, item in catalog().recipes.items()
                  if "12.1" in item.needs.compute_caps and item.ranks is None)  # fmt: skip
    done = exits(0, "up", "spark-1", "--site", str(tmp_path / "lab"), "--recipe", recipe, "--yes")
    (data,) = _inventory().values()
    assert data == {"services": {"main": {"recipe": recipe, "port": 8000}}, "gpu": "gb10"}
    assert f"cd {tmp_path}/lab && sparkwright chat" in done.output
    assert "already" in _up("spark-1", "--recipe", "other", "--yes").output


def test_data_of_a_run_changes_no_pin_of_other_hosts(world: World) -> None:
    _up("spark-1", "--yes")
    (before,) = world.pinned.values()
    recipe = next(name for name, item in catalog().recipes.items()
                  if "12.1" in item.needs.compute_caps and item.ranks is None)  # fmt: skip
    services = json.dumps({"x": {"recipe": recipe, "port": 8000}})
    done = _up("spark-2", "--yes", "--data", f"services={services}")
    assert done.exit_code == 0, done.output
    assert world.pinned == {"spark-1": before, "spark-2": ["x"]}


@pytest.mark.parametrize("stops", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM, None])
def test_a_declined_plan_leaves_the_inventory_unchanged(
    world: World, monkeypatch: pytest.MonkeyPatch, stops: signal.Signals | None
) -> None:
    _up("spark-1", "--yes")
    before, lock = Path("inventory/lab.py").read_text(), Path("fleet.lock").read_text()

    def confirm(*_: Any, **__: Any) -> bool:
        assert "spark-2" in Path("inventory/lab.py").read_text()
        if stops:
            signal.raise_signal(stops)
        return False

    monkeypatch.setattr(up, "_on_a_terminal", lambda: True)
    monkeypatch.setattr(click, "confirm", confirm)
    done = _up("spark-2")
    assert (done.exit_code, world.names()[5:]) == (130, ["lock", "readiness"])
    assert "stopped: run the same command again" in done.output
    assert Path("inventory/lab.py").read_text() == before
    assert Path("fleet.lock").read_text() == lock
    assert "fleet.lock: written" not in done.output


def test_every_fault_is_reported_before_any_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.gpus = {"old": (None, "NVIDIA A100"), "small": ("rtx5080", "")}
    monkeypatch.setitem(VRAM, "rtx5080", 3.9)
    done = exits(2, "up", "old", "small", "--yes")
    assert "NVIDIA A100" in done.output
    assert "no recipe of the catalog fits the 3.9 GiB of rtx5080" in done.output
    assert not Path("deploy.py").exists()
    world.gpus = {}
    checks = ("disk", "gpu-memory-held")
    world.findings = tuple(
        Finding(name, Severity.ERROR, Subject("spark-1"), "x", "y", "z", "w", "s")
        for name in checks
    )
    done = exits(1, "up", "spark-1", "--yes")
    assert all(name in done.output for name in checks)
    assert world.names() == ["lock", "readiness"]
    assert not Path("fleet.lock").exists()
    assert "('spark-1'" not in Path("inventory/lab.py").read_text()


def test_without_a_terminal_up_needs_yes(world: World) -> None:
    done = exits(2, "up", "spark-1")
    assert "add --yes" in done.output
    assert world.done == []


def test_options_of_the_connection_reach_the_deploy_and_the_password_does_not(world: World) -> None:
    options = ["--ssh-port", "2222", "--data", "keep_releases=4"]
    assert _up("me@spark-1", *options, "--yes").exit_code == 0
    _, arguments = world.done[3]
    assert arguments[7:10] == ["--ssh-port", "2222", "--data=keep_releases=4"]
    assert _inventory()["spark-1"] == {"ssh_user": "me", "ssh_port": 2222}
    assert world.done[1][2]["password"].value == PASSWORD
    assert PASSWORD not in json.dumps(arguments)
    assert PASSWORD not in repr(world.done)
    assert "sudo_password" not in given()
    assert not [path for path in Path().rglob("*") if path.is_file()
                and PASSWORD in path.read_text(errors="replace")]  # fmt: skip


def test_a_box_never_gets_the_name_of_a_group_or_of_another_host(world: World) -> None:
    """A group's name selects all hosts of the group, for the deploy and for sudo's password."""
    for number, address in enumerate(("lab.local", "sparks.home", "rtx50.lan"), 1):
        assert _up(address, "--yes").exit_code == 0
        assert list(_inventory())[-1] == address
        assert len(world.done) == number * 5
    for targets in (("sparks",), ("all",), ("nova.lan", "nova")):
        done = _up(*targets, "--yes")
        assert (done.exit_code, "is already the name of a host" in done.output) == (2, True), (
            done.output
        )
    assert _up("LAB.local", "--yes").exit_code == 0
    assert list(_inventory()) == ["lab.local", "sparks.home", "rtx50.lan"]


def test_a_user_other_than_the_inventorys_user_is_refused(world: World) -> None:
    _up("alice@spark-1", "--yes")
    done = _up("bob@spark-1", "--yes")
    assert (done.exit_code, "logs in as 'alice'" in done.output) == (2, True), done.output


def test_an_inventory_stays_a_link_and_private(world: World, tmp_path: Path) -> None:
    _up("spark-1", "--yes")
    file, link = tmp_path / "real.py", Path("inventory/lab.py")
    link.rename(file)
    file.chmod(0o600)
    link.symlink_to(file)
    before = file.stat()
    assert _up("spark-1", "--yes").exit_code == 0
    assert file.stat().st_mtime_ns == before.st_mtime_ns
    assert _up("spark-2", "--yes").exit_code == 0
    assert (link.is_symlink(), file.stat().st_mode) == (True, before.st_mode)
    assert list(_inventory()) == ["spark-1", "spark-2"]


def test_a_new_site_contains_no_data_of_the_current_folder(world: World, tmp_path: Path) -> None:
    _up("alice@spark-1", "--yes")
    exits(0, "up", "bob@spark-1", "--site", "other", "--yes")
    assert _inventory() == {"spark-1": {"ssh_user": "bob"}}


def test_an_existing_file_is_reported_before_the_login(world: World) -> None:
    Path("config.py").touch()
    done = _up("spark-1", "--yes")
    assert (done.exit_code, "logging in" in done.output) == (2, False)


def test_a_model_that_pools_gets_no_chat(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    original = endpoint_of
    monkeypatch.setattr(up, "endpoint_of", lambda *a: replace(original(*a), chats=False))
    done = _up("spark-1", "--yes")
    assert (done.exit_code, "question" in world.names()) == (0, False)
    assert "sparkwright chat" not in done.output


def test_a_failed_deploy_names_the_next_step(world: World) -> None:
    world.code = 1
    assert "run the same command again" in exits(1, "up", "spark-1", "--yes").output
    assert list(_inventory()) == ["spark-1"]


@TABLES("arguments", "undone")
def test_remove_undoes_bootstrap_on_a_named_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], *, undone: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("inventory").mkdir()
    Path("inventory/lab.py").write_text("sparks = [('spark-1', {'services': {'qwen36': {}}})]\n")
    asked = answering(monkeypatch, lambda _: {"spark-1": RemovalAnswer(("it",), ())})
    done = exits(0, "remove", *arguments, "--yes")
    assert asked[0].arguments["bootstrap"] is undone
    again = "deploys use this host again until you remove it from inventory/lab.py" in done.output
    assert again is ("spark-1/" not in arguments[0])


# Attacks


@TABLES("target")
def test_an_invalid_host_name_is_refused(world: World, target: str) -> None:
    assert "is not the name or address of a box" in exits(2, "up", "--yes", "--", target).output
    assert not Path("inventory").exists()


@TABLES("value")
def test_a_hosts_value_never_runs_as_code(world: World, tmp_path: Path, value: str) -> None:
    path = tmp_path / "lab.py"
    text = with_host(path, "", "sparks", "spark-1", {"lan_address": value})
    path.write_text(text)
    (host,) = read_inventory(path, group_data=False)
    assert host.data == {"lan_address": value}
    assert len(text.splitlines()) == 1
    assert not Path("pwned").exists()


@TABLES("before", "line")
def test_one_line_is_added_to_an_inventory(tmp_path: Path, before: str, line: str | None) -> None:
    """`up` does not write a line that would not add the host."""
    if line is None:
        with pytest.raises(UserError, match="add the host by hand"):
            with_host(tmp_path / "lab.py", before, "sparks", "b", {})
        return
    text = with_host(tmp_path / "lab.py", before, "sparks", "b", {})
    assert text.startswith(before.rstrip("\n"))
    assert text.splitlines()[-1] == line
