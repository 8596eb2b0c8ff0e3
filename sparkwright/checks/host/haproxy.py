"""HAProxy, where the plan has a proxy: there and new enough, or to be had."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkwright.checks.host.facts import HostFacts
from sparkwright.findings.check import Symptom, check

LEAST = (2, 5)
_NEEDED = f"HAProxy >= {LEAST[0]}.{LEAST[1]}"
_ELSE = 'or "proxy": False: then only the host itself reaches the service'


@check("haproxy")
def _haproxy(host: HostFacts) -> Iterator[Symptom]:
    package = host.observed.packages.get("haproxy")
    if package is None:
        return
    brought = None if package.version else host.brought.get("haproxy")
    version = package.version or brought or package.candidate
    if version and _number(version) < LEAST:
        yield Symptom(
            f"HAProxy {version}" + ("" if package.version else " would be installed"),
            _NEEDED,
            reason="older ones can't read a key from the header (bearer)",
            remedy="Ubuntu 22.04: sudo add-apt-repository ppa:vbernat/haproxy-2.8 && sudo apt-get "
            f"install haproxy; {_ELSE}",
        )
    elif not package.version and not brought and package.unreachable:
        yield Symptom(
            f"HAProxy is not installed, and there is no way to it: {package.unreachable}",
            _NEEDED,
            remedy="sudo apt-get install haproxy where it can be had; for hosts without internet a "
            "bundle brings it (sparkwright bundle --packages, docs/sharing-and-offline.md); "
            f"{_ELSE}",
        )


def _number(version: str) -> tuple[int, int]:
    found = re.match(r"(?:\d+:)?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else LEAST
