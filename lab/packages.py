"""Debian packages that the lab needs on the controller: installed if they are missing."""

import contextlib
import os
import subprocess

NEEDED = (
    "ca-certificates",
    "curl",
    "debian-archive-keyring",
    "gnupg",  # checks vendors' keys, and makes the lab's keys
    "haproxy",
    "iproute2",
    "iptables",  # only in namespaces of the tests
    "mmdebstrap",
    "nftables",  # only in namespaces of the tests
    "openssh-client",
    "python3-venv",
    "systemd-container",
)
#: Browser for `make test`, which opens the report's page; only that command installs these 400 MB.
BROWSER = ("chromium", "fonts-dejavu-core")


def install(needed: tuple[str, ...] = NEEDED) -> None:
    """Install missing packages, with one check and no call of apt-get if none is missing."""
    shown = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *needed],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    there = {line.split()[0] for line in shown.splitlines() if line.endswith(" installed")}
    missing = [name for name in needed if name not in there]
    if not missing:
        return
    print(f"installing {', '.join(missing)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["install", "-qq", "--yes", "--no-install-recommends", *missing]
    for command in (["update", "-qq"], install):
        done = subprocess.run(
            ["apt-get", *command], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"apt-get {command[0]} failed:\n{done.stderr.strip()}")
    if "haproxy" in missing:  # the lab needs the program without its service
        stop = ["systemctl", "disable", "--quiet", "--now", "haproxy.service"]
        with contextlib.suppress(FileNotFoundError):
            subprocess.run(stop, capture_output=True, check=False)
