"""The base file systems of the machines: Debian 13, made once with mmdebstrap and kept.

Hosts have the requirements of a deploy. A bare host has only the packages of Debian's installer;
packages of the missing programs are in a folder of its tree, for the depot's apt repository. One
host has the newest Docker of Debian.
"""

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from lab.layout import CACHE

SUITE = "trixie"
PACKAGES = (
    # packages of users' hosts
    "systemd", "systemd-sysv", "dbus", "openssh-server", "python3", "sudo", "iproute2",
    "ca-certificates", "curl", "iptables", "docker.io", "docker-cli", "docker-compose", "haproxy",
    # the depot's packages
    "docker-registry", "python3-starlette", "python3-uvicorn",
)  # fmt: skip
BARE = (
    "systemd", "systemd-sysv", "dbus", "openssh-server", "python3", "sudo", "iproute2",
    "ca-certificates", "curl", "iptables",
)  # fmt: skip
#: One host has these packages from Debian's unstable on this suite: Docker 28.5, Compose 2.40 and
#: containerd 2.1 at the time of writing.
UNSTABLE = "sid"
NEWEST = ("docker.io", "docker-cli", "docker-compose", "containerd")
_NEWEST = (
    *(package for package in PACKAGES if package not in NEWEST),
    *(f"{item}/{UNSTABLE}" for item in NEWEST),
)
#: A laptop without any part of sparkwright.
LAPTOP = ("ca-certificates", "git", "pipx", "python3", "python3-venv")
#: Packages that a bare host can get from the depot.
OFFERED = ("docker.io", "docker-cli", "docker-compose", "haproxy", "earlyoom")
#: Folder of the packages in the bare base, below apt's folder of packages: apt does not read it.
DEBS = "var/cache/sparkwright-lab-debs"


def path() -> Path:
    """Path of the base tree of this suite and these packages, after it is made."""
    return _tree("base", PACKAGES)


def ensure() -> Path:
    """The base tree, made if it is missing; a killed build leaves no tree."""
    return _made("base", PACKAGES, path())


def ensure_bare() -> Path:
    """The base tree of a bare host, with the packages that the host can install."""
    download = "apt-get --yes -qq --no-install-recommends --download-only install"
    hooks = (
        f"APT_CONFIG=$MMDEBSTRAP_APT_CONFIG {download} {' '.join(OFFERED)}",
        f'mkdir -p "$1/{DEBS}" && mv "$1"/var/cache/apt/archives/*.deb "$1/{DEBS}"',
    )
    options = tuple(f"--customize-hook={hook}" for hook in hooks)
    return _made("bare", BARE, _tree("bare", BARE + OFFERED), options)


def newest_path() -> Path:
    """Path of the base tree with the newest Docker, after it is made."""
    return _tree("newest", _NEWEST)


def ensure_newest() -> Path:
    """The base tree with the newest Docker; all other packages come from the suite."""
    # Unstable's signature is valid for a week, and a mirror may be a snapshot.
    mirror = debian_mirror()
    settings = (f'APT::Default-Release "{SUITE}"', 'Acquire::Check-Valid-Until "false"')
    return _made(
        "newest", _NEWEST, newest_path(),
        tuple(f"--aptopt={setting}" for setting in settings),
        tuple(f"deb {mirror} {suite} main" for suite in (SUITE, UNSTABLE)),
    )  # fmt: skip


def ensure_laptop(suite: str) -> Path:
    """The base tree of a laptop with this Debian suite."""
    return _made(suite, LAPTOP, _tree(suite, LAPTOP, suite), (), (), suite)


def debian_mirror() -> str:
    """Address of the Debian mirror that this machine's own apt uses."""
    command = ["apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI)"]
    options = ["-o", "APT::Get::IndexTargets::OnlyExistFiles=false"]
    listing = subprocess.run(
        [*command, *options, "Created-By: Packages"], capture_output=True, text=True, check=False
    ).stdout.split()
    for address in listing:
        if address.rstrip("/").endswith("/debian"):
            return address
    raise SystemExit("no Debian mirror in this machine's apt sources: add a mirror")


def _tree(name: str, packages: tuple[str, ...], suite: str = SUITE) -> Path:
    key = hashlib.sha256(" ".join((suite, *packages)).encode()).hexdigest()[:12]
    return CACHE / f"{name}-{key}"


def _made(
    name: str,
    packages: tuple[str, ...],
    base: Path,
    options: tuple[str, ...] = (),
    sources: tuple[str, ...] = (),
    suite: str = SUITE,
) -> Path:
    if base.is_dir():
        return base
    started = time.monotonic()
    print(f"building the {name} file system ({suite}, {len(packages)} packages)", flush=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    for stale in CACHE.glob(f"{name}-*"):
        shutil.rmtree(stale, ignore_errors=True)
    building = base.with_suffix(".new")
    # The build's temporary files are in this folder, too: a killed build leaves no other files.
    scratch = CACHE / f"tmp-{name}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o755)
    process = subprocess.Popen(
        [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            "--keyring=/usr/share/keyrings",
            f"--include={','.join(packages)}",
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*",
            *options,
            suite,
            str(building),
            *sources,
        ],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, text = process.communicate()
    except KeyboardInterrupt:
        process.wait(timeout=30)  # mmdebstrap removes its mounts and files
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if process.returncode != 0:
        shutil.rmtree(building, ignore_errors=True)
        raise SystemExit(f"mmdebstrap failed:\n{text.strip()[-2000:]}")
    building.rename(base)
    print(f"{name} file system built in {time.monotonic() - started:.0f} s", flush=True)
    return base
