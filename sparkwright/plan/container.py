"""Rights of a service's container on its host, and the path of its API key.

The key appears in no command line and not in ``docker inspect``: the host's 0600 file is mounted,
and the last shell before the engine puts the key into the engine's environment.
"""

import json
from collections.abc import Sequence

from sparkwright.catalog import Exceptions, Image
from sparkwright.config.settings import ServiceSettings
from sparkwright.host.lib.records import dataclass

#: File with the API key in a container: one line, ``NAME=...``.
SECRETS_MOUNT = "/run/secrets/engine.env"
#: Processes and threads: some 500 were observed with an engine, its compilers and 20 cores.
PIDS_LIMIT = 4096
#: Default size of a private /dev/shm: the cards' own figure.
SHM_GIB = 16.0

#: The directory of the engine's socket in a container.
SOCKET_MOUNT = "/run/engine"
#: The directory of boot caches in a container.
BOOT_CACHES_MOUNT = "/var/cache/boot"

#: The directory of an offloaded KV cache in a container.
OFFLOAD_MOUNT = "/var/cache/kv-offload"
#: Engines do not limit a cache on a disk: every 10 s this loop removes its oldest files.
_TRIM = f"""\
for tool in find sort awk xargs; do command -v "$tool" >/dev/null || {{ \
echo "nothing bounds the KV cache: the image has no $tool" >&2; exit 127; }}; done; \
(while sleep 10; do find {OFFLOAD_MOUNT} -name '*.bin' -printf '%T@ %s %p\\n' | sort -rn |
awk '(all += $2) > MOST {{print $3}}' | xargs -r rm -f; done) 2>/dev/null & """
#: The engine binds without removing an existing socket, and the umask of its files would leave the
#: socket to root alone. Only root and HAProxy may enter the socket's directory. The `sleep` of some
#: images accepts only whole seconds.
_LISTEN = f"""\
rm -f {SOCKET_MOUNT}/http.sock; \
(until chmod 0666 {SOCKET_MOUNT}/http.sock; do sleep 0.2 || sleep 1; done) 2>/dev/null & """
#: ``export "$key"`` does not evaluate the value. Without the file or a key in it, the engine
#: does not start.
_START = f'IFS= read -r key <{SECRETS_MOUNT} && export "$key" && exec "$0" "$@"'
#: An entry point with the key in its environment can put the key on a command line, as the entry
#: point of DFlash's image does. So the entry point gets no key, and finds in its PATH a program
#: that reads the key.
_START_UNKNOWING = f"""\
engine=$(command -v PROGRAM) && place=$(mktemp -d) &&
printf '#!/bin/sh\\nIFS= read -r key <%s && export "$key" && exec %s "$@"\\n' \
{SECRETS_MOUNT} "$engine" >"$place/PROGRAM" &&
chmod 500 "$place/PROGRAM" && export PATH="$place:$PATH" && exec "$0" "$@"
"""


@dataclass(frozen=True)
class ContainerPlan:
    """Capabilities, writable directories and limits of a container.

    Attributes:
        strict: read-only root file system.
        cap_add: capabilities; all others are dropped.
        writable: directories that the container may write to if its root is read-only.
        pids_limit: largest number of the container's processes and threads.
        boot_caches: whether a directory of the host keeps the engine's compiled files.
        reasons: reasons for each extra permission, each as one line of ASCII for a comment.
    """

    strict: bool
    cap_add: tuple[str, ...]
    writable: tuple[str, ...]
    pids_limit: int
    reasons: tuple[str, ...]
    boot_caches: bool = False


def plan_container(
    image: Image, service: ServiceSettings, given: Sequence[Exceptions]
) -> ContainerPlan:
    """A container of an image, with the exceptions of the recipe and the service, in this order."""
    strict = service.hardening == "strict"
    limits = [item.pids_limit for item in given if item.pids_limit]
    return ContainerPlan(
        strict=strict,
        cap_add=tuple(sorted({name for item in given for name in item.cap_add})),
        writable=tuple(
            dict.fromkeys([*image.writable, *(path for item in given for path in item.writable)])
        ),
        pids_limit=limits[-1] if limits else PIDS_LIMIT,
        reasons=tuple(json.dumps(item.reason) for item in given),
        boot_caches=not strict if service.boot_caches is None else service.boot_caches,
    )


def container_entrypoint(
    entrypoint: str, *, program: str | None = None, socket: bool = False, offloaded: int = 0
) -> list[str]:
    """Return the words of a container's entry point; its arguments follow.

    Args:
        program: the engine's program, if the image's own entry point starts the program.
        socket: whether the engine listens on its socket.
        offloaded: largest size of the service's KV cache on a disk, in bytes; 0 without this cache.
    """
    trim = _TRIM.replace("MOST", str(offloaded)) if offloaded else ""
    start = _START_UNKNOWING.replace("PROGRAM", program) if program else _START
    return ["/bin/sh", "-c", (_LISTEN if socket else "") + trim + start, entrypoint]
