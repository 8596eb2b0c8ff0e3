"""The watch on a host: its run, its installation, and its line in the status."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.service.watch_plan import SERVICE, TIMER, watch_of
from sparkwright.host.lib import disks, systemd
from sparkwright.host.lib.disks import Disk
from sparkwright.host.lib.records import decode
from sparkwright.host.watch import install
from sparkwright.host.watch import watch as program
from sparkwright.host.watch.install import WatchInstallRequest
from sparkwright.host.watch.state import WatchConfig
from sparkwright.operations import watch as operation
from sparkwright.plan.desired import Desired
from tests.host.doctor.hosts import KEY, host, inspected, vllm
from tests.host.programs import program as put
from tests.unit.builders import plan, wanted

NOW = 1_800_000_000


def run_of(**data: Any) -> Desired:
    """Desired state of a host."""
    return wanted(plan(**data))


def files_of(desired: Desired) -> dict[str, tuple[str, int]]:
    """Every file of a host's watch: text and mode, by path."""
    return operation.files_of(watch_of(desired.plan, desired.services))


def test_a_host_without_a_watch_has_no_report() -> None:
    assert files_of(run_of(watch=False)) == {}
    assert watch_of(plan({}), ()) is None


def _config(folder: Path, port: int, run: Desired) -> WatchConfig:
    """The plan's configuration, with all paths below a directory of the test."""
    wanted_ = watch_of(run.plan, run.services)
    assert wanted_ is not None
    config = json.loads(wanted_.config.replace("/opt/sparkwright", str(folder)))
    config["services"][0] |= {"address": "127.0.0.1", "port": port}
    return decode(WatchConfig, config)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desired:
    """A host after a deploy, and its desired state."""
    desired = run_of()
    (release,) = desired.services
    home = tmp_path / "services/qwen36"
    files = {
        home / "releases" / release.release / "compose.yaml": release.compose,
        home / "releases" / release.release / "release.json": release.record,
        tmp_path / f"units/{release.unit}": release.unit_text,
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("/opt/sparkwright", str(tmp_path)))
    for name in ("current", "good"):
        (home / name).symlink_to(f"releases/{release.release}")
    (tmp_path / "state").mkdir()
    (tmp_path / "watch/metrics").mkdir(parents=True)
    seen = inspected()
    seen["Config"]["Labels"]["sparkwright.release"] = release.release
    host(tmp_path, monkeypatch, [seen])
    monkeypatch.setattr(systemd, "UNITS", tmp_path / "units")
    return desired


def test_a_wedge_is_reported_after_minutes(tmp_path: Path, run: Desired) -> None:
    texts = []
    (tmp_path / "services/qwen36/secrets.env").write_text(f"LLAMA_API_KEY={KEY}\n")
    with vllm() as server:
        server.key = KEY
        config = _config(tmp_path, server.port, run)
        server.values["num_requests_running"] = 3.0
        for minute in range(12):
            server.step = 0.0 if 5 <= minute < 10 else 50.0
            if minute == 9:
                exported = (tmp_path / "watch/metrics/sparkwright.prom").read_text()
            texts += program.look(config, NOW + 60 * minute)
    state = json.loads((tmp_path / "state/watch.json").read_text())
    assert (tmp_path / "state/watch.json").stat().st_mode & 0o777 == 0o600
    labels = 'diagnosis="wedge",service="qwen36",severity="error"'
    assert f"sparkwright_finding{{{labels}}} 1\n" in exported
    assert f"sparkwright_watch_seconds {NOW + 60 * 8}\n" in exported
    assert len(state["ring"]) == 12
    assert state["findings"] == []
    arguments = "qwen36: error: wedge: 3 requests ran without a token for"
    assert [line.startswith(arguments) for line in texts] == [True, False]
    assert texts[1].startswith(f"over: {arguments}")


def test_a_manual_change_is_drift(tmp_path: Path, run: Desired) -> None:
    (release,) = run.services
    with vllm() as server:
        config = _config(tmp_path, server.port, run)
        assert program.sample(config, NOW).services["qwen36"].drift == ()
        home = tmp_path / "services/qwen36"
        (home / "current/compose.yaml").write_text("services: {}\n")
        (tmp_path / f"units/{release.unit}").write_text("[Unit]\n")
        drift = list(program.sample(config, NOW).services["qwen36"].drift)
        assert drift == [f"{name} was changed by hand" for name in ("compose.yaml", release.unit)]
        (home / "current").unlink()
        (home / "current").symlink_to("releases/other")
        drift = list(program.sample(config, NOW).services["qwen36"].drift)
        parts = ("release other instead of", "the container runs release")
        assert drift == [f"{part} {release.release}" for part in parts]


def test_two_full_disks_are_reported_separately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Desired
) -> None:
    """node_exporter refuses a file with a duplicate line."""
    full = Disk(1, 1, exists=True, read_only=False, total=100)
    monkeypatch.setattr(disks, "file_systems", lambda _: {"/": full, "/opt": full})
    lines = "".join(program.look(_config(tmp_path, 9, run), NOW))
    assert "disk-full: /:" in lines
    assert "disk-full: /opt:" in lines
    exported = (tmp_path / "watch/metrics/sparkwright.prom").read_text()
    assert exported.count("disk-full") == 1


def test_the_watch_marks_samples_during_a_switch(tmp_path: Path, run: Desired) -> None:
    config = _config(tmp_path, 9, run)
    assert program.sample(config, NOW).switching is False
    (tmp_path / "state/switch").mkdir()
    (tmp_path / "state/switch/progress.json").write_text('{"step": "proving"}')
    assert program.sample(config, NOW).switching is True


def test_the_watch_needs_no_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reload takes the GPU from containers on some hosts: only a changed unit justifies a
    reload.
    """
    put(tmp_path / "bin", "systemctl", f'echo "$@" >> {tmp_path}/asked')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    units = tmp_path / "units"
    monkeypatch.setattr(systemd, "UNITS", units)
    timer = "[Timer]\n[Install]\nWantedBy=timers.target\n"
    texts = {tmp_path / "watch/config.json": "{}", units / TIMER: timer}
    files = {str(path): (text, 0o644) for path, text in texts.items()}
    request = WatchInstallRequest(str(tmp_path / "watch"), TIMER, SERVICE, files)

    def asked() -> list[str]:
        lines = (tmp_path / "asked").read_text().splitlines()
        (tmp_path / "asked").unlink()
        return lines

    install.main(request)
    assert asked() == [f"reset-failed {TIMER} {SERVICE}", f"start {TIMER}"]
    assert (units / "timers.target.wants" / TIMER).resolve() == units / TIMER
    assert (units / TIMER).read_text() == timer
    request.files[str(units / TIMER)] = (f"{timer}# changed\n", 0o644)
    install.main(request)
    assert asked()[0] == "daemon-reload"
    assert install.main(replace(request, files={})) == ["removed the watch"]
    assert not list(units.rglob("*.timer"))
    assert not (tmp_path / "watch").exists()
