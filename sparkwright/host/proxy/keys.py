"""Load a set of API keys into the running HAProxy, or list its keys.

The program runs on the host as root. Clients stay connected.
"""

from pathlib import Path

from sparkwright.host.lib import files, records, systemd, waiting
from sparkwright.host.proxy import configure, place
from sparkwright.host.proxy.pool import UNIT, ProxyRequest


@records.dataclass(frozen=True)
class KeysRequest:
    """Request to load or list HAProxy's API keys.

    Attributes:
        proxy: request with HAProxy's paths; its files stay unchanged.
        place: path of the map of keys.
        text: new text of the map; None to list the keys only.
    """

    proxy: ProxyRequest
    place: str
    text: str | None


#: Seconds for a new worker to take over.
_PATIENCE = 15


def accepted(admin: str, path: str) -> list[str]:
    """Return the hash and the name of each key that the worker for new requests has loaded."""
    rows = (line.split() for line in place.ask(admin, f"show map {path}").splitlines())
    return sorted(" ".join(row[1:]) for row in rows if len(row) == 3)


def main(request: KeysRequest) -> list[str]:
    """Load the keys if a text is given. Returns the hash and the name of each valid key.

    Raises:
        SystemExit: this host's HAProxy does not use this map of keys, or does not load it.
    """
    proxy = request.proxy
    config = Path(proxy.config)
    if not config.is_file():
        return []  # the first deploy brings the present keys
    if request.place not in config.read_text():
        raise SystemExit("this host's proxy is not the planned proxy yet: deploy this host first")
    running = systemd.is_active(UNIT)
    if request.text is None:
        return accepted(proxy.admin, request.place) if running else []
    files.write(Path(request.place), request.text, 0o600)
    wanted = sorted(request.text.splitlines())

    def differs() -> bool:
        try:
            return accepted(proxy.admin, request.place) != wanted
        except OSError:  # just after a reload no worker listens
            return True

    # Query the worker instead of reading the file: after a failed reload, the worker has not loaded
    # the file.
    if running and accepted(proxy.admin, request.place) != wanted:
        configure.reload(proxy)
        if waiting.remaining(differs, _PATIENCE):
            raise SystemExit(f"{UNIT} did not load the new keys: see journalctl -u {UNIT}")
    return wanted
