"""Settings under the names that they had in the version before: valid until 0.3, with a warning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sparkwright.findings.finding import Finding, Severity, Subject

#: Names that settings had in version 0.1: valid until 0.3, with a warning.
RENAMED = {
    "gateway": "load_balancer",
    "weights_mover": "downloader",
    "weights_connections": "download_connections",
    "fetch_limit_mb": "download_limit_mb",
    "seeding": "peer_sharing",
    "seeding_port": "peer_port",
}
#: The same within ``services.<name>``.
RENAMED_IN_SERVICES = {"door": "proxy"}


def with_new_names(data: Mapping[str, Any]) -> dict[str, Any]:
    """A host's data by the settings' new names; where both are set, the new one counts."""
    found = _renamed(data, RENAMED)
    services = found.get("services")
    if isinstance(services, Mapping):
        found["services"] = {
            name: _renamed(one, RENAMED_IN_SERVICES) if isinstance(one, Mapping) else one
            for name, one in services.items()
        }
    return found


def _renamed(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    old = {names[key]: value for key, value in data.items() if key in names}
    return old | {key: value for key, value in data.items() if key not in names}


def renamed_settings(
    host: str, data: Mapping[str, Any], origin: Callable[[str], str]
) -> Iterator[Finding]:
    """A warning for each setting that has another name now."""
    old = [(key, key, new) for key, new in RENAMED.items() if key in data]
    services = data.get("services")
    for name, one in services.items() if isinstance(services, Mapping) else ():
        if isinstance(one, Mapping):
            old += [
                ("services", f"services.{name}.{key}", new)
                for key, new in RENAMED_IN_SERVICES.items()
                if key in one
            ]
    for top, key, new in old:
        yield Finding(
            "renamed-setting",
            Severity.WARNING,
            Subject(host, None, origin(top), key),
            f"{key.rpartition('.')[2]!r} is called {new!r} now",
            reason="the old name is valid until version 0.3",
            remedy=f"write {new}",
            source="sparkwright",
        )
