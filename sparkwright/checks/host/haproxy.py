"""HAProxy, where the plan has a proxy: there and new enough, or to be had."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sparkwright.checks.host.facts import HostCheck, error
from sparkwright.findings.finding import Finding

LEAST = (2, 5)
_NEEDED = f"HAProxy >= {LEAST[0]}.{LEAST[1]}"
_REASON = "it asks for the key on every route; vLLM by itself leaves some of them open"
_ELSE = 'or "proxy": False: then only the host itself reaches the service'


def check(host: HostCheck) -> Iterator[Finding]:
    """The installed HAProxy, or the one that would be installed."""
    seen = host.observed.packages.get("haproxy")
    if seen is None:
        return
    brought = None if seen.version else host.brought.get("haproxy")
    version = seen.version or brought or seen.candidate
    if version and _number(version) < LEAST:
        found = f"HAProxy {version}" if seen.version else f"HAProxy {version} would be installed"
        yield error(
            "haproxy", found, _NEEDED, "older ones can't read a key from the header (bearer)",
            "Ubuntu 22.04: sudo add-apt-repository ppa:vbernat/haproxy-2.8 && sudo apt-get install "
            f"haproxy; {_ELSE}",
        )  # fmt: skip
    elif not seen.version and not brought and seen.unreachable:
        yield error(
            "haproxy", f"HAProxy is not installed, and there is no way to it: {seen.unreachable}",
            _NEEDED, _REASON,
            "sudo apt-get install haproxy where it can be had; for hosts without internet a bundle "
            f"brings it (sparkwright bundle --packages, docs/sharing-and-offline.md); {_ELSE}",
        )  # fmt: skip


def _number(version: str) -> tuple[int, int]:
    found = re.match(r"(?:\d+:)?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else LEAST
