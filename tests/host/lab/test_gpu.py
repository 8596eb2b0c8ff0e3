"""The lab of real GPUs, as far as it goes without one: parts, weights, the fake runtime."""

import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from lab.gpu import controls, models, pack, prove, receive
from tests.host.programs import program as put
from tests.tables import Tables
from tests.unit.builders import ROOT

cases = Tables(__file__)

FAKES = ROOT / "lab/gpu/fakes"
NVIDIA_HOOK = "/usr/bin/nvidia-container-runtime-hook"


def test_carried_parts_are_unpacked_as_soon_as_an_archive_is_whole(tmp_path: Path) -> None:
    archives = {}
    for name in ("base", "site"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(os.urandom(300_000))
        archives[name] = tmp_path / f"{name}.tar.xz"
        with tarfile.open(archives[name], "w:xz") as tar:
            tar.add(tmp_path / name, ".")
    pack.cut(archives, tmp_path / "parts", 100_000)
    folders, home = sorted((tmp_path / "parts").iterdir()), tmp_path / "home"
    begun = [receive.receive(folder, home) for folder in folders]
    assert [item for part in begun for item in part] == ["base", "site"]
    assert begun[-1] == ["site"]
    assert "base" not in begun[-1]
    deadline = time.monotonic() + 20
    while not (home / ".site.done").exists() or not (home / ".base.done").exists():
        assert time.monotonic() < deadline, (home / "site.log").read_text()
        time.sleep(0.02)
    for name in archives:
        assert (home / name / "file").read_bytes() == (tmp_path / name / "file").read_bytes()
    with pytest.raises(SystemExit, match="is not its place"):
        receive.receive(folders[1], home)


def test_a_step_begins_with_the_base_release_and_none_spoils_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As after `noise`, whose release served and was as planned by that step's own settings."""
    done: list[str] = []
    settings = tmp_path / "settings.json"
    settings.write_text('{"services": {"qwen3": {"recipe": "lab-noise-h200"}}}')

    def status(*_: str) -> tuple[int, str, float]:
        planned = json.loads(settings.read_text())["services"]["qwen3"]["recipe"]
        return (1, "differs", 1.0) if planned == controls.RECIPE else (0, "as planned", 1.0)

    monkeypatch.setattr(controls, "SETTINGS", settings)
    monkeypatch.setattr(controls, "control", status)
    monkeypatch.setattr(controls, "deploy", done.append)
    monkeypatch.setattr(prove, "RESULTS", tmp_path)
    monkeypatch.setattr(controls, "RESULTS", tmp_path)
    monkeypatch.setattr(prove, "ssh", lambda _: "NVIDIA H200, 9.0, 580.159.04, 143771, 0")
    monkeypatch.setitem(prove.STEPS, "noise", lambda: done.append("noise") or {})  # type: ignore[func-returns-value]
    assert prove.main(["noise"]) == 0
    assert done == ["base", "noise"]


def test_the_model_s_mount_is_read_from_a_compose_file_as_it_is_rendered() -> None:
    text = (
        '- {type: bind, source: "/opt/models/lab--qwen3-8b/95e670b3", target: "/models/qwen3", '
        "read_only: true, bind: {create_host_path: false}}"
    )
    assert models.mounted(text) == "/opt/models/lab--qwen3-8b/95e670b3:/models/qwen3:ro"


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
