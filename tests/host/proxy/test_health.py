"""The health program as it lies on a host: its own file, and what it imports beside it."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from sparkwright.engines import metric_names
from sparkwright.facts.programs import entry, laid_out
from sparkwright.host.lib.records import encode
from sparkwright.host.proxy import health
from sparkwright.host.proxy.pool import HealthConfig, HealthService
from tests.host.doctor.hosts import vllm


def test_it_runs_alone_as_its_unit_starts_it(tmp_path: Path) -> None:
    home = tmp_path / "proxies"
    for path, text in {
        **laid_out(str(home), health),
        str(home / "health.py"): entry(str(home), health),
    }.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    (tmp_path / "secrets.env").write_text("VLLM_API_KEY=key\n")
    state = tmp_path / "state.json"
    with vllm() as server:
        server.step = 5.0
        one = HealthService("qwen36", server.port, 0, str(tmp_path / "secrets.env"), "m", 5)
        config = tmp_path / "health.json"
        config.write_text(json.dumps(encode(HealthConfig((one,), 30, str(state), metric_names()))))
        running = subprocess.Popen(
            ["python3", "-IS", str(home / "health.py"), str(config)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
        )  # fmt: skip
        try:
            until = time.monotonic() + 20
            reported: list[object] = []
            while reported != [True, "generates"] and time.monotonic() < until:
                time.sleep(0.1)
                if state.exists():
                    reported = json.loads(state.read_text())["services"]["qwen36"]
                assert running.poll() is None, running.communicate()
        finally:
            running.kill()
            running.communicate()
    assert reported == [True, "generates"]
    assert state.stat().st_mode & 0o777 == 0o644
