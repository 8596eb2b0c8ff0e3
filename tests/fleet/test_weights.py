"""Weights that a disk has turned: trusted by a deploy, found by `sparkwright verify`, fixed."""

from __future__ import annotations

import subprocess
import sys

from tests.fleet.site import Site, container, ssh

TURN = """
import os, sys
path = sys.argv[1]
before = os.stat(path)
with open(path, "r+b") as file:
    file.seek(before.st_size - 1)
    last = file.read(1)
    file.seek(before.st_size - 1)
    file.write(bytes([last[0] ^ 1]))
os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
"""


def _verify(site: Site, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sparkwright", "verify", "inventory/virtual.py", *words],
        cwd=site.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_turned_bit_is_found_on_demand_and_fetched_again(converged: Site) -> None:
    good = _verify(converged, "--limit", "spark-1")
    assert good.returncode == 0, good.stdout
    assert "17 files" in good.stdout
    assert ", 0 wrong" in good.stdout
    shard = ssh("spark-1", "sudo find /opt/models -name 'model-00003*.safetensors'")
    before = ssh("spark-1", f"sudo sha256sum {shard}")
    running = container("spark-1")
    ssh("spark-1", f"sudo python3 -c '{TURN}' {shard}")
    assert converged.deploy("--limit", "spark-1").changed == set()  # by size and time it is good

    found = _verify(converged, "--limit", "spark-1", "--limit", "spark-2")
    assert found.returncode == 1
    assert "model-00003-of-00009.safetensors has other content than was verified" in found.stdout
    assert "Traceback" not in found.stdout

    run = converged.deploy("--limit", "spark-1")
    assert run.changed == {"spark-1"}
    assert ssh("spark-1", f"sudo sha256sum {shard}") == before
    assert container("spark-1") == running
    assert _verify(converged, "--limit", "spark-1").returncode == 0
