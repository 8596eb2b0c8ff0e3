"""What the proxy's program leaves of a certificate on a host."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkwright.host.lib import systemd
from sparkwright.host.proxy import configure
from sparkwright.host.proxy.pool import ProxyRequest


@pytest.fixture
def reloads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """HAProxy runs, and is asked to read its files again."""
    found: list[str] = []
    done = SimpleNamespace(ok=True, err="")
    monkeypatch.setattr(configure, "install", lambda: None, raising=False)
    monkeypatch.setattr(configure, "run", lambda *_, **__: done)
    monkeypatch.setattr(configure, "reload", lambda request: found.append(request.unit))
    fakes: dict[str, Any] = {"is_active": lambda _: True}
    for name in ("reload", "disable", "systemctl", "start", "enable"):
        fakes[name] = lambda *_: done
    for name, fake in fakes.items():
        monkeypatch.setattr(systemd, name, fake)
    return found


def request(home: Path, **files: Any) -> ProxyRequest:
    given = {str(home / name.replace("__", "/")): text for name, text in files.items()}
    given[str(home / "haproxy.cfg")] = ("global\n", 0o644)
    return ProxyRequest(
        files=given, unit="sparkwright-gateway.service", health=None,
        config=str(home / "haproxy.cfg"), admin=str(home / "admin"), states=str(home / "states"),
    )  # fmt: skip


def test_the_key_is_root_s_alone_and_goes_with_tls(tmp_path: Path, reloads: list[str]) -> None:
    place = tmp_path / "tls/host"
    configure.main(request(tmp_path, tls__host=("KEY", 0o600)))
    assert (place.read_text(), place.stat().st_mode & 0o777) == ("KEY", 0o600)
    configure.main(request(tmp_path, tls__host=("RENEWED", 0o600)))
    assert place.read_text() == "RENEWED"
    assert len(reloads) == 2
    configure.main(request(tmp_path))
    assert not place.exists()
    assert list((tmp_path / "tls").iterdir()) == []
