"""Making a bare host ready: what it is before, what is about to change, and what is undone."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparkwright.host.contracts.observation import Distribution

#: What bootstrap has changed on a host, so that it can be undone. Not below services_root, which
#: goes when services are removed.
RECORD = "/var/lib/sparkwright/bootstrap.json"


@dataclass(frozen=True)
class BootstrapRequest:
    """What is looked at beyond what every host has: packages by name, small files by path."""

    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Firewall:
    """The firewall at work: ufw or firewalld. ``rules`` are those it has, in its own words."""

    name: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class BootstrapState:
    """What a host is before its bootstrap.

    Attributes:
        sudo: why the look could not be taken as root; None when it was.
        user: who logs in.
        passwordless: whether that user's sudo asks for no password.
        groups: names of that user's groups.
        codename: of /etc/os-release, e.g. ``noble``.
        architecture: as ``uname -m`` has it.
        gb10: whether a GB10 is on the PCI bus.
        nvidia: whether any GPU of NVIDIA's is.
        apt: whether there is apt-get.
        docker: whether the docker command is there.
        docker_kind: snap, desktop, rootless or podman, where Docker is one of these.
        compose, toolkit: whether the Compose plugin and nvidia-ctk answer.
        docker_is_older: whether Docker runs since before the toolkit's hook, which it looks for at
            its start.
        driver: version of the driver that answers; None without one.
        driver_installer: whether a driver was installed by NVIDIA's own installer (.run).
        secure_boot: whether only signed kernel modules are loaded.
        packages: those of the request that are installed.
        fresh: those of them that were installed since the boot.
        texts: of the files of the request; None where there is none.
        swap: bytes of swap.
        networks: addresses with their networks, e.g. ``192.168.1.21/24``.
        boot: the kernel's id of this boot.
    """

    user: str
    architecture: str
    sudo: str | None = None
    passwordless: bool = False
    groups: tuple[str, ...] = ()
    distribution: Distribution = field(default_factory=Distribution)
    codename: str = ""
    gb10: bool = False
    nvidia: bool = False
    apt: bool = False
    docker: bool = False
    docker_kind: str | None = None
    compose: bool = False
    toolkit: bool = False
    docker_is_older: bool = False
    driver: str | None = None
    driver_installer: bool = False
    secure_boot: bool = False
    packages: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    texts: dict[str, str | None] = field(default_factory=dict)
    swap: int = 0
    swappiness: int | None = None
    firewall: Firewall | None = None
    networks: tuple[str, ...] = ()
    boot: str = ""


@dataclass(frozen=True)
class Undo:
    """How a step is undone.

    Attributes:
        packages: that it installs, of those that were not there.
        files: that it writes: path -> sha256. One that has another content by then is left.
        units: that go with its files.
        commands: what else is run, without a shell.
        apart: what is not undone, and what the user may do.
    """

    packages: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    units: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    apart: str | None = None


@dataclass(frozen=True)
class PrepareRequest:
    """A step that is about to be done.

    Attributes:
        undo: recorded before anything changes.
        apt: whether others' use of apt and dpkg is waited for, and one that was cut off ended.
        sudoers: path and text of a file of sudo's, written when visudo accepts it.
    """

    step: str
    undo: Undo = field(default_factory=Undo)
    apt: bool = False
    sudoers: tuple[str, str] | None = None


@dataclass(frozen=True)
class Step:
    """A step that was done. ``before`` names every package that was installed then."""

    undo: Undo
    before: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """The steps that were done on a host, in their order."""

    steps: dict[str, Step] = field(default_factory=dict)


@dataclass(frozen=True)
class RebootRequest:
    """A reboot, seconds from now."""

    after: int = 2


@dataclass(frozen=True)
class UndoRequest:
    """What bootstrap did goes, as far as it can."""


@dataclass(frozen=True)
class UndoAnswer:
    """What was undone, and what was left, as words."""

    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
