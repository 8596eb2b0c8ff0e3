"""State of a host before its bootstrap, the record made before a step, and its undo."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.host.bootstrap import inspection, prepare, undo
from sparkwright.host.bootstrap.inspection import BootstrapRequest, Firewall
from sparkwright.host.bootstrap.prepare import PrepareRequest, Step, Undo
from sparkwright.host.bootstrap.undo import UndoAnswer
from sparkwright.host.lib import apt as packages
from sparkwright.host.lib import docker, documents, systemd, waiting
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
def test_gpus_are_found_on_the_pci_bus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, devices: list[list[str]], expected: list[bool]
) -> None:
    for number, item in enumerate(devices):
        _device(tmp_path / f"pci/{number}", *item)
    monkeypatch.setattr(inspection, "_PCI", tmp_path / "pci")
    assert list(inspection.gpus_on_bus()) == expected


def test_packages_installed_after_the_boot_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "_LISTS", tmp_path)
    booted = inspection.booted()
    assert 0 < booted <= time.time()
    for name, when in (("old.list", booted - 60), ("new.list", booted + 60),
                       ("newer:amd64.list", booted + 60)):  # fmt: skip
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (when, when))
    assert inspection.fresh(("old", "new", "newer", "none")) == ("new", "newer")


def test_rules_of_ufw_are_read_from_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_rules_of_firewalld_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = 'rule family="ipv4" source address="10.0.0.0/8" port port="8000" protocol="tcp" accept'
    monkeypatch.setattr(inspection, "_UFW", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/firewall-cmd")
    monkeypatch.setattr(inspection, "run", lambda *_, **__: Outcome(0, f"\t{rule}\n"))
    monkeypatch.setattr(systemd, "is_active", lambda _: True)
    assert inspection.firewall() == Firewall("firewalld", (rule,))
    monkeypatch.setattr(systemd, "is_active", lambda _: False)
    assert inspection.firewall() is None


def test_only_completely_installed_packages_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def run(*arguments: str, **_: Any) -> Outcome:
        asked.append(arguments)
        text = "docker.io installed\ndocker-cli half-configured\nearlyoom config-files\n"
        return Outcome(1, text, "dpkg-query: no packages found matching nothing")

    monkeypatch.setattr(packages, "run", run)
    assert packages.installed("docker.io", "docker-cli", "earlyoom", "nothing") == ("docker.io",)
    assert asked[0][-1] == "nothing"


def test_a_docker_that_started_before_the_toolkits_installation_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    started(0)  # Docker does not run
    assert not inspection.docker_is_older()


def test_the_inspection_does_not_change_this_machine() -> None:
    result = as_json(
        inspection.main(
            BootstrapRequest(ObservationRequest(directories=("/etc",)), ("bash", "no-such-package"))
        )
    )
    assert result["observed"]["architecture"] == os.uname().machine
    assert "no-such-package" not in result["packages"]


class Apt:
    """A host's packages, and the commands that were run."""

    def __init__(self) -> None:
        self.installed = {"bash", "curl"}
        self.ran: list[tuple[str, ...]] = []
        #: Packages that depend on a removed package, and packages that were only installed for it.
        self.needed_by: dict[str, set[str]] = {}
        self.brought: dict[str, set[str]] = {}
        self.fails: tuple[str, ...] = ()

    def run(self, *arguments: str, **_: Any) -> Outcome:
        arguments = tuple(
            word for word in arguments if word != "-o" and "Lock::Timeout" not in word
        )
        self.ran.append(arguments)
        if arguments[0] in self.fails:
            return Outcome(1, err="it broke")
        if arguments[0] == "dpkg-query":
            named = [word for word in arguments[4:] if not word.startswith("-")]
            items = [item for item in sorted(self.installed) if not named or item in named]
            installed = [f"{item} installed" for item in items]
            return Outcome(0, "\n".join([*installed, "gone config-files\n"]))
        if arguments[:2] == ("apt-get", "-s"):
            return Outcome(0, "".join(f"Purg {goe} [1.0]\n" for goe in self._goes(arguments)))
        if arguments[:2] == ("apt-get", "purge"):
            self.installed -= set(self._goes(arguments))
        return Outcome(0)

    def _goes(self, arguments: tuple[str, ...]) -> list[str]:
        names = [word for word in arguments[2:] if not word.startswith("-") and word != "purge"]
        goes = set(names)
        for name in names:
            goes |= self.needed_by.get(name, set())
            goes |= self.brought.get(name, set()) if "--auto-remove" in arguments else set()
        return sorted(goes & self.installed)


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Apt:
    result = Apt()
    for module in (prepare, undo, packages):
        monkeypatch.setattr(module, "run", result.run)
    for module in (prepare, undo):
        monkeypatch.setattr(module, "RECORD", str(tmp_path / "lib/bootstrap.json"))
    monkeypatch.setattr(packages, "_LOCKS", (str(tmp_path / "lock"),))
    monkeypatch.setattr(packages, "_JOURNAL", tmp_path / "updates")
    monkeypatch.setattr(docker, "containers", list)
    monkeypatch.setattr(docker, "get", lambda *_: [])
    monkeypatch.setattr(systemd, "reload", lambda: result.ran.append(("daemon-reload",)))
    monkeypatch.setattr(systemd, "disable", lambda *u: result.ran.append(("disable", *u)))
    return result


def recorded(tmp_path: Path) -> dict[str, Step]:
    return documents.record(dict[str, Step], tmp_path / "lib/bootstrap.json") or {}


def step(name: str, **changes: Any) -> None:
    prepare.main(PrepareRequest(name, Undo(**changes)))


DOCKER = ("docker.io", "docker-compose")


def test_the_original_state_is_recorded_once(apt: Apt, tmp_path: Path) -> None:
    """An interrupted step, with half of its packages installed, starts again."""
    step("docker", packages=DOCKER)
    apt.installed.add("docker.io")
    step("docker", packages=("docker-compose",))
    (name,) = recorded(tmp_path)
    item = recorded(tmp_path)[name]
    assert item.before == ("bash", "curl")
    assert item.undo.packages == DOCKER
    assert (tmp_path / "lib/bootstrap.json").stat().st_mode & 0o777 == 0o600


def test_the_oldest_state_is_restored_last(apt: Apt) -> None:
    """A port that was added later is closed, too; swappiness gets its original value."""
    step("firewall", commands=(("ufw", "8000"),))
    step("firewall", commands=(("ufw", "8001"),))
    step("swap", commands=(("sysctl", "60"),))
    step("swap", commands=(("sysctl", "10"),))
    assert undo.main(None).done == ("sysctl 10", "sysctl 60", "ufw 8001", "ufw 8000")


def undone(apt: Apt, *packages: str, **changes: Any) -> UndoAnswer:
    """Docker was installed together with these packages, and is undone."""
    step("docker", packages=DOCKER)
    apt.installed |= {*DOCKER, *packages}
    vars(apt).update(changes)
    return undo.main(None)


def test_packages_are_removed_with_their_dependencies(apt: Apt, tmp_path: Path) -> None:
    answer = undone(apt, "runc", brought={"docker.io": {"runc"}})
    assert apt.installed == {"bash", "curl"}
    assert answer.done == ("package docker-compose", "package docker.io", "package runc")
    assert answer.left == ()
    assert not (tmp_path / "lib/bootstrap.json").exists()
    assert undo.main(None).left == ("no change by bootstrap is recorded here",)


def test_packages_from_before_bootstrap_stay(apt: Apt) -> None:
    """A foreign orphan would be removed by --auto-remove, too."""
    undone(apt, "runc", brought={"docker.io": {"runc", "curl"}})
    assert apt.installed == {"bash", "curl", "runc"}


def test_packages_that_other_packages_need_stay(apt: Apt) -> None:
    answer = undone(apt, "theirs", needed_by={"docker.io": {"theirs"}})
    assert apt.installed >= {*DOCKER, "theirs"}
    assert answer.left == ("docker: docker.io, docker-compose stay: theirs need them",)


@pytest.mark.parametrize("there", ["containers", "get"])
def test_docker_with_foreign_containers_or_images_stays(
    apt: Apt, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    monkeypatch.setattr(docker, there, lambda *_: [{"Id": "theirs"}])
    answer = undone(apt)
    assert apt.installed >= set(DOCKER)
    assert "images that sparkwright did not make" in answer.left[0]


def test_unchanged_files_are_removed(apt: Apt, tmp_path: Path) -> None:
    ours, theirs, gone = tmp_path / "ours", tmp_path / "theirs", tmp_path / "gone"
    ours.write_text("text")
    theirs.write_text("text, changed")
    digest = hashlib.sha256(b"text").hexdigest()
    step("earlyoom", files=dict.fromkeys(map(str, (ours, theirs, gone)), digest))
    answer = undo.main(None)
    assert not ours.exists()
    assert theirs.exists()
    assert answer.done == (str(ours),)
    assert answer.left == (f"{theirs}: changed since bootstrap wrote it",)


def test_the_last_step_is_undone_first_and_sudo_last(apt: Apt) -> None:
    step("sudoers", commands=(("sudo-file",),))
    step("docker", commands=(("first",),))
    step("docker-group", commands=(("second",),), units=("a.service",))
    step("driver", packages=("nvidia-open",), apart="the driver stays")
    apt.installed.add("nvidia-open")
    answer = undo.main(None)
    assert answer.done == ("second", "first", "sudo-file")
    assert answer.left == ("driver: the driver stays",)
    assert "nvidia-open" in apt.installed
    assert ("disable", "a.service") in apt.ran


def test_a_failed_undo_is_named(apt: Apt) -> None:
    step("docker-group", commands=(("gpasswd", "--delete", "me", "docker"),))
    apt.fails = ("gpasswd",)
    failed = "docker-group: failed: gpasswd --delete me docker"
    assert undo.main(None).left == (failed,)


def test_an_interrupted_undo_continues(
    apt: Apt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step("docker", commands=(("first",),))
    step("docker-group", commands=(("second",),))
    real = undo.undo

    def cut(name: str, row: Any) -> Any:
        if name == "docker":
            raise KeyboardInterrupt
        return real(name, row)

    monkeypatch.setattr(undo, "undo", cut)
    with pytest.raises(KeyboardInterrupt):
        undo.main(None)
    assert list(recorded(tmp_path)) == ["docker"]
    monkeypatch.setattr(undo, "undo", real)
    assert undo.main(None).done == ("first",)


def _holding(folder: Path) -> subprocess.Popen[str]:
    """Start a process that holds a lock on a file, as dpkg does."""
    text = (
        "import fcntl, sys, time\nfile = open(sys.argv[1], 'w')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    held = subprocess.Popen(
        [sys.executable, "-c", text, str(folder)], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert held.stdout is not None
    assert held.stdout.readline() == "held\n"
    return held


def test_an_undo_waits_for_another_programs_installation(
    apt: Apt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """unattended-upgrades at boot, or an interrupted run's apt-get, may hold the lock."""
    held = _holding(tmp_path / "lock")
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        held.communicate("", timeout=20)

    clock = SimpleNamespace(sleep=sleep, monotonic=time.monotonic)
    monkeypatch.setattr(waiting, "time", clock)
    prepare.main(PrepareRequest("docker", Undo(packages=DOCKER), apt=True))
    assert waits == [1]

    held = _holding(tmp_path / "lock")
    monkeypatch.setattr(packages, "PATIENCE", -1)
    with pytest.raises(SystemExit, match="another program has held apt's lock"):
        prepare.main(PrepareRequest("docker", Undo(packages=DOCKER), apt=True))
    held.communicate("", timeout=20)
    with (tmp_path / "lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_an_interrupted_installation_is_completed_first(apt: Apt, tmp_path: Path) -> None:
    (tmp_path / "updates").mkdir()
    (tmp_path / "updates/tmp.i").touch()
    prepare.main(PrepareRequest("docker", apt=True))
    assert not [item for item in apt.ran if item[0] == "dpkg"]
    (tmp_path / "updates/0001").touch()
    prepare.main(PrepareRequest("docker", apt=True))
    assert apt.ran[-1][0] == "dpkg"
    assert apt.ran[-1][-2:] == ("--configure", "-a")
    apt.fails = ("dpkg",)
    with pytest.raises(SystemExit, match="an interrupted dpkg run can't be completed: it broke"):
        prepare.main(PrepareRequest("docker", apt=True))


class TestSudoers:
    """A mistake in a sudoers file would disable all of sudo."""

    @pytest.fixture(autouse=True)
    def folder(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        path = tmp_path / "sudoers.d"
        monkeypatch.setattr(prepare, "_SUDOERS", path)
        return path

    def test_a_sudoers_file_is_checked_and_then_written(
        self, apt: Apt, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        text = "me ALL=(ALL) NOPASSWD: ALL\n"
        path = folder / "sparkwright-me"
        checked: list[str] = []

        def run(*arguments: str, **_: Any) -> Outcome:
            if arguments[0] == "visudo":
                checked.append(Path(arguments[2]).read_text())
                assert not path.exists()
            return apt.run(*arguments)

        monkeypatch.setattr(prepare, "run", run)
        message = prepare.main(PrepareRequest("sudoers", sudoers=(str(path), text)))
        assert (checked, message) == ([text], (f"wrote {path}",))
        assert path.read_text() == text
        assert path.stat().st_mode & 0o777 == 0o440

    def test_a_file_that_visudo_refuses_is_not_written(self, apt: Apt, folder: Path) -> None:
        apt.fails = ("visudo",)
        with pytest.raises(SystemExit, match="visudo refuses the text"):
            prepare.main(PrepareRequest("sudoers", sudoers=(str(folder / "x"), "nonsense")))
        assert not (folder / "x").exists()

    @pytest.mark.parametrize("name", ["../shadow", "a.b", "below/x"])
    def test_no_file_is_written_outside_the_sudoers_folder(
        self, apt: Apt, folder: Path, name: str
    ) -> None:
        with pytest.raises(SystemExit, match="sudo does not read files with this path"):
            prepare.main(PrepareRequest("sudoers", sudoers=(f"{folder}/{name}", "x\n")))


@pytest.mark.parametrize("torn", ["", "{", '{"steps": {"docker": 5}}'])
def test_a_torn_record_does_not_block_a_step(apt: Apt, tmp_path: Path, torn: str) -> None:
    (tmp_path / "lib").mkdir(mode=0o755)
    (tmp_path / "lib/bootstrap.json").write_text(torn)
    step("docker", packages=DOCKER)
    assert list(recorded(tmp_path)) == ["docker"]
