"""Docker: queries over the socket, ten times as fast as the docker command, and docker commands."""

import json
import os
import shutil
import socket
from pathlib import Path

from sparkwright.host.lib.annotations import Any
from sparkwright.host.lib.processes import Outcome, run
from sparkwright.host.lib.records import dataclass


@dataclass(frozen=True)
class Docker:
    """Version, root and runtimes of the Docker daemon.

    Attributes:
        store: directory of Docker's images: below Docker's root, or containerd's own directory.
    """

    version: str | None
    root: str
    runtimes: tuple[str, ...]
    driver: str | None = None
    store: str | None = None


@dataclass(frozen=True)
class Container:
    """A container as Docker reports it; ``created`` and ``started`` are RFC 3339.

    Attributes:
        release: release of the container; None for an unmanaged container.
    """

    running: bool
    release: str | None
    image: str
    id: str = ""
    created: str = ""
    started: str = ""


_HERE = "unix://"
#: Largest size of an answer in bytes: a list of all containers has some hundred KiB.
_LARGEST = 32 << 20


def place() -> str:
    """Return the address of Docker's socket, as the docker command finds it."""
    address = os.environ.get("DOCKER_HOST", "")
    return address[len(_HERE) :] if address.startswith(_HERE) else "/var/run/docker.sock"


def get(path: str, timeout: float | None = 10) -> Any:
    """Send a GET to Docker's API. Returns decoded JSON; None if Docker does not answer or lacks the
    object.

    An observation gives up after some seconds; a caller whose decision depends on the answer waits
    without a timeout. The request is plain HTTP/1.0: importing http.client alone takes as long as
    all requests.
    """
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    try:
        connection.connect(place())
        connection.sendall(f"GET {path} HTTP/1.0\r\nHost: docker\r\n\r\n".encode())
        with connection.makefile("rb") as answer:
            head, _, body = _read(answer).partition(b"\r\n\r\n")
        return json.loads(body) if head.split(None, 2)[1:2] == [b"200"] else None
    except (OSError, ValueError):
        return None
    finally:
        connection.close()


def _read(answer: Any) -> bytes:
    """Read a whole answer, which may contain texts of any container."""
    text: bytes = answer.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise ValueError(f"Docker answers with more than {_LARGEST >> 20} MiB")
    return text


def container(name: str, timeout: float | None = 10) -> Any:
    """Inspect a container by name or id, like ``docker inspect``; None if it does not exist."""
    return get(f"/containers/{name}/json", timeout)


def own_container(service: str) -> Container | None:
    """Return the container of a sparkwright service; None without a container."""
    inspected = container(f"sparkwright-{service}")
    return inspected and described(inspected)


def described(inspected: Any) -> Container:
    """Make a container's record from the output of ``docker inspect``."""
    return Container(
        id=inspected["Id"],
        running=inspected["State"]["Running"],
        created=inspected["Created"],
        started=inspected["State"]["StartedAt"],
        release=release_of(inspected),
        image=inspected["Config"]["Image"],
    )


def account_of(info: Any) -> Docker | None:
    """Make a record from Docker's answer to ``/info``; None if Docker did not answer."""
    return info and Docker(
        version=info.get("ServerVersion"),
        root=info["DockerRootDir"],
        runtimes=tuple(sorted(info.get("Runtimes") or {})),
        driver=info.get("Driver"),
        store=store(info),
    )


def containers() -> list[Any]:
    """Return every container, running or not, like ``docker inspect``."""
    listed = get("/containers/json?all=1") or []
    return [inspected for summary in listed if (inspected := container(summary["Id"]))]


def running_release(service: str, timeout: float | None = 10) -> str | None:
    """Return the release whose container runs for a service; None if no release runs."""
    inspected = container(f"sparkwright-{service}", timeout)
    return release_of(inspected) or "" if inspected and inspected["State"]["Running"] else None


def release_of(seen: Any) -> str | None:
    """Return a container's release; None for an unmanaged container."""
    release: str | None = (seen["Config"].get("Labels") or {}).get("sparkwright.release")
    return release


def image(name: str, timeout: float | None = 10) -> Any:
    """Inspect an image, like ``docker image inspect``; None if Docker does not have it."""
    return get(f"/images/{name}/json", timeout)


def image_names() -> list[str]:
    """Return ``repository:tag`` of every image."""
    return [name for summary in get("/images/json") or [] for name in summary.get("RepoTags") or []]


def store(info: dict[str, Any]) -> str:
    """Return the directory of Docker's images.

    With containerd's image store, the default of fresh installations since Docker 29, the images
    are in containerd's own directory, regardless of data-root (docker/cli#6645), or below data-root
    if Docker has started its own containerd.
    """
    root = str(info["DockerRootDir"])
    if not in_containerd(info):
        return root
    address = str((info.get("Containerd") or {}).get("Address"))
    own = address.startswith(("/var/run/docker/", "/run/docker/"))
    return f"{root}/containerd/daemon" if own else "/var/lib/containerd"


def in_containerd(info: dict[str, Any]) -> bool:
    """Return whether images are in containerd's store instead of Docker's own."""
    status = dict(pair for pair in info.get("DriverStatus") or [] if len(pair) == 2)
    return status.get("driver-type") == "io.containerd.snapshotter.v1"


def kind(info: dict[str, Any] | None) -> str | None:
    """Return the substitute for Docker's own engine (snap, desktop, rootless or podman), or
    None.
    """
    if info:
        if "BuildahVersion" in info:
            return "podman"
        if info.get("OperatingSystem") == "Docker Desktop":
            return "desktop"
        if any("rootless" in option for option in info.get("SecurityOptions") or []):
            return "rootless"
        if str(info.get("DockerRootDir")).startswith("/var/snap/"):
            return "snap"
    program = shutil.which("docker", path=f"{os.environ.get('PATH', '')}:/snap/bin") or ""
    if program.startswith("/snap/"):
        return "snap"
    if program and _is_podman(program):
        return "podman"
    if info is None and any(Path("/home").glob("*/.docker/desktop/docker.sock")):
        return "desktop"
    if info is None and any(Path("/run/user").glob("*/docker.sock")):
        return "rootless"
    return None


def _is_podman(program: str) -> bool:
    """Return whether a program is podman-docker's script, a few lines that call podman."""
    try:
        with Path(program).open("rb") as file:
            head = file.read(4096)
    except OSError:
        return False
    return head.startswith(b"#!") and b"podman" in head


def docker(*arguments: str, timeout: float | None = None) -> Outcome:
    """Run a docker command."""
    return run("docker", *arguments, timeout=timeout)
