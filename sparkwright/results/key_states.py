"""The API keys of a fleet as a table: names, states, and hosts that accept them, but no key."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sparkwright.config.keys import ADDRESS, DEFAULT, OWN, KeyFile, source_of
from sparkwright.config.secrets import Secret, Source, api_key
from sparkwright.config.settings import HostSettings
from sparkwright.proxy.haproxy import key_hash
from sparkwright.text.table import columns


@dataclass(frozen=True)
class KeyRow:
    """A value of a key, identified without the value itself.

    Attributes:
        state: ``current``, ``new``, ``old``, ``revoked``, ``command``, or ``unknown``: hosts accept
            a key that this controller does not have.
        created: creation time of the key's file, RFC 3339; None if missing.
        hosts: hosts whose proxies accept the value.
    """

    name: str
    state: str
    created: str | None
    hosts: tuple[str, ...]


def rows(
    settings: Mapping[str, HostSettings], lines_by_host: Mapping[str, Sequence[str]]
) -> list[KeyRow]:
    """Return a row for every value of every key.

    Args:
        settings: settings of each host.
        lines_by_host: host -> ``HASH name`` of the keys that the host's proxies accept.
    """
    opening: dict[tuple[str, str], list[str]] = {}
    for host, lines in lines_by_host.items():
        for line in lines:
            digest, name = line.split()
            if name not in (OWN, ADDRESS):
                opening.setdefault((name, digest), []).append(host)
    sources = dict.fromkeys(
        (name, source_of(own, name)) for own in settings.values() for name in (DEFAULT, *own.keys)
    )
    listed: list[KeyRow] = []
    for name, source in sources:
        for state, created, value in _values(source):
            hosts = opening.pop((name, key_hash(value)), []) if value else []
            listed.append(KeyRow(name, state, created, tuple(hosts)))
    commands = {name for name, source in sources if isinstance(source, tuple)}
    for (name, _), hosts in opening.items():
        state = "command" if name in commands else "unknown"
        listed.append(KeyRow(name, state, None, tuple(hosts)))
    return listed


def render(listed: Sequence[KeyRow]) -> str:
    """Render the table."""
    cells = [
        (row.name, row.state, row.created or "-", ", ".join(row.hosts) or "-") for row in listed
    ]
    return "\n".join(columns([("key", "state", "created", "known on"), *cells]))


def _values(source: Source) -> Iterator[tuple[str, str, Secret | None]]:
    if isinstance(source, tuple):  # the table does not need the value of a command's key
        return
    file = KeyFile(Path(source))
    paths = {"current": file.path, "new": file.new, "old": file.old, "revoked": file.revoked}
    for state, path in paths.items():
        if path.exists():
            made = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
            yield state, made, None if state == "revoked" else api_key(path, {})
