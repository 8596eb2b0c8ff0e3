"""Parts of the lab of real GPUs that run without a GPU: containers may not use multicast."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.builders import ROOT


def test_the_lab_of_real_gpus_refuses_a_machine_without_a_gpu() -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has an NVIDIA GPU")
    command = [str(ROOT / "lab/gpu/start.sh"), "all"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "lab/gpu: there is no /dev/nvidia0" in done.stderr or "sudo" in done.stderr


REFUSED = (
    "sparkwright lab: no GPU for a container without NCCL_NVLS_ENABLE=0, NVSHMEM_DISABLE_NVLS=1"
)


@pytest.mark.parametrize(("devices", "result"), [("all", REFUSED), ("void", "runc")])
def test_the_fake_runtime_gives_no_gpu_to_a_container_that_may_use_multicast(
    tmp_path: Path, devices: str, result: str
) -> None:
    variables = [f"NVIDIA_VISIBLE_DEVICES={devices}", "TORCH_SYMM_MEM_DISABLE_MULTICAST=1"]
    (tmp_path / "config.json").write_text(json.dumps({"process": {"env": variables}}))
    (tmp_path / "runc").write_text("#!/bin/sh\necho runc >&2\n")
    (tmp_path / "runc").chmod(0o755)
    runtime = ROOT / "lab/gpu/fakes/nvidia-container-runtime"
    command = [str(runtime), "create", "--bundle", str(tmp_path), "name"]
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": path}, check=False)
    assert done.stderr.strip() == result
