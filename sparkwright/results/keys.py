"""The API keys of a fleet as a table: names, states, and hosts that know them. Never a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparkwright.config.keys import DEFAULT, OWN, KeyFile, source_of
from sparkwright.config.secrets import Secret, Source, api_key
from sparkwright.config.settings import HostSettings
from sparkwright.proxy.haproxy import key_hash
from sparkwright.text.table import columns


@dataclass(frozen=True)
class Row:
    """One value of a key.

    Attributes:
        state: ``current``, ``new``, ``old``, ``revoked``, ``command``, or ``unknown``: hosts know
            one that this controller does not have.
        created: when its file was made; None where there is none.
        hosts: whose proxies know it.
    """

    name: str
    state: str
    created: datetime | None
    hosts: tuple[str, ...]

    @property
    def data(self) -> dict[str, Any]:
        """The row as plain data."""
        return {
            "name": self.name,
            "state": self.state,
            "created": self.created and self.created.isoformat(timespec="seconds"),
            "hosts": list(self.hosts),
        }


def rows(settings: Mapping[str, HostSettings], known: Mapping[str, Sequence[str]]) -> list[Row]:
    """Every value of every key.

    Args:
        settings: of each host.
        known: host -> ``HASH name`` of the keys that open its proxies.
    """
    open_: dict[tuple[str, str], list[str]] = {}
    for host, lines in known.items():
        for line in lines:
            digest, name = line.split()
            if name != OWN:
                open_.setdefault((name, digest), []).append(host)
    sources = {
        (name, source_of(one, name)): None
        for one in settings.values()
        for name in (DEFAULT, *one.keys)
    }
    found: list[Row] = []
    for name, source in sources:
        for state, created, value in _values(source):
            hosts = open_.pop((name, key_hash(value)), []) if value else []
            found.append(Row(name, state, created, tuple(hosts)))
    commands = {name for name, source in sources if isinstance(source, tuple)}
    for (name, _), hosts in open_.items():
        state = "command" if name in commands else "unknown"
        found.append(Row(name, state, None, tuple(hosts)))
    return found


def render(found: Sequence[Row]) -> str:
    """The table."""
    lines = [
        (
            row.name,
            row.state,
            row.created.strftime("%Y-%m-%d %H:%M UTC") if row.created else "-",
            ", ".join(row.hosts) or "-",
        )
        for row in found
    ]
    return "\n".join(columns([("key", "state", "created", "known on"), *lines]))


def _values(source: Source) -> Iterator[tuple[str, datetime | None, Secret | None]]:
    if isinstance(source, tuple):  # not asked for the sake of a list
        return
    file = KeyFile(Path(source))
    places = {"current": file.path, "new": file.new, "old": file.old, "revoked": file.revoked}
    for state, path in places.items():
        if path.exists():
            made = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            yield state, made, None if state == "revoked" else api_key(path, {})
