"""Weights that a disk has changed: trusted by a deploy, found by `sparkwright verify`, fixed."""

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


def _verify(site: Site, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sparkwright", "verify", "inventory/virtual.py", *arguments],
        cwd=site.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_flipped_bit_is_found_on_request_and_its_file_is_fetched_again(converged: Site) -> None:
    good = _verify(converged, "--limit", "spark-1")
    assert good.returncode == 0, good.stdout
    assert "17 files" in good.stdout
    assert ", 0 faults" in good.stdout
    shard = ssh("spark-1", "sudo find /opt/models -name 'model-00003*.safetensors'")
    before = ssh("spark-1", f"sudo sha256sum {shard}")
    running = container("spark-1")
    ssh("spark-1", f"sudo python3 -c '{TURN}' {shard}")
    assert converged.deploy("--limit", "spark-1").changed == set()  # size and time are unchanged

    result = _verify(converged, "--limit", "spark-1", "--limit", "spark-2")
    assert result.returncode == 1
    assert "model-00003-of-00009.safetensors has changed since it was verified" in result.stdout
    assert "Traceback" not in result.stdout

    run = converged.deploy("--limit", "spark-1")
    assert run.changed == {"spark-1"}
    assert ssh("spark-1", f"sudo sha256sum {shard}") == before
    assert container("spark-1") == running
    assert _verify(converged, "--limit", "spark-1").returncode == 0


def test_weights_that_a_user_could_rewrite_are_replaced_by_copies(converged: Site) -> None:
    """The previous version hard linked a user's own download."""
    shard = ssh("spark-1", "sudo find /opt/models -name 'model-00003*.safetensors'")
    before = ssh("spark-1", f"sudo sha256sum {shard}")
    running = container("spark-1")
    ssh(
        "spark-1",
        f"sudo cp -p {shard} ~/blob && sudo chown $(id -u) ~/blob && sudo ln -f ~/blob {shard}",
    )
    result = _verify(converged, "--limit", "spark-1")
    assert result.returncode == 1
    assert "model-00003-of-00009.safetensors belongs to user spark" in result.stdout

    assert converged.deploy("--limit", "spark-1").changed == {"spark-1"}
    ssh("spark-1", "printf evil > ~/blob && rm ~/blob")
    assert ssh("spark-1", f"sudo sha256sum {shard}") == before
    assert ssh("spark-1", f"sudo stat -c '%U %h' {shard}") == "root 1"
    assert container("spark-1") == running
    assert converged.deploy("--limit", "spark-1").changed == set()


def test_a_models_directory_of_a_user_is_refused_with_the_remedy(converged: Site) -> None:
    ssh("spark-1", "sudo chown spark /opt/models")
    try:
        run = converged.deploy("--limit", "spark-1", refused={"spark-1"})
        assert "/opt/models belongs to user spark" in run.output
        remedy = "sudo chown root:root /opt/models"
        assert remedy in run.output
        ssh("spark-1", remedy)
        assert converged.deploy("--limit", "spark-1").changed == set()
    finally:
        ssh("spark-1", "sudo chown root:root /opt/models")
