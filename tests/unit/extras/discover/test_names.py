"""Names of boxes in the LAN, from what SSH knows and from mDNS."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.extras.discover import names
from sparkwright.extras.discover.names import Candidate
from sparkwright.findings.user_error import UserError

CONFIG = """\
# mine
Host spark-1 s1
    HostName 192.168.1.21
    User me
Host *.lan !bad
    User me
Host github.com
    IdentityFile ~/.ssh/git
host=rtx
  hostname = "rtx-1.local"
Match host other
    HostName 192.168.1.99
Include more
"""
KNOWN = """\
|1|aGFzaA==|aGFzaA== ssh-ed25519 AAAA
192.168.1.21,spark-1.local ssh-ed25519 AAAA
spark-2.local ssh-ed25519 AAAA
[192.168.1.30]:2222 ssh-ed25519 AAAA
@revoked 192.168.1.66 ssh-ed25519 AAAA
github.com ssh-ed25519 AAAA
torn
"""
ADDRESSES = {
    "192.168.1.21": ["192.168.1.21"], "spark-1.local": ["192.168.1.21"],
    "rtx-1.local": ["192.168.1.23", "fe80::1%eth0"], "spark-2.local": ["fd00::2", "127.0.0.1"],
    "github.com": ["140.82.121.3"],
}  # fmt: skip


def resolve(name: str) -> list[str]:
    return ADDRESSES.get(name, [])


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text(CONFIG)
    (tmp_path / ".ssh/known_hosts").write_text(KNOWN)
    return tmp_path


def test_ssh_s_own_files(home: Path) -> None:
    assert names.ssh_config(home / ".ssh/config") == {
        "spark-1": "192.168.1.21", "s1": "192.168.1.21", "github.com": "github.com",
        "rtx": "rtx-1.local",
    }  # fmt: skip
    assert list(names.known_hosts(home / ".ssh/known_hosts")) == [
        "192.168.1.21", "spark-1.local", "spark-2.local", "github.com"
    ]  # fmt: skip


def test_each_box_once_by_the_user_s_name_and_nobody_s_server(home: Path) -> None:
    found = names.candidates(home, resolve, [])
    assert [(one.name, one.source) for one in found] == [
        ("spark-1", "ssh_config"), ("rtx", "ssh_config"), ("spark-2.local", "known_hosts")
    ]  # fmt: skip
    assert found[1].addresses == ("192.168.1.23", "fe80::1")
    assert found[2].addresses == ("fd00::2",)


def test_no_files_are_no_boxes(tmp_path: Path) -> None:
    assert names.candidates(tmp_path, resolve, []) == []


def announcing(monkeypatch: pytest.MonkeyPatch, infos: dict[str, Any]) -> list[str]:
    """Fake the library: these services are announced at once. Returns what was asked for."""
    told: list[str] = []
    network = SimpleNamespace(
        get_service_info=lambda _, name: infos[name], close=lambda: told.append("closed")
    )

    def browser(network: Any, type_: str, handlers: list[Any]) -> None:
        told.append(type_)
        for name in infos:
            handlers[0](zeroconf=network, service_type=type_, name=name, state_change=None)

    fake = SimpleNamespace(Zeroconf=lambda: network, ServiceBrowser=browser)
    monkeypatch.setitem(sys.modules, "zeroconf", fake)
    return told


def info(server: str | None, *addresses: str) -> Any:
    return SimpleNamespace(server=server, parsed_addresses=lambda: list(addresses))


def test_who_announces_ssh(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = announcing(monkeypatch, {
        "a": info("spark-3.local.", "192.168.1.33"),
        # Announced again under another name (NVIDIA/dgx-spark-playbooks#56).
        "b": info("spark-3-51.local.", "192.168.1.33"),
        "c": info("spark-1.local.", "192.168.1.21"),
        "gone": None,
    })  # fmt: skip
    found = names.candidates(home, resolve, names.announced(0))
    assert Candidate("spark-3.local", ("192.168.1.33",), "mDNS") in found
    assert [one.name for one in found if one.source == "mDNS"] == ["spark-3.local"]
    assert told == ["_ssh._tcp.local.", "closed"]


def test_without_the_library_its_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zeroconf", None)
    with pytest.raises(UserError, match=r"sparkwright\[discover\]"):
        names.announced(0)


def test_a_name_that_nobody_knows() -> None:
    assert names.resolved("no-such-name.invalid") == []
    assert names.resolved(f"{'a' * 300}.invalid") == []
