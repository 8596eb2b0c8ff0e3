"""The host's memory, and who else takes of it: on a GB10 it is the GPU's, too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sparkwright.host.lib import documents

#: Sockets of whoever shows a desktop: X's, and Wayland's below each user's own directory.
_DISPLAYS = (("/tmp/.X11-unix", "X*"), ("/run/user", "*/wayland-*"))


def meminfo(root: Path = Path("/")) -> dict[str, int]:
    """/proc/meminfo in bytes; empty if there is none."""
    values = {}
    for line in (documents.text(root / "proc/meminfo") or "").splitlines():
        key, _, rest = line.partition(":")
        parts = rest.split()
        if len(parts) == 2:
            values[key] = int(parts[0]) * 1024
    return values


def cma_over(values: Mapping[str, int]) -> int:
    """Bytes of free contiguous memory beyond its total: kexec handover's, of kernel 7.0.0-1019.

    A kernel with ``kho=off`` has none of either, and is well.
    """
    return max(0, values.get("CmaFree", 0) - values.get("CmaTotal", 0))


def swappiness() -> int | None:
    """How readily the kernel swaps, 0 to 200; None if it does not say."""
    try:
        return int(Path("/proc/sys/vm/swappiness").read_text())
    except (OSError, ValueError):
        return None


def desktop() -> bool:
    """Whether a desktop runs, be it only its login screen."""
    return any(
        any(path.is_socket() for path in Path(location).glob(name)) for location, name in _DISPLAYS
    )
