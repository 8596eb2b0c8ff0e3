"""The host's memory, and whether a desktop uses it; on a GB10 the GPU shares this memory."""

from collections.abc import Mapping
from pathlib import Path

from sparkwright.host.lib import documents

#: Sockets of a desktop: X's, and Wayland's below each user's own directory.
_DISPLAYS = (("/tmp/.X11-unix", "X*"), ("/run/user", "*/wayland-*"))


def meminfo(root: Path = Path("/")) -> dict[str, int]:
    """Return /proc/meminfo in bytes; empty if the file is missing."""
    values = {}
    for line in (documents.text(root / "proc/meminfo") or "").splitlines():
        key, _, rest = line.partition(":")
        parts = rest.split()
        if len(parts) == 2:
            values[key] = int(parts[0]) * 1024
    return values


def cma_over(values: Mapping[str, int]) -> int:
    """Return the bytes by which free contiguous memory exceeds its total, a fault of kexec handover
    in kernel 7.0.0-1019.

    A kernel with ``kho=off`` does not report these values, and does not have the fault.
    """
    return max(0, values.get("CmaFree", 0) - values.get("CmaTotal", 0))


def swappiness() -> int | None:
    """Return the kernel's swappiness, 0 to 200; None if unknown."""
    try:
        return int(Path("/proc/sys/vm/swappiness").read_text())
    except (OSError, ValueError):
        return None


def desktop() -> bool:
    """Return whether a desktop runs, even if only its login screen."""
    return any(
        any(path.is_socket() for path in Path(location).glob(name)) for location, name in _DISPLAYS
    )
