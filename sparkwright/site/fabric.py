"""The setting ``fabric_addresses``, judged over all hosts that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake, suggest

_KEY = "fabric_addresses"


def fabric_problems(everyone: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Hosts that there are not, and hosts that say something else; each once.

    Args:
        everyone: data of every host of the inventory, which may be no good.
    """
    told: set[str] = set()
    for host, data in everyone.items():
        for name in members(data):
            if name in told:
                continue
            if name not in everyone:
                told.add(name)
                what = f"no such host: {name!r}"
                yield mistake(f"{_KEY}.hosts", what, suggest(name, list(everyone)))
            elif everyone[name].get(_KEY) != data[_KEY]:
                told.update((name, host))
                what = f"{name} has other addresses than {host}, or none, and is named by it"
                yield mistake(_KEY, what, "set it once, in group_data/all.py", name)


def members(data: Mapping[str, Any]) -> list[str]:
    """Names of hosts as they are written: what else is wrong is told with all other settings."""
    wanted = data.get(_KEY)
    every = wanted.get("hosts") if isinstance(wanted, Mapping) else None
    return [one for one in every if isinstance(one, str)] if isinstance(every, list | tuple) else []
