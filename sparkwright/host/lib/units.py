"""Files of a host that units run or read, and systemd's knowledge of the units among them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sparkwright.host.lib import files, systemd


def write(texts: Mapping[str, tuple[str, int]], *, parents: int = 0o755) -> set[str]:
    """Write files, by path with text and mode. Returns the paths that changed.

    systemd reads its units anew only where it knew one of them with another text.
    """
    known = {path for path in texts if Path(path).parent == systemd.UNITS and Path(path).exists()}
    changed = {
        path
        for path, (text, mode) in texts.items()
        if files.write(Path(path), text, mode, parents=parents)
    }
    if changed & known:
        systemd.reload()
    return changed
