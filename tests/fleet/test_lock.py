"""Lock and rules on the fleet: pins, refusals, and messages."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab import machines
from lab.layout import DEPOT
from tests.fleet.site import LOCKING, Site, fingerprint, ssh

ARM64_ONLY = """\
kind: image
name: aeon-vllm-ultimate
extends: true
tags:
  lab-arm64-only:
    date: 2026-08-17
    version: 0.24.0
    architectures: [arm64, amd64]
    source: says more than the lab's registry has
"""


def _managed(host: str) -> str:
    """Everything that sparkwright manages on a host, by content: files, weights and image.

    Parts that differ between hosts are left out: the engine's key, its compiled code, and its boot
    times.
    """
    return ssh(
        host,
        "cd / && sudo sha256sum $(sudo find opt/sparkwright/services opt/models"
        " etc/systemd/system/sparkwright-*.service -type f"
        " ! -name '.sparkwright*' ! -name secrets.env ! -name boot.json"
        " ! -path '*/caches/*') | sort -k2;"
        " docker inspect -f '{{.Config.Image}} {{.Image}}' sparkwright-qwen36;"
        " sudo readlink /opt/sparkwright/services/qwen36/current",
    )


@pytest.fixture
def lock(converged: Site) -> Iterator[Path]:
    """Path of the lock, which no other test of the fleet may use."""
    path = converged.folder / ".sparkwright/virtual.lock"
    yield path
    path.unlink(missing_ok=True)


@pytest.mark.faults
def test_two_hosts_with_one_lock_get_equal_content(converged: Site, lock: Path) -> None:
    made = converged.call(*LOCKING, timeout=60)
    assert made.returncode == 0, made.stderr
    assert converged.call(*LOCKING, "--check", timeout=60).returncode == 0
    # The disks are bare, and both hosts fetch the pinned image.
    for host in ("spark-1", "spark-2"):
        ssh(
            host,
            "sudo systemctl stop sparkwright-qwen36; docker rm -f sparkwright-qwen36;"
            " docker image prune -af; sudo rm -rf /opt/models /opt/sparkwright"
            " /etc/systemd/system/sparkwright-*",
        )
    run = converged.deploy("--limit", "spark-1", "--limit", "spark-2")
    assert run.changed == {"spark-1", "spark-2"}
    assert _managed("spark-1") == _managed("spark-2")
    pins = yaml.safe_load(lock.read_text())
    (image,) = pins["images"].values()
    for host in ("spark-1", "spark-2"):
        (service,) = run.host(host)["services"]
        assert service["image"].endswith(image["digest"].replace(":", "-"))
        for repository, commit in service["models"].items():
            assert pins["models"][f"{repository}@main"]["commit"] == commit
    # With a lock and all files on the disk, a run needs neither registry nor hub.
    services = ("docker-registry", "sparkwright-lab-hub")
    for unit in services:
        machines.inside(DEPOT, ["systemctl", "stop", unit])
    try:
        again = converged.deploy("--limit", "spark-1")
        lock.rename(lock.with_suffix(".away"))
        unlocked = converged.run("--yes", "--limit", "spark-1")
        lock.with_suffix(".away").unlink()
    finally:
        for unit in services:
            machines.inside(DEPOT, ["systemctl", "start", unit])
    assert again.changed == set()
    assert unlocked.code == 2
    assert "could not be reached: Connection refused" in unlocked.output


@pytest.mark.usefixtures("lock")
def test_an_unlocked_reference_stops_the_run_before_any_host(converged: Site) -> None:
    assert converged.call(*LOCKING, timeout=60).returncode == 0
    before = fingerprint("spark-1")
    run = converged.run("--yes", "--data", "image_tag=2026-06-18-v0.23.0-dflashfix")
    assert run.code == 2
    assert "2026-06-18-v0.23.0-dflashfix is not locked" in run.output
    assert "sparkwright lock" in run.output
    assert fingerprint("spark-1") == before


def test_an_image_without_the_hosts_architecture_is_refused_with_alternatives(
    converged: Site,
) -> None:
    mine = converged.folder / "mine/arm64-only.yaml"
    mine.parent.mkdir()
    mine.write_text(ARM64_ONLY)
    catalogs = 'catalog_directories=["lab/catalog", "mine"]'
    arguments = ("--limit", "rtx-1", "--data", "image_tag=lab-arm64-only", "--data", catalogs)
    run = converged.run("--yes", *arguments)
    assert run.code == 1
    assert "error: architecture" in run.output
    assert "has arm64" in run.output
    assert "gemma4-26b-a4b-stock" in run.output
    assert run.changed == set()
