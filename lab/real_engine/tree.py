"""A run in a tree, like a container: with its own namespaces, and a network on request.

The run needs no Docker, and leaves no mounts behind, since the mounts belong to the namespace.
"""

from collections.abc import Sequence
from pathlib import Path

# $1 is the tree, $2 its writable folder at /run/engine, $3 the number of mounts, which follow as
# pairs, then the number of writable places if the tree itself is read-only, and these; the rest is
# the command.
_ENTER = r"""
set -e
root=$1 sockets=$2 mounts=$3; shift 3
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
for place in models run root; do mount -t tmpfs tmpfs "$root/$place"; done
if [ -n "$sockets" ]; then mkdir "$root/run/engine"; mount --bind "$sockets" "$root/run/engine"; fi
while [ "$mounts" -gt 0 ]; do
    if [ -d "$1" ]; then mkdir -p "$root$2"; else mkdir -p "$root${2%/*}"; : >"$root$2"; fi
    mount --bind -o ro "$1" "$root$2"
    shift 2; mounts=$((mounts - 1))
done
writable=$1; shift
if [ "$writable" -gt 0 ]; then
    while [ "$writable" -gt 0 ]; do
        mkdir -p "$root$1"; mount -t tmpfs -o mode=1777 tmpfs "$root$1"
        shift; writable=$((writable - 1))
    done
    for place in / /models /run /root; do mount -o remount,bind,ro "$root$place"; done
fi
exec /usr/sbin/chroot "$root" /usr/bin/setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \
    -- "$@"
"""


def inside(
    root: Path,
    arguments: Sequence[str],
    mounts: Sequence[tuple[Path, str]] = (),
    writable: Sequence[str] = (),
    sockets: Path | None = None,
) -> list[str]:
    """The command that runs `arguments` with `root` as its root, without any capability.

    mounts: folders and files of this machine, and their read-only paths in the tree.
    writable: writable folders while everything else is read-only; without folders, everything is
        writable.
    sockets: folder of the engine's socket; with a folder, the only network is a separate loopback.
    """
    pairs = [str(word) for pair in mounts for word in pair]
    command = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--kill-child"]
    enter = _ENTER
    if sockets:
        command.insert(1, "--net")
        enter = f"ip link set lo up{enter}"
    command += ["sh", "-c", enter, "sh", str(root), str(sockets or ""), str(len(mounts)), *pairs]
    return [*command, str(len(writable)), *writable, *arguments]
