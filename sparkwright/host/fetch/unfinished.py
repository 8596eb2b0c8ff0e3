"""Downloads of a host that are running or incomplete."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from sparkwright.host.lib import documents, systemd
from sparkwright.host.lib.records import dataclass

#: Seconds after which a fetch that did not end is forgotten.
_OLD = 86400


@dataclass(frozen=True)
class UnfinishedFetch:
    """A running, failed or interrupted download.

    Attributes:
        runs: whether its job runs; otherwise the download failed or was interrupted.
        progress: the job's progress.json.
    """

    name: str
    runs: bool
    progress: dict[str, object]


def unfinished(state: Path) -> Iterator[UnfinishedFetch]:
    """Yield the last day's downloads that are running or did not complete."""
    for file in sorted(state.glob("sparkwright-*/progress.json")):
        progress = documents.read(file)
        old = time.time() - file.stat().st_mtime > _OLD
        if progress is None or "bytes_total" not in progress or old or progress["state"] == "done":
            continue
        unit = systemd.unit(f"{file.parent.name}.service", timeout=10)
        request = documents.read(file.with_name("request.json")) or {}
        fetch = request.get("fetch", request)
        name = fetch.get("repo") if isinstance(fetch, dict) else None
        runs = unit.get("ActiveState") in systemd.RUNNING
        yield UnfinishedFetch(str(name or file.parent.name), runs, progress)
