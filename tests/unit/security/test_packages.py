"""Packages of a bundle are installed as root: each is the one that the lock pins, or none is."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkwright.findings.user_error import UserError
from sparkwright.resolve.lock import Lock, read_lock, render_lock
from sparkwright.resolve.packages import brought, collect, versions

NAME, LIBRARY = "haproxy_2.8.5-1ubuntu3.2_arm64.deb", "liblua5.4-0_5.4.6-3build2_arm64.deb"
OTHER = "haproxy_2.8.5-1ubuntu3.2_amd64.deb"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle with packages, and the lock of its site."""
    debs = tmp_path / "debs"
    debs.mkdir()
    for name in (NAME, LIBRARY, OTHER):
        (debs / name).write_text(name)
    (debs / "notes.txt").write_text("")
    pins = collect(debs, tmp_path / "bundle")
    assert set(pins) == {NAME, LIBRARY, OTHER}
    lock = Lock(images={}, models={}, packages=pins)
    (tmp_path / "fleet.lock").write_text(render_lock(lock))
    assert read_lock(tmp_path / "fleet.lock") == lock
    return tmp_path / "bundle"


def _brought(bundle: Path) -> dict[str, bytes]:
    return brought(str(bundle), str(bundle.parent / "fleet.lock"), "aarch64")


def test_those_of_the_hosts_architecture(bundle: Path) -> None:
    assert _brought(bundle) == {NAME: NAME.encode(), LIBRARY: LIBRARY.encode()}
    lock = str(bundle.parent / "fleet.lock")
    assert versions(str(bundle), lock, "aarch64")["haproxy"] == "2.8.5-1ubuntu3.2"
    assert brought(None, lock, "aarch64") == {}


def test_a_changed_package_is_refused(bundle: Path) -> None:
    (bundle / "packages" / LIBRARY).write_text("a program of somebody else's")
    with pytest.raises(UserError, match="is not the one that"):
        _brought(bundle)


def test_a_package_that_the_lock_does_not_name_is_not_brought(bundle: Path) -> None:
    (bundle / "packages/evil_1.0_arm64.deb").write_text("a program of somebody else's")
    assert set(_brought(bundle)) == {NAME, LIBRARY}


def test_a_missing_package_is_said(bundle: Path) -> None:
    (bundle / "packages" / NAME).unlink()
    with pytest.raises(UserError, match="is not there"):
        _brought(bundle)


def test_a_folder_without_haproxy_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="apt-get"):
        collect(tmp_path, tmp_path / "bundle")
