"""The base file system of all machines: Debian 13, made once with mmdebstrap and kept."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

from lab.layout import CACHE

SUITE = "trixie"
PACKAGES = (
    # a host as its users have it
    "systemd", "systemd-sysv", "dbus", "openssh-server", "python3", "sudo", "iproute2",
    "ca-certificates", "curl", "iptables", "docker.io", "docker-cli", "docker-compose", "haproxy",
    # what the depot runs
    "docker-registry", "python3-starlette", "python3-uvicorn",
)  # fmt: skip


def path() -> Path:
    """Where the base tree of this suite and these packages is, once it is made."""
    key = hashlib.sha256(" ".join((SUITE, *PACKAGES)).encode()).hexdigest()[:12]
    return CACHE / f"base-{key}"


def ensure() -> Path:
    """The base tree, made when it is not there; a killed build leaves none."""
    base = path()
    if base.is_dir():
        return base
    started = time.monotonic()
    print(f"building the base file system ({SUITE}, {len(PACKAGES)} packages)", flush=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    for stale in CACHE.glob("base-*"):
        shutil.rmtree(stale, ignore_errors=True)
    building = base.with_suffix(".new")
    # Its own scratch files lie here too, so that nothing is left elsewhere by a killed build.
    scratch = CACHE / "tmp"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o755)
    process = subprocess.Popen(
        [
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            "--keyring=/usr/share/keyrings",
            f"--include={','.join(PACKAGES)}",
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*",
            SUITE,
            str(building),
        ],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, said = process.communicate()
    except KeyboardInterrupt:
        process.wait(timeout=30)  # it got the signal too, and takes its own mounts and files away
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if process.returncode != 0:
        shutil.rmtree(building, ignore_errors=True)
        raise SystemExit(f"mmdebstrap failed:\n{said.strip()[-2000:]}")
    building.rename(base)
    print(f"base file system built in {time.monotonic() - started:.0f} s", flush=True)
    return base
