"""Secrets that version 0.1 left in files: found, and removed when nothing reads them any more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sparkwright.host import leftovers
from sparkwright.host.leftovers import LeftoversRequest


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host's directory of services, as version 0.1 left it, and its systemd."""
    for name in ("hub-token", "sparkwright-pull-1/account", "sparkwright-pull-1/request.json"):
        place = tmp_path / "state" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("a secret")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    _systemctl(tmp_path, "")
    return tmp_path


def _systemctl(root: Path, shown: str) -> None:
    program = root / "bin/systemctl"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\nprintf '{shown}'\n")
    program.chmod(0o755)


def test_they_are_removed_and_nothing_else(root: Path) -> None:
    state = root / "state"
    secrets = [str(state / "hub-token"), str(state / "sparkwright-pull-1/account")]
    assert [str(path) for path in leftovers.found(str(root))] == secrets
    assert leftovers.main(LeftoversRequest(str(root))) == secrets
    assert leftovers.found(str(root)) == []
    assert (state / "sparkwright-pull-1/request.json").is_file()
    assert leftovers.main(LeftoversRequest(str(root))) == []


def test_a_fetch_that_still_runs_keeps_its_token(root: Path) -> None:
    _systemctl(root, "Id=sparkwright-fetch-1.service\\nActiveState=active\\n")
    assert leftovers.main(LeftoversRequest(str(root))) == []
    assert len(leftovers.found(str(root))) == 2
    _systemctl(root, "Id=sparkwright-fetch-1.service\\nActiveState=failed\\n")
    assert len(leftovers.main(LeftoversRequest(str(root)))) == 2
