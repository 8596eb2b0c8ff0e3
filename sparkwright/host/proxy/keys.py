"""Has the running HAProxy know these API keys and no other, or says which it knows.

Runs on the host as root. Nobody who is connected is cut off.
"""

from __future__ import annotations

from pathlib import Path

from sparkwright.host.lib import files, systemd
from sparkwright.host.lib.records import dataclass
from sparkwright.host.lib.waiting import remaining
from sparkwright.host.proxy import configure, place
from sparkwright.host.proxy.pool import UNIT, ProxyRequest


@dataclass(frozen=True)
class KeysRequest:
    """The API keys that HAProxy must know.

    Attributes:
        proxy: HAProxy; its files are not touched.
        place: path of the map of the keys.
        text: what it must hold; None only asks.
    """

    proxy: ProxyRequest
    place: str
    text: str | None


#: Seconds that a new worker has to take over.
_PATIENCE = 15


def accepted(admin: str, path: str) -> list[str]:
    """Hash and name of each key that the worker for new requests has loaded."""
    rows = (line.split() for line in place.ask(admin, f"show map {path}").splitlines())
    return sorted(" ".join(row[1:]) for row in rows if len(row) == 3)


def main(request: KeysRequest) -> list[str]:
    """Make it so where a text is given. Returns hash and name of each key that opens the proxies.

    Raises:
        SystemExit: when this host's HAProxy reads no such file, or does not take it.
    """
    proxy = request.proxy
    config = Path(proxy.config)
    if not config.is_file():
        return []  # never deployed: the first deploy brings the keys of its day
    if request.place not in config.read_text():
        raise SystemExit("the proxy here is not the planned one yet: deploy this host first")
    running = systemd.is_active(UNIT)
    if request.text is None:
        return accepted(proxy.admin, request.place) if running else []
    files.write(Path(request.place), request.text, 0o600)
    wanted = sorted(request.text.splitlines())

    def differs() -> bool:
        try:
            return accepted(proxy.admin, request.place) != wanted
        except OSError:  # for a moment after a reload nobody listens
            return True

    # Not by the file: a reload that failed has left a worker that does not know it.
    if running and accepted(proxy.admin, request.place) != wanted:
        configure.reload(proxy)
        if remaining(differs, _PATIENCE):
            raise SystemExit(f"{UNIT} did not take the new keys: see journalctl -u {UNIT}")
    return wanted
