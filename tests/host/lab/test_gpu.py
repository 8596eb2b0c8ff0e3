"""The lab of real GPUs, as far as it goes without one: its refusal of other machines."""

import subprocess
from pathlib import Path

import pytest

from tests.unit.builders import ROOT


def test_the_lab_of_real_gpus_refuses_a_machine_without_one() -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has an NVIDIA GPU")
    done = subprocess.run([ROOT / "lab/gpu/start.sh", "all"], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "lab/gpu: there is no /dev/nvidia0" in done.stderr or "sudo" in done.stderr
