"""What a LAN announces is anybody's word: no option, no line of a file, no login elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.extras.discover import names

HOSTILE = (
    "-oProxyCommand=touch /tmp/owned", "spark; touch /tmp/owned", "spark\nsparks = []",
    'a"], "x": ["', "../spark", "", " ", "\x1b[2J", "a" * 400, "$(id)",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_such_a_name_is_no_host(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = SimpleNamespace(server=name, parsed_addresses=lambda: ["192.168.1.5"])
    network = SimpleNamespace(get_service_info=lambda *_: info, close=lambda: None)

    def browser(network: Any, type_: str, handlers: list[Any]) -> None:
        handlers[0](zeroconf=network, service_type=type_, name="x", state_change=None)

    fake = SimpleNamespace(Zeroconf=lambda: network, ServiceBrowser=browser)
    monkeypatch.setitem(sys.modules, "zeroconf", fake)
    assert names.announced(0) == []
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/config").write_text(f"Host spark\nHostName {name}\n")
    (tmp_path / ".ssh/known_hosts").write_text(f"{name} ssh-ed25519 AAAA\n")

    def resolve(asked: str) -> list[str]:
        assert names.NAME.fullmatch(asked)
        return ["192.168.1.5"]

    found = names.candidates(tmp_path, resolve, [])
    assert {one.name for one in found} <= {"spark", "sparks"}


def test_nobody_else_s_server_is_logged_in_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name of the LAN's that leads out of it, and one that leads back to this machine."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/known_hosts").write_text("a ssh-ed25519 A\nb ssh-ed25519 A\n")
    for address in ("8.8.8.8", "2600::1", "127.0.0.1", "::1", "0.0.0.0", "nonsense"):
        assert names.candidates(tmp_path, lambda _, one=address: [one], []) == []  # type: ignore[misc]


def test_a_flood_of_names_is_bounded(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    lines = "".join(f"h{n} ssh-ed25519 A\n" for n in range(5000))
    (tmp_path / ".ssh/known_hosts").write_text(lines)
    count = iter(range(1 << 20))

    def resolve(_: str) -> list[str]:
        number = next(count)
        return [f"10.0.{number >> 8 & 255}.{number & 255}"]

    assert len(names.candidates(tmp_path, resolve, [])) == names.MOST
