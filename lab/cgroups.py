"""A control group for each machine, if this machine's systemd does not make the group.

systemd-nspawn puts its machine below the group in which it was started. In a shared group, the
systemds of two machines would manage and end each other's services.
"""

import contextlib
import time
from pathlib import Path

#: Mounts of cgroup2, alone or beside version 1, and of systemd's hierarchy in version 1.
_MOUNTS = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/systemd"), Path("/sys/fs/cgroup"))


def _groups(name: str) -> list[Path]:
    return [mount / name for mount in _MOUNTS if (mount / "cgroup.procs").exists()]


def enter(name: str) -> list[str]:
    """Prefix of a command line, which runs the command in the group of this name."""
    steps = [f"mkdir -p {group} && echo $$ > {group}/cgroup.procs" for group in _groups(name)]
    return ["sh", "-c", " && ".join([*steps, 'exec "$@"']), name]


def remove(name: str) -> None:
    """Remove the groups of this name, once their processes are gone."""
    for group in _groups(name):
        deadline = time.monotonic() + 5
        while group.exists() and time.monotonic() < deadline:
            for inner in sorted(group.rglob("*/"), reverse=True):
                with contextlib.suppress(OSError):
                    inner.rmdir()
            try:
                group.rmdir()
            except OSError:
                time.sleep(0.05)
