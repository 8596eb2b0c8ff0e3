"""Determine a box's type from /etc/os-release, the files of DGX OS, architecture and GPU; build
bootstrap's findings from the texts in findings.yaml.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial

from sparkwright.checks.host.remedies import install, major
from sparkwright.findings.finding import Finding, Severity, Subject
from sparkwright.host.bootstrap.inspection import BootstrapState
from sparkwright.text.shipped_yaml import beside

_texts = cache(partial(beside, __file__, "findings.yaml"))


class Kind(StrEnum):
    """Type of a box; GB10 is Ubuntu on a GB10 without DGX OS."""

    DGX = "DGX OS"
    GB10 = "Ubuntu on a GB10"
    UBUNTU = "Ubuntu"
    DEBIAN = "Debian"


@dataclass(frozen=True)
class Box:
    """A host whose type bootstrap supports. ``codename`` and ``architecture`` are apt's names."""

    kind: Kind
    major: int
    codename: str
    architecture: str


#: Major versions of each system, from the oldest version with a Python for host programs.
_UBUNTU, _DEBIAN = (22, 24, 26), (12, 13)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def box_of(state: BootstrapState) -> Box | Finding:
    """Return the type of machine, or the reason why bootstrap does not change the host."""
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


def finding(cause: str, **values: str) -> Finding:
    """Return the finding of a cause, with values in its texts."""
    texts = {name: text.format(**values) for name, text in _texts()[cause].items()}
    severity = Severity(texts.pop("severity", "error"))
    source = texts.pop("source", "sparkwright")
    return Finding(texts.pop("id"), severity, Subject(), **texts, source=source)
