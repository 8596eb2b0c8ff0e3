"""Running something in a tree as a container would: its own namespaces, but for the network.

Docker is not needed for that, and nothing is left behind: the mounts are the namespace's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

# $1 is the tree, $2 how many mounts follow as pairs, the rest is the command.
_ENTER = r"""
set -e
root=$1 mounts=$2; shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
mkdir "$root/dev/shm"
for device in null zero full random urandom; do
    touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t tmpfs tmpfs "$root/models"
while [ "$mounts" -gt 0 ]; do
    mkdir -p "$root$2"; mount --bind -o ro "$1" "$root$2"
    shift 2; mounts=$((mounts - 1))
done
exec /usr/sbin/chroot "$root" "$@"
"""


def inside(root: Path, words: Sequence[str], mounts: Sequence[tuple[Path, str]] = ()) -> list[str]:
    """The command that runs `words` with `root` as its root.

    mounts: folders of this machine, and where below /models they are seen, read-only.
    """
    pairs = [str(word) for pair in mounts for word in pair]
    command = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--kill-child"]
    return [*command, "sh", "-c", _ENTER, "sh", str(root), str(len(mounts)), *pairs, *words]
