"""What a LAN announces is anybody's word: no option, no line of a file, no login elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkwright.extras.discover import names
from tests.unit.extras.discover.test_names import announcing, info

HOSTILE = (
    "-oProxyCommand=touch /tmp/owned", "spark; touch /tmp/owned", "spark\nsparks = []",
    'a"], "x": ["', "../spark", "", " ", "\x1b[2J", "a" * 400, "$(id)",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_such_a_name_is_no_host(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announcing(monkeypatch, {"x": info(name, "192.168.1.5")})
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
