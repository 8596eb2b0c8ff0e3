"""Present load of a host, read from a fake vLLM, /proc and nvidia-smi."""

import json
from pathlib import Path

import pytest

from sparkwright.engines import metric_names
from sparkwright.host import load
from sparkwright.host.lib.records import encode
from sparkwright.host.load import LoadRequest
from sparkwright.host.watch.state import WatchConfig, WatchedService
from tests.host.lab.fake_server import launched, make_model
from tests.host.programs import program

SMI = """\
echo "NVIDIA GeForce RTX 5090, 580.95.05, 61, 402.10 W, 93 %, 2500 MHz, 3000 MHz, 0x0, 32607 MiB, \
29000 MiB"
"""


def test_the_load_has_services_gpu_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "nvidia-smi", SMI)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with launched(make_model(tmp_path / "model")) as server:
        body = {"model": "tiny", "prompt": "1 2 3", "max_tokens": 7}
        status, _, text = server.ask("POST", "/v1/completions", body)
        assert status == 200, text
        tokens = json.loads(text)["usage"]["completion_tokens"]
        at = ("127.0.0.1", server.port)
        names = metric_names()
        result = load.main(LoadRequest({"tiny": at, "down": ("127.0.0.1", 9)}, metric_names=names))
        config = WatchConfig((WatchedService("seen", *at, 60.0),), "", ())
        (tmp_path / "watch").mkdir()
        (tmp_path / "watch/config.json").write_text(json.dumps(encode(config)))
        planless = load.main(LoadRequest(services_root=str(tmp_path), metric_names=names))
    tiny = result.services["tiny"]
    assert tiny is not None
    assert (tiny["generated"], tiny["running"], tiny["waiting"]) == (tokens, 0.0, 0.0)
    assert result.services["down"] is None
    assert 0 < result.available < result.memory
    (gpu,) = result.gpus
    assert (gpu.busy_percent, gpu.power_w, gpu.temperature_c) == (93.0, 402.1, 61.0)
    assert (gpu.memory_used_mib, gpu.memory_mib) == (29000, 32607)
    assert set(planless.services) == {"seen"}
    assert planless.services["seen"] is not None
    assert planless.at >= result.at
    assert load.main(LoadRequest()).services == {}
