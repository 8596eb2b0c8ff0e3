"""Installation with apt, while other programs use it, or behind a proxy."""

from pathlib import Path

import pytest

from sparkwright.host.lib import apt as program_apt
from sparkwright.host.lib import packages
from sparkwright.host.proxy import install

#: apt's own words (apt-pkg/fileutl.cc, GetLock), for each of its locks.
LOCKED = (
    "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1234 (apt-get)",
    "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 9 (unattended-upgr)",
    "E: Konnte Sperre /var/cache/apt/archives/lock nicht erhalten",
)


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An apt-get that records its calls, and fails as often as ``fails`` has lines."""
    program = tmp_path / "apt-get"
    program.write_text(
        f"""#!/bin/sh
cd {tmp_path}
echo "$@ proxy=$http_proxy" >> called
[ -s fails ] || exit 0
head -n 1 fails >&2
sed -i 1d fails
exit 100
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(program_apt, "_PAUSE", 0.01)
    monkeypatch.setattr(program_apt, "_LOCKS", ())
    monkeypatch.setattr(program_apt, "_JOURNAL", tmp_path / "none")
    monkeypatch.setattr(install, "HAPROXY", str(tmp_path / "haproxy"))
    monkeypatch.setattr("sparkwright.host.lib.systemd.disable", lambda _: None)
    return tmp_path


def _called(apt: Path) -> list[str]:
    return (apt / "called").read_text().splitlines()


@pytest.mark.parametrize("message", LOCKED)
def test_an_installation_waits_for_a_lock_of_apt(apt: Path, message: str) -> None:
    (apt / "fails").write_text(f"{message}\n{message}\n")
    install.main({})
    assert len(_called(apt)) == 3
    assert all("install" in line and "update" not in line for line in _called(apt))
    assert "-o DPkg::Lock::Timeout=600" in _called(apt)[0]


def test_the_wait_for_an_apt_lock_has_a_limit(apt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_apt, "PATIENCE", 0)
    (apt / "fails").write_text(f"{LOCKED[0]}\n" * 1000)
    with pytest.raises(SystemExit, match=r"apt-get install haproxy: .*process 1234"):
        install.main({})


def test_another_failure_of_apt_is_reported_at_once(apt: Path) -> None:
    (apt / "fails").write_text("E: Unable to locate package haproxy\n" * 3)
    with pytest.raises(SystemExit, match="Unable to locate"):
        install.main({})
    assert ["update" in line for line in _called(apt)] == [False, True, False]


def test_apt_gets_the_proxy(apt: Path) -> None:
    install.main({"http_proxy": "http://proxy:3128"})
    assert _called(apt)[0].endswith("proxy=http://proxy:3128")


def test_reachability_of_packages_is_checked_through_the_proxy(
    apt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the proxy can be reached, and not the servers."""
    asked: list[list[tuple[str, int]]] = []

    def connect(servers: list[tuple[str, int]], reached: list[str]) -> None:
        asked.append(servers)
        reached += [name for name, _ in servers if name == "proxy"]

    monkeypatch.setattr(packages, "_connect", connect)
    assert packages.Question("haproxy-x", "http://proxy:3128").answer().unreachable is None
    assert asked == [[("proxy", 3128)]]
