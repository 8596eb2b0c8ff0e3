"""Kind of a host's Docker and the folder of its images, by `docker info`."""

from pathlib import Path
from typing import Any

import pytest

from sparkwright.host.lib import docker
from tests.tables import Tables

cases = Tables(__file__)

ENGINE = {
    "ServerVersion": "28.2.2", "OperatingSystem": "Ubuntu 24.04.3 LTS", "Driver": "overlay2",
    "DockerRootDir": "/var/lib/docker", "SecurityOptions": ["name=seccomp,profile=builtin"],
    "DriverStatus": [["Backing Filesystem", "extfs"], ["Supports d_type", "true"]],
}  # fmt: skip
#: Docker 29 after a fresh installation (canonical/ubuntu-server-documentation#736).
CONTAINERD = {"DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]}


@pytest.fixture(autouse=True)
def no_docker_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@cases("info", "kind")
def test_docker_engine_is_distinguished_from_substitutes(
    info: dict[str, Any], kind: str | None
) -> None:
    assert docker.kind({**ENGINE, **info}) == kind


@cases("program", "kind")
def test_without_a_daemon_the_program_file_decides(
    no_docker_here: Path, program: str, kind: str | None
) -> None:
    path = no_docker_here / "docker"
    path.write_text(program)
    path.chmod(0o755)
    assert docker.kind(None) == kind


def test_images_lie_where_the_image_store_is() -> None:
    assert docker.store(ENGINE) == "/var/lib/docker"
    assert docker.store({**ENGINE, "DockerRootDir": "/data/docker"}) == "/data/docker"
    assert docker.store({**ENGINE, "DockerRootDir": "/data", **CONTAINERD}) == "/var/lib/containerd"
    systems = {"Containerd": {"Address": "/run/containerd/containerd.sock"}}
    assert docker.store({**ENGINE, **CONTAINERD, **systems}) == "/var/lib/containerd"


def test_dockers_own_containerd_is_found_below_its_root() -> None:
    """Docker's static programs start containerd with this address (moby,
    cmd/dockerd/daemon_unix.go)."""
    own = {"Containerd": {"Address": "/var/run/docker/containerd/containerd.sock"}}
    with_own = {**ENGINE, "DockerRootDir": "/data", **own}
    assert docker.store({**with_own, **CONTAINERD}) == "/data/containerd/daemon"
    assert docker.store(with_own) == "/data"  # images are in Docker's own store
