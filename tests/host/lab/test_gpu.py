"""The lab of real GPUs, as far as it goes without one: parts, weights, the fake runtime."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.host.programs import program as put
from tests.tables import Tables
from tests.unit.builders import ROOT

cases = Tables(__file__)

FAKES = ROOT / "lab/gpu/fakes"
NVIDIA_HOOK = "/usr/bin/nvidia-container-runtime-hook"


@cases("program", "hook", "variables", "gets")
def test_the_fake_runtime_gives_a_container_the_driver_when_it_is_asked(
    tmp_path: Path, program: str, hook: bool, variables: list[str], gets: bool
) -> None:
    manifest = tmp_path / "driver.txt"
    manifest.write_text("/bin/true\n")
    text = (FAKES / "nvidia-container-runtime").read_text()
    (tmp_path / program).write_text(text.replace("/usr/share/sparkwright-lab/driver.txt",
                                                 str(manifest)))  # fmt: skip
    put(tmp_path, "runc", 'echo "$@"')
    hooks = {"prestart": [{"path": NVIDIA_HOOK}, {"path": "/other"}]} if hook else {}
    config = {"process": {"env": variables}, "linux": {}, "mounts": [], "hooks": hooks}
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = subprocess.run(
        [sys.executable, tmp_path / program, "create", "--bundle", tmp_path, "id"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["create", "--bundle", str(tmp_path), "id"]
    result = json.loads((tmp_path / "config.json").read_text())
    assert [item["destination"] for item in result["mounts"]] == (
        ["/bin/true", "/usr/bin/nvidia-smi"] if gets else []
    )
    assert bool(result["hooks"].get("createContainer")) is gets
    assert [item["path"] for item in result["hooks"].get("prestart", [])] == ["/other"] * hook


def test_the_lab_of_real_gpus_refuses_a_machine_without_one() -> None:
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has an NVIDIA GPU")
    done = subprocess.run([ROOT / "lab/gpu/start.sh", "all"], capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert "lab/gpu: there is no /dev/nvidia0" in done.stderr or "sudo" in done.stderr
