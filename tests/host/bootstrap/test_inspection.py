"""State of a host before its bootstrap, read from files as real hosts have them."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from sparkwright.host.bootstrap import inspection
from sparkwright.host.bootstrap.inspection import BootstrapRequest, Firewall
from sparkwright.host.lib import apt, systemd
from sparkwright.host.lib.processes import Outcome
from sparkwright.host.observe import ObservationRequest
from tests.operations.harness import as_json
from tests.tables import Tables

cases = Tables(__file__)


def _device(folder: Path, vendor: str, device: str, kind: str) -> None:
    folder.mkdir(parents=True)
    for name, text in (("vendor", vendor), ("device", device), ("class", kind)):
        (folder / name).write_text(f"{text}\n")


@cases("devices", "expected")
def test_gpus_on_the_bus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, devices: list[list[str]], expected: list[bool]
) -> None:
    for number, item in enumerate(devices):
        _device(tmp_path / f"pci/{number}", *item)
    monkeypatch.setattr(inspection, "_PCI", tmp_path / "pci")
    assert list(inspection.gpus_on_bus()) == expected


def test_what_came_since_the_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "_LISTS", tmp_path)
    booted = inspection.booted()
    assert 0 < booted <= time.time()
    for name, when in (("old.list", booted - 60), ("new.list", booted + 60),
                       ("newer:amd64.list", booted + 60)):  # fmt: skip
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (when, when))
    assert inspection.fresh(("old", "new", "newer", "none")) == ("new", "newer")


def test_ufw_by_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = cases.data["ufw"]
    monkeypatch.setattr(inspection, "_UFW", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert inspection.firewall() is None
    (tmp_path / "ufw.conf").write_text("ENABLED=no\nLOGLEVEL=low\n")
    (tmp_path / "user.rules").write_text(text)
    assert inspection.firewall() is None
    (tmp_path / "ufw.conf").write_text("ENABLED=yes\n")
    rules = tuple(line for line in text.splitlines() if line.startswith("### tuple"))
    assert inspection.firewall() == Firewall("ufw", rules)


def test_firewalld(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = 'rule family="ipv4" source address="10.0.0.0/8" port port="8000" protocol="tcp" accept'
    monkeypatch.setattr(inspection, "_UFW", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/firewall-cmd")
    monkeypatch.setattr(inspection, "run", lambda *_, **__: Outcome(0, f"\t{rule}\n"))
    monkeypatch.setattr(systemd, "is_active", lambda _: True)
    assert inspection.firewall() == Firewall("firewalld", (rule,))
    monkeypatch.setattr(systemd, "is_active", lambda _: False)
    assert inspection.firewall() is None


def test_packages_that_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def run(*arguments: str, **_: Any) -> Outcome:
        asked.append(arguments)
        text = "docker.io installed\ndocker-cli half-configured\nearlyoom config-files\n"
        return Outcome(1, text, "dpkg-query: no packages found matching nothing")

    monkeypatch.setattr(apt, "run", run)
    assert apt.installed("docker.io", "docker-cli", "earlyoom", "nothing") == ("docker.io",)
    assert asked[0][-1] == "nothing"


def test_docker_older_than_the_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = tmp_path / "hook"
    monkeypatch.setattr(inspection, "_HOOK", hook)

    def started(ago: float) -> None:
        micro = int((time.monotonic() - ago) * 1e6)
        text = f"ExecMainStartTimestampMonotonic={micro if ago else 0}\n"

        class Shown:
            def outcome(self) -> Outcome:
                return Outcome(0, text)

        monkeypatch.setattr(systemd, "showing", lambda *_, **__: Shown())

    started(60)
    assert not inspection.docker_is_older()
    hook.touch()
    assert inspection.docker_is_older()
    started(-60)
    assert not inspection.docker_is_older()
    started(0)  # it does not run
    assert not inspection.docker_is_older()


def test_this_machine_is_looked_at_and_not_changed() -> None:
    result = as_json(
        inspection.main(
            BootstrapRequest(ObservationRequest(directories=("/etc",)), ("bash", "no-such-package"))
        )
    )
    assert result["observed"]["architecture"] == os.uname().machine
    assert "no-such-package" not in result["packages"]
