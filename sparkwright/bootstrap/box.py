"""Kind of a box, by /etc/os-release, the files of DGX OS, architecture and GPU."""

from dataclasses import dataclass
from enum import StrEnum

from sparkwright.bootstrap.findings import finding
from sparkwright.checks.host.remedies import install, major
from sparkwright.findings.finding import Finding
from sparkwright.host.bootstrap.inspection import BootstrapState


class Kind(StrEnum):
    """DGX OS; Ubuntu on a GB10 without DGX OS; Ubuntu; Debian."""

    DGX = "DGX OS"
    GB10 = "Ubuntu on a GB10"
    UBUNTU = "Ubuntu"
    DEBIAN = "Debian"


@dataclass(frozen=True)
class Box:
    """A host that bootstrap knows. ``codename`` and ``architecture`` are apt's words."""

    kind: Kind
    major: int
    codename: str
    architecture: str


#: Major versions of each, from the oldest with a Python for host programs.
_UBUNTU, _DEBIAN = (22, 24, 26), (12, 13)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def box_of(state: BootstrapState) -> Box | Finding:
    """Return the type of machine, or the reason why bootstrap leaves the host alone."""
    host, codename = state.observed, state.codename
    on, machine = host.distribution, host.architecture
    architecture, release = _ARCHITECTURES.get(machine), major(on)
    if architecture and state.apt and codename.isascii() and codename.isalpha():
        if on.dgx:
            return Box(Kind.DGX, release, codename, architecture)
        if on.id == "ubuntu" and release in _UBUNTU:
            if architecture == "amd64":
                return Box(Kind.UBUNTU, release, codename, architecture)
            if state.gb10:
                return Box(Kind.GB10, release, codename, architecture)
        if on.id == "debian" and release in _DEBIAN and architecture == "amd64":
            return Box(Kind.DEBIAN, release, codename, architecture)
    name = " ".join(filter(None, (on.id or "no /etc/os-release", on.version, machine)))
    return finding("system", name=name, docker=install("docker", on))
