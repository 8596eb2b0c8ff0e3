"""The address's program on a host: installed, changed and removed."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.host import removal
from sparkwright.host.lib import docker, systemd
from sparkwright.host.lib.processes import Outcome
from sparkwright.host.models import setup
from sparkwright.host.models.document import PAGE
from sparkwright.host.models.setup import SERVICE, SOCKET, AddressRequest
from sparkwright.host.removal import RemovalRequest


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commands that were run; units, user and usage are in a folder of the test."""
    commands: list[str] = []

    def run(*command: str) -> Outcome:
        commands.append(" ".join(command))
        return Outcome(0)

    (tmp_path / "units").mkdir()
    monkeypatch.setattr(systemd, "UNITS", tmp_path / "units")
    monkeypatch.setattr(systemd, "TRANSIENT", tmp_path / "run")
    monkeypatch.setattr(systemd, "run", run)
    monkeypatch.setattr(setup, "run", run)
    monkeypatch.setattr(setup, "USERS", tmp_path / "sparkwright-models.conf")
    monkeypatch.setattr(setup, "USAGE", f"{tmp_path}/usage/usage.db")
    monkeypatch.setattr(docker, "docker", lambda *_, **__: Outcome(0))
    monkeypatch.setattr(docker, "image_names", list[str])
    return commands


def _request(folder: Path, socket: str = "", **files: str) -> AddressRequest:
    units = {f"{folder}/units/{SOCKET}": socket, f"{folder}/units/{SERVICE}": ""}
    home = {f"{folder}/home/{name}.json": text for name, text in files.items()}
    users = {str(setup.USERS): ""}
    texts = {path: (text, 0o644) for path, text in {**units, **home, **users}.items()}
    return AddressRequest(f"{folder}/home", texts, f"{folder}/none/pools", "models")


def test_a_changed_socket_takes_effect_beside_a_running_program(
    tmp_path: Path, ran: list[str]
) -> None:
    setup.main(_request(tmp_path, models="1"))
    for request, expected in (
        (_request(tmp_path, models="2"), [f"start {SOCKET}", f"reload {SERVICE}"]),
        (
            _request(tmp_path, "new", models="2"),
            ["daemon-reload", f"stop {SERVICE}", f"restart {SOCKET}", f"start {SERVICE}"],
        ),
        (
            _request(tmp_path, "new", models="2", other=""),
            [f"start {SOCKET}", f"try-restart {SERVICE}"],
        ),
    ):
        ran.clear()
        setup.main(request)
        assert [line[10:] for line in ran if line.startswith("systemctl ")] == expected


@pytest.mark.parametrize("everything", [False, True])
def test_removal_deletes_the_user_and_names_the_remaining_usage(
    tmp_path: Path, ran: list[str], everything: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    owners: dict[str, tuple[int, int]] = {}
    monkeypatch.setattr(os, "lchown", lambda path, *owner: owners.update({path.name: owner}))
    setup.main(_request(tmp_path, models="1"))
    (tmp_path / "usage").mkdir()
    (tmp_path / "usage/usage.db").touch()
    if everything:
        left = removal.main(RemovalRequest(f"{tmp_path}/models", f"{tmp_path}/home")).left
    else:
        left = tuple(setup.main(AddressRequest(f"{tmp_path}/home")))
    assert f"{tmp_path}/usage/usage.db: the use of API keys" in " ".join(left)
    assert owners == {"usage": (0, 0), "usage.db": (0, 0)}  # the user's number may be reused
    assert list((tmp_path / "units").glob("*.s*")) == []
    assert not (tmp_path / "home").exists()
    killed, removed = f"systemctl kill --signal=KILL {SERVICE}", "userdel sparkwright-models"
    assert ran.index(killed) < ran.index(removed)


def test_open_webui_restarts_only_for_its_files_and_keeps_its_data(
    tmp_path: Path, ran: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setup, "PAGE_DATA", str(tmp_path))
    plain = _request(tmp_path, models="1")

    def commands(**texts: str) -> list[str]:
        own = {f"{tmp_path}/home/open-webui/{name}": (text, 0o644) for name, text in texts.items()}
        own |= {f"{tmp_path}/units/{PAGE}": ("", 0o644)} if texts else {}
        ran.clear()
        setup.main(replace(plain, files={**plain.files, **own}))
        lines = [line[10:] for line in ran if line.startswith("systemctl ")]
        return [line for line in lines if "open-webui" in line]

    assert commands(compose="1") == [f"stop {PAGE}", f"start {PAGE}"]
    ran.clear()
    assert commands(compose="1") == [f"start {PAGE}"]
    assert f"systemctl try-restart {SERVICE}" not in ran
    assert commands(compose="2") == [f"stop {PAGE}", f"start {PAGE}"]
    assert commands()[0] == f"disable --quiet --now {PAGE}"
    assert not (tmp_path / "home/open-webui").exists()
    commands(compose="1")
    assert f"{tmp_path}: accounts, chats and files of Open WebUI" in " ".join(setup.remove())
    assert not (tmp_path / "units" / PAGE).exists()
