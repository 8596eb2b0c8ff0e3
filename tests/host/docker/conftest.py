"""A real Docker with containerd's image store, in namespaces of its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import base

#: The lab's Docker over the lab's base tree; what it writes is kept outside of it. It sees no
#: network but its own loopback.
_START = """
set -e
ip link set lo up
mount -t overlay overlay -o lowerdir="$1",upperdir="$2/upper",workdir="$2/work" "$2/root"
mount -t proc proc "$2/root/proc"
mount -t tmpfs tmpfs "$2/root/run"
mount --rbind /sys "$2/root/sys"
mount --rbind /dev "$2/root/dev"
for store in containerd docker; do
    mkdir -p "$2/root/var/lib/$store"
    mount --bind "$2/$store" "$2/root/var/lib/$store"
done
mkdir -p "$2/root/etc/docker"
cat > "$2/root/etc/docker/daemon.json" <<'JSON'
{"features": {"containerd-snapshotter": true}, "iptables": false, "ip6tables": false,
 "bridge": "none"}
JSON
chroot "$2/root" containerd &
exec chroot "$2/root" dockerd --host unix:///run/docker.sock \
    --containerd /run/containerd/containerd.sock
"""


@dataclass
class Engine:
    """Docker's daemon: its process, and how to speak to it.

    Attributes:
        pid: of its daemon; others run beside it, in its network, by ``nsenter``.
    """

    pid: int

    @property
    def address(self) -> str:
        return f"unix:///proc/{self.pid}/root/run/docker.sock"

    @property
    def enter(self) -> list[str]:
        """Words that have a command run in its network."""
        return ["nsenter", "-t", str(self.pid), "-n"]


#: Debian's Docker, and its newest.
_TREES = {
    "stable": (base.path(), "python -m lab up"),
    "newest": (base.newest_path(), "python -m lab up --only newdocker-1"),
}


@pytest.fixture(scope="module", params=_TREES)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    tree, remedy = _TREES[request.param]
    if os.geteuid() != 0 or not (tree / "usr/sbin/dockerd").exists():
        pytest.skip(f"needs root, and the lab's base tree ({remedy})")
    if shutil.which("docker") is None:
        pytest.skip("needs the docker command")
    place = tmp_path_factory.mktemp("engine")
    for name in ("upper", "work", "root", "containerd", "docker"):
        (place / name).mkdir()
    log = place / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            ["unshare", "-m", "-n", "-p", "-f", "--kill-child", "sh", "-c", _START, "sh",
             str(tree), str(place)],
            stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
    try:
        yield Engine(_daemon(process, log))
    finally:
        # The end of the namespace's first process ends all in it, and its mounts go with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def _daemon(process: subprocess.Popen[bytes], log: Path) -> int:
    """The daemon's process, once it listens."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        if "API listen on /run/docker.sock" in log.read_text(errors="replace"):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            return int(children.split()[0])
        time.sleep(0.2)
    pytest.fail(f"Docker does not start: {log.read_text(errors='replace')[-2000:]}")
