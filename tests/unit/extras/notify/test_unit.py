"""The unit of the timer on the controller."""

from __future__ import annotations

from pathlib import Path

from sparkwright.extras.notify import timer
from tests import systemd


def test_the_unit_of_the_controller_is_closed_as_far_as_a_user_can(tmp_path: Path) -> None:
    text = timer.units(tmp_path, Path("inventory/lab.py"))["sparkwright-notify.service"]
    found = systemd.settings(text)
    assert found["NoNewPrivileges"] == ["yes"]
    assert found["UMask"] == ["0077"]
    assert found["MemoryMax"] == ["1G"]
