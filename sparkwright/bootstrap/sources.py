"""Where each box takes the packages of a step from, and their names.

Sources: the vendors' guides (Docker Engine on Ubuntu and Debian, NVIDIA Container Toolkit, CUDA on
Linux), deepops' roles, and Debian's and Ubuntu's own packages. The keys are pinned by their
fingerprints: Docker's as its guide prints it, NVIDIA's as in NVIDIA/libnvidia-container#280, CUDA's
as in NVIDIA/cuda-repo-management#34 (Debian 12), and by #39 there, 8793F200 for Debian 13, whose
apt no longer takes the older one: all of it as Pardus' installer of drivers pins it, which brings
that key to its users.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparkwright.bootstrap.box import Box, Kind
from sparkwright.config.bootstrap import PackageSource


@dataclass(frozen=True)
class Repository:
    """An apt repository; ``key`` is a file of the controller or an https address."""

    name: str
    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    key: str
    fingerprint: str | None

    @property
    def list_file(self) -> str:
        """Its file on a host."""
        return f"/etc/apt/sources.list.d/sparkwright-{self.name}.sources"

    @property
    def key_file(self) -> str:
        """Its key on a host."""
        return f"/etc/apt/keyrings/sparkwright-{self.name}.asc"

    @property
    def text(self) -> str:
        """The file's text (deb822). The key opens this repository and no other."""
        lines = [
            "# Written by sparkwright's bootstrap.", "Types: deb", f"URIs: {self.uri}",
            f"Suites: {' '.join(self.suites)}", f"Signed-By: {self.key_file}",
        ]  # fmt: skip
        if self.components:
            lines.insert(4, f"Components: {' '.join(self.components)}")
        return "\n".join([*lines, ""])


@dataclass(frozen=True)
class Packages:
    """Packages, and the repository that has them; None for the host's own sources."""

    names: tuple[str, ...]
    repository: Repository | None = None


_CUDA = "https://developer.download.nvidia.com/compute/cuda/repos"
_CUDA_KEYS = {
    12: ("3bf863cc.pub", "EB693B3035CD5710E231E123A4B469963BF863CC"),
    13: ("8793F200.pub", "02182E60104FCDC26EAE1B8597A5D4CB8793F200"),
}


def packages_of(step: str, box: Box, source: PackageSource | None) -> Packages | None:
    """A step's packages on a box; None where the box has none for it.

    Args:
        source: the user's own, which goes before.
    """
    own = _own(step, box)
    if source is None:
        return own
    names = source.packages or (own.names if own else ())
    if not names:
        return None
    found = Packages(names, own.repository if own else None)
    if source.uri is None:
        return found
    assert source.key is not None
    mine = Repository(
        step, source.uri, source.suites, source.components, source.key, source.fingerprint
    )
    return replace(found, repository=mine)


def _own(step: str, box: Box) -> Packages | None:
    if step == "docker":
        return _docker(box)
    if step == "nvidia-container-toolkit":
        names = ("nvidia-container-toolkit",)
        return Packages(names, None if box.kind is Kind.DGX else _toolkit(box))
    if step == "driver":
        return _driver(box)
    return Packages(("earlyoom",)) if step == "earlyoom" else None


def _docker(box: Box) -> Packages:
    if box.kind is Kind.DGX:  # it has Docker; its options are a package of their own
        return Packages(("nv-docker-options",))
    if box.kind is not Kind.DEBIAN:
        return Packages(("docker.io", "docker-compose-v2"))
    if box.major >= 13:
        return Packages(("docker.io", "docker-cli", "docker-compose"))
    # Debian 12 itself has 20.10.
    return Packages(
        ("docker-ce", "docker-ce-cli", "containerd.io", "docker-buildx-plugin",
         "docker-compose-plugin"),
        Repository(
            "docker", "https://download.docker.com/linux/debian", (box.codename,), ("stable",),
            "https://download.docker.com/linux/debian/gpg",
            "9DC858229FC7DD38854AE2D88D81803C0EBFCD88",
        ),
    )  # fmt: skip


def _toolkit(box: Box) -> Repository:
    return Repository(
        "nvidia-container-toolkit",
        f"https://nvidia.github.io/libnvidia-container/stable/deb/{box.architecture}", ("/",), (),
        "https://nvidia.github.io/libnvidia-container/gpgkey",
        "C95B321B61E88C1809C4F759DDCAE044F796ECB0",
    )  # fmt: skip


def _driver(box: Box) -> Packages | None:
    if box.kind is Kind.UBUNTU:
        return Packages(("nvidia-driver-580-open",))
    if box.kind is not Kind.DEBIAN:
        return None
    file, fingerprint = _CUDA_KEYS[box.major]
    home = f"{_CUDA}/debian{box.major}/x86_64"
    return Packages(
        ("linux-headers-amd64", "nvidia-open"),
        Repository("driver", home, ("/",), (), f"{home}/{file}", fingerprint),
    )
